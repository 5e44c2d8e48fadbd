"""A whole retrieval: from stored passages to rows."""

import json

import pytest
from django.db import connection

from apps.core.db.sessions import principal_session, staff_session
from apps.core.models import StoredPolicy
from apps.core.policies import publish_policy
from apps.graph.services import PassageItem, delete_passages
from apps.retrieval.policy import ScoringPolicy, SessionInheritance, in_force, unstored
from apps.retrieval.schemas import Filters
from tests.support import judged_data
from tests.support.factories import make_principal, make_staff, make_world
from tests.support.memory import ask, give_vectors, question, store

pytestmark = pytest.mark.django_db


@pytest.fixture
def world():
    return make_world()


def turns(*texts, session="s", repo="conn:talk"):
    return [
        PassageItem(identity=f"{session}/{n}", text=text, session=session, position=n, repo=repo)
        for n, text in enumerate(texts)
    ]


def identities(answer):
    return [row.provenance.identity for row in answer.rows]


def test_a_row_carries_what_an_answer_shows(world) -> None:
    store(
        world.principal,
        PassageItem(
            identity=7,
            type="issue",
            repo="acme/app",
            title="Needle lost",
            text="In a haystack.",
            updated_at="2026-01-02T03:04:05Z",
            state="open",
            labels=("bug",),
            url="https://example.test/7",
        ),
    )
    answer = ask(world.principal, "needle")
    (row,) = answer.rows
    assert (row.rank, row.title, row.content, row.state, row.labels) == (
        1,
        "Needle lost",
        "In a haystack.",
        "open",
        ("bug",),
    )
    assert (row.provenance.repo, row.provenance.type, row.provenance.identity, row.provenance.version) == (
        "acme/app",
        "issue",
        7,
        "2026-01-02T03:04:05Z",
    )
    assert (row.number, row.url, row.scope, row.shared) == (7, "https://example.test/7", "default", False)
    assert row.raw.lexical_rank == 1
    assert answer.scored == 1
    assert answer.omitted == 0


def test_the_limit_bounds_rows_and_the_rest_is_counted(world) -> None:
    store(world.principal, *[f"needle number{n}x" for n in range(30)])
    answer = ask(world.principal, "needle", limit=7)
    assert [row.rank for row in answer.rows] == list(range(1, 8))
    assert answer.omitted == 23


def test_twenty_runs_are_identical(world) -> None:
    ids = store(world.principal, *[f"needle number{n}x same words" for n in range(40)])
    give_vectors(world.principal, {node_id: [1, n % 5] for n, node_id in enumerate(ids)})
    from apps.core import clock

    with clock.frozen(clock.now()):
        answers = [
            ask(world.principal, "needle words", embedding=question([1, 1]), limit=40) for _ in range(20)
        ]
    assert all(answer.rows == answers[0].rows for answer in answers)


def test_neighbours_in_a_conversation_answer_with_a_found_turn(world) -> None:
    store(
        world.principal,
        *turns("hello", "where is the needle", "in the box", "which one", "the red one", "bye"),
    )
    found = identities(ask(world.principal, "needle"))
    assert found[0] == "s/1"
    assert set(found) == {"s/0", "s/1", "s/2", "s/3"}
    row = ask(world.principal, "needle").rows[1]
    assert row.adjustments[-1].kind == "session_decay"
    off = unstored(ScoringPolicy(session=SessionInheritance(enabled=False)))
    assert identities(ask(world.principal, "needle", policy=off)) == ["s/1"]


def test_other_conversations_and_parts_of_a_document_do_not_inherit(world) -> None:
    store(
        world.principal,
        *turns("needle", "next"),
        *turns("other", session="t"),
        *turns("elsewhere", "again", repo="conn:other"),
        PassageItem(identity="doc", text="needle again", part=0),
        PassageItem(identity="doc", text="second part", part=1),
    )
    found = identities(ask(world.principal, "needle", limit=50))
    assert found.count("s/1") == 1
    assert "t/0" not in found
    assert found.count("doc") == 1


def test_filters_hold_for_neighbours_too(world) -> None:
    items = turns("needle", "beside")
    items[1] = PassageItem(
        identity="s/1", text="beside", session="s", position=1, repo="conn:talk", scope="other"
    )
    store(world.principal, *items)
    assert identities(ask(world.principal, "needle", scopes=("default",))) == ["s/0"]


