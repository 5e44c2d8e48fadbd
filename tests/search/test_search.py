"""The front door, end to end: found, recorded, answered, fed back."""

from dataclasses import replace
from datetime import timedelta, timezone
from uuid import UUID

import pytest

from apps.core import clock
from apps.core.db.sessions import principal_session
from apps.feedback.models import Credit, EdgeStrength
from apps.feedback.selectors import trace_detail
from apps.graph.models import PageEdge, Vector
from apps.graph.services.passages import delete_passages
from apps.traces.models import Activation, PathEdge, Trace, TraceSource, Use
from apps.traces.recording import ReturnedRow
from tests.feedback.test_outcomes import reverse
from tests.support.factories import make_principal
from tests.support.graph_axis import expanded, learn
from tests.support.library import CHAIN, ask, store, thread, wiki
from tests.support.memory import give_vectors
from tests.support.traces import climb

pytestmark = pytest.mark.django_db


def test_one_version_has_one_id_over_search_scan_and_fetch(me) -> None:
    items = [
        thread(7, "billing words"),
        thread(8, "billing words", kind="pull_request"),
        thread(9, "billing words", kind="issue_comment"),
        thread(10, "billing words", kind="pr_review"),
        thread(11, "billing words", kind="pr_review_comment"),
        wiki("alpha-page", "billing words"),
        thread(12, "billing words", kind="doc", identity="docs/a.md", path="docs/a.md"),
        thread(13, "billing words", kind="release", identity="v1.0"),
        thread(14, "billing words", kind="diff", identity=["0" * 40, "src/a.ts"], path="src/a.ts"),
        thread(15, "billing words", kind="document", identity="key", repo="conn:files"),
    ]
    nodes = store(me, *(replace_number(item) for item in items))
    by_node = []
    for answer in (
        ask(me, "billing", limit=50),
        ask(me, limit=50),
        ask(me, node_ids=[UUID(n) for n in nodes]),
    ):
        by_node.append({row["node_id"]: row["source_id"] for row in answer["results"]})
        assert answer["memory_recording"]["status"] == "complete"
    assert by_node[0] == by_node[1] == by_node[2]
    assert len(set(by_node[0].values())) == len(items)


def replace_number(item):
    """Threads apart, so that none is folded under another."""
    return (
        replace(item, number=None)
        if item.type in {"issue_comment", "pr_review", "pr_review_comment"}
        else item
    )


def test_folded_rows_have_ids_of_their_own_equal_to_a_later_fetch(me) -> None:
    path = "src/a.ts"
    old, new = clock.now() - timedelta(hours=2), clock.now() - timedelta(hours=1)
    store(
        me,
        thread(1, "billing retry", kind="diff", identity=["a" * 40, path], path=path, at=old),
        thread(2, "billing retry", kind="diff", identity=["b" * 40, path], path=path, at=new),
    )
    (row,) = ask(me, "billing retry")["results"]
    assert row["same_entity"]["count"] == 1
    (member,) = row["same_entity"]["others"]
    assert {row["version_status"], member["version_status"]} == {"latest", "superseded"}
    fetched = ask(me, node_ids=[UUID(row["node_id"]), UUID(member["node_id"])])["results"]
    assert [entry["source_id"] for entry in fetched] == [row["source_id"], member["source_id"]]
    with principal_session(me):
        source = TraceSource.objects.filter(source_id=member["source_id"]).earliest("id")
        assert (source.folded_under, source.location) == (0, "results[0].same_entity.others[0]")


def test_source_ids_outlive_chunks_and_edges_and_saved_paths_stay_reversible(me) -> None:
    nodes = store(me, *CHAIN)
    answer = expanded(me)
    receipt = learn(me, answer)
    with principal_session(me):
        versions = {s.source_id for s in TraceSource.objects.all()}
        delete_passages(node_ids=[UUID(nodes[1])])
        assert not PageEdge.objects.exists()
    assert expanded(me)["graph_results"] == []
    with principal_session(me):
        detail = trace_detail(UUID(answer["trace_id"]), limit=10, cursor=None)
        assert {s["source_id"] for s in detail["sources"]} == versions
        assert len(detail["sources"][2]["paths"][0]) == 2
        assert len(reverse(UUID(answer["trace_id"]), receipt["receipt_id"])["changes"]) == 2


