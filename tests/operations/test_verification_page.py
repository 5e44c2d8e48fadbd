"""Auditors verify the chains from the page of the trail: asked, waited for, told; nobody else does."""

import re
from html import unescape
from typing import Any

import pytest
from django.test import Client

from apps.core import clock
from apps.core.db.sessions import staff_session
from apps.core.ids import uuid7
from apps.core.models import AuditEntry
from apps.operations.admin import verification
from apps.operations.models import JobRun
from tests.support.factories import make_staff, make_world

pytestmark = pytest.mark.django_db(transaction=True)
LIST = "/admin/core/auditentry/"


@pytest.fixture
def sent(monkeypatch: Any) -> list[Any]:
    from apps.operations.tasks import verify_audit

    calls: list[Any] = []
    monkeypatch.setattr(verify_audit, "delay", lambda *args: calls.append(args))
    return calls


def _run(outcome: str, **counts: int) -> None:
    now = clock.now()
    JobRun.objects.create(
        id=uuid7(),
        name=verification.JOB,
        lease_key=verification.JOB,
        asked_at=now,
        started_at=now,
        finished_at=None if outcome == "running" else now,
        lease_expires_at=now,
        outcome=outcome,
        counts=counts,
    )


def _ask(client: Client) -> Any:
    html = client.get(f"{LIST}verify/").content.decode()
    found = re.findall(r'<input type="hidden" name="(version|seen)" value="([^"]*)"', html)
    return client.post(f"{LIST}verify/", {name: unescape(value) for name, value in found})


def test_it_is_asked_for_once_waited_for_and_told(sent: list[Any]) -> None:
    world = make_world()
    auditor = make_staff(world.workspace, "audit")
    client = Client()
    client.force_login(auditor)
    assert "Verify now…" in client.get(LIST).content.decode()
    assert "data-poll" not in client.get(LIST).content.decode()
    assert _ask(client).status_code == 302
    assert sent == [()]
    with staff_session(auditor):
        assert AuditEntry.objects.filter(action=verification.ASKED, actor_user=auditor).count() == 1
    assert "Waiting for a worker" in client.get(LIST).content.decode()
    _run("running")
    assert "Verifying the audit trail" in client.get(f"{LIST}progress/").content.decode()
    assert _ask(client).status_code == 409
    JobRun.objects.update(outcome="succeeded", finished_at=clock.now(), counts={"entries": 7})
    over = client.get(f"{LIST}progress/").content.decode()
    assert "7 entries verified. Every chain is whole." in over
    assert "data-poll" not in over
    JobRun.objects.update(counts={"entries": 7, "broken_chains": 1})
    assert "1 chains are broken" in client.get(f"{LIST}progress/").content.decode()


def test_without_the_grant_there_is_no_such_act(sent: list[Any]) -> None:
    client = Client()
    client.force_login(make_staff(make_world().workspace, "view_traces"))
    assert "Verify now…" not in client.get(LIST).content.decode()
    for url in (f"{LIST}verify/", f"{LIST}progress/"):
        assert client.get(url).status_code == 404
    assert client.post(f"{LIST}verify/").status_code == 404
    assert not sent
