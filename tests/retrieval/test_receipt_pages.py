"""Staff pages of receipts: verdicts first, nothing of a query before it is revealed, and governed by the grant."""

import hashlib
import re
from html import unescape
from uuid import UUID

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.core.db.sessions import principal_session, staff_session
from apps.core.models import AuditEntry
from apps.graph.models import Passage
from apps.graph.services import PassageItem
from apps.operations import holds
from apps.retrieval.models import Receipt
from apps.retrieval.policy import ScoringPolicy, unstored
from apps.retrieval.services import import_lines
from tests.retrieval.test_prme_import import FIRST, LABELS, OLD
from tests.retrieval.test_receipts import TEXTS
from tests.support import memory
from tests.support.factories import make_staff, make_world
from tests.support.library import ask, store, wiki
from tests.support.prme import dump
from tests.support.receipts import keep

pytestmark = pytest.mark.django_db
SECRET = "harbour crane inspection"


@pytest.fixture
def world():
    return make_world()


@pytest.fixture
def me(world):
    return world.principal


def browser(user) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def staff(world):
    return browser(make_staff(world.workspace, "view_traces"))


def page_of(client, receipt_id, model="receipt"):
    return client.get(reverse(f"admin:retrieval_{model}_change", args=[receipt_id]))


def text_of(response):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode()))


@pytest.mark.parametrize(
    "policy",
    [
        {},
        {"formula": "rank_fusion"},
        {"relevance_floor": 1.9, "kinds": {"passage": 0.7}, "epistemic": {"observed": 0.9}},
    ],
    ids=["default", "fusion", "steps"],
)
def test_a_page_says_that_all_holds_and_what_made_each_score(me, staff, policy) -> None:
    turns = [
        PassageItem(
            identity=f"t{n}", text="harbour crane" if n == 3 else f"then {n}", session="s", position=n
        )
        for n in range(6)
    ]
    memory.store(me, *TEXTS, *turns)
    found, receipt_id = keep(
        me, policy=unstored(ScoringPolicy.model_validate(policy)), multipliers={"lexical": 2.0}
    )
    answer = page_of(staff, receipt_id)
    shown = text_of(answer)
    number = len(found.rows)
    for words in (f"{number} of {number} equal", "overridden by the request", "Candidates by rank", "× 2.00"):
        assert words in shown, words
    assert answer.content.count(b'class="gv-bar"') == number
    assert "gv-bad" not in answer.content.decode()
    assert SECRET not in shown
    steps = {step.kind for row in found.rows for step in row.adjustments}
    assert steps
    assert all(kind.replace("_", " ") in shown for kind in steps)


def test_the_bytes_download_as_they_are_stored(world, me, staff) -> None:
    memory.store(me, *TEXTS)
    _, receipt_id = keep(me)
    url = reverse("admin:retrieval_receipt_document", args=[receipt_id])
    answer = staff.get(url)
    with principal_session(me):
        row = Receipt.objects.get(pk=receipt_id)
    assert answer.content == row.document.encode()
    assert hashlib.sha256(answer.content).hexdigest() == row.checksum
    assert "attachment" in answer["Content-Disposition"]
    assert staff.post(url).status_code in (403, 404, 405)
    for user in (make_staff(world.workspace, "curate"), make_staff(make_world().workspace, "view_traces")):
        assert browser(user).get(url).status_code == 404


@pytest.mark.django_db(transaction=True)
def test_a_failed_verdict_names_the_first_candidate_and_field(me, staff, owner_connection) -> None:
    memory.store(me, *TEXTS)
    found, receipt_id = keep(me)
    owner_connection.execute(
        "UPDATE retrieval_receipt SET document = changed, checksum = encode(sha256(changed::bytea), 'hex') "
        "FROM (SELECT regexp_replace(document, '\"score\":0\\.(\\d)', '\"score\":0.0\\1') AS changed "
        "FROM retrieval_receipt) c"
    )
    shown = text_of(page_of(staff, receipt_id))
    assert f"candidate 1, node {found.rows[0].node_id}, field score" in shown
    assert "The array scores differs from the document" in shown
    owner_connection.execute("UPDATE retrieval_receipt SET document = '{}'")
    broken = page_of(staff, receipt_id)
    assert broken.status_code == 200
    assert "not those that the checksum was taken over" in text_of(broken)