def test_repair_replacement_and_removal_of_pages_leave_traces_untouched(me) -> None:
    """What a backfill (provenance filled in), a redelivery (other text) and a reaper (removal) do to the memory."""
    nodes = store(me, *CHAIN)
    learn(me, expanded(me))

    def recorded() -> list[list[dict[str, object]]]:
        with principal_session(me):
            tables = (Trace, TraceSource, PathEdge, Use, Activation, Credit, EdgeStrength)
            return [list(table.objects.order_by("id").values()) for table in tables]

    before = recorded()
    assert all(before)
    store(me, *(replace(item, url="https://example.org/wiki") for item in CHAIN))
    store(me, replace(CHAIN[0], text="another text altogether"))
    with principal_session(me):
        delete_passages(node_ids=[UUID(node) for node in nodes[1:]])
    assert recorded() == before


def test_a_document_cut_otherwise_keeps_its_source_under_new_nodes_and_vectors(me) -> None:
    whole = thread(7, "billing rollback in one piece, then the long story of it")
    (before,) = store(me, whole)
    give_vectors(me, {UUID(before): [1.0]})
    first = ask(me, "billing rollback")
    pieces = [
        replace(whole, text="billing rollback in one piece"),
        replace(whole, part=1, text="then the long story of it"),
    ]
    after = store(me, *pieces)
    give_vectors(me, {UUID(node): [0.0, 1.0] for node in after})
    second = ask(me, "billing rollback")
    assert before not in after
    assert [row["source_id"] for row in second["results"]] == [first["results"][0]["source_id"]]
    assert second["results"][0]["node_id"] == after[0]
    with principal_session(me):
        assert set(Vector.objects.values_list("node_id", flat=True)) == set(map(UUID, after))
        assert climb(UUID(first["trace_id"]), first["results"][0]["source_id"])
        assert Activation.objects.count() == 1


def test_scan_lists_the_window_newest_first_and_names_its_surfaces(me) -> None:
    now = clock.now()
    store(
        me,
        thread(1, "old", at=now - timedelta(days=8)),
        thread(2, "older", at=now - timedelta(days=3)),
        thread(3, "newer", at=now - timedelta(days=1), kind="pull_request"),
    )
    answer = ask(me)
    assert [row["type"] for row in answer["results"]] == ["pull_request", "issue"]
    assert answer["mode"] == "scan"
    assert answer["retrieval_receipt_id"] is None
    counts = {surface["name"]: surface["count"] for surface in answer["surfaces"]}
    assert (counts["issue"], counts["pull_request"]) == (1, 1)
    since = now - timedelta(days=9)
    earlier = ask(me, filters={"since": since, "until": now - timedelta(days=7)})
    assert [row["content"] for row in earlier["results"]] == ["old"]


def test_an_old_window_still_fills_the_limit(me) -> None:
    now = clock.now()
    new = [thread(number, "billing report", at=now - timedelta(hours=1)) for number in range(1, 121)]
    old = [thread(number, "billing report", at=now - timedelta(days=60)) for number in range(201, 206)]
    store(me, *new, *old)
    window = {"since": now - timedelta(days=61), "until": now - timedelta(days=59)}
    for query in ("billing report", ""):
        assert len(ask(me, query, limit=5, filters=window)["results"]) == 5


def test_a_scan_with_one_failing_surface_gives_the_other_rows_and_no_trace(me, monkeypatch) -> None:
    from apps.retrieval import listing

    store(me, thread(1, "one"), wiki("alpha-page", "two"))
    original = listing._surface_sql
    monkeypatch.setattr(
        listing,
        "_surface_sql",
        lambda name, allowed: "SELECT 1/0" if name == "wiki_doc" else original(name, allowed),
    )
    answer = ask(me)
    assert [row["type"] for row in answer["results"]] == ["issue"]
    assert (answer["memory_error"], answer["feedback_available"]) == ("retrieval_incomplete", False)
    assert "trace_id" not in answer
    with principal_session(me):
        assert not Trace.objects.exists()


