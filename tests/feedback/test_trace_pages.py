"""What staff see of a trace, and what they may do to it from its page."""

import re
from html import unescape
from typing import Any

import pytest
from django.test import Client

from apps.core import ui
from apps.core.db.sessions import principal_session
from apps.feedback.admin.actions import _number
from apps.feedback.models import EdgeStrength
from apps.feedback.services.outcomes import Outcome, record_outcome
from apps.retrieval.schemas import Provenance
from apps.traces.models import ReceiptKind
from apps.traces.pages import contributions, place, source_name
from tests.support import factories
from tests.support.traces import climb, graph_row, issue, page, ranked, save, source_of, walk

pytestmark = pytest.mark.django_db
QUERY = "where do we keep the spare signing keys"


class Scene:
    def __init__(self) -> None:
        self.world = factories.make_world()
        nameless = Provenance("acme/app", "issue", None, "2026-01-02T03:04:05Z")
        with principal_session(self.world.principal):
            rows = [ranked(issue(7), 0), ranked(nameless, 1), ranked(issue(9), 2)]
            self.trace = save([*rows, graph_row(page("c"), [walk("a", "b", "c")])], query=QUERY).id
            source = source_of(page("c"))
            climb(self.trace, source)
            outcome = Outcome(ReceiptKind.CONFIRMED, "fix verified", source_ids=(source,))
            answer = record_outcome(trace_id=self.trace, idempotency_key="c1", outcome=outcome)
        self.confirmation = answer["receipt_id"]
        self.url = f"/admin/traces/trace/{self.trace}/"

    def client(self, *grants: str) -> Client:
        client = Client()
        client.force_login(factories.make_staff(self.world.workspace, *grants))
        return client

    def act(self, client: Client, action: str, **fields: Any) -> Any:
        html = client.get(f"{self.url}{action}/").content.decode()
        found = re.findall(r'<input type="hidden" name="(version|seen)" value="([^"]*)"', html)
        hidden = {name: unescape(value) for name, value in found}
        return client.post(f"{self.url}{action}/", {**hidden, **fields})


@pytest.fixture
def scene() -> Scene:
    return Scene()


def _text(html: str) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", html)))


def test_a_row_that_was_not_recorded_stands_at_its_place(scene: Scene) -> None:
    text = _text(scene.client("view_traces").get(f"{scene.url}change/").content.decode())
    first, missing, third = (
        text.index(words) for words in ("issue #7", "row not recorded: identity", "issue #9")
    )
    assert first < missing < third
    assert "partial, 1 of 4 not recorded" in text
    assert re.search(r"acme/app: a → b \(mention, strength \.2[45]", text)
    assert "confirmed, +.5000 on 2 edges" in text


def test_the_query_is_closed_and_revealing_it_is_written_down(scene: Scene) -> None:
    viewer = scene.client("view_traces")
    html = viewer.get(f"{scene.url}change/").content.decode()
    assert QUERY not in html
    assert "Reveal…" not in html
    assert viewer.get(f"{scene.url}reveal/").status_code == 404
    revealer = scene.client("view_traces", "reveal_text", "audit")
    answer = scene.act(revealer, "reveal", reason="support case 41")
    assert QUERY in answer.content.decode()
    assert "no-store" in answer["Cache-Control"]
    trail = revealer.get(f"{scene.url}change/").content.decode()
    assert "traces.reveal_query" in trail
    assert "support case 41" in trail
    assert QUERY not in trail


def test_a_reversal_by_staff_does_what_its_preview_said_once(scene: Scene) -> None:
    curator = scene.client("view_traces", "curate")
    action = f"reverse/{scene.confirmation}"
    shown = _text(curator.get(f"{scene.url}{action}/").content.decode())
    assert "Touches 2 edges" in shown
    assert len(re.findall(r"−\.2[45]", shown)) == 2
    refused = scene.act(curator, action, reason="", outcome="corrected")
    assert refused.status_code == 422
    done = scene.act(curator, action, reason="was another step", outcome="rolled_back")
    assert done.status_code == 302
    with principal_session(scene.world.principal):
        strengths = [edge.strength for edge in EdgeStrength.objects.all()]
    assert len(strengths) == 2
    assert max(strengths) < 1e-3
    text = _text(curator.get(f"{scene.url}change/").content.decode())
    assert re.search(r"rolled back, − ?\.(5000|4999|4998) on 2 edges", text)
    assert "Reverse…" not in text


def test_without_curate_a_reversal_is_not_there(scene: Scene) -> None:
    viewer = scene.client("view_traces")
    assert "Reverse…" not in viewer.get(f"{scene.url}change/").content.decode()
    assert viewer.get(f"{scene.url}reverse/{scene.confirmation}/").status_code == 404


