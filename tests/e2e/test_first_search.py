"""Real documents, from the command that imports them to the page on which staff see their search."""

import json

import pytest

from tests.support import judged_data
from tests.support.stack import Stack

pytestmark = pytest.mark.installation

LADDER = ("selected", "validated", "used")


def test_imported_collection_is_searched_used_and_seen_by_staff(stack: Stack) -> None:
    folder = judged_data("cranfield")
    with (folder / "queries.jsonl").open(encoding="utf-8") as lines:
        query = json.loads(next(lines))["text"]
    said = stack.manage("import_beir", str(folder), "--workspace", "demo", "--principal", "cranfield")
    assert "created" in said
    token = stack.manage(
        *("create_token", "--workspace", "demo", "--principal", "cranfield"),
        *("--scopes", "search", "feedback"),
    ).strip()
    with stack.client_of(token) as client:
        found = client.post("/v1/search", json={"query": query}).json()
        assert found["results"]
        assert found["results"][0]["provenance"]["repo"] == "conn:cranfield"
        trace, source = found["trace_id"], found["results"][0]["source_id"]
        uses = [{"source_id": source, "stage": stage} for stage in LADDER]
        receipt = client.post(f"/v1/traces/{trace}/uses", json={"idempotency_key": "first", "uses": uses})
        assert [change["applied"] for change in receipt.json()["changes"]] == [True] * len(LADDER)
        detail = client.get(f"/v1/traces/{trace}").json()
    assert [shown["stage"] for shown in detail["sources"] if shown["source_id"] == source] == ["used"]
    with stack.client() as stranger:
        assert stranger.get(f"/v1/traces/{trace}").status_code == 404
    with stack.admin() as admin:
        page = admin.get(f"/admin/traces/trace/{trace}/change/")
        assert page.status_code == 200
        assert trace in page.text
        assert query not in page.text  # revealed with a reason alone


def test_first_start_wrote_the_demo_memory(stack: Stack) -> None:
    with stack.client() as client:
        traces = client.get("/v1/traces", params={"limit": 50}).json()["traces"]
        assert {trace["mode"] for trace in traces} == {"search", "scan", "fetch"}
        assert client.get("/v1/learned-edges").json()["edges"]