def test_fetch_keeps_the_order_and_says_what_is_not_there(world, me) -> None:
    mine = store(me, thread(1, "x" * 3000), thread(2, "two"))
    (foreign,) = store(make_principal(world.workspace), thread(3, "three"))
    asked = [UUID(node) for node in (mine[1], foreign, mine[0], mine[1])]
    answer = ask(me, node_ids=asked)
    assert [row["node_id"] for row in answer["results"]] == [mine[1], mine[0]]
    assert answer["not_found"] == [foreign]
    assert len(answer["results"][1]["content"]) == 3000
    assert "content_truncated" not in answer["results"][1]


def test_a_zero_hit_is_recorded_and_says_why(me) -> None:
    store(me, thread(1, "billing"))
    answer = ask(me, "billing", filters={"repository": "acme/none"})
    assert answer["results"] == []
    assert answer["memory_recording"]["status"] == "complete"
    assert answer["why_empty"]["filters_unmatched"] == ["repository"]
    assert answer["why_empty"]["removed_by_filters"] == 1
    with principal_session(me):
        trace = Trace.objects.get(pk=UUID(answer["trace_id"]))
        assert trace.settings["filters_unmatched"] == ["repository"]
    unknown = ask(me, "zebra")
    assert unknown["why_empty"]["filters_unmatched"] == []


def test_a_failed_probe_stays_silent(me, monkeypatch) -> None:
    store(me, thread(1, "billing"))
    monkeypatch.setattr("apps.retrieval.emptiness._PROBES", {"repository": "SELECT 1/0"})
    answer = ask(me, "billing", filters={"repository": "acme/none"})
    assert "filters_unmatched" not in answer["why_empty"]
    assert answer["trace_id"]


def test_a_query_or_its_absence_leads_to_the_mode(me) -> None:
    (node,) = store(me, thread(1, "billing"))
    assert ask(me, "billing", node_ids=[UUID(node)])["mode"] == "fetch"
    assert ask(me, " \n ")["mode"] == "scan"
    assert ask(me, "billing")["mode"] == "search"
    with principal_session(me):
        modes = set(Trace.objects.values_list("mode", "query"))
    assert modes == {("fetch", None), ("scan", None), ("search", "billing")}


def test_the_trace_keeps_the_request_without_its_query(me) -> None:
    answer = ask(me, "billing", scopes=["zoo", "default", "zoo"], limit=3)
    with principal_session(me):
        trace = Trace.objects.get(pk=UUID(answer["trace_id"]))
    assert trace.scopes == ["default", "zoo"]
    assert trace.request["limit"] == 3
    assert "query" not in trace.request
    assert trace.settings["channels"]["lexical"]["status"] in {"ok", "empty"}


def test_times_of_a_kept_request_are_written_as_everywhere(me, frozen) -> None:
    since = (frozen.at - timedelta(days=1)).astimezone(timezone(timedelta(hours=2)))
    answers = [ask(me, "billing"), ask(me, "billing", reference_time=since, filters={"since": since})]
    with principal_session(me):
        kept = [Trace.objects.get(pk=UUID(answer["trace_id"])).request for answer in answers]
    assert kept[0]["reference_time"] == clock.iso(frozen.at)
    assert kept[1]["reference_time"] == kept[1]["filters"]["since"] == clock.iso(since)
    assert kept[0]["filters"]["since"] is None


def test_scopes_fence_both_axes(me) -> None:
    store(me, *(wiki(*page, scope=scope) for page, scope in PAGES))
    answer = expanded(me, scopes=["one"])
    assert [row["slug"] for row in answer["graph_results"]] == ["beta-page"]


PAGES = (
    (("alpha-page", "Rollback of billing: beta-page, gamma-page."), "one"),
    (("beta-page", "Steps."), "one"),
    (("gamma-page", "Steps."), "two"),
)


