"""A real browser before real pages. Skipped, with the reason, where there is no Chromium."""

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client

from apps.accounts import services as accounts
from apps.accounts.grants import GRANTS, GROUPS
from apps.accounts.models import ApiToken, Workspace
from apps.core import clock
from apps.core.db.identity import PrincipalIdentity
from apps.core.db.sessions import principal_session, staff_session
from apps.core.ids import uuid7
from apps.feedback.schemas import AblationRequest, AssessmentRequest, CitationsRequest
from apps.feedback.services.ablations import ablate, assess
from apps.feedback.services.citations import record_citations
from apps.feedback.services.outcomes import Outcome, record_outcome
from apps.graph.services import PassageItem
from apps.operations import alarms, holds
from apps.operations.erasure import certificates
from apps.operations.erasure.models import ErasureCertificate
from apps.operations.erasure.rules import rules as erasure_rules
from apps.operations.models import Destination, Job, JobRun
from apps.retrieval.policy import ScoringPolicy, unstored
from apps.retrieval.schemas import Provenance
from apps.retrieval.selectors import stored_receipt
from apps.retrieval.services import import_lines
from apps.traces.models import ReceiptKind
from tests.support import factories, journal, memory, prme, receipts
from tests.support.journal_scene import keep
from tests.support.stack import Stack, running_stack
from tests.support.traces import climb, graph_row, issue, page, ranked, save, source_of, walk

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
# Must not be in any byte of a page before it is revealed.
SECRET_QUERY = "how do we rotate the very secret signing keys"
LONG_NAME = "n" * 200
WATCH_CSP = """
window.reports = [];
document.addEventListener("securitypolicyviolation", (e) => {
  window.reports.push(`${e.violatedDirective} ${e.blockedURI}`);
});
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("there is no Chromium on this machine (apt-get install chromium)")
    from playwright.sync_api import sync_playwright

    # Playwright's own loop runs in this thread; the rows of a scene are made beside it.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield browser
        browser.close()
    os.environ.pop("DJANGO_ALLOW_ASYNC_UNSAFE", None)


@dataclass
class Scene:
    """A workspace with something of everything, a person who holds every grant, and a superuser."""

    workspace: Workspace
    superuser: User
    everything: User
    principal: PrincipalIdentity
    trace: UUID
    confirmation: str
    objects: dict[str, Any] = field(default_factory=dict)

    def client(self, user: User) -> Client:
        client = Client()
        client.force_login(user)
        return client


@pytest.fixture
def scene(transactional_db: None, settings: Any) -> Scene:
    settings.ROOT_URLCONF = "tests.e2e.urls"
    journal.configure(settings)
    return make_scene()


def make_scene() -> Scene:
    world = factories.make_world()
    everything = factories.make_staff(world.workspace, *GRANTS)
    trace, confirmation = _traces(world.principal)
    factories.make_token(world.principal, "search", "feedback", superuser=world.superuser)
    factories.make_principal(world.workspace, f"oidc:login.example.org/{'r' * 120}#{'s' * 60}")
    _operations(world.workspace, world.superuser, everything, trace)
    _receipts(world.principal)
    _journal(world, everything, trace)
    return Scene(world.workspace, world.superuser, everything, world.principal, trace, confirmation)


def _journal(world: factories.World, staff: User, trace: UUID) -> None:
    """Rows of every sort, of a principal with a short and one with a long name."""
    long_name = factories.make_principal(world.workspace, f"oidc:login.example.org/{'j' * 120}#{'s' * 60}")
    keep(world.workspace, [world.principal, long_name], staff, query=SECRET_QUERY, trace=trace)


def _receipts(principal: PrincipalIdentity) -> None:
    """Imported ones of three sorts with a label, and a native one of many rows with long names and every step."""
    features = [(0.9 / (at + 1), 0.8, 0.4, 0.5, 0.6, 0.7) for at in range(15)]
    first = prme.make_receipt(features, version=12, query=SECRET_QUERY)
    old = prme.make_receipt(features[:3], version=1, request=2, query=SECRET_QUERY)
    lines = [prme.dump(old), prme.dump(first), prme.make_record(first, {0: True, 1: False})]
    with principal_session(principal):
        import_lines(lines=list(enumerate(lines, start=1)))
    memory.store(
        principal,
        *(
            PassageItem(
                identity=f"{LONG_NAME}-{at}",
                path=f"{LONG_NAME}/{at}.md",
                text=f"signing keys {'rotation ' * at}",
                session="s",
                position=at,
            )
            for at in range(40)
        ),
    )
    policy = {"relevance_floor": 1.9, "kinds": {"passage": 0.7}, "epistemic": {"observed": 0.9}}
    _, receipt_id = receipts.keep(
        principal,
        SECRET_QUERY,
        limit=30,
        token_budget=3000,
        policy=unstored(ScoringPolicy.model_validate(policy)),
        multipliers={"lexical": 2.0, "recency": 0.25},
    )
    _ablations(principal, receipt_id)


def _ablations(principal: PrincipalIdentity, receipt_id: UUID) -> None:
    """Two entries of a context taken out, and one of them assessed by an evaluation with a long name."""
    with principal_session(principal):
        candidates = stored_receipt(receipt_id).receipt.candidates
        nodes = [each.node_id for each in candidates if each.in_context and each.has_content]
        cited = CitationsRequest(
            citation_id=uuid4(),
            answer_id="a",
            answer_sha256=None,
            method="human_verified",
            cited_node_ids=nodes,
        )
        record_citations(receipt_id=receipt_id, submission=cited)
        ablate(receipt_id=receipt_id, submission=AblationRequest(node_ids=nodes[:2]))
        one = ablate(receipt_id=receipt_id, submission=AblationRequest(node_ids=nodes[:1]))
        for correct in (True, False):
            verdict = AssessmentRequest(
                evaluation_id=f"{correct} {'nightly-' * 12}",
                citation_id=cited.citation_id,
                baseline_correct=correct,
                counterfactual_correct=not correct,
            )
            assess(ablation_id=UUID(one["ablation_id"]), submission=verdict)


def _nameless() -> Provenance:
    return Provenance("acme/app", "issue", None, "2026-01-02T03:04:05Z")


def _features(at: int) -> dict[str, Any]:
    values = {
        "semantic": 0.9,
        "lexical": 0.5,
        "graph": 0.2,
        "recency": 0.4,
        "salience": 0.3,
        "confidence": 0.8,
    }
    return {"features": values, "adjustments": [{"kind": "epistemic", "coefficient": 0.9}] if at == 1 else []}


def _traces(principal: PrincipalIdentity) -> tuple[UUID, str]:
    """A partial one with a confirmed outcome, a zero hit, one with 300 sources of long names."""
    start = clock.now()
    with clock.frozen(start - timedelta(hours=2)), principal_session(principal):
        many = [ranked(page(f"{LONG_NAME[:180]}-{at}"), at, components=_features(at)) for at in range(290)]
        save(many, query=SECRET_QUERY)
        save([], query=SECRET_QUERY)
    with clock.frozen(start - timedelta(hours=1)), principal_session(principal):
        rows = [ranked(issue(at + 1), at, score=0.8 / (at + 1), components=_features(at)) for at in range(9)]
        rows[3] = ranked(_nameless(), 3, score=0.2)
        saved = save([*rows, graph_row(page("c"), [walk("a", "b", "c")])], query=SECRET_QUERY)
        source = source_of(page("c"))
        climb(saved.id, source)
        outcome = Outcome(ReceiptKind.CONFIRMED, "fix verified", source_ids=(source,))
        receipt = record_outcome(trace_id=saved.id, idempotency_key="c1", outcome=outcome)
    return saved.id, str(receipt["receipt_id"])


def _operations(workspace: Workspace, superuser: User, staff: User, trace: UUID) -> None:
    now = clock.now()
    alarms.raise_alarm(source="traces.expire", reason="overdue", details={"seconds": 4100})
    alarms.raise_alarm(source="feedback.verify_ledger", reason="ledger_drift", workspace=workspace.pk)
    for name in ("traces.expire", "operations.watch"):
        Job.objects.create(name=name, known_since=now, last_success_at=now)
    for at in range(30):
        began = now - timedelta(hours=at)
        failed = at % 7 == 3
        JobRun.objects.create(
            id=uuid7(),
            name="traces.expire",
            lease_key="traces.expire",
            asked_at=began,
            started_at=began,
            finished_at=began + timedelta(seconds=2),
            lease_expires_at=began + timedelta(minutes=1),
            outcome="failed" if failed else "succeeded",
            code="OperationalError" if failed else "",
            counts={"deleted": at},
        )
    with staff_session(staff):
        Destination.objects.create(
            workspace=workspace,
            name="Pager",
            kind="webhook",
            address=f"https://pager.example.org/{'x' * 200}",
        )
        holds.place(
            workspace_id=workspace.pk,
            reference="case 41",
            reason="asked for by counsel",
            items=[("traces.trace", trace)],
        )
    _certificate(workspace)
    with staff_session(superuser):
        accounts.create_issuer(
            workspace=workspace.pk,
            iss=f"https://login.example.org/{'r' * 200}",
            audience="memory",
            subject_prefix="oidc:login#",
            algorithms=["ES256"],
            scopes=["search"],
            jwks_url="https://login.example.org/keys",
        )
        ApiToken.objects.filter(name="test").update(expires_at=now + timedelta(days=3))


def _certificate(workspace: Workspace) -> None:
    """Of an erasure that found rows in every table."""
    now = clock.now()
    tables = [
        {"table": rule.table, "found": 1204331, "deleted": 1204331, "remaining": 0}
        for rule in erasure_rules()
    ]
    made = ErasureCertificate(
        workspace=workspace,
        actor="staff",
        status="complete",
        requested_at=now,
        fence_at=now,
        completed_at=now,
        tables=tables,
        backup_days=30,
        audit_entry_id=uuid7(),
    )
    made.checksum = certificates.checksum(made)
    # Certificates begin in a function of the database alone; this one has no erasure behind it.
    fields = made._meta.local_concrete_fields
    values = [field.get_db_prep_save(getattr(made, field.attname), connection) for field in fields]
    names = ", ".join(field.column for field in fields)
    with psycopg.connect(os.environ["DATABASE_ADMIN_URL"]) as admin:
        marks = ", ".join(["%s"] * len(values))
        admin.execute(f"INSERT INTO operations_erasurecertificate ({names}) VALUES ({marks})", values)


OpenPage = Callable[..., Any]


@pytest.fixture
def browser(chromium: Any, live_server: Any, scene: Scene) -> Iterator[OpenPage]:
    """`browser(user=None, dark=False, width=1440, script=True)` gives a page that is signed in and watched."""
    contexts: list[Any] = []

    def open_page(
        user: User | None = None, *, dark: bool = False, width: int = 1440, script: bool = True, **more: Any
    ) -> Any:
        context = chromium.new_context(
            base_url=live_server.url,
            viewport={"width": width, "height": 900},
            color_scheme="dark" if dark else "light",
            java_script_enabled=script,
            **more,
        )
        contexts.append(context)
        if user is not None:
            cookie = scene.client(user).cookies["sessionid"].value
            context.add_cookies([{"name": "sessionid", "value": cookie, "url": live_server.url}])
        if script:
            context.add_init_script(WATCH_CSP)
        opened = context.new_page()
        opened.problems = []
        opened.on("console", lambda m: _note(opened, m))
        opened.on("pageerror", lambda error: opened.problems.append(str(error)))
        return opened

    yield open_page
    for context in contexts:
        context.close()


def _note(opened: Any, message: Any) -> None:
    # The answer to a refused form is a status of its own, which the console repeats.
    if message.type == "error" and "Failed to load resource" not in message.text:
        opened.problems.append(message.text)


def groups() -> tuple[str, ...]:
    return tuple(GROUPS)


@pytest.fixture(scope="session")
def stack() -> Iterator[Stack]:
    """An installation after its first start, with the demo memory. Tests add to it and break nothing."""
    with running_stack(demo=True) as stack:
        yield stack
