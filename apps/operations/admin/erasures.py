"""Erasures: what goes, is it gone? The act on a principal's page, and the certificates."""

from typing import Any

from django.contrib import admin
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.urls import URLPattern, path
from django.utils.html import format_html
from django.utils.safestring import SafeString

from apps.accounts.admin.principals import PrincipalAdmin
from apps.accounts.models import SHARED_SUBJECT
from apps.core import ui
from apps.core.admin import Done, GovernedAction, ModelAdmin, Preview, ReasonForm, choice_filter
from apps.core.db.sessions import own_transactions, staff_session
from apps.operations.admin.holds import PlaceHold
from apps.operations.erasure import certificates, runs, services
from apps.operations.erasure.models import ErasureCertificate, ErasureRun, ErasureStatus
from apps.operations.pruning import CERTIFICATE

REASONS = {
    runs.LINE_MISSING: "The line in the erasure file could not be written.",
    runs.HELD: "A legal hold covers rows of the principal.",
    runs.HOLD_UNKNOWN: "Whether a hold covers rows could not be found out.",
    runs.ROWS_LEFT: "The re-count found rows.",
    runs.FAILED: "The database refused a deletion.",
}
TONES: dict[str, ui.Tone] = {"running": "run", "incomplete": "bad", "complete": "ok"}
SCOPES = {
    "all": "everything of a principal",
    "journal": "the observations of a principal",
    "one": "one object of a principal",
}
ACTORS = {"owner": "the owner", "staff": "staff, for the owner", "replay": "the replay after a restore"}


class ErasePrincipal(GovernedAction):
    """Shows the plan, and begins the erasure of everything that the principal owns."""

    name, path, label, kind = "erase", "<uuid:object_id>/erase/", "Erase…", "danger-link"
    title = "Erase the principal"
    grants = (services.STAFF_GRANT,)

    @classmethod
    def permitted(cls, model_admin: Any, request: HttpRequest, obj: Any) -> bool:
        return super().permitted(model_admin, request, obj) and obj.subject != SHARED_SUBJECT

    def preview(self, request: HttpRequest, obj: Any, form: ReasonForm) -> Preview:
        plan = services.plan_for(obj.pk)
        parts: list[Any] = []
        if plan.held:
            words = "A legal hold covers rows of this principal. Nothing is erased until it is released."
            parts.append(ui.Notice("held", words))
        rows = [ui.Record([table.table, ui.count(table.rows)]) for table in plan.tables]
        columns = [ui.Column("table", "main"), ui.Column("rows", "num")]
        parts.append(ui.Records("What goes, in the order of deletion", columns, rows))
        ending = "" if plan.total_rows == 1 else "s"
        summary = (
            f"Deletes {ui.count(plan.total_rows)} row{ending} in {len(plan.tables)} tables, the principal last. "
            "It is shut out at once. Not reversible. No export copies are outstanding."
        )
        state = {table.table: str(table.rows) for table in plan.tables}
        state["legal hold"] = "in the way" if plan.held else "none"
        confirm = f"Erase {ui.count(plan.total_rows)} row{ending}"
        return Preview(summary, confirm, state, parts, plan.total_rows, irreversible=True)

    def act(self, request: HttpRequest, obj: Any, data: dict[str, Any], preview: Preview) -> Done:
        certificate = services.erase_principal(principal_id=obj.pk, reason=data["reason"])
        registered = self.model_admin.admin_site._registry[ErasureCertificate]
        return Done(f"The erasure of {obj} has begun.", registered.url("change", certificate))


PrincipalAdmin.add_actions(ErasePrincipal)


def totals(certificate: ErasureCertificate) -> tuple[int, int, int]:
    """Rows found, deleted and remaining over all tables."""
    found, deleted, remaining = (
        sum(int(table[name]) for table in certificate.tables) for name in ("found", "deleted", "remaining")
    )
    return found, deleted, remaining


class HoldCertificate(PlaceHold):
    """Keeps a complete certificate from being pruned after its years."""

    held_kind = CERTIFICATE

    @classmethod
    def blocked(cls, model_admin: Any, request: HttpRequest, obj: Any) -> str:
        return "" if obj.status == ErasureStatus.COMPLETE else "Only a complete certificate is held."