def test_an_unexpected_exception_while_identifying_saves_nothing(me, monkeypatch) -> None:
    store(me, thread(1, "billing"))

    def broken(row: ReturnedRow) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("apps.traces.recording.identify", broken)
    answer = ask(me, "billing")
    assert len(answer["results"]) == 1
    assert (answer["memory_error"], answer["receipt_persisted"]) == ("memory_save_failed", False)
    with principal_session(me):
        assert not Trace.objects.exists()


def test_rows_of_which_none_is_identifiable_leave_no_trace(me, monkeypatch) -> None:
    from apps.sources.identity import Unresolved

    store(me, thread(1, "billing"))

    def unresolved(provenance: object) -> None:
        raise Unresolved("canonical_identity_unavailable")

    monkeypatch.setattr("apps.traces.recording.identify", unresolved)
    answer = ask(me, "billing")
    assert answer["memory_error"] == "all_sources_unresolved"
    assert answer["memory_recording"]["status"] == "unresolved"
    assert answer["results"][0]["memory_exclusion_reason"] == "canonical_identity_unavailable"
    with principal_session(me):
        assert not Trace.objects.exists()


def test_a_trace_too_large_is_not_saved_and_the_rows_are_answered(me, monkeypatch) -> None:
    store(me, thread(1, "billing"))
    monkeypatch.setattr("apps.traces.services.save.MAX_CHARACTERS", 100)
    answer = ask(me, "billing")
    assert (len(answer["results"]), answer["memory_error"]) == (1, "memory_save_failed")


def test_a_failing_insert_leaves_neither_trace_nor_activation(me, monkeypatch) -> None:
    from apps.traces.services import save

    store(me, thread(1, "billing"))
    monkeypatch.setattr(
        save, "SAVE", save.SAVE.replace("ON CONFLICT (principal_id, source_id)", "ON CONFLICT (nothing)")
    )
    answer = ask(me, "billing")
    assert answer["memory_error"] == "memory_save_failed"
    with principal_session(me):
        assert not Trace.objects.exists()
        assert not Activation.objects.exists()


def test_live_bodies_are_versions_of_their_own(me) -> None:
    from apps.search import live

    store(me, wiki("alpha-page", "Rollback of billing."))
    texts = {"now": "live text one"}

    def reader(kind: str, repo: str, path: str) -> str:
        return texts["now"]

    live.register_reader(reader)
    try:
        first = ask(me, "billing", include_content=True)
        again = ask(me, "billing", include_content=True)
        texts["now"] = "live text two"
        changed = ask(me, "billing", include_content=True)
    finally:
        live.unregister_reader(reader)
    indexed = ask(me, "billing")
    ids = [answer["results"][0]["source_id"] for answer in (first, again, changed, indexed)]
    assert ids[0] == ids[1]
    assert len(set(ids)) == 3
    row = first["results"][0]
    assert row["content"] == "live text one"
    assert row["provenance"]["content_source"] == "github_live"
    assert row["provenance"]["index_updated_at"] == indexed["results"][0]["provenance"]["version"]
    with principal_session(me):
        climb(UUID(first["trace_id"]), ids[0])
        detail = trace_detail(UUID(first["trace_id"]), limit=10, cursor=None)
        assert "live text" not in str(detail)
        new = trace_detail(UUID(changed["trace_id"]), limit=10, cursor=None)
        assert (new["sources"][0]["stage"], new["sources"][0]["activation"]["usage"]) == ("retrieved", 0)


def test_a_large_answer_is_cut_to_its_budget_and_a_fetch_is_whole_if_it_can_be(me) -> None:
    nodes = store(me, *(thread(number, f"billing {number} " + "w " * 4500) for number in range(1, 51)))
    answer = ask(me, "billing", limit=50)
    assert max(len(row["content"]) for row in answer["results"]) <= 2001
    fetched = ask(me, node_ids=[UUID(node) for node in nodes])
    assert any(row.get("content_truncated") for row in fetched["results"])
    assert len(fetched["results"]) == 50