def test_the_list_links_traces_and_costs_the_same_for_any_number(me, staff) -> None:
    store(me, *(wiki(f"page-{n}", f"Rollback of billing {'again ' * n}") for n in range(4)))
    answers = [ask(me, "billing rollback") for _ in range(2)]
    url = reverse("admin:retrieval_receipt_changelist")
    staff.get(url)
    with CaptureQueriesContext(connection) as few:
        staff.get(url)
    answers += [ask(me, "billing rollback") for _ in range(10)]
    with CaptureQueriesContext(connection) as many:
        shown = staff.get(url).content.decode()
    assert len(many) == len(few)
    assert "features" not in str(many.captured_queries)
    assert f"/admin/traces/trace/{answers[0]['trace_id']}/change/" in shown
    assert "billing" not in shown
    trace = staff.get(reverse("admin:traces_trace_change", args=[answers[0]["trace_id"]])).content.decode()
    page = reverse("admin:retrieval_receipt_change", args=[answers[0]["retrieval_receipt_id"]])
    assert page in trace
    back = staff.get(page).content.decode()
    assert f"/admin/traces/trace/{answers[0]['trace_id']}/change/" in back
    assert "acme/app · wiki_doc wiki/page-0.md" in back
    assert "gv-neighbours" in back


def test_the_context_is_shown_by_entry_and_its_text_with_a_reason(world, me, staff) -> None:
    memory.store(me, *TEXTS[:2], *(f"harbour crane {'inspection ' * 300}report {n}" for n in range(4)))
    _, receipt_id = keep(me, token_budget=320)
    _, plain = keep(me)
    shown = text_of(page_of(staff, receipt_id))
    for words in ("of 320, counted by estimate-1", "whole", "reference, no text", "left out", "text closed"):
        assert words in shown
    assert "Reveal…" not in shown
    assert "No context was packed" in text_of(page_of(staff, plain))
    url = reverse("admin:retrieval_receipt_changelist") + f"{receipt_id}/reveal/"
    assert staff.get(url).status_code == 404
    revealer = browser(make_staff(world.workspace, "view_traces", "reveal_text", "audit"))
    html = revealer.get(url).content.decode()
    hidden = {n: unescape(v) for n, v in re.findall(r'name="(version|seen)" value="([^"]*)"', html)}
    answer = revealer.post(url, hidden | {"reason": "support case 41"})
    assert "&lt;memory-context&gt;" in answer.content.decode()
    assert "no-store" in answer["Cache-Control"]
    assert "retrieval.reveal_context" in text_of(page_of(revealer, receipt_id))


def test_the_list_tells_receipts_apart_by_what_came_first(me, staff) -> None:
    memory.store(me, *TEXTS)
    found, _ = keep(me)
    keep(me, "zebra quagga")
    text = text_of(staff.get(reverse("admin:retrieval_receipt_changelist")))
    with principal_session(me):
        first = Passage.objects.get(pk=found.rows[0].node_id)
    assert f"{first.repo} · {first.type} {first.path or first.identity}" in text
    assert f"+{len(found.rows) - 1}" in text
    assert text.count("zero hit") == 1


def test_filters_narrow_the_list(me, staff) -> None:
    memory.store(me, *TEXTS)
    keep(me)
    _, overridden = keep(me, multipliers={"lexical": 2.0})
    url = reverse("admin:retrieval_receipt_changelist")
    shown = staff.get(f"{url}?profile=request_override").content.decode()
    assert str(overridden) in shown
    assert shown.count("/change/") < staff.get(url).content.decode().count("/change/")
    assert "Without mode: context" in text_of(staff.get(f"{url}?mode=context"))


def test_a_context_is_shown_only_as_it_was_packed(world, me) -> None:
    store(me, *(wiki(f"page-{n}", f"Rollback of billing {'again ' * (2 + 60 * n)}") for n in range(6)))
    answer = ask(me, "billing rollback", include_context=True, token_budget=160)
    receipt_id = answer["retrieval_receipt_id"]
    url = reverse("admin:retrieval_receipt_reveal", args=[receipt_id])
    reader = browser(make_staff(world.workspace, "view_traces", "reveal_text"))
    assert url in page_of(reader, receipt_id).content.decode()
    done = reader.post(url, {"reason": "support case 41", **hidden_fields(reader.get(url))})
    assert "again again" in done.content.decode()
    store(me, wiki("page-0", "Rollback of billing, as it is now"))
    changed = page_of(reader, receipt_id)
    assert "Texts changed since; the packed context can" in text_of(changed)
    assert url not in changed.content.decode()
    refused = reader.post(url, {"reason": "support case 42", **hidden_fields(reader.get(url))})
    assert "again again" not in refused.content.decode()
    with staff_session(make_staff(world.workspace, "audit")):
        assert AuditEntry.objects.filter(action="retrieval.reveal_context").count() == 1


