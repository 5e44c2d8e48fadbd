"""Pictures of the main pages for the documentation, made where MEMORY_PICTURES=1 is set; looked at by a person."""

import os
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from apps.accounts import services
from apps.accounts.grants import GRANTS
from apps.accounts.models import Principal
from apps.core import clock, policies
from apps.core.db.sessions import principal_session, staff_session
from apps.operations import alarms
from apps.operations.erasure import runs
from apps.operations.erasure import services as erasures
from apps.operations.models import Job, JobRun
from apps.retrieval.models import PrmeReceipt
from apps.retrieval.services import import_lines
from apps.search.demo import load
from apps.search.demo.schemas import demo_memory
from apps.traces.models import ActionReceipt, Trace
from tests.e2e.conftest import Scene
from tests.support import factories, journal, prme
from tests.support.journal_scene import Kept, beat, keep
from tests.support.learning_scene import Learned, learn
from tests.support.traces import save

FOLDER = Path(__file__).resolve().parent.parent.parent / "docs" / "pictures"
VARIANTS: dict[str, dict[str, Any]] = {"light": {}, "dark": {"dark": True}, "phone": {"width": 360}}
MOST_BYTES = 250_000
DAYS = 14


@pytest.fixture
def scene(transactional_db: None, settings: Any, tmp_path: Path, monkeypatch: Any) -> Scene:
    """Two weeks of a small team's memory, as the demo writes it."""
    settings.ROOT_URLCONF = "tests.e2e.urls"
    settings.ERASURE_FILE = tmp_path / "erasures.jsonl"
    settings.ERASURE_BACKUP_DAYS = 30
    # Every day asks anew what the demo asks once.
    monkeypatch.setattr(load, "_earlier", lambda principal, request: None)
    superuser = factories.make_superuser()
    with staff_session(superuser):
        workspace = services.create_workspace(slug="acme", name="Acme")
    ana = factories.make_staff(workspace, *GRANTS)
    ana.username, ana.first_name, ana.last_name = "ana", "Ana", "Lind"
    ana.save()
    maria = factories.make_principal(workspace, "github:maria")
    bot = factories.make_principal(workspace, "token:support-bot")
    with staff_session(superuser):
        Principal.objects.filter(pk=maria.principal_id).update(display_name="Maria Sandoval")
        Principal.objects.filter(pk=bot.principal_id).update(display_name="Support bot")
        owner = Principal.objects.defer("hash_key").get(pk=maria.principal_id)
        scopes = ["feedback", "search"]
        services.create_token(name="support desk", scopes=scopes, principal=owner, reason="pilot")
    _two_weeks(maria)
    _today(bot)
    with principal_session(maria):
        told = ActionReceipt.objects.filter(kind="confirmed").order_by("-recorded_at").first()
        assert told is not None
        receipt_id = Trace.objects.get(pk=told.trace_id).retrieval_receipt_id
    found = Scene(workspace, superuser, ana, maria, told.trace_id, str(told.pk))
    found.objects["receipt"] = receipt_id
    found.objects["erasure"] = _erased(workspace, ana)
    found.objects["policy"] = _policy(workspace, ana)
    found.objects["learned"] = _learned(workspace, ana, monkeypatch)
    found.objects["imported"] = _imported(workspace)
    journal.configure(settings)
    asked = "how do we rotate the signing keys"
    found.objects["journal"] = keep(workspace, [maria, bot], ana, query=asked, trace=found.trace, rows=14)
    return found


def _learned(workspace: Any, ana: Any, monkeypatch: Any) -> Learned:
    """A second person has proposed what Ana may approve."""
    ben = factories.make_staff(workspace, "view_traces", "manage_profiles")
    ben.username, ben.first_name, ben.last_name = "ben", "Ben", "Okafor"
    ben.save()
    sizes = {"training": 24, "validation": 30, "unseen": 24}
    handbook = factories.make_principal(workspace, "token:handbook")
    return learn(handbook, ben, ana, monkeypatch, sizes=sizes, small=False)


def _imported(workspace: Any) -> UUID:
    """A receipt that came with its labels."""
    owner = factories.make_principal(workspace, "token:old-memory")
    features = [
        (0.91 - 0.05 * at, 0.8 / (1 + at % 3), 0.1 * (at % 4), 0.9 - 0.07 * at, 0.6, 0.7) for at in range(11)
    ]
    came = prme.make_receipt(features, version=12)
    lines = [prme.dump(came), prme.make_record(came, {0: True, 1: True, 2: False})]
    with principal_session(owner):
        import_lines(lines=list(enumerate(lines, start=1)))
        return PrmeReceipt.objects.get().pk


def _two_weeks(principal: Any) -> None:
    now = clock.now()
    with clock.frozen(now - timedelta(days=DAYS)):
        load._import(principal)
        load._embed(principal)
    calls = demo_memory().queries
    for day in range(DAYS, -1, -1):
        for at in range(2 + (day * 5) % 4):
            ago = timedelta(days=day, minutes=14 + 97 * at)
            with clock.frozen(now - ago):
                load._play(principal, calls[(day * 3 + at) % len(calls)])


def _today(principal: Any) -> None:
    """Calls of a principal that holds nothing: zero hits."""
    now = clock.now()
    for hours in (1, 30, 52, 125, 200):
        with clock.frozen(now - timedelta(hours=hours)), principal_session(principal):
            save([], query="an order that nobody placed")