def test_a_reversal_of_something_else_is_not_found(scene: Scene) -> None:
    curator = scene.client("view_traces", "curate")
    assert curator.get(f"{scene.url}reverse/{scene.trace}/").status_code == 404


def test_erasing_counts_first_and_needs_the_word(scene: Scene) -> None:
    reviewer = scene.client("view_traces", "review_retention")
    assert "Erase 9 rows" in _text(reviewer.get(f"{scene.url}erase/").content.decode())
    assert scene.act(reviewer, "erase", reason="asked for").status_code == 422
    assert reviewer.get(f"{scene.url}change/").status_code == 200
    assert scene.act(reviewer, "erase", reason="asked for", word="erase").status_code == 302
    assert reviewer.get(f"{scene.url}change/").status_code == 404


def test_a_hold_keeps_a_trace_from_being_erased(scene: Scene) -> None:
    reviewer = scene.client("view_traces", "review_retention")
    assert scene.act(reviewer, "hold", reference="case 41", reason="asked by counsel").status_code == 302
    refused = scene.act(reviewer, "erase", reason="asked for", word="erase")
    assert refused.status_code == 409
    assert reviewer.get(f"{scene.url}change/").status_code == 200


def test_queries_of_selected_rows_are_revealed_with_one_entry_each(scene: Scene) -> None:
    with principal_session(scene.world.principal):
        other = save([ranked(issue(1))], query="another question").id
    client = scene.client("view_traces", "reveal_text", "audit")
    url = "/admin/traces/trace/reveal-selected/"
    selected = {"_selected_action": [str(scene.trace), str(other)]}
    html = client.post(url, selected).content.decode()
    assert "Reveal 2 queries" in html
    assert QUERY not in html
    found = re.findall(r'<input type="hidden" name="(version|seen)" value="([^"]*)"', html)
    answer = client.post(url, {**selected, **{n: unescape(v) for n, v in found}, "reason": "support case 41"})
    assert QUERY in answer.content.decode()
    assert "another question" in answer.content.decode()
    trail = client.get("/admin/core/auditentry/?action=traces.reveal_query").content.decode()
    assert trail.count("field-did") == 2


def test_the_explorer_shows_the_last_day_and_says_what_is_empty(scene: Scene) -> None:
    client = scene.client("view_traces")
    assert "issue #7 +2" in _text(client.get("/admin/traces/trace/").content.decode())
    empty = _text(client.get("/admin/traces/trace/?mode=scan").content.decode())
    # The list names the one filter that hides its rows.
    assert "Nothing matches all of these filters" in empty
    assert "Without mode" in empty
    assert "issue #7" in client.get("/admin/traces/trace/?stage=3&outcome=confirmed").content.decode()
    assert "issue #7" not in client.get("/admin/traces/trace/?stage=0").content.decode()


def test_the_ledger_shows_strength_against_its_credits(scene: Scene) -> None:
    text = _text(scene.client("view_traces").get("/admin/feedback/edgestrength/").content.decode())
    assert "acme/app: a → b (mention)" in text
    assert "1 / 0 / 0" in text
    assert "drift +" not in text


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("results[3]", ("results", 3, -1)),
        ("graph_results[0].same_entity.others[2]", ("graph_results", 0, 2)),
        ("anything else", ("results", 10_000, 0)),
    ],
)
def test_a_location_is_a_place(location: str, expected: tuple[str, int, int]) -> None:
    found = place(location)
    assert (found.axis, found.index, found.folded) == expected


def test_sources_are_named_by_what_tells_them_apart() -> None:
    base = {"repo": "acme/app", "version": "v", "content_source": "index"}
    assert source_name({**base, "type": "issue", "identity": 7}) == "acme/app · issue #7"
    assert source_name({**base, "type": "diff", "identity": ["0" * 40, "src/a.ts"]}).endswith("src/a.ts")


def test_contributions_are_weight_times_feature() -> None:
    features = dict.fromkeys(ui.FEATURES, 0.5)
    weights = {"semantic": 0.36, "lexical": 0.36}
    found = dict(contributions({"features": features}, weights, 0.36))
    assert found["semantic"] == pytest.approx(0.18)
    assert found["graph"] == 0
    shares = dict(contributions({"features": features}, {}, 0.6))
    assert sum(shares.values()) == pytest.approx(0.6)


def test_one_is_told_from_many() -> None:
    assert [_number(n, "edge") for n in (0, 1, 2)] == ["0 edges", "1 edge", "2 edges"]
