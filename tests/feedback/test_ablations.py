"""Ablations: exactly the entries named, exact accounting, and a tier that changes nothing."""

import hashlib
import json
from uuid import UUID, uuid4

import pytest
from django.test import override_settings
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apps.core import clock
from apps.core.db.sessions import principal_session
from apps.feedback.models import Ablation, PresenceAssessment, PresenceTier
from apps.feedback.selectors.labels import folded_labels
from apps.graph.services.passages import delete_passages
from apps.retrieval.packing import estimate
from apps.traces.services.erase import erase_trace
from tests.retrieval.test_packing import VOCABULARY
from tests.support.api import Api, code_of
from tests.support.factories import make_principal, make_world
from tests.support.library import ask, store, thread

pytestmark = pytest.mark.django_db

ITEMS = [thread(n, f"billing rollback {n} " + "steps " * 8 * n, title=f"Thread {n}") for n in range(1, 6)]


@pytest.fixture
def me(world):
    return world.principal


def packed(principal, **more):
    return ask(principal, "billing rollback", include_context=True, **({"token_budget": 600} | more))


def ablated(api, answer, nodes):
    return api.post(f"/v1/receipts/{answer['retrieval_receipt_id']}/ablations", {"node_ids": nodes})


def cited(api, answer, nodes, **more):
    body = {
        "citation_id": str(uuid4()),
        "answer_id": "a1",
        "answer_sha256": None,
        "method": "model_reported",
        "cited_node_ids": nodes,
    }
    response = api.post(f"/v1/receipts/{answer['retrieval_receipt_id']}/citations", body | more)
    assert response.status_code == 200, response.content
    return json.loads(response.content)["citation_id"]


def assessed(api, ablation, citation, baseline=True, counterfactual=False, **more):
    body = {
        "evaluation_id": "run 1",
        "citation_id": citation,
        "baseline_correct": baseline,
        "counterfactual_correct": counterfactual,
    }
    return api.post(f"/v1/ablations/{ablation}/assessments", body | more)


def entries(answer):
    return [entry["node_id"] for entry in answer["context"]["entries"]]


def without(text, number):
    """A context without one entry, cut out of the text by hand."""
    start = text.index(f"\n[{number}]") + 1
    end = text.index(f"\n[{number + 1}]") + 1 if f"\n[{number + 1}]" in text else text.index("</memory")
    return text[:start] + text[end:]


def test_exactly_the_entries_named_go_and_the_rest_stays_byte_for_byte(me, api) -> None:
    store(me, *ITEMS)
    answer = packed(me)
    text, nodes = answer["context"]["text"], entries(answer)
    assert len(nodes) == 5
    made = json.loads(ablated(api, answer, [nodes[1]]).content)
    assert made["counterfactual"] == without(text, 2)
    assert made["baseline_sha256"] == answer["context"]["sha256"]
    assert made["counterfactual_sha256"] == hashlib.sha256(made["counterfactual"].encode()).hexdigest()
    assert [each["node_id"] for each in made["removed"]] == [nodes[1]]
    both = json.loads(ablated(api, answer, [nodes[3], nodes[0]]).content)
    assert both["counterfactual"] == without(without(text, 4), 1)
    assert [each["node_id"] for each in both["removed"]] == [nodes[0], nodes[3]]
    everything = json.loads(ablated(api, answer, nodes).content)
    assert "[" not in everything["counterfactual"]
    assert everything["counterfactual"].splitlines()[-1] == "</memory-context>"


def test_tokens_are_accounted_for_exactly(me, api) -> None:
    store(me, *ITEMS)
    answer = packed(me)
    costs = {entry["node_id"]: entry["token_cost"] for entry in answer["context"]["entries"]}
    made = json.loads(ablated(api, answer, entries(answer)[1:3]).content)
    assert made["baseline_tokens"] == answer["context"]["used_tokens"]
    assert made["counterfactual_tokens"] == estimate.count(made["counterfactual"])
    assert made["removed_tokens"] == sum(each["token_cost"] for each in made["removed"])
    assert {each["node_id"]: each["token_cost"] for each in made["removed"]} == {
        node: costs[node] for node in entries(answer)[1:3]
    }