def test_a_scan_says_how_many_rows_its_filters_removed(me) -> None:
    now = clock.now()
    store(
        me,
        thread(1, "one", at=now - timedelta(days=1)),
        thread(2, "two", at=now - timedelta(days=2), scope="two"),
        thread(3, "old", at=now - timedelta(days=30)),
    )
    filtered = ask(me, filters={"repository": "acme/none"})["why_empty"]
    assert (filtered["removed_by_filters"], filtered["filters_unmatched"]) == (2, ["repository"])
    assert ask(me, filters={"state": "open"})["why_empty"]["removed_by_filters"] == 2
    assert ask(me, scopes=["three"])["why_empty"]["removed_by_filters"] == 2
    window = {"since": now - timedelta(days=20), "until": now - timedelta(days=10)}
    assert ask(me, filters=window)["why_empty"]["removed_by_filters"] == 3, "a window is a filter, too"
    later = ask(me, reference_time=now - timedelta(days=60))["why_empty"]
    assert later["removed_by_filters"] == 0, "the usual window is none"


def test_hints_of_other_scopes_stand_apart_and_are_no_sources(me) -> None:
    nodes = store(me, thread(1, "billing", scope="one"), thread(2, "billing " + "x" * 3000, scope="two"))
    answer = ask(me, "billing", scopes=["one"], include_cross_scope=True, include_context=True)
    assert [row["node_id"] for row in answer["results"]] == nodes[:1]
    (hint,) = answer["cross_scope_hints"]
    assert (hint["node_id"], hint["scope"], hint["rank"]) == (nodes[1], "two", 1)
    assert 0 < hint["score"] <= 1
    assert len(hint["content"]) <= 2001
    assert "source_id" not in hint
    assert nodes[1] not in str(answer["context"])
    with principal_session(me):
        trace = Trace.objects.get(pk=UUID(answer["trace_id"]))
        assert TraceSource.objects.filter(trace_id=trace.pk).count() == 1
    assert trace.settings["cross_scope_hints"] == [
        {"node_id": nodes[1], "scope": "two", "score": hint["score"]}
    ]
    assert trace.request["include_cross_scope"] is True
    plain = ask(me, "billing", scopes=["one"])
    assert "cross_scope_hints" not in plain
    assert ask(me, "billing", include_cross_scope=True)["cross_scope_hints"] == []
    fetched = ask(me, node_ids=[UUID(nodes[1])])["results"][0]
    assert fetched["source_id"], "fetched by its id it is a source"


def test_what_is_asked_for_explicitly_says_what_it_is(me) -> None:
    from django.db import connection

    (node,) = store(me, thread(1, "billing"))
    with principal_session(me), connection.cursor() as cursor:
        cursor.execute(
            "UPDATE graph_node SET epistemic = 'deprecated', archived_at = now() WHERE id = %s", [node]
        )
    plain = ask(me, "billing")
    assert (plain["results"], plain["excluded"]) == ([], {"archived": 1})
    (row,) = ask(me, "billing", epistemic_mode="explicit")["results"]
    assert (row["epistemic"], row["withdrawn"]) == ("deprecated", "archived")


def test_all_four_channels_are_reported_and_kept(me) -> None:
    store(me, *CHAIN)
    answer = ask(me, "billing rollback")
    assert [(c["name"], c["status"]) for c in answer["channels"]] == [
        ("lexical", "ok"),
        ("semantic", "empty"),
        ("graph", "ok"),
        ("pinned", "empty"),
    ]
    with principal_session(me):
        kept = Trace.objects.get(pk=UUID(answer["trace_id"])).settings["channels"]
    assert (kept["graph"]["count"], kept["pinned"]) == (
        2,
        {"status": "empty", "count": 0, "method": None, "coverage": None},
    )


def test_a_failing_channel_leaves_the_rows_and_no_trace(me, monkeypatch) -> None:
    from apps.retrieval.candidates import linked

    store(me, *CHAIN)
    monkeypatch.setattr(linked, "statement", lambda *given: ("SELECT 1/0", {}))
    answer = ask(me, "billing rollback")
    assert [row["path"] for row in answer["results"]] == ["wiki/alpha-page.md"]
    assert answer["memory_error"] == "retrieval_incomplete"
    assert next(c for c in answer["channels"] if c["name"] == "graph")["error"] == "database_22012"
    assert "trace_id" not in answer
