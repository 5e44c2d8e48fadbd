"""Drawings as SVG whose name holds their numbers, each with a table. Text stands beside the drawing as HTML,
so that it is never scaled with it. Coordinates are in a box of 100 by the stated height."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil, floor, isfinite, log2, log10
from typing import ClassVar

from .base import Part
from .formats import count, score, signed

FEATURES = ("semantic", "lexical", "graph", "recency", "salience", "confidence")


@dataclass(frozen=True, slots=True)
class FeatureKey(Part):
    """What the colours of score bars mean, in the order in which they are drawn."""

    names: Sequence[str] = FEATURES
    template_name: ClassVar[str] = "core/parts/feature_key.html"


@dataclass(frozen=True)
class ScoreBar(Part):
    """What made a score. `parts`: contribution by feature; `scale`: the first rank's score (full width).

    `adjustments`: name and signed change, drawn as small ticks; a negative contribution is named, not drawn.
    """

    parts: Sequence[tuple[str, float]]
    scale: float
    adjustments: Sequence[tuple[str, float]] = ()
    template_name: ClassVar[str] = "core/parts/score_bar.html"

    @property
    def label(self) -> str:
        words = [f"{name} {score(value)}" for name, value in self._ordered]
        words += [f"adjustment {name} {signed(value, 4)}" for name, value in self.adjustments]
        return ", ".join(words) or "no contribution recorded"

    @property
    def _ordered(self) -> list[tuple[str, float]]:
        place = {name: at for at, name in enumerate(FEATURES)}
        return sorted(self.parts, key=lambda part: place.get(part[0], len(place)))

    @property
    def segments(self) -> list[dict[str, str]]:
        """Rectangles in feature order that together end at score / scale, at most at 100."""
        at, drawn = 0.0, []
        for name, value in self._ordered:
            width = max(0.0, min(100 - at, 100 * value / self.scale)) if self.scale > 0 else 0.0
            if width > 0:
                drawn.append({"name": name, "x": f"{at:.3f}", "width": f"{width:.3f}"})
            at += width
        return drawn

    @property
    def ticks(self) -> list[str]:
        total = sum(max(0.0, value) for _, value in self.parts)
        found = []
        for _, value in self.adjustments:
            total += value
            if self.scale > 0:
                found.append(f"{max(0.0, min(100.0, 100 * total / self.scale)):.3f}")
        return found


@dataclass(frozen=True, slots=True)
class Interval:
    """One measured gain. `minimum`: the least that passes; `verdict`: in words, said after the numbers."""

    name: str
    estimate: float | None
    low: float | None = None
    high: float | None = None
    n: int | None = None
    minimum: float | None = None
    verdict: str = ""

    @property
    def measured(self) -> bool:
        return None not in (self.estimate, self.low, self.high)

    @property
    def text(self) -> str:
        if not self.measured:
            return f"not measured{f', {self.verdict}' if self.verdict else ''}"
        words = f"{signed(self.estimate)} [{score(self.low, 3)}, {score(self.high, 3)}]"
        words += f" n {self.n}" if self.n is not None else ""
        words += f", minimum {score(self.minimum, 3)}" if self.minimum is not None else ""
        return f"{words}, {self.verdict}" if self.verdict else words


@dataclass(frozen=True)
class IntervalPlot(Part):
    """Gains under each other on one scale: zero line, dashed minimum, bar = interval, dot = estimate."""

    title: str
    rows: Sequence[Interval]
    template_name: ClassVar[str] = "core/parts/interval_plot.html"

    @property
    def bounds(self) -> tuple[float, float]:
        values = [0.0]
        for row in self.rows:
            values += [
                v for v in (row.estimate, row.low, row.high, row.minimum) if v is not None and isfinite(v)
            ]
        low, high = min(values), max(values)
        pad = (high - low) * 0.06 or 0.01
        return low - pad, high + pad

    @property
    def axis(self) -> tuple[str, str]:
        low, high = self.bounds
        return signed(low), signed(high)

    @property
    def lines(self) -> list[dict[str, object]]:
        low, high = self.bounds

        def x(value: float | None) -> str:
            return "" if value is None else f"{100 * (value - low) / (high - low):.2f}"

        return [
            {
                "row": row,
                "zero": x(0.0),
                "low": x(row.low),
                "high": x(row.high),
                "dot": x(row.estimate),
                "minimum": x(row.minimum),
            }
            for row in self.rows
        ]


@dataclass(frozen=True)
class Multipliers(Part):
    """Multipliers on a logarithmic scale from ¼ to 4 around 1."""

    rows: Sequence[tuple[str, float]]
    title: str = "Multipliers"
    template_name: ClassVar[str] = "core/parts/multipliers.html"

    @property
    def lines(self) -> list[dict[str, str]]:
        found = []
        for name, value in self.rows:
            at = 50 + 25 * max(-2.0, min(2.0, log2(value))) if value > 0 else 0.0
            found.append(
                {
                    "name": name,
                    "text": f"{value:.2f}",
                    "x": f"{min(50.0, at):.2f}",
                    "width": f"{max(0.4, abs(at - 50)):.2f}",
                    "at": f"{at:.2f}",
                }
            )
        return found


@dataclass(frozen=True)
class Series:
    """Values of one name. A missing value (`None`) is a gap. Bars stack on one another, lines do not."""

    name: str
    values: Sequence[float | None]
    kind: str = "bar"
    tone: str = "0"


@dataclass(frozen=True)
class Trend(Part):
    """Bars or lines over at most 90 points, value axis from 0, the last value written, all values as a table.

    `percent`: values are shares in 0..1. `zeros`: a series that is 0 all the time is drawn, since that is the news.
    `in_time`: false where the points are groups beside one another, none of them the last; all of them are written.
    """

    title: str
    labels: Sequence[str]
    series: Sequence[Series]
    label_name: str = "Day"
    percent: bool = False
    empty: str = "Nothing was counted in this time."
    open_table: bool = field(default=False)
    zeros: bool = False
    in_time: bool = True
    template_name: ClassVar[str] = "core/parts/trend.html"

    def write(self, value: float | None) -> str:
        if value is None:
            return "not measured"
        if self.percent:
            return f"{100 * value:.1f} %"
        return count(int(value)) if value == int(value) else score(value, 3)

    @property
    def top(self) -> float:
        """A round number that no stack or line exceeds."""
        stacks = [
            sum(s.values[at] or 0 for s in self.series if s.kind == "bar") for at in range(len(self.labels))
        ]
        lines = [v for s in self.series if s.kind == "line" for v in s.values if v is not None]
        return round_up(max([*stacks, *lines, 0.0]))

    @property
    def any(self) -> bool:
        values = [value for s in self.series for value in s.values]
        return any(value is not None for value in values) if self.zeros else any(values)

    @property
    def last_label(self) -> str:
        return self.labels[-1] if self.labels else ""

    @property
    def axis_top(self) -> str:
        return self.write(self.top)

    @property
    def last(self) -> str:
        if not self.in_time:
            each = zip(self.labels, *(s.values for s in self.series), strict=True)
            return ", ".join(f"{label} {' '.join(map(self.write, values))}" for label, *values in each)
        return ", ".join(f"{s.name} {self.write(s.values[-1])}" for s in self.series if s.values)

    @property
    def label(self) -> str:
        if not self.in_time:
            return f"{self.title}: {self.last}; axis 0 to {self.axis_top}"
        span = f"{self.labels[0]} to {self.labels[-1]}" if self.labels else ""
        return f"{self.title}, {span}: last {self.last}; axis 0 to {self.axis_top}"

    @property
    def bars(self) -> list[dict[str, str]]:
        step, top, found = 100 / max(1, len(self.labels)), self.top, []
        for at in range(len(self.labels)):
            base = 0.0
            for s in self.series:
                value = s.values[at] if s.kind == "bar" else None
                if value:
                    height = 100 * value / top
                    found.append(
                        {
                            "x": f"{at * step + step * 0.12:.3f}",
                            "width": f"{step * 0.76:.3f}",
                            "y": f"{100 - base - height:.3f}",
                            "height": f"{height:.3f}",
                            "tone": s.tone,
                        }
                    )
                    base += height
        return found

    @property
    def strokes(self) -> list[dict[str, object]]:
        """Unbroken runs of each line; a run of one point is drawn as a dot."""
        step, top, found = 100 / max(1, len(self.labels)), self.top, []
        for s in (s for s in self.series if s.kind == "line"):
            run: list[tuple[float, float]] = []
            for at, value in enumerate([*s.values, None]):
                if value is not None:
                    run.append((at * step + step / 2, 100 - 100 * value / top))
                elif run:
                    points = " ".join(f"{x:.3f},{y:.3f}" for x, y in run)
                    found.append({"points": points, "single": len(run) == 1, "at": run[0], "tone": s.tone})
                    run = []
        return found

    @property
    def table(self) -> list[tuple[str, list[str]]]:
        return [
            (label, [self.write(s.values[at]) for s in self.series]) for at, label in enumerate(self.labels)
        ]


def round_up(value: float) -> float:
    """The next number of the form 1, 2, 2.5 or 5 times a power of ten; 1 for nothing."""
    if value <= 0:
        return 1.0
    power = 10.0 ** floor(log10(value))
    for step in (1, 2, 2.5, 5, 10):
        if value <= step * power * (1 + 1e-9):
            return step * power
    return ceil(value)
