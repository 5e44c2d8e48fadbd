"""Source ids: one a version, stable over everything that is no version."""

import hashlib
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.core import canonical
from apps.core.ids import uuid7
from apps.retrieval.schemas import Provenance
from apps.sources.identity import Unresolved, content_version, identify, memory_version

ISSUE = Provenance("acme/app", "issue", 7, "2026-01-02T03:04:05Z")
SHA = "0000000000000000000000000000000000000001"
LIVE = content_version("text")


@pytest.mark.parametrize(
    ("provenance", "source_id"),
    [
        (ISSUE, "s:cf43b2901f0426bb61eef3c7112e3a82f5a9d42ba4e66cde8146b64a11a22403"),
        (
            replace(ISSUE, type="diff", identity=[SHA, "src/a.ts"]),
            "s:3c1f4e53e0c9424bb49936fe20e347d5f98f4ffa9a16597cc86c9b5e3cfe847f",
        ),
        (
            replace(ISSUE, type="diff", identity=(SHA, "src/a.ts")),
            "s:3c1f4e53e0c9424bb49936fe20e347d5f98f4ffa9a16597cc86c9b5e3cfe847f",
        ),
    ],
)
def test_ids_are_those_of_the_reference_format(provenance, source_id) -> None:
    assert identify(provenance).source_id == source_id


@given(
    st.one_of(
        st.text(min_size=1), st.integers(1, 2**53 - 1), st.lists(st.text(min_size=1), min_size=2, max_size=2)
    )
)
def test_values_are_written_as_rfc_8785_writes_them(identity) -> None:
    kind = "issue" if isinstance(identity, int) else "doc" if isinstance(identity, str) else "diff"
    found = identify(replace(ISSUE, type=kind, identity=identity))
    members = [f'"{name}":{canonical.dumps(value).decode()}' for name, value in found.document().items()]
    expected = hashlib.sha256(("{" + ",".join(members) + "}").encode()).hexdigest()
    assert found.source_id == f"s:{expected}"


def test_neither_part_nor_place_of_storage_enters_the_id() -> None:
    assert identify(replace(ISSUE, part=5)).source_id == identify(ISSUE).source_id


def test_different_events_and_versions_never_share_an_id() -> None:
    node = str(uuid7())
    different = [
        ISSUE,
        replace(ISSUE, identity=8),
        replace(ISSUE, version="2026-01-02T03:04:06Z"),
        replace(ISSUE, repo="acme/other"),
        *(
            replace(ISSUE, type=kind)
            for kind in ("pull_request", "issue_comment", "pr_review_comment", "pr_review")
        ),
        replace(ISSUE, type="doc", identity="README.md"),
        replace(ISSUE, type="wiki_doc", identity="README.md"),
        replace(ISSUE, type="release", identity="README.md"),
        Provenance("acme/app", "doc", "README.md", LIVE, content_source="github_live"),
        Provenance("conn:files", "document", "README.md", "2026-01-02T03:04:05Z"),
        Provenance("memory", "memory_node", node, memory_version("a", "b"), content_source="memory"),
        Provenance("memory", "memory_node", node, memory_version("a", "c"), content_source="memory"),
    ]
    for one, other in combinations(different, 2):
        assert identify(one).source_id != identify(other).source_id


@pytest.mark.parametrize(
    "provenance",
    [
        replace(ISSUE, repo=None),
        replace(ISSUE, repo=""),
        replace(ISSUE, type=None),
        replace(ISSUE, type="tweet"),
        replace(ISSUE, version=None),
        replace(ISSUE, version=""),
        replace(ISSUE, identity=None),
        replace(ISSUE, identity=0),
        replace(ISSUE, identity=-7),
        replace(ISSUE, identity=True),
        replace(ISSUE, identity="7"),
        replace(ISSUE, identity=7.0),
        replace(ISSUE, type="issue_comment", identity=2**53),
        replace(ISSUE, type="pr_review", identity=0),
        replace(ISSUE, type="diff", identity=[SHA, ""]),
        replace(ISSUE, type="diff", identity=[SHA]),
        replace(ISSUE, type="doc", identity=""),
        replace(ISSUE, type="document", identity="k"),
        Provenance("conn:files", "document", "k" * 513, "v"),
        Provenance("memory", "memory_node", "not-a-uuid", LIVE, content_source="memory"),
        Provenance("memory", "memory_node", str(uuid7()), "v1", content_source="memory"),
        replace(ISSUE, content_source="memory", version=LIVE),
    ],
)
def test_what_is_missing_stays_missing(provenance) -> None:
    with pytest.raises(Unresolved) as unresolved:
        identify(provenance)
    assert unresolved.value.reason == "canonical_identity_unavailable"


@pytest.mark.parametrize(
    "provenance",
    [
        replace(ISSUE, content_source="github_live", version=LIVE),
        Provenance("acme/app", "doc", "a.md", "2026-01-02", content_source="github_live"),
        Provenance("acme/app", "wiki_doc", "a.md", LIVE.upper(), content_source="github_live"),
        Provenance("acme/app", "wiki_doc", "a.md", None, content_source="github_live"),
    ],
)
def test_a_live_version_is_the_hash_of_a_page(provenance) -> None:
    with pytest.raises(Unresolved) as unresolved:
        identify(provenance)
    assert unresolved.value.reason == "live_version_unavailable"