def _upkeep(workspace: Any) -> None:
    now = clock.now()
    alarms.raise_alarm(source="traces.expire", reason="overdue", details={"seconds": 1900})
    names = ("traces.expire", "feedback.verify_ledger", "operations.verify_audit", "graph.embed")
    for name in (*names, "operations.watch"):
        Job.objects.create(name=name, known_since=now, last_success_at=now - timedelta(minutes=2))
    for name in names:
        for at in range(16):
            began = now - timedelta(hours=at, minutes=len(name))
            failed = name == "traces.expire" and at == 5
            JobRun.objects.create(
                name=name,
                lease_key=name,
                asked_at=began,
                started_at=began,
                finished_at=began + timedelta(seconds=2),
                lease_expires_at=began + timedelta(minutes=1),
                outcome="failed" if failed else "succeeded",
                code="OperationalError" if failed else "",
                counts={"deleted": at},
            )


def _erased(workspace: Any, staff: Any) -> UUID:
    leaver = factories.make_principal(workspace, "github:leaver")
    factories.make_token(leaver, "search")
    load.load_demo(principal=leaver)
    with staff_session(staff):
        certificate = erasures.erase_principal(principal_id=leaver.principal_id, reason="asked to go")
    runs.run(certificate)
    return certificate


def _policy(workspace: Any, staff: Any) -> UUID:
    """The workspace's own version, which keeps traces shorter than the default."""
    with staff_session(staff):
        default = policies.current_policy(workspace.pk, "memory")
        days = {**default.document["retention_days"], "trace": 60, "trace_text": 14}
        made = policies.publish_policy(
            workspace_id=workspace.pk,
            kind="memory",
            document={**default.document, "retention_days": days},
            if_match=default.hash,
            reason="agreed with the works council",
        )
        return UUID(str(made.pk))


def _shown(scene: Scene) -> dict[str, str]:
    learned: Learned = scene.objects["learned"]
    return {
        "start": "/admin/",
        "traces": f"/admin/traces/trace/?window=7d&principal={scene.principal.principal_id}",
        "trace": f"/admin/traces/trace/{scene.trace}/change/",
        "receipt": f"/admin/retrieval/receipt/{scene.objects['receipt']}/change/",
        "principal": f"/admin/accounts/principal/{scene.principal.principal_id}/change/",
        "certificate": f"/admin/operations/erasurecertificate/{scene.objects['erasure']}/change/",
        "evaluation": f"/admin/learning/evaluation/{learned.evaluation}/change/",
        "holdout": f"/admin/learning/holdout/{learned.holdout}/change/",
        "profile": f"/admin/learning/rankingprofile/{learned.profile}/change/",
        "imported": f"/admin/retrieval/prmereceipt/{scene.objects['imported']}/change/",
        "ledger": "/admin/feedback/edgestrength/",
        "policies": "/admin/core/storedpolicy/",
        "policy": f"/admin/core/storedpolicy/{scene.objects['policy']}/change/",
        **_journal(scene.objects["journal"]),
    }


def _journal(kept: Kept) -> dict[str, str]:
    base = "/admin/observations/"
    return {
        "journal-status": f"{base}status/",
        "observations": f"{base}staffobservation/",
        "observation": f"{base}staffobservation/{kept.observation}/change/",
        "enrolments": f"{base}enrolment/",
        "kill-switch": f"{base}killswitch/throw/",
        "exports": f"{base}exportrecord/",
        "retention-review": f"/admin/operations/retentionreview/{kept.review}/change/",
    }


def _changes(page: Any, scene: Scene) -> None:
    """The second screen of a profile's page: what it would change."""
    page.goto(f"/admin/learning/rankingprofile/{scene.objects['learned'].profile}/change/")
    page.locator(".lr-orders figure").first.wait_for()
    page.locator("#change").evaluate("heading => heading.scrollIntoView()")


def _rollback(page: Any, scene: Scene) -> None:
    page.goto(f"/admin/learning/rankingprofile/{scene.objects['learned'].profile}/change/")
    page.get_by_role("link", name="Roll back to…").click()
    page.locator("#gv-dialog .lr-orders").first.wait_for()


def _desk(page: Any, scene: Scene) -> None:
    page.goto(f"/admin/desk/labels/?principal={scene.principal.principal_id}")
    page.locator("#reason").fill("labels for an evaluation")
    page.get_by_role("button", name="Open the desk").click()
    page.wait_for_url("**/desk/labels/item/")


def _reversal(page: Any, scene: Scene) -> None:
    page.goto(f"/admin/traces/trace/{scene.trace}/change/")
    page.get_by_role("link", name="Reverse…").first.click()
    page.locator("#gv-dialog table").first.wait_for()


REACHED = {"profile-change": _changes, "rollback": _rollback, "desk": _desk, "reversal": _reversal}
"""Pictures of what is behind a step."""
LIGHT_ALONE = {"ledger", "policies", "reversal"}
"""What the other pictures show dark and on a phone already."""


@pytest.mark.skipif(
    os.environ.get("MEMORY_PICTURES") != "1", reason="pictures are made with MEMORY_PICTURES=1"
)
def test_pictures(browser: Any, scene: Scene) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for variant, options in VARIANTS.items():
        page = browser(scene.everything, **options)
        for name, url in _shown(scene).items():
            if _wanted(name, variant):
                beat()
                page.goto(url)
                _take(page, f"{name}-{variant}.png")
        for name, reach in REACHED.items():
            if _wanted(name, variant):
                reach(page, scene)
                _take(page, f"{name}-{variant}.png")
        assert not page.problems


def _wanted(name: str, variant: str) -> bool:
    return variant == "light" or name not in LIGHT_ALONE


def _take(page: Any, name: str) -> None:
    page.wait_for_load_state("networkidle")
    page.screenshot(path=FOLDER / name)
    assert 10_000 < (FOLDER / name).stat().st_size < MOST_BYTES, name
