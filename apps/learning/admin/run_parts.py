"""What evaluations and holdouts show alike: how a run stands, what it asks less of than the gate, its progress."""

from typing import Any

from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from apps.core import ui
from apps.core.admin import ModelAdmin, choice_filter, holds
from apps.learning.admin.words import FAILURES, PHASES, decision_mark, in_words, status_mark
from apps.learning.models.runs import LearningRun, RunStatus
from apps.learning.policy import gate_of
from apps.learning.services.staff import GRANT

OPEN = (RunStatus.QUEUED, RunStatus.RUNNING)


STATUS = choice_filter("run", "status", RunStatus.choices)


def decision_filter(choices: list[tuple[str, str]]) -> type[Any]:
    return choice_filter("decision", "decision", choices, field="result__decision")


def is_open(run: LearningRun) -> bool:
    return run.status in OPEN


def job_line(model_admin: ModelAdmin, request: HttpRequest, run: LearningRun, unit: str) -> ui.Part:
    """Progress while a run is under way; then how it ended, with the way to its result."""
    if not is_open(run):
        link = format_html('<a href="{}">Show the result</a>', model_admin.url("change", run.pk))
        return ui.Notice(status_mark(run.status).tone, f"The run has {_ended(run)}.", link)
    if run.cancel_requested_at:
        name, cancel = "Stopping", ""
    else:
        name = in_words(PHASES, run.phase)
        cancel = model_admin.url("cancel", run.pk) if holds(request, run, GRANT) else ""
    return ui.JobLine(
        name[:1].upper() + name[1:],
        run.done,
        run.total or None,
        unit,
        poll_url=model_admin.url("progress", run.pk),
        cancel_url=cancel,
    )


def how(run: LearningRun, result: Any) -> Any:
    """What it decided; without a result how the run stands."""
    if result is None:
        return status_mark(run.status)
    return decision_mark(result.decision, exploratory=run.exploratory)


def _ended(run: LearningRun) -> str:
    return "been cancelled" if run.status == RunStatus.CANCELLED else run.status


def run_notices(model_admin: ModelAdmin, request: HttpRequest, run: LearningRun, unit: str) -> list[Any]:
    """What stands over the page: progress, why it failed, why it only explores."""
    found: list[Any] = []
    if is_open(run):
        found.append(job_line(model_admin, request, run, unit))
    if run.status == RunStatus.FAILED:
        why = FAILURES.get(run.failure_code, "It failed.")
        found.append(ui.Notice("bad", format_html("{} <code>{}</code>", why, run.failure_code)))
    if run.status == RunStatus.CANCELLED:
        found.append(ui.Notice("plain", "It was cancelled. Nothing of it is stored."))
    if run.exploratory:
        found.append(ui.Notice("warn", f"Exploratory: {why_exploratory(run)} It carries no profile."))
    return found


def why_exploratory(run: LearningRun) -> str:
    if not run.weaker_settings:
        return "it stands on pairs or an evaluation that the platform did not run under the gate."
    names = ", ".join(name.replace("_", " ") for name in run.weaker_settings)
    return f"it asks less than the gate policy in {names}."


def gate_words(run: LearningRun) -> str:
    return f"version {gate_of(run.gate_policy_id).version}"


def took(run: LearningRun) -> Any:
    if run.started_at is None or run.finished_at is None:
        return ui.nothing("not ended")
    span = run.finished_at - run.started_at
    return ui.duration(span) if span.total_seconds() >= 1 else "under 1 s"


def asked(run: LearningRun) -> SafeString:
    return ui.when(run.requested_at)


def change_of(before: float, after: float) -> Any:
    """`.6100 → .6500 +.040`."""
    return format_html("{} → {}", ui.score(before), ui.score(after))


def gain_mark(gain: float) -> SafeString:
    """A signed gain; a loss is pointed at."""
    return format_html("{}{}", "▼ " if gain < 0 else "", ui.signed(gain, 4))