@settings(max_examples=12, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(budget=st.integers(120, 900), form=st.sampled_from(["auditable", "compact"]), drawn=st.randoms())
def test_any_part_of_any_context_can_be_taken_out(budget, form, drawn) -> None:
    me = make_world().principal
    store(me, *ITEMS)
    answer = packed(me, token_budget=budget, context_format=form)
    nodes = entries(answer)
    if not nodes:
        return
    chosen = drawn.sample(nodes, drawn.randint(1, len(nodes)))
    made = json.loads(ablated(Api(me), answer, chosen).content)
    text = answer["context"]["text"]
    for number in sorted((nodes.index(node) + 1 for node in chosen), reverse=True):
        start = text.index(f"\n[{number}]") + 1
        later = [text.find(f"\n[{n}]") + 1 for n in range(number + 1, len(nodes) + 1)]
        end = min((at for at in later if at), default=text.index("</memory"))
        text = text[:start] + text[end:]
    assert made["counterfactual"] == text


def test_the_same_ablation_is_one_record_and_the_list_holds_no_text(me, api) -> None:
    store(me, *ITEMS)
    answer = packed(me)
    nodes = entries(answer)
    first = ablated(api, answer, nodes[:2])
    assert ablated(api, answer, nodes[1::-1]).content == first.content
    ablated(api, answer, nodes[:1])
    path = f"/v1/receipts/{answer['retrieval_receipt_id']}/ablations"
    listed = json.loads(api.get(path).content)
    assert [len(each["removed"]) for each in listed["ablations"]] == [1, 2]
    assert "counterfactual" not in listed["ablations"][0]
    page = json.loads(api.get(path, limit=1).content)
    rest = json.loads(api.get(path, limit=1, cursor=page["next_cursor"]).content)
    assert page["ablations"] + rest["ablations"] == listed["ablations"]
    with principal_session(me):
        assert Ablation.objects.count() == 2
        assert "billing" not in str(list(Ablation.objects.values()))


def test_a_change_of_the_tokenizer_is_another_count_of_the_same_texts(me, api) -> None:
    store(me, *ITEMS)
    answer = packed(me)
    one = json.loads(ablated(api, answer, entries(answer)[:1]).content)
    with override_settings(TOKENIZER=str(VOCABULARY)):
        other = json.loads(ablated(api, answer, entries(answer)[:1]).content)
    assert one["counterfactual"] == other["counterfactual"]
    assert one["tokenizer"] != other["tokenizer"]
    assert one["baseline_tokens"] != other["baseline_tokens"]


@pytest.mark.parametrize(
    ("chosen", "status", "code"),
    [
        (lambda inside, outside: [], 400, "invalid_request"),
        (lambda inside, outside: [inside, inside], 400, "invalid_request"),
        (lambda inside, outside: [inside, str(uuid4())], 422, "node_not_in_receipt"),
        (lambda inside, outside: [inside, outside], 422, "not_in_context"),
        (lambda inside, outside: ["x"], 400, "invalid_request"),
        (lambda inside, outside: None, 400, "invalid_request"),
    ],
)
def test_empty_doubled_and_absent_targets_are_refused_and_nothing_is_written(
    me, api, chosen, status, code
) -> None:
    store(me, *ITEMS)
    answer = packed(me, token_budget=200)
    outside = answer["context"]["left_out"][0]["node_id"]
    response = ablated(api, answer, chosen(entries(answer)[0], outside))
    assert (response.status_code, code_of(response)) == (status, code)
    with principal_session(me):
        assert not Ablation.objects.exists()


def test_a_receipt_without_a_context_has_nothing_to_take_out(me, api) -> None:
    store(me, *ITEMS)
    answer = ask(me, "billing rollback")
    response = ablated(api, answer, [answer["results"][0]["node_id"]])
    assert (response.status_code, code_of(response)) == (422, "not_in_context")


def test_another_text_than_was_packed_is_refused(me, api) -> None:
    nodes = store(me, *ITEMS)
    answer = packed(me)
    assert ablated(api, answer, entries(answer)[:1]).status_code == 200
    store(me, thread(2, "billing rollback otherwise", title="Thread 2"))
    for target in entries(answer)[:2]:
        refused = ablated(api, answer, [target])
        assert (refused.status_code, code_of(refused)) == (409, "context_changed")
        assert b"billing" not in refused.content
    with principal_session(me):
        delete_passages(node_ids=[UUID(node) for node in nodes])
    assert code_of(ablated(api, answer, entries(answer)[:1])) == "context_changed"
    with principal_session(me):
        assert Ablation.objects.count() == 1


def test_nobody_elses_receipt_or_ablation_is_there(world, me, api) -> None:
    store(me, *ITEMS)
    answer = packed(me)
    made = json.loads(ablated(api, answer, entries(answer)[:1]).content)
    stranger = Api(make_principal(world.workspace))
    refused = ablated(stranger, answer, entries(answer)[:1])
    assert (refused.status_code, code_of(refused)) == (404, "unknown_receipt")
    path = f"/v1/receipts/{answer['retrieval_receipt_id']}/ablations"
    assert code_of(stranger.get(path)) == "unknown_receipt"
    assert code_of(assessed(stranger, made["ablation_id"], str(uuid4()))) == "unknown_ablation"
    assert code_of(stranger.get(f"/v1/ablations/{made['ablation_id']}/assessments")) == "unknown_ablation"
    assert code_of(api.get("/v1/ablations/none/assessments")) == "unknown_ablation"


# What the presence of an entry was worth.


@pytest.fixture
def case(me, api):
    """(answer, ablation of its first entry, citation of that entry)."""
    store(me, *ITEMS)
    answer = packed(me)
    made = json.loads(ablated(api, answer, entries(answer)[:1]).content)
    return answer, made["ablation_id"], cited(api, answer, entries(answer)[:2])


@pytest.mark.parametrize(
    ("baseline", "counterfactual", "tier", "weight"),
    [
        (True, False, "load_bearing", 1.0),
        (True, True, "cited_non_flipping", 0.6),
        (False, True, "misleading", -1.0),
        (False, False, "cited_wrong_noncuring", 0.0),
    ],
)
def test_the_tier_follows_from_both_verdicts(api, case, baseline, counterfactual, tier, weight) -> None:
    _, ablation, citation = case
    hashes = {"baseline_answer_sha256": "a" * 64}
    shown = json.loads(assessed(api, ablation, citation, baseline, counterfactual, **hashes).content)
    assert (shown["tier"], shown["weight"]) == (tier, weight)
    assert (shown["baseline_answer_sha256"], shown["counterfactual_answer_sha256"]) == ("a" * 64, None)
    listed = json.loads(api.get(f"/v1/ablations/{ablation}/assessments").content)
    assert listed == {"assessments": [shown], "next_cursor": None}


def test_an_assessment_is_one_by_its_id_and_another_verdict_is_a_conflict(me, api, case) -> None:
    _, ablation, citation = case
    first = assessed(api, ablation, citation)
    assert assessed(api, ablation, citation).content == first.content
    for other in ({"counterfactual": True}, {"baseline_answer_sha256": "b" * 64}):
        refused = assessed(api, ablation, citation, **other)
        assert (refused.status_code, code_of(refused)) == (409, "idempotency_conflict")
    assert assessed(api, ablation, citation, evaluation_id="run 2").status_code == 200
    with principal_session(me):
        assert PresenceAssessment.objects.count() == 2


@pytest.mark.parametrize(
    "body",
    [
        {"baseline_correct": 1},
        {"counterfactual_correct": "true"},
        {"baseline_correct": None},
        {"evaluation_id": ""},
        {"evaluation_id": None},
        {"citation_id": "x"},
        {"baseline_answer_sha256": "A" * 64},
        {"tier": "load_bearing"},
    ],
)
def test_loose_assessments_are_refused(api, case, body) -> None:
    _, ablation, citation = case
    refused = assessed(api, ablation, citation, **body)
    assert (refused.status_code, code_of(refused)) == (400, "invalid_request")


def test_an_assessment_is_bound_to_one_entry_that_a_citation_of_just_that_context_names(
    me, api, case
) -> None:
    answer, ablation, citation = case
    nodes = entries(answer)
    two = json.loads(ablated(api, answer, nodes[:2]).content)["ablation_id"]
    assert code_of(assessed(api, two, citation)) == "several_targets"
    assert code_of(assessed(api, ablation, str(uuid4()))) == "unknown_citation"
    for uncited in (cited(api, answer, nodes[1:2]), cited(api, answer, [])):
        assert code_of(assessed(api, ablation, uncited)) == "not_cited"
    another = packed(me, context_format="compact")
    refused = assessed(api, ablation, cited(api, another, nodes[:1]))
    assert (refused.status_code, code_of(refused)) == (409, "context_changed")
    same = packed(me, reference_time=clock.now())
    with principal_session(me):
        assert not PresenceAssessment.objects.exists()
    if same["context"]["sha256"] == answer["context"]["sha256"]:
        assert assessed(api, ablation, cited(api, same, nodes[:1])).status_code == 200


def test_strangers_citations_are_unknown(world, api, case) -> None:
    _, ablation, _ = case
    stranger = make_principal(world.workspace)
    store(stranger, *ITEMS)
    answer = packed(stranger)
    theirs = cited(Api(stranger), answer, entries(answer)[:1])
    assert code_of(assessed(api, ablation, theirs)) == "unknown_citation"


def test_assessments_and_ablations_change_no_rank_and_no_label(me, api, case) -> None:
    at = clock.now()
    before = ask(me, "billing rollback", reference_time=at)
    _, ablation, citation = case
    assessed(api, ablation, citation, False, True)
    after = ask(me, "billing rollback", reference_time=at)
    assert [(row["node_id"], row["score"]) for row in before["results"]] == [
        (row["node_id"], row["score"]) for row in after["results"]
    ]
    with principal_session(me):
        assert len(folded_labels()) == 0


def test_the_tiers_and_their_rule_in_the_database_agree() -> None:
    assert {tier.value: tier.weight for tier in PresenceTier} == {
        "load_bearing": 1.0,
        "cited_non_flipping": 0.6,
        "misleading": -1.0,
        "cited_wrong_noncuring": 0.0,
    }


def test_an_erased_trace_takes_its_ablations_along(me, api, case) -> None:
    answer, ablation, citation = case
    assessed(api, ablation, citation)
    with principal_session(me):
        erase_trace(trace_id=UUID(answer["trace_id"]))
        assert not Ablation.objects.exists()
        assert not PresenceAssessment.objects.exists()
    assert code_of(api.get(f"/v1/ablations/{ablation}/assessments")) == "unknown_ablation"
