"""Why a node stands where it does in an answer, or does not."""

import json
from datetime import timedelta
from uuid import UUID

import pytest
from django.db import connection

from apps.core import clock
from apps.core.db.sessions import principal_session
from apps.core.policies import publish_policy
from apps.graph.services.passages import delete_passages
from apps.retrieval.policy import FEATURES, ScoringPolicy, in_force
from tests.support.api import Api, code_of
from tests.support.factories import make_principal, make_staff, make_world
from tests.support.library import CHAIN, ask, store, thread, wiki

pytestmark = pytest.mark.django_db

NOBODY = "00000000-0000-7000-8000-000000000000"


@pytest.fixture
def world():
    return make_world()


@pytest.fixture
def me(world):
    return world.principal


@pytest.fixture
def api(me):
    return Api(me)


def explained(api, answer, node_id):
    response = api.get("/v1/search/explain", receipt_id=answer["retrieval_receipt_id"], node_id=str(node_id))
    assert response.status_code == 200, response.content
    return json.loads(response.content)


def change(principal, node_id, **values):
    columns = ", ".join(f"{name} = %s" for name in values)
    with principal_session(principal), connection.cursor() as cursor:
        cursor.execute(f"UPDATE graph_node SET {columns} WHERE id = %s", [*values.values(), node_id])


def test_a_returned_row_is_explained_by_its_recorded_arithmetic(me, api) -> None:
    nodes = store(me, *CHAIN, thread(7, "billing rollback"))
    change(me, nodes[0], epistemic="asserted")
    answer = ask(me, "billing rollback", ranking_multipliers={"lexical": 2.0}, explain=True)
    for row in answer["results"]:
        shown = explained(api, answer, row["node_id"])
        assert (shown["returned"], shown["asked_of"]) == (True, "receipt")
        found = shown["arithmetic"]
        assert (found["rank"], found["score"]) == (row["rank"], row["score"])
        assert {each["name"]: each["value"] for each in found["factors"]} == row["features"]
        for each in found["factors"]:
            assert each["contribution"] == each["applied"] * each["value"]
            assert each["multiplier"] == (2.0 if each["name"] == "lexical" else 1.0)
        total = sum(each["contribution"] for each in found["factors"])
        assert found["formula_score"] == pytest.approx(total, abs=1e-10)
        last = found["adjustments"][-1]["score"] if found["adjustments"] else found["formula_score"]
        assert last == row["score"]
    asserted = explained(api, answer, nodes[0])["arithmetic"]
    assert [(step["kind"], step["coefficient"]) for step in asserted["adjustments"]] == [("epistemic", 0.9)]
    assert explained(api, answer, nodes[1])["arithmetic"]["raw"]["hops"] == 1


def test_it_is_the_receipt_that_speaks_also_when_the_node_is_gone(me, api) -> None:
    (node,) = store(me, thread(7, "billing"))
    answer = ask(me, "billing")
    before = explained(api, answer, node)
    with principal_session(me):
        delete_passages(node_ids=[UUID(node)])
    assert explained(api, answer, node) == before


def test_rank_fusion_is_explained_by_channels(world, me, api) -> None:
    rank_by(world, formula="rank_fusion")
    nodes = store(me, *CHAIN)
    answer = ask(me, "billing rollback", ranking_multipliers={"pinned": 0.5})
    shown = explained(api, answer, nodes[1])["arithmetic"]
    assert shown["formula"] == "rank_fusion"
    assert [each["name"] for each in shown["factors"]] == ["lexical", "semantic", "graph", "pinned"]
    graph = shown["factors"][2]
    assert (graph["value"], graph["contribution"]) == (1, 1 / 61)
    assert shown["formula_score"] == round(1 / 61, 10) == shown["score"]


def rank_by(world, **policy):
    from apps.core.db.sessions import staff_session
    from apps.core.models import StoredPolicy

    with principal_session(world.principal):
        current = in_force(world.principal.workspace_id)
    with staff_session(make_staff(world.workspace, "manage_profiles")):
        publish_policy(
            workspace_id=world.workspace.pk,
            kind="scoring",
            document=ScoringPolicy(**policy).model_dump(),
            reason="A trial.",
            if_match=StoredPolicy.objects.get(pk=current.reference.id).hash,
        )


def test_a_node_below_the_limit_has_a_rank_and_a_score(me, api) -> None:
    nodes = store(me, *(thread(n, f"billing {'word ' * n}") for n in range(1, 6)))
    answer = ask(me, "billing", limit=2)
    shown = explained(api, answer, nodes[4])
    assert (shown["returned"], shown["asked_of"], shown["same_policy"]) == (False, "memory_now", True)
    assert (shown["reason"], shown["codes"], shown["rank"]) == ("below_cut", ["limit"], 5)
    assert shown["score"] < shown["cut"] == pytest.approx(answer["results"][-1]["score"], abs=1e-6)
    assert shown["as_of"] >= answer["timestamp"]


def test_a_node_below_the_cut_of_a_channel_is_told_which(world, me, api) -> None:
    rank_by(world, candidates_per_channel=10)
    nodes = store(me, *(thread(n, f"billing {'word ' * n}") for n in range(1, 15)), thread(99, "other words"))
    answer = ask(me, "billing")
    shown = explained(api, answer, nodes[13])
    assert shown["reason"] == "below_cut"
    channels = {each["name"]: each for each in shown["channels"]}
    assert channels["lexical"]["status"] == "below_cut"
    assert 0 < channels["lexical"]["value"] < channels["lexical"]["cut"]
    assert channels["semantic"]["status"] == channels["graph"]["status"] == "no_match"
    unmatched = explained(api, answer, nodes[14])
    assert unmatched["reason"] == "not_found"
    assert {each["status"] for each in unmatched["channels"]} == {"no_match"}


