"""What the page of a run shows: the states, who is next, and each item with its evidence in place."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from apps.core import clock, ui
from apps.core.ui.base import Part
from apps.observations.activation.checklist import Line
from apps.observations.activation.probes import PROBES
from apps.observations.activation.remedies import may_follow, remedy
from apps.observations.admin.activation.words import (
    NAMES,
    NEEDS,
    PATH,
    STATES,
    TONES,
    VOID,
    VOIDS,
    WORST,
    name_of,
)
from apps.observations.models import Evidence
from apps.observations.models.activation import POSTED, RunState
from apps.observations.models.activation import Part as Deciding
from apps.observations.selectors.activation import RunStanding
from apps.operations.models import Process
from apps.operations.selectors import live_processes

OPERATORS, DECIDERS = "operate collection", "operate collection or review retention"
SHORTEST_NAME = 16
"""Characters of a name in a narrow table."""
LETTERS = {Deciding.MACHINE: "M", Deciding.HUMAN: "H"}


@dataclass(frozen=True)
class StateLine(Part):
    """The states of a run in their order, the present one marked, the coming ones with what they need."""

    states: Sequence[tuple[str, str, str]]
    template_name: ClassVar[str] = "observations/parts/states.html"


def state_line(run: Any) -> StateLine:
    """(name, what it needs, `past` | `now` | `next`)"""
    unverified = run.state == RunState.SHUTDOWN_UNVERIFIED
    at = PATH.index(RunState.STOPPING if unverified else RunState(run.state))
    found = []
    for number, state in enumerate(PATH):
        place = "past" if number < at else "now" if number == at else "next"
        name = STATES[run.state] if place == "now" else STATES[state]
        found.append((name, NEEDS.get(state, "") if place == "next" else "", place))
    return StateLine(found)


def items_of(lines: Sequence[Line]) -> list[list[Line]]:
    """The lines by item, in order."""
    found: dict[str, list[Line]] = {}
    for line in lines:
        found.setdefault(line.item.code, []).append(line)
    return list(found.values())


def step(lines: Sequence[Line], action: Any, *, here: bool = True) -> ui.Step:
    """One item: its name, how each part stands, its evidence in place, its age, and who may act.

    `here`: whether it is worked on now. What a run has behind it grows stale without asking for anybody.
    """
    code = lines[0].item.code
    standing = min((line.standing for line in lines), key=WORST.index)
    kind = "".join(LETTERS[line.part] for line in lines)
    name = f"{code} {kind} {NAMES[code]}"
    tone = TONES[standing] if here or standing != "stale" else "plain"
    who = next_of(lines) if here else ""
    return ui.Step(tone, name, evidence_of(lines), age_of(lines), who, action)


def evidence_of(lines: Sequence[Line]) -> SafeString:
    """How the parts stand, which opens to what was found."""
    told = ", ".join(f"{line.part.label.lower()} {line.standing}" for line in lines)
    rows = [row for line in lines if (row := line.evidence)]
    if not rows:
        return format_html("{}", told)
    facts = format_html_join("", '<div class="gv-after">{}</div>', [(facts_of(row),) for row in rows])
    return format_html('<details class="ja-evidence"><summary>{}</summary>{}</details>', told, facts)


def facts_of(row: Evidence) -> ui.Facts:
    """A row of evidence, whole."""
    by = name_of(row.actor) if row.actor_id or not row.token_id else "a token of scope evidence"
    found = [
        ui.Fact("result", f"{row.get_part_display().lower()}: {row.result}"),
        ui.Fact("observed", ui.when(row.observed_at)),
        ui.Fact("recorded", ui.when(row.recorded_at)),
        ui.Fact("by", by),
        ui.Fact("method", row.method),
        ui.Fact("release", ui.short_hash(row.release, "release")),
        *(ui.Fact(name.replace("_", " "), shown(value)) for name, value in row.measured.items()),
    ]
    if row.second_actor_id:
        found.append(ui.Fact("second person", name_of(row.second_actor)))
    if row.object_id:
        found.append(ui.Fact(row.object_type or "object", row.object_id))
    if row.note:
        found.append(ui.Fact("note", row.note))
    return ui.Facts(found)


def shown(value: Any) -> Any:
    if value is None:
        return ui.nothing("not measured")
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,.1f}".rstrip("0").rstrip(".") if isinstance(value, float) else value


def age_of(lines: Sequence[Line]) -> Any:
    """How old the evidence is, and when it goes stale."""
    rows = [row for line in lines if (row := line.evidence)]
    if not rows:
        return ui.nothing("no evidence yet")
    at, fresh = min(row.observed_at for row in rows), lines[0].item.fresh
    age = clock.now() - at
    told = f"{ui.duration(age)} old"
    if fresh is not None:
        told += f", stale in {ui.duration(fresh - age)}" if age < fresh else ", stale"
    return format_html('<span title="{}">{}</span>', clock.iso(at), told)


def next_of(lines: Sequence[Line]) -> str:
    """Who can bring the item on; empty where it passed."""
    machine = next((line for line in lines if line.part == Deciding.MACHINE), None)
    human = next((line for line in lines if line.part == Deciding.HUMAN), None)
    code = lines[0].item.code
    if machine and machine.standing != "passed":
        if code in POSTED:
            return "next: CI or a rehearsal posts it"
        return f"next: {OPERATORS}" if code in PROBES else "next: enabling decides it"
    if human and human.standing != "passed":
        if code == "C1":
            return "next: enabling decides it"
        looked = machine.evidence.actor if machine and machine.evidence else None
        return f"next: {DECIDERS}" + (f", other than {name_of(looked)}" if looked else "")
    return ""


def notices(standing: RunStanding, user_id: int, open_url: str = "") -> list[ui.Notice]:
    """Who is next, what waits and until when, and what is wrong. `open_url`: where this person opens another run."""
    run, found = standing.run, []
    if told := remedy(standing):
        over = may_follow(standing)
        action = ui.ActionButton("Open a run…", open_url) if open_url and over else ""
        found.append(ui.Notice("bad" if standing.failed_pilot and not over else "warn", told, action))
    if run.state == RunState.SHUTDOWN_UNVERIFIED:
        told = (
            "Off, but not proven: a process does not follow, or a probe was stored. D1 and D2 have to pass."
        )
        found.append(ui.Notice("bad", told))
    if standing.asked and standing.void:
        found.append(ui.Notice("warn", f"The approval is void. {VOID[standing.void]}"))
    elif standing.asked and run.state == RunState.READY:
        who = "you" if run.requested_by_id == user_id else name_of(run.requested_by)
        words = format_html(
            "Enabling {} waits for another person than {}, until {}. {}",
            run.mode,
            who,
            ui.when(run.valid_until, relative=True),
            VOIDS,
        )
        found.append(ui.Notice("run", words))
    elif standing.asked:
        words = format_html(
            "Approved by {}. It may be enabled until {}. {}",
            name_of(run.approved_by),
            ui.when(run.valid_until, relative=True),
            VOIDS,
        )
        found.append(ui.Notice("run", words))
    if told := what_next(standing):
        found.append(ui.Notice("plain", told))
    return found


def what_next(standing: RunStanding) -> str:
    """The one next step, and whose it is."""
    run, here = standing.run, [group for group in "ABCD" if standing.is_at(group)]
    for group in here:
        for lines in items_of(standing.lines(group)):
            if any(line.standing != "passed" for line in lines):
                who = next_of(lines).removeprefix("next: ")
                return f"Next: {lines[0].item.code}, {NAMES[lines[0].item.code]}. By {who}."
    if run.state in (RunState.DRAFT, RunState.PROVISIONED):
        return f"Next: take the run on; its evidence is whole. By {OPERATORS}."
    if run.state == RunState.READY and (not standing.asked or standing.void):
        return f"Next: ask for the approval. By {OPERATORS}; another person approves it."
    if run.state == RunState.READY:
        return f"Next: approve. By {DECIDERS}, other than {name_of(run.requested_by)}."
    if run.state == RunState.APPROVED:
        return f"Next: enable. By {OPERATORS}; {standing.enrolled} take part, and it has to be one."
    if run.state == RunState.PILOT_VERIFIED:
        return "The pilot is verified: others may be enrolled. It says nothing about how good retrieval is."
    return ""


def evidence_table(standing: RunStanding) -> ui.Records:
    """All evidence that an approval is given for, with its age."""
    columns = [ui.Column("item", "main"), ui.Column("stands"), ui.Column("observed")]
    rows = [
        ui.Record(
            [
                f"{line.item.code} {LETTERS[line.part]} {NAMES[line.item.code]}",
                format_html('<span class="gv-time">{}</span>', _stands(line)),
                ui.when(line.evidence.observed_at, relative=True) if line.evidence else ui.nothing("none"),
            ],
            tone="" if line.standing == "passed" else "warn",
        )
        for line in standing.before.lines
    ]
    return ui.Records("Evidence", columns, rows, show_caption=True)


def processes_table(standing: RunStanding) -> ui.Records:
    """Every live process with what it knows of this workspace, as its heartbeat says."""
    columns = [
        ui.Column("process", "main"),
        ui.Column("release"),
        ui.Column("heard"),
        ui.Column("mode"),
        ui.Column("generation", "num"),
    ]
    workspace = str(standing.run.workspace_id)
    rows = [
        ui.Record(
            [
                f"{process.kind} {process.pid}",
                ui.short_hash(process.release, "release", copy=False),
                ui.when(process.seen_at, relative=True),
                *_knows(process, workspace),
            ]
        )
        for process in live_processes()
    ]
    empty = ui.EmptyState("No live process.", "Nothing reports, so B1 and D1 cannot pass.", level=3)
    return ui.Records("Live processes", columns, rows, empty=empty)


def drain_facts(standing: RunStanding) -> ui.Facts:
    """What proves that off is off."""
    run, left = standing.run, standing.left
    return ui.Facts(
        [
            ui.Fact("stopped", ui.when(run.stopped_at, relative=True)),
            ui.Fact("by", name_of(run.stopped_by) if run.stopped_by_id else "the platform, by itself"),
            ui.Fact("fence", "held exclusively" if run.fenced else "not seen"),
            ui.Fact("generation", run.stopped_generation),
            ui.Fact("records left", ui.count(left.records)),
            ui.Fact("empty at the latest", ui.when(left.last_expires_at, relative=True, absent="is empty")),
        ]
    )


def _knows(process: Process, workspace: str) -> tuple[Any, Any]:
    journal = process.report.get("observations", {})
    if "workspaces" not in journal:
        return "unknown", ui.nothing("it does not say")
    known = journal["workspaces"].get(workspace)
    if not isinstance(known, dict):
        return "reads anew", ui.nothing("it knows none, and would read it")
    return known.get("mode", "unknown"), known.get("generation")


def _stands(line: Line) -> str:
    """`passed, ana`"""
    if line.evidence is None:
        return line.standing
    by = name_of(line.evidence.actor) if line.evidence.actor_id else "posted"
    return f"{line.standing}, {ui.formats.middle_cut(by, SHORTEST_NAME)}"
