"""How the memory is used, for the start page: searches, zero hits, stages reached, over 14 days.

Exact from the rows while they are few: the newest 5,000 traces of the window, found through one index. Where
there are more, days before those are drawn from what the measuring tasks have sampled.
"""

from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection
from django.http import HttpRequest
from django.utils.safestring import SafeString

from apps.core import clock, ui
from apps.core.access import current_workspace, workspaces_with
from apps.operations.models import Sample

DAYS = 14
NEWEST = 5000
STAGES = ("retrieved", "selected", "validated", "used")
# Counts of the last five minutes, by workspace, that the measuring task of traces samples.
RECORDED, ZERO_HIT, REACHED = "traces_recorded", "traces_zero_hit", "traces_stage"

_NEWEST = """
WITH newest AS (
  SELECT id, principal_id, recorded_at, source_count FROM traces_trace
  WHERE workspace_id = ANY (%(workspaces)s) AND recorded_at >= %(since)s
  ORDER BY recorded_at DESC, id DESC LIMIT %(limit)s
)
SELECT n.recorded_at, n.source_count,
  (SELECT max(u.stage) FROM traces_use u WHERE u.principal_id = n.principal_id AND u.trace_id = n.id)
FROM newest n ORDER BY n.recorded_at
"""


@dataclass
class Day:
    """Counts of one day; `stages` by the furthest stage that a trace reached."""

    searches: float = 0
    zero_hits: float = 0
    stages: dict[int, float] = field(default_factory=lambda: dict.fromkeys(range(4), 0.0))


def usage(request: HttpRequest) -> dict[str, Any] | None:
    """Facts and charts of the workspaces on which the user holds view_traces; None before the first search."""
    workspaces = list(workspaces_with(request, "view_traces"))
    chosen = current_workspace(request)
    if chosen is not None:
        workspaces = [found for found in workspaces if found == chosen.pk]
    now = clock.now()
    since = (now - timedelta(days=DAYS - 1)).replace(hour=0, minute=0, second=0, microsecond=0)
    rows = _newest(workspaces, since)
    if not rows:
        return None
    days = {(since + timedelta(days=at)).date(): Day() for at in range(DAYS)}
    whole = len(rows) < NEWEST
    first = since.date() if whole else rows[0][0].date() + timedelta(days=1)
    for recorded_at, sources, stage in rows:
        if recorded_at.date() >= first:
            _add(days[recorded_at.date()], sources, stage)
    if not whole:
        _sampled(days, workspaces, since, first)
    note = "14 days" if whole else f"14 days, before {first:%Y-%m-%d} from samples"
    return {"facts": _facts(rows, now), "charts": _charts(days), "note": note}


def _newest(workspaces: list[UUID], since: datetime) -> list[tuple[datetime, int, int | None]]:
    if not workspaces:
        return []
    with connection.cursor() as cursor:
        cursor.execute(_NEWEST, {"workspaces": workspaces, "since": since, "limit": NEWEST})
        return list(cursor.fetchall())


def _add(day: Day, sources: int, stage: int | None) -> None:
    day.searches += 1
    if sources == 0:
        day.zero_hits += 1
    else:
        day.stages[stage or 0] += 1


def _sampled(days: dict[date, Day], workspaces: list[UUID], since: datetime, until: date) -> None:
    """Sums of the sampled counts for the days before `until`."""
    found = Sample.objects.filter(
        name__in=(RECORDED, ZERO_HIT, REACHED), workspace_id__in=workspaces, at__gte=since
    ).values_list("name", "labels", "value", "at")
    for name, labels, value, at in found.iterator():
        day = days.get(at.date())
        if day is None or at.date() >= until:
            continue
        if name == RECORDED:
            day.searches += value
        elif name == ZERO_HIT:
            day.zero_hits += value
        elif labels.get("stage") in STAGES:
            day.stages[STAGES.index(labels["stage"])] += value


def _facts(rows: list[tuple[datetime, int, int | None]], now: datetime) -> ui.Facts:
    """The last 24 hours, and how they compare with the 24 before."""
    day, before = now - timedelta(hours=24), now - timedelta(hours=48)
    last = [row for row in rows if row[0] >= day]
    earlier = sum(1 for row in rows if before <= row[0] < day)
    complete = len(rows) < NEWEST or rows[0][0] < before
    searches = ui.count(len(last))
    if complete and earlier:
        change = 100 * (len(last) - earlier) / earlier
        words = f"{change:+.0f} %".replace("-", ui.formats.MINUS) if round(change) else "as the day before"
        searches = SafeString(f"{searches} ({words})")
    used = sum(1 for _, _, stage in last if stage == 3)
    return ui.Facts(
        [
            ui.Fact("searches, 24 h", searches if complete else ui.about(len(last))),
            ui.Fact("zero hit", ui.share(sum(1 for row in last if row[1] == 0), len(last))),
            ui.Fact("reached used", ui.share(used, len(last))),
        ],
        first=True,
    )


def _charts(days: dict[date, Day]) -> list[ui.Trend]:
    labels = [f"{day:%m-%d}" for day in days]
    values = list(days.values())
    answered = [day.searches - day.zero_hits for day in values]
    zero = [day.zero_hits for day in values]
    stages = [
        ui.Series(STAGES[stage], [day.stages[stage] for day in values], tone=tone)
        for stage, tone in ((3, "1"), (2, "0"), (1, "2"), (0, "plain"))
    ]
    rate = [day.zero_hits / day.searches if day.searches else None for day in values]
    return [
        ui.Trend(
            "Searches", labels, [ui.Series("answered", answered), ui.Series("zero hit", zero, tone="bad")]
        ),
        ui.Trend("Zero hit share", labels, [ui.Series("share", rate, "line", "bad")], percent=True),
        ui.Trend("Stage reached", labels, stages),
    ]
