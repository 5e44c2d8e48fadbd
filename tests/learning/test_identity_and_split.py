"""Query identity, group ids, and a split that never moves a group."""

import hashlib

import pytest

from apps.learning.exceptions import ConflictingIdentity, LearningInputError, UnknownReference
from apps.learning.identity import (
    group_ids,
    named_group_id,
    names_by_query,
    query_group_id,
    scope_key,
)
from apps.learning.split import is_validation, split_position
from apps.retrieval.identity import keyed_query_identity, normalise_query


@pytest.mark.parametrize(
    "spelling",
    ["Straße 1 fi", "STRASSE 1 FI", "  straße\t1\n fi ", "straße 1 ﬁ", "ｓｔｒａße １ fi"],
)
def test_spellings_of_one_query(spelling: str) -> None:
    assert normalise_query(spelling) == "strasse 1 fi"


def test_group_ids_are_those_of_the_reference() -> None:
    assert query_group_id("größe") == hashlib.sha256('["query", "größe"]'.encode()).hexdigest()
    assert named_group_id("größe") == hashlib.sha256('["explicit", "größe"]'.encode()).hexdigest()


def test_keyed_identity_depends_on_key_and_normalised_text() -> None:
    one = keyed_query_identity("A  question", b"key")
    assert one == keyed_query_identity("a question", b"key")
    assert one != keyed_query_identity("a question", b"other key")
    assert len(one) == 64


def test_a_name_covers_every_receipt_of_the_query() -> None:
    identities = {"r1": "one", "r2": "one", "r3": "two"}
    named = names_by_query({"r1": "shared"}, identities)
    assert group_ids(identities.values(), named) == [
        named_group_id("shared"),
        named_group_id("shared"),
        query_group_id("two"),
    ]


def test_names_that_do_not_fit_are_refused() -> None:
    identities = {"r1": "one", "r2": "one"}
    with pytest.raises(UnknownReference):
        names_by_query({"r9": "name"}, identities)
    with pytest.raises(LearningInputError):
        names_by_query({"r1": "  "}, identities)
    with pytest.raises(ConflictingIdentity):
        names_by_query({"r1": "a", "r2": "b"}, identities)
    assert names_by_query({"r1": "a", "r2": "a"}, identities) == {"one": "a"}


def test_scopes_are_a_sorted_set_and_unfiltered_is_its_own() -> None:
    assert scope_key(["b", "a", "b"]) == ("a", "b")
    assert scope_key([]) == ()
    assert scope_key(None) is None


def test_split_is_a_threshold_on_a_hash() -> None:
    group = query_group_id("one")
    digest = hashlib.sha256(f"42:{group}".encode()).hexdigest()
    assert split_position(42, group) == int(digest, 16) / 2**256
    assert is_validation(42, group, split_position(42, group) + 1e-9)
    assert not is_validation(42, group, split_position(42, group))
    share = sum(is_validation(42, query_group_id(str(n)), 0.3) for n in range(2000)) / 2000
    assert share == pytest.approx(0.3, abs=0.04)
