"""Facts, stages, paths, timelines, runs, comparisons, steps, jobs, actions, empty states, audit entries."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar, Literal

from .base import Part, dom_id
from .formats import count, duration, score
from .marks import Tone

STAGES = ("retrieved", "selected", "validated", "used")
THINNEST, THICKEST = 1.5, 7.0


@dataclass(frozen=True)
class Section:
    """A headed section of an object's page; the template of the page draws it. `anchor` is the heading's id."""

    title: str
    anchor: str
    content: Any
    note: Any = ""


@dataclass(frozen=True, slots=True)
class Fact:
    term: str
    value: Any
    hint: str = ""


@dataclass(frozen=True)
class Facts(Part):
    """Terms and values, the most important first."""

    items: Sequence[Fact]
    first: bool = False
    template_name: ClassVar[str] = "core/parts/facts.html"


@dataclass(frozen=True, slots=True)
class StageDots(Part):
    """How far a source came: 0 retrieved to 3 used."""

    stage: int
    template_name: ClassVar[str] = "core/parts/stage_dots.html"

    @property
    def word(self) -> str:
        return STAGES[self.stage]

    @property
    def dots(self) -> str:
        return "●" * self.stage + "○" * (3 - self.stage)


@dataclass(frozen=True, slots=True)
class Hop:
    """One edge of a path in its stored direction; `backwards` when the path went against it."""

    start: str
    end: str
    kind: str = "mention"
    strength: float | None = None
    backwards: bool = False

    @property
    def strength_text(self) -> str:
        return score(self.strength) if self.strength is not None else ""


@dataclass(frozen=True)
class PathDrawing(Part):
    """At most 4 paths of at most 2 edges, drawn as boxes and arrows, and the same edges as a list.

    `most`: the strength at which an arrow is thickest.
    """

    paths: Sequence[Sequence[Hop]]
    repo: str = ""
    most: float = 5.0
    template_name: ClassVar[str] = "core/parts/path_drawing.html"

    @property
    def drawings(self) -> list[list[dict[str, Any]]]:
        found = []
        for path in self.paths:
            cells: list[dict[str, Any]] = []
            for at, hop in enumerate(path):
                left, right = (hop.end, hop.start) if hop.backwards else (hop.start, hop.end)
                if at == 0:
                    cells.append({"box": left})
                share = min(1.0, (hop.strength or 0) / self.most)
                cells.append({"hop": hop, "width": f"{THINNEST + (THICKEST - THINNEST) * share:.1f}"})
                cells.append({"box": right})
            found.append(cells)
        return found


@dataclass(frozen=True)
class Event:
    """An entry of a timeline. `id` is its anchor; `refers` = (anchor, words) of what it reverses."""

    at: datetime
    title: Any
    actor: str = ""
    tone: Tone = "plain"
    body: Any = ""
    id: str = ""
    refers: tuple[str, str] | None = None
    action: Any = ""


@dataclass(frozen=True)
class Timeline(Part):
    """Entries, oldest first."""

    entries: Sequence[Event]
    title: str = "What happened"
    empty: Any = "Nothing yet."
    template_name: ClassVar[str] = "core/parts/timeline.html"


@dataclass(frozen=True, slots=True)
class Run:
    outcome: Literal["ok", "failed", "running", "missed"]
    title: str
    href: str = ""

    @property
    def css(self) -> str:
        return {"ok": "", "failed": "bad", "running": "run", "missed": "missed"}[self.outcome]

    @property
    def sign(self) -> str:
        return {"ok": "", "failed": "✕", "running": "…", "missed": ""}[self.outcome]


@dataclass(frozen=True)
class RunStrip(Part):
    """One square a run, oldest first."""

    name: str
    runs: Sequence[Run]
    template_name: ClassVar[str] = "core/parts/run_strip.html"


@dataclass(frozen=True, slots=True)
class Difference:
    name: str
    left: Any
    right: Any
    differs: bool | None = None

    @property
    def is_different(self) -> bool:
        return self.left != self.right if self.differs is None else self.differs


@dataclass(frozen=True)
class SideBySide(Part):
    """Two columns with aligned rows; cells that differ say so."""

    left: str
    right: str
    rows: Sequence[Difference]
    only_differences: bool = False
    template_name: ClassVar[str] = "core/parts/side_by_side.html"

    @property
    def shown(self) -> list[Difference]:
        return [row for row in self.rows if row.is_different or not self.only_differences]


@dataclass(frozen=True)
class Step:
    """One item of a checklist: what was found, how old it is, who may act, and the button."""

    tone: Tone
    name: str
    evidence: Any = ""
    age: Any = ""
    who: str = ""
    action: Any = ""


@dataclass(frozen=True)
class Checklist(Part):
    steps: Sequence[Step]
    template_name: ClassVar[str] = "core/parts/checklist.html"


@dataclass(frozen=True)
class JobLine(Part):
    """Progress of a background job. With `poll_url` the line refreshes itself until `finished`."""

    name: str
    done: int
    total: int | None
    unit: str = "rows"
    remaining: timedelta | None = None
    finished: bool = False
    error: str = ""
    poll_url: str = ""
    cancel_url: str = ""
    template_name: ClassVar[str] = "core/parts/job_line.html"

    @property
    def words(self) -> str:
        if self.error:
            return f"stopped: {self.error}"
        if self.total is None:
            return f"{count(self.done)} {self.unit}"
        words = f"{count(self.done)} of {count(self.total)} {self.unit}"
        if self.finished:
            return f"{words}, finished"
        return f"{words}, about {duration(self.remaining)}" if self.remaining else words


@dataclass(frozen=True, slots=True)
class ActionButton(Part):
    """Opens the preview of a governed action. `blocked`: why it cannot be pressed now."""

    label: str
    href: str
    kind: Literal["", "primary", "danger", "danger-link"] = ""
    blocked: str = ""
    small: bool = False
    dialog: bool = True
    template_name: ClassVar[str] = "core/parts/action_button.html"

    @property
    def reason_id(self) -> str:
        return dom_id("blocked", self.href, self.label)


@dataclass(frozen=True)
class ActionRow(Part):
    """Buttons in a row; below 1,024 px one button `Actions (n)` opens them."""

    actions: Sequence[Any]
    template_name: ClassVar[str] = "core/parts/action_row.html"

    @property
    def menu_id(self) -> str:
        return dom_id("actions", *(getattr(action, "href", "") for action in self.actions))


@dataclass(frozen=True)
class Notice(Part):
    """A sentence over the page with its tone; `action` is a link or button after it."""

    tone: Tone
    text: Any
    action: Any = ""
    template_name: ClassVar[str] = "core/parts/notice.html"


@dataclass(frozen=True)
class EmptyState(Part):
    """What is missing, why, and the one next step as a button or command."""

    title: str
    why: Any = ""
    action: Any = ""
    command: str = ""
    level: int = 2
    template_name: ClassVar[str] = "core/parts/empty_state.html"


@dataclass(frozen=True)
class AuditEntry:
    at: datetime
    actor: str
    action: str
    reason: str = ""
    id: Any = ""
    href: str = ""
    changed: bool = False


@dataclass(frozen=True)
class AuditTrail(Part):
    """The last entries about an object, and where all are."""

    entries: Sequence[AuditEntry]
    all_url: str = ""
    template_name: ClassVar[str] = "core/parts/audit_trail.html"