def hidden_fields(preview) -> dict[str, str]:
    found = re.findall(
        r'<input type="hidden" name="(version|seen)" value="([^"]*)"', preview.content.decode()
    )
    return dict(found)


@pytest.fixture
def imported(me) -> dict[int, UUID]:
    """Ids of imported receipts by schema version."""
    told = []
    with principal_session(me):
        import_lines(
            lines=[(1, dump(FIRST)), (2, dump(OLD)), (3, LABELS)], told=lambda _, found: told.extend(found)
        )
    return dict(zip((12, 1), (one.receipt_id for one in told), strict=True))


def test_an_imported_receipt_has_a_page_without_its_words(me, staff, imported) -> None:
    shown = text_of(page_of(staff, imported[12], "prmereceipt"))
    for words in ("2 of 2 equal", "12 of PRME", "query and document closed", "weighted"):
        assert words in shown, words
    assert "a question" not in shown
    assert "gv-bad" not in page_of(staff, imported[12], "prmereceipt").content.decode()
    old = text_of(page_of(staff, imported[1], "prmereceipt"))
    assert "schema 1 records no provenance" in old
    listed = text_of(staff.get(reverse("admin:retrieval_prmereceipt_changelist")))
    assert str(UUID(FIRST["request_id"])) in listed
    assert "cannot be replayed" in listed


def test_its_document_is_revealed_for_a_reason_and_audited(world, me, staff, imported) -> None:
    url = reverse("admin:retrieval_prmereceipt_reveal", args=[imported[12]])
    assert staff.get(url).status_code == 404
    reader = make_staff(world.workspace, "view_traces", "reveal_text")
    allowed = browser(reader)
    preview = allowed.get(url)
    assert "a question" not in preview.content.decode()
    done = allowed.post(url, {"reason": "support case 41", **hidden_fields(preview)})
    assert "a question" in done.content.decode()
    with staff_session(make_staff(world.workspace, "audit")):
        entry = AuditEntry.objects.filter(action="retrieval.reveal_imported").get()
    assert str(entry.object_id) == str(imported[12])
    assert "a question" not in str(vars(entry))


@pytest.mark.parametrize("model", ["receipt", "prmereceipt"])
def test_who_holds_no_grant_sees_nothing(world, me, imported, model) -> None:
    memory.store(me, *TEXTS)
    receipt_id = keep(me)[1] if model == "receipt" else imported[12]
    for user in (make_staff(world.workspace, "curate"), make_staff(make_world().workspace, "view_traces")):
        assert page_of(browser(user), receipt_id, model).status_code == 404


@pytest.mark.django_db(transaction=True)
def test_a_spoiled_imported_one_says_what_differs_and_a_held_one_is_not_read(
    world, me, staff, imported, owner_connection
) -> None:
    owner_connection.execute(
        "UPDATE retrieval_prme_receipt SET document = changed, checksum = encode(sha256(changed::bytea), 'hex') "
        "FROM (SELECT regexp_replace(document, '\"score\":0\\.(\\d)', '\"score\":0.0\\1') AS changed "
        "FROM retrieval_prme_receipt WHERE id = %s) c WHERE id = %s",
        [imported[12], imported[12]],
    )
    assert "/candidates/0/score" in text_of(page_of(staff, imported[12], "prmereceipt"))
    reviewer = make_staff(world.workspace, "review_retention", "view_traces")
    with staff_session(reviewer):
        holds.place(
            workspace_id=world.workspace.pk,
            reference="case 2",
            reason="asked for",
            items=[("retrieval.prmereceipt", imported[12])],
        )
    owner_connection.execute("UPDATE retrieval_prme_receipt SET expires_at = now()")
    assert page_of(staff, imported[12], "prmereceipt").status_code == 404
    held = page_of(browser(reviewer), imported[12], "prmereceipt")
    assert "a hold keeps it" in text_of(held)