def doc(path, text, at="2026-01-01T00:00:00Z", **more):
    return PassageItem(
        identity=path,
        type="doc",
        repo=more.pop("repo", "acme/app"),
        path=path,
        text=text,
        updated_at=at,
        **more,
    )


def diff(commit, path, text, at):
    return PassageItem(
        identity=[commit, path], type="diff", repo="acme/app", path=path, text=text, updated_at=at
    )


def test_editions_of_a_file_are_one_row_and_say_which_is_latest(world) -> None:
    store(
        world.principal,
        doc("src/a.py", "needle needle needle", "2026-01-01T00:00:00Z"),
        diff(
            "c1",
            "src/a.py",
            "needle with much more text around it so that it ranks lower",
            "2026-02-01T00:00:00Z",
        ),
        diff("c1", "src/b.py", "needle in another file of the same commit", "2026-02-01T00:00:00Z"),
        doc("src/a.py", "needle elsewhere", repo="acme/other"),
    )
    answer = ask(world.principal, "needle", limit=50)
    assert len(answer.rows) == 3
    (row,) = [row for row in answer.rows if row.others]
    assert row.provenance.type == "doc", "the best ranked represents, even if older"
    assert row.version_status == "superseded"
    assert [(other.provenance.type, other.status) for other in row.others] == [("diff", "latest")]


def test_a_thread_is_one_row_and_its_comments_are_no_versions(world) -> None:
    thread = {"repo": "acme/app", "number": 7}
    store(
        world.principal,
        PassageItem(identity=7, type="issue", text="needle", updated_at="2026-01-01T00:00:00Z", **thread),
        PassageItem(
            identity=1001, type="issue_comment", text="needle!", updated_at="2026-01-02T00:00:00Z", **thread
        ),
        PassageItem(
            identity=1002, type="issue_comment", text="needle?", updated_at="2026-01-03T00:00:00Z", repo="a/b"
        ),
    )
    answer = ask(world.principal, "needle", limit=50)
    assert sorted(len(row.others) for row in answer.rows) == [0, 1]
    assert all(row.version_status is None for row in answer.rows)


def test_wiki_pages_stand_apart_from_files(world) -> None:
    store(
        world.principal,
        doc("a.md", "needle"),
        PassageItem(identity="a.md", type="wiki_doc", repo="acme/app", path="a.md", text="needle"),
    )
    assert len(ask(world.principal, "needle").rows) == 2


def test_the_limit_counts_folded_rows(world) -> None:
    store(
        world.principal,
        *[diff(f"c{n}", "src/a.py", f"needle {n}", f"2026-01-{n + 1:02}T00:00:00Z") for n in range(9)],
        doc("src/b.py", "needle and some other words to rank last"),
    )
    answer = ask(world.principal, "needle", limit=2)
    assert len(answer.rows) == 2
    assert sum(len(row.others) for row in answer.rows) == 8
    assert answer.omitted == 0


def test_an_empty_answer_says_why(world) -> None:
    store(world.principal, PassageItem(identity="a", text="needle", repo="conn:x"))
    assert ask(world.principal, "absent").why_empty == {
        "removed_by_filters": 0,
        "below_threshold": 0,
        "archived": 0,
        "filters_unmatched": [],
    }
    unmatched = ask(world.principal, "needle", filters=Filters(repository="conn:y"))
    assert unmatched.filters_unmatched == ("repository",)
    assert unmatched.why_empty["removed_by_filters"] == 1
    matched = ask(world.principal, "absent", filters=Filters(repository="conn:x"))
    assert matched.filters_unmatched == ()
    low = ask(world.principal, "needle", min_score=0.99)
    assert low.why_empty["below_threshold"] == 1
    assert low.excluded == {"below_min_score": 1}


def test_a_repository_is_matched_exactly(world) -> None:
    store(
        world.principal,
        PassageItem(identity="a", text="needle", repo="conn:x"),
        PassageItem(identity="b", text="needle", repo="conn:x-more"),
        PassageItem(identity="c", text="needle", repo="conn:X"),
    )
    assert identities(ask(world.principal, "needle", filters=Filters(repository="conn:x"))) == ["a"]
    assert identities(ask(world.principal, "needle", filters=Filters(repository="conn:"))) == []