def test_a_neighbour_over_the_cut_of_the_graph_is_told_so(world, me, api, monkeypatch) -> None:
    rank_by(world, candidates_per_channel=10)
    names = [f"near-{n:02d}" for n in range(14)]
    nodes = store(me, wiki("alpha-page", "Billing: " + ", ".join(names)), *(wiki(n, "more") for n in names))
    answer = ask(me, "billing", limit=50)
    shown = explained(api, answer, nodes[14])
    assert shown["reason"] == "below_cut"
    assert [c["name"] for c in shown["channels"] if c["status"] == "below_cut"] == ["graph"]


@pytest.mark.parametrize(
    ("request_more", "node_change", "reason", "codes"),
    [
        ({"scopes": ["other"]}, {}, "filtered", ["scopes"]),
        ({"filters": {"repository": "acme/none", "state": "open"}}, {}, "filtered", ["repository", "state"]),
        ({"filters": {"kinds": ["episodic"]}}, {}, "filtered", ["kinds"]),
        ({"corpus": "shared"}, {}, "filtered", ["corpus"]),
        ({}, {"epistemic": "hypothetical"}, "filtered", ["epistemic_hypothetical"]),
        ({}, {"archived_at": "now"}, "not_visible", ["archived"]),
        ({}, {"superseded_at": "now"}, "not_visible", ["superseded"]),
        ({"min_score": 0.99}, {}, "filtered", ["below_min_score"]),
    ],
    ids=str,
)
def test_a_filtered_node_is_told_by_what(me, api, request_more, node_change, reason, codes) -> None:
    (node,) = store(me, thread(7, "billing"))
    change(
        me,
        node,
        **{name: clock.now() if v == "now" else v for name, v in (node_change or {"weight": 1}).items()},
    )
    answer = ask(me, "billing", **request_more)
    assert answer["results"] == []
    shown = explained(api, answer, node)
    assert (shown["reason"], shown["codes"]) == (reason, codes)


def test_a_folded_node_names_its_row_and_one_that_came_later_would_be_returned(me, api) -> None:
    old, new = clock.now() - timedelta(hours=2), clock.now() - timedelta(hours=1)
    nodes = store(
        me,
        thread(1, "billing retry", kind="diff", identity=["a" * 40, "a.ts"], path="a.ts", at=old),
        thread(2, "billing retry", kind="diff", identity=["b" * 40, "a.ts"], path="a.ts", at=new),
    )
    answer = ask(me, "billing retry")
    (row,) = answer["results"]
    (other,) = {*nodes} - {row["node_id"]}
    assert explained(api, answer, other)["under"] == row["node_id"]
    (later,) = store(me, thread(3, "billing retry"))
    shown = explained(api, answer, later)
    assert (shown["reason"], shown["asked_of"]) == ("returned", "memory_now")


@pytest.mark.django_db(transaction=True)
def test_without_its_words_only_what_needs_none_is_answered(me, api, owner_connection) -> None:
    nodes = store(me, thread(1, "billing"), thread(2, "other"))
    answer = ask(me, "billing", scopes=["default"])
    owner_connection.execute("UPDATE traces_trace SET query = NULL, query_erased_at = now()")
    assert explained(api, answer, nodes[0])["arithmetic"]["rank"] == 1
    assert explained(api, answer, nodes[1])["reason"] == "query_erased"
    (elsewhere,) = store(me, thread(3, "other", scope="two"))
    assert explained(api, answer, elsewhere)["codes"] == ["scopes"]


def test_foreign_and_unknown_ids_are_one_answer(world, me, api) -> None:
    stranger = make_principal(world.workspace)
    (theirs,) = store(stranger, thread(7, "billing"))
    store(me, thread(7, "billing"))
    mine, their_answer = ask(me, "billing"), ask(stranger, "billing")
    answers = []
    for node in (theirs, NOBODY, "no-id"):
        shown = explained(api, mine, node)
        assert shown.pop("as_of")
        shown.pop("node_id")
        answers.append(shown)
    assert answers[0] == answers[1] == answers[2]
    assert answers[0]["reason"] == "absent"
    for receipt in (their_answer["retrieval_receipt_id"], NOBODY, "no-id"):
        response = api.get("/v1/search/explain", receipt_id=receipt, node_id=theirs)
        assert (response.status_code, code_of(response)) == (404, "unknown_receipt")


@pytest.mark.parametrize(
    "query", [{}, {"receipt_id": NOBODY}, {"node_id": NOBODY}, {"receipt_id": "x" * 129}]
)
def test_what_is_missing_is_named(api, query) -> None:
    response = api.get("/v1/search/explain", **query)
    assert (response.status_code, code_of(response)) == (400, "invalid_request")


def test_the_scope_of_the_token_is_checked(me) -> None:
    response = Api(me, "feedback").get("/v1/search/explain", receipt_id=NOBODY, node_id=NOBODY)
    assert response.status_code == 403


def test_every_feature_of_the_formula_is_a_factor(me, api) -> None:
    (node,) = store(me, thread(1, "billing"))
    answer = ask(me, "billing")
    factors = explained(api, answer, node)["arithmetic"]["factors"]
    assert tuple(each["name"] for each in factors) == FEATURES