@admin.register(ErasureCertificate)
class ErasureCertificateAdmin(ModelAdmin):
    list_name = "erasures"
    list_display = ("asked", "state", "went", "left", "scope_words", "by", "done")
    list_select_related = ("workspace",)
    list_filter = (choice_filter("state", "status", ErasureStatus.choices),)
    keyset = ("-requested_at", "-id")
    view_grants = ("review_retention", "audit")
    page_template = "operations/certificate_page.html"
    governed = (HoldCertificate,)

    def get_urls(self) -> list[URLPattern]:
        def progress(request: HttpRequest, object_id: Any) -> HttpResponseBase:
            return self.progress_view(request, object_id)

        view = self.admin_site.admin_view(own_transactions(progress))
        name = "operations_erasurecertificate_progress"
        return [path("<uuid:object_id>/progress/", view, name=name), *super().get_urls()]

    def progress_view(self, request: HttpRequest, object_id: Any) -> HttpResponse:
        """The job line of a running erasure. What is left to do is kept from staff but for these counts."""
        with staff_session(int(request.user.pk or 0)):
            obj = self.get_object(request, str(object_id))
            if request.method != "GET" or obj is None or not self.has_view_permission(request, obj):
                raise Http404
        run = ErasureRun.objects.filter(certificate_id=obj.pk).first()
        found = sum((run.found or {}).values()) if run else 0
        deleted = min(found, sum((run.deleted or {}).values())) if run else 0
        response = HttpResponse(str(self.job_line(obj, deleted, found or None)))
        response["Cache-Control"] = "no-store"
        return response

    def job_line(self, obj: ErasureCertificate, deleted: int = 0, found: int | None = None) -> ui.Part:
        if obj.status != ErasureStatus.RUNNING:
            link = format_html('<a href="{}">Show the certificate</a>', self.url("change", obj.pk))
            return ui.Notice(TONES[obj.status], f"The erasure is {obj.status}.", link)
        return ui.JobLine("Erasure", deleted, found, "rows", poll_url=self.url("progress", obj.pk))

    @admin.display(description="asked for")
    def asked(self, obj: ErasureCertificate) -> SafeString:
        return ui.when(obj.requested_at)

    @admin.display(description="state")
    def state(self, obj: ErasureCertificate) -> Any:
        if obj.status == ErasureStatus.COMPLETE:
            return ui.Mark("ok", "complete", bare=True)
        return ui.Mark(TONES[obj.status], obj.status)

    @admin.display(description="deleted")
    def went(self, obj: ErasureCertificate) -> str:
        return f"{ui.count(totals(obj)[1])} of {ui.count(totals(obj)[0])}"

    @admin.display(description="remaining")
    def left(self, obj: ErasureCertificate) -> Any:
        remaining = totals(obj)[2]
        return ui.Mark("bad", ui.count(remaining)) if remaining else "0"

    @admin.display(description="scope")
    def scope_words(self, obj: ErasureCertificate) -> str:
        return SCOPES[obj.scope]

    @admin.display(description="asked by")
    def by(self, obj: ErasureCertificate) -> str:
        return ACTORS[obj.actor]

    @admin.display(description="completed")
    def done(self, obj: ErasureCertificate) -> SafeString:
        return ui.when(obj.completed_at, absent="not complete")

    def object_title(self, obj: Any) -> str:
        return f"Erasure certificate …{str(obj.pk)[-7:]}"

    def empty_why(self) -> str:
        return "An erasure is asked for by its owner through the API, or on the page of the principal."

    def page_context(self, request: HttpRequest, obj: ErasureCertificate) -> dict[str, Any]:
        return {
            "facts": ui.Facts(self._facts(obj), first=True),
            "notices": self._notices(obj),
            "sections": [
                ui.Section(title="Copies elsewhere", anchor="copies", content=copies_of(obj)),
                ui.Section(title="Rows", anchor="rows", content=rows_of(obj)),
            ],
        }

    def _facts(self, obj: ErasureCertificate) -> list[ui.Fact]:
        found, deleted, remaining = totals(obj)
        return [
            ui.Fact("state", ui.Mark(TONES[obj.status], obj.status)),
            ui.Fact("found", ui.count(found)),
            ui.Fact("deleted", ui.count(deleted)),
            ui.Fact("remaining", ui.Mark("bad", ui.count(remaining)) if remaining else "0"),
            ui.Fact("scope", SCOPES[obj.scope]),
            ui.Fact("workspace", obj.workspace),
            ui.Fact("asked by", ACTORS[obj.actor]),
            ui.Fact("asked for", ui.when(obj.requested_at)),
            ui.Fact("shut out since", ui.when(obj.fence_at)),
            ui.Fact("completed", ui.when(obj.completed_at, absent="not complete")),
            ui.Fact("checksum", sealed(obj)),
            ui.Fact("certificate", format_html("<code>{}</code>", obj.pk)),
        ]

    def _notices(self, obj: ErasureCertificate) -> list[ui.Part]:
        if obj.status == ErasureStatus.COMPLETE:
            words = "Counted again as the owner of the tables and through the principal's own session: nothing is left."
            return [ui.Notice("ok", words)]
        if obj.status == ErasureStatus.INCOMPLETE:
            why = REASONS.get(obj.reason_code, obj.reason_code)
            return [ui.Notice("bad", f"Not complete. {why} It is tried again every 15 minutes.")]
        return [self.job_line(obj)]


def sealed(certificate: ErasureCertificate) -> Any:
    """The checksum whole, for paper, with what a check of the document against it says."""
    if not certificate.checksum:
        return ui.nothing("not complete")
    same = certificates.checksum(certificate) == certificate.checksum
    mark = ui.Mark("ok", "verified", bare=True) if same else ui.Mark("bad", "does not fit the certificate")
    return format_html('<code class="gv-wrap">{}</code> {}', certificate.checksum, mark)


def rows_of(certificate: ErasureCertificate) -> ui.Records:
    """Found, deleted and remaining by table; a row that remains is danger."""
    columns = [
        ui.Column("table", "main"),
        *(ui.Column(name, "num") for name in ("found", "deleted", "remaining")),
    ]
    rows = [
        ui.Record(
            [table["table"], *(ui.count(table[name]) for name in ("found", "deleted", "remaining"))],
            tone="bad" if table["remaining"] else "",
        )
        for table in certificate.tables
    ]
    empty = ui.EmptyState("Nothing counted yet.", "The counts come with the re-count at the end.", level=3)
    return ui.Records("Rows by table", columns, rows, empty=empty)


def copies_of(certificate: ErasureCertificate) -> ui.Facts:
    """Export copies that are outstanding, and how long backups still hold the rows."""
    days = certificate.backup_days
    until: Any = ui.Mark("warn", "not declared by the operators")
    if days is not None:
        from datetime import timedelta

        gone = ui.when((certificate.completed_at or certificate.fence_at) + timedelta(days=days))
        until = format_html("gone after {} ({} days)", gone, days)
    copies = ", ".join(
        f"{copy['custodian_class']} until {copy['expires_at']}" for copy in certificate.export_copies
    )
    return ui.Facts([ui.Fact("export copies outstanding", copies or "none"), ui.Fact("backups", until)])
