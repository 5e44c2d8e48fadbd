"""Runs of background jobs."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.safestring import SafeString

from apps.core import ui
from apps.core.admin import ModelAdmin, TextFilter, choice_filter
from apps.operations.models import JobRun
from apps.operations.models.jobs import Outcome
from apps.operations.rules import WATCHERS

OUTCOMES = {"running": "run", "succeeded": "ok", "failed": "bad", "lost": "bad"}
STRIP = 24


class JobFilter(TextFilter):
    title = "job"
    parameter_name = "name"
    hint = "e.g. traces.expire"


def outcome_mark(run: JobRun) -> ui.Mark | str:
    """Success is the normal case and stays quiet."""
    if run.outcome == Outcome.SUCCEEDED:
        return "succeeded"
    words = f"{run.outcome}: {run.code}" if run.code else run.outcome
    return ui.Mark(OUTCOMES[run.outcome], words)  # type: ignore[arg-type]


def lasted(run: JobRun) -> Any:
    return ui.duration(run.finished_at - run.started_at) if run.finished_at else ui.nothing("still running")


def run_strip(name: str) -> ui.RunStrip:
    """The last runs of a job, oldest first, each a link."""
    from django.urls import reverse

    found = list(JobRun.objects.filter(name=name).order_by("-started_at")[:STRIP])
    outcome = {"running": "running", "succeeded": "ok", "failed": "failed", "lost": "failed"}
    runs = [
        ui.Run(
            outcome[run.outcome],  # type: ignore[arg-type]
            f"{run.outcome} {run.started_at:%Y-%m-%d %H:%M:%S} UTC",
            reverse("admin:operations_jobrun_change", args=[run.pk]),
        )
        for run in reversed(found)
    ]
    return ui.RunStrip(f"Last runs of {name}", runs)


@admin.register(JobRun)
class JobRunAdmin(ModelAdmin):
    list_display = ("name", "how", "counted", "began", "took")
    list_filter = (JobFilter, choice_filter("outcome", "outcome", Outcome.choices))
    keyset = ("-started_at", "-id")
    view_grants = WATCHERS
    superuser_sees = True
    page_template = "core/page.html"

    @admin.display(description="outcome")
    def how(self, obj: JobRun) -> Any:
        return outcome_mark(obj)

    @admin.display(description="counts")
    def counted(self, obj: JobRun) -> Any:
        return ", ".join(f"{name} {value}" for name, value in (obj.counts or {}).items()) or ui.nothing()

    @admin.display(description="started")
    def began(self, obj: JobRun) -> SafeString:
        return ui.when(obj.started_at)

    @admin.display(description="took")
    def took(self, obj: JobRun) -> Any:
        return lasted(obj)

    def object_title(self, obj: Any) -> str:
        return f"{obj.name}, {obj.started_at:%Y-%m-%d %H:%M:%S} UTC"

    def empty_why(self) -> str:
        return "Jobs run as soon as a worker and the scheduler are live."

    def page_context(self, request: HttpRequest, obj: JobRun) -> dict[str, Any]:
        facts = [
            ui.Fact("outcome", outcome_mark(obj)),
            ui.Fact("started", ui.when(obj.started_at, relative=True)),
            ui.Fact("took", lasted(obj)),
            ui.Fact("attempt", obj.attempt + 1),
            ui.Fact("run", ui.short_id(obj.pk, "run id", main=True)),
            ui.Fact("lease", obj.lease_key),
        ]
        counts = ui.Facts([ui.Fact(name, value) for name, value in (obj.counts or {}).items()])
        sections = [
            ui.Section(
                title="Counts", anchor="counts", content=counts if obj.counts else "It counted nothing."
            ),
            ui.Section(title="Last runs", anchor="runs", content=run_strip(obj.name), note=obj.name),
            ui.Section(
                title="Arguments", anchor="arguments", content=ui.JsonTree(obj.arguments, "arguments")
            ),
        ]
        return {"facts": ui.Facts(facts, first=True), "sections": sections}
