"""An outcome that an application confirmed is found by staff and reversed with a reason; the application sees it."""

import re
from html import unescape

import httpx
import pytest

from tests.support.stack import Stack

pytestmark = pytest.mark.installation

PAGES = {
    "wiki/mill.md": "The mill turns when sluice and gears are looked after.",
    "wiki/sluice.md": "The sluice feeds the wheel.",
    "wiki/gears.md": "Gears are greased on Mondays.",
}
REASON = "the gears were not the cause"


def confirmed_trace(http: httpx.Client) -> tuple[str, str]:
    """A trace with a confirmed page that the graph axis brought, and the receipt of the confirmation."""
    items = [
        {"type": "wiki_doc", "repo": "mill/handbook", "identity": path, "path": path, "text": text}
        for path, text in PAGES.items()
    ]
    http.post("/v1/nodes:batch", json={"items": items}).raise_for_status()
    asked = {"query": "the mill turns", "graph_expand": True, "filters": {"repository": "mill/handbook"}}
    found = http.post("/v1/search", json=asked | {"limit": 1}).raise_for_status().json()
    trace, source = found["trace_id"], found["graph_results"][0]["source_id"]
    uses = [{"source_id": source, "stage": stage} for stage in ("selected", "validated", "used")]
    http.post(f"/v1/traces/{trace}/uses", json={"idempotency_key": "climb", "uses": uses}).raise_for_status()
    outcome = {
        "idempotency_key": "confirm",
        "outcome": "confirmed",
        "source_ids": [source],
        "reason": "it ran",
    }
    receipt = http.post(f"/v1/traces/{trace}/outcomes", json=outcome).raise_for_status().json()
    assert [change["delta"] for change in receipt["changes"]] == [0.25]
    return trace, receipt["receipt_id"]


def reverse(admin: httpx.Client, address: str) -> httpx.Response:
    """Look at the preview and confirm it, as the form does."""
    preview = admin.get(address).raise_for_status()
    hidden = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', preview.text)
    fields = {name: unescape(value) for name, value in hidden}
    fields |= {"outcome": "rolled_back", "reason": REASON}
    return admin.post(address, data=fields, headers={"Referer": str(preview.url)})


def test_staff_reverse_what_an_application_confirmed(stack: Stack) -> None:
    token = stack.manage(
        *("create_token", "--workspace", "demo", "--principal", "miller"),
        *("--scopes", "search", "feedback", "memory"),
    ).strip()
    with stack.client_of(token) as http, stack.admin() as admin:
        trace, receipt = confirmed_trace(http)
        assert trace in admin.get("/admin/traces/trace/").text
        done = reverse(admin, f"/admin/traces/trace/{trace}/reverse/{receipt}/")
        assert done.status_code == 200
        assert "Reversed 1 credit." in done.text
        audit = http.get(f"/v1/traces/{trace}").json()["audit"]
        assert [(entry["kind"], entry["actor"]) for entry in audit[-2:]] == [
            ("confirmed", "principal"),
            ("rolled_back", "staff"),
        ]
        assert not any(credit["active"] for entry in audit for credit in entry["active_credits"])
        strengths = [edge["strength"] for edge in http.get("/v1/learned-edges").json()["edges"]]
        assert sum(strengths) < 1e-9
    assert "chains are whole" in stack.manage("verify_audit")
