"""The audit trail with what only operations can do to it: recompute its chains now."""

from datetime import timedelta
from typing import Any, cast

import structlog
from django.contrib import admin
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.urls import URLPattern, path
from django.utils.html import format_html

from apps.core import audit, clock, ui
from apps.core.admin import Done, GovernedAction, Preview, ReasonForm
from apps.core.admin.audit import AuditEntryAdmin
from apps.core.models import AuditChain, AuditEntry
from apps.operations.admin.holds import HoldEntry
from apps.operations.models import JobRun
from apps.operations.models.jobs import Outcome

JOB = "operations.verify_audit"
ASKED = "operations.ask_verification"
WAITS = timedelta(minutes=10)
"""How long a verification that was asked for is said to wait for a worker."""

logger = structlog.get_logger(__name__)


def send() -> None:
    """Hand the verification to a worker. Where the broker is away, the nightly run still comes."""
    from apps.operations.tasks import verify_audit

    try:
        verify_audit.delay()
    except Exception as error:  # the broker's own errors are many
        logger.warning("verification_not_sent", error=type(error).__name__)


def newest_run() -> JobRun | None:
    return JobRun.objects.filter(name=JOB).order_by("-started_at").first()


def running() -> bool:
    run = newest_run()
    return run is not None and run.outcome == Outcome.RUNNING


def entries() -> int:
    """Entries of the chains that the session sees."""
    return sum(AuditChain.objects.values_list("last_sequence", flat=True))


class VerifyNow(GovernedAction):
    name, path, label = "verify", "verify/", "Verify now…"
    title = "Verify the audit trail now"
    on_object = False
    grants = ("audit",)

    @classmethod
    def blocked(cls, model_admin: Any, request: HttpRequest, obj: Any) -> str:
        return "A verification is running." if running() else ""

    def make_form(self, request: HttpRequest, obj: Any, data: Any = None) -> ReasonForm:
        form = ReasonForm(data)
        form.fields["reason"].required = False
        return form

    def preview(self, request: HttpRequest, obj: Any, form: ReasonForm) -> Preview:
        summary = (
            f"Recomputes the chains, {ui.count(entries())} entries that you see among them. Nothing is changed; "
            "a chain that does not hold is an alarm."
        )
        return Preview(summary, "Verify now", {"chains": str(AuditChain.objects.count())})

    def act(self, request: HttpRequest, obj: Any, data: dict[str, Any], preview: Preview) -> Done:
        entry = audit.record(ASKED, "operations.jobrun", JOB, reason=data["reason"])
        transaction.on_commit(send)
        return Done("The verification is on its way.", audit_id=entry)


admin.site.unregister(AuditEntry)


@admin.register(AuditEntry)
class AuditTrailAdmin(AuditEntryAdmin):
    governed = (VerifyNow, HoldEntry)

    def get_urls(self) -> list[URLPattern]:
        def progress(request: HttpRequest) -> HttpResponseBase:
            return self.progress_view(request)

        view = self.admin_site.admin_view(progress)
        return [path("progress/", view, name="core_auditentry_progress"), *super().get_urls()]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        line = self.job_line() if VerifyNow.permitted(self, request, None) else None
        return super().changelist_view(request, {"job": line, **(extra_context or {})})

    def progress_view(self, request: HttpRequest) -> HttpResponse:
        if request.method != "GET" or not VerifyNow.permitted(self, request, None):
            raise Http404
        response = HttpResponse(str(self.job_line() or self.verdict()))
        response["Cache-Control"] = "no-store"
        return response

    def job_line(self) -> ui.JobLine | None:
        """While a verification runs, or waits for its worker; None when none is under way."""
        run = newest_run()
        since = clock.now() - WAITS
        asked = (
            AuditEntry.objects.filter(action=ASKED, recorded_at__gte=since)
            .order_by("-recorded_at")
            .values_list("recorded_at", flat=True)
            .first()
        )
        waiting = asked is not None and (run is None or run.started_at < asked)
        if not waiting and (run is None or run.outcome != Outcome.RUNNING):
            return None
        name = "Waiting for a worker" if waiting else "Verifying the audit trail"
        return ui.JobLine(name, entries(), None, "entries", poll_url=self.url("progress"))

    def verdict(self) -> ui.Notice:
        """How the last verification ended."""
        run = newest_run()
        link = format_html('<a href="{}">Show the chains</a>', self.url("changelist"))
        if run is None or run.outcome != Outcome.SUCCEEDED:
            return ui.Notice("bad", "The verification did not end as it should.", link)
        broken = cast(dict[str, int], run.counts or {}).get("broken_chains", 0)
        words = f"{ui.count(cast(dict[str, int], run.counts or {}).get('entries', 0))} entries verified."
        if broken:
            return ui.Notice("bad", f"{words} {broken} chains are broken.", link)
        return ui.Notice("ok", f"{words} Every chain is whole.", link)