def test_a_failing_probe_is_silent(world, monkeypatch) -> None:
    from apps.retrieval import emptiness

    monkeypatch.setitem(emptiness._PROBES, "repository", "SELECT 1/0")
    answer = ask(world.principal, "needle", filters=Filters(repository="x"))
    assert answer.filters_unmatched is None
    assert "filters_unmatched" not in answer.why_empty
    assert not answer.partial


def test_at_most_so_many_of_one_source(world) -> None:
    parts = [PassageItem(identity="doc", text=f"needle part{n}x", part=n) for n in range(5)]
    store(world.principal, *parts, PassageItem(identity="other", text="needle"))
    answer = ask(world.principal, "needle", max_per_source=2, limit=50)
    assert sorted(identities(answer)) == ["doc", "doc", "other"]
    assert answer.excluded == {"max_per_source": 3}


def standing(world, node_id, epistemic, confidence=1.0):
    with principal_session(world.principal), connection.cursor() as cursor:
        cursor.execute(
            "UPDATE graph_node SET epistemic = %s, confidence = %s WHERE id = %s",
            [epistemic, confidence, node_id],
        )


def test_what_is_not_held_true_is_left_out_and_counted(world) -> None:
    ids = store(world.principal, *["needle"] * 5)
    for node_id, change in zip(
        ids,
        [("hypothetical",), ("deprecated",), ("unverified", 0.3), ("unverified", 0.4), ("asserted",)],
        strict=True,
    ):
        standing(world, node_id, *change)
    answer = ask(world.principal, "needle")
    assert {row.node_id for row in answer.rows} == set(ids[3:])
    assert answer.excluded == {
        "epistemic_hypothetical": 1,
        "epistemic_deprecated": 1,
        "epistemic_unverified": 1,
    }
    explicit = ask(world.principal, "needle", epistemic_mode="explicit")
    assert {row.epistemic for row in explicit.rows} == {
        "hypothetical",
        "deprecated",
        "unverified",
        "asserted",
    }


def test_equal_digests_of_the_corpus_mean_equal_corpora(world) -> None:
    ids = store(world.principal, "needle", "other")
    before = ask(world.principal, "needle").corpus_digest
    assert ask(world.principal, "other").corpus_digest == before
    with principal_session(world.principal):
        delete_passages(node_ids=ids[1:])
    assert ask(world.principal, "needle").corpus_digest != before
    stranger = make_principal(world.workspace)
    store(stranger, "needle", "other")
    assert ask(stranger, "needle").corpus_digest != before


def test_a_published_policy_rules_its_workspace_alone(world) -> None:
    with principal_session(world.principal):
        default = in_force(world.principal.workspace_id)
    assert default.document == ScoringPolicy(), "the migration and the model agree"
    assert ask(world.principal, "x").policy.id == default.reference.id
    manager = make_staff(world.workspace, "manage_profiles")
    with staff_session(manager):
        current = StoredPolicy.objects.get(pk=default.reference.id)
        publish_policy(
            workspace_id=world.workspace.pk,
            kind="scoring",
            document=ScoringPolicy(formula="rank_fusion").model_dump(),
            reason="A trial.",
            if_match=current.hash,
        )
    assert ask(world.principal, "x").policy.formula == "rank_fusion"
    assert ask(make_world().principal, "x").policy.id == default.reference.id


def test_a_bad_hint_of_a_multiplier_is_refused(world) -> None:
    from apps.core.problems import InvalidRequest

    with pytest.raises(InvalidRequest):
        ask(world.principal, "x", multipliers={"lexical": 9.0})


def test_real_questions_find_their_documents_by_words(world) -> None:
    """The first queries of a judged collection, without vectors: the cause of the measured quality."""
    folder = judged_data("cranfield")
    documents = [json.loads(line) for line in (folder / "corpus.jsonl").open()][:400]
    store(
        world.principal,
        *[PassageItem(identity=d["_id"], title=d["title"], text=d["text"]) for d in documents],
    )
    relevant: dict[str, set[str]] = {}
    for line in (folder / "qrels" / "test.tsv").read_text().splitlines()[1:]:
        query, document, _ = line.split("\t")
        if int(document) <= 400:
            relevant.setdefault(query, set()).add(document)
    hits = 0
    queries = [json.loads(line) for line in (folder / "queries.jsonl").open()][:20]
    for query in queries:
        found = set(identities(ask(world.principal, query["text"])))
        hits += bool(found & relevant.get(query["_id"], set()))
    assert hits >= 12
