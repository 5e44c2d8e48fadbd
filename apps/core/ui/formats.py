"""How values are written on staff pages: one function per kind of value, each safe HTML.

A number is never bare: a time carries its zone, a gain its interval, a count the word that says how exact it is.
What is absent is written with the reason of its absence, never as 0.
"""

from datetime import datetime, timedelta
from math import isfinite
from uuid import UUID

from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from apps.core import clock

MINUS = "−"
NARROW_SPACE = "\u202f"  # does not break: half a number on the next line is another number
COPY_ICON = SafeString(
    '<svg viewBox="0 0 16 16" aria-hidden="true"><rect x="5.5" y="5.5" width="8" height="8" rx="1.5"/>'
    '<path d="M10.5 3.5v-1h-8v8h1"/></svg>'
)
DUE_SOON = timedelta(days=7)


def nothing(why: str = "none") -> SafeString:
    """A dash that says why there is nothing: none, erased, withheld, not measured."""
    return format_html(
        '<span class="gv-nothing" title="{}"><span aria-hidden="true">–</span><span class="gv-sr">{}</span></span>',
        why,
        why,
    )


def duration(span: timedelta) -> str:
    """A length of time as `61 d 4 h`, `3 h 20 min`, `3 min`, `40 s`; `span` in gov.js writes the same."""
    seconds = int(abs(span).total_seconds())
    days, rest = divmod(seconds, 86400)
    hours, rest = divmod(rest, 3600)
    minutes, seconds = divmod(rest, 60)
    if days:
        return f"{days} d {hours} h" if hours else f"{days} d"
    if hours:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    return f"{minutes} min" if minutes else f"{seconds} s"


def _zoned(at: datetime) -> tuple[datetime, str]:
    local = timezone.localtime(at)
    return local, local.tzname() or "UTC"


def when(
    at: datetime | None, *, relative: bool = False, absent: str = "never", zone: bool = True
) -> SafeString:
    """`2026-11-29 11:32:35 UTC` in the viewer's zone; the distance follows when `relative`.

    `zone=False` is for columns whose heading names the zone.
    """
    if at is None:
        return nothing(absent)
    local, name = _zoned(at)
    shown = f"{local:%Y-%m-%d %H:%M:%S}{f' {name}' if zone else ''}"
    html = format_html('<time class="gv-time" datetime="{}">{}</time>', clock.iso(at), shown)
    if not relative:
        return html
    distance = clock.now() - at
    words = f"{duration(distance)} ago" if distance >= timedelta() else f"in {duration(distance)}"
    return format_html('{} <span class="gv-subtle">{}</span>', html, words)


def deadline(at: datetime | None, *, absent: str = "no deadline") -> SafeString:
    """Absolute and remaining time; attention within 7 days, danger when overdue. Ticks below one hour."""
    if at is None:
        return nothing(absent)
    left = at - clock.now()
    overdue = left <= timedelta()
    tone = "gv-bad" if overdue else "gv-warn" if left <= DUE_SOON else ""
    words = f"overdue {duration(left)}" if overdue else f"in {duration(left)}"
    mark = f"gv-mark {tone}" if tone else "gv-subtle"
    return format_html(
        '{} <span class="{}" data-deadline="{}">{}</span>', when(at), mark, clock.iso(at), words
    )


def copy_button(value: object, name: str, *, main: bool = False) -> SafeString:
    """A button that copies `value`; the page's `c` key presses the `main` one."""
    return format_html(
        '<button type="button" class="gv-copy" data-copy="{}" aria-label="Copy {}"{}>{}</button>',
        value,
        name,
        SafeString(" data-copy-id") if main else "",
        COPY_ICON,
    )


def short_id(
    value: UUID | str | None, name: str = "id", *, href: str = "", main: bool = False, copy: bool = True
) -> SafeString:
    """`0197…6c36284`: neighbours share their beginning, so the last 7 digits tell them apart."""
    if value is None:
        return nothing()
    text = str(value)
    shown = f"{text[:4]}…{text[-7:]}" if len(text) > 13 else text
    code = format_html('<code title="{}">{}</code>', text, shown)
    if href:
        code = format_html('<a href="{}">{}</a>', href, code)
    return format_html(
        '<span class="gv-id">{}{}</span>', code, copy_button(text, name, main=main) if copy else ""
    )


def short_hash(value: str | None, name: str = "hash", *, copy: bool = True) -> SafeString:
    """First 8 digits, with the prefix of a source id kept: `s:cf43b290…`."""
    if not value:
        return nothing()
    prefix, _, digits = value.rpartition(":")
    shown = f"{prefix}:{digits[:8]}" if prefix else digits[:8]
    shown += "…" if len(digits) > 8 else ""
    return format_html(
        '<span class="gv-id"><code title="{}">{}</code>{}</span>',
        value,
        shown,
        copy_button(value, name) if copy else "",
    )


def hash_pair(first: str, second: str) -> SafeString:
    """Two hashes under each other, the first digit that differs marked in both."""
    at = next((i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), None)
    if at is None and len(first) == len(second):
        return format_html('<code class="gv-wrap">{}</code> <span>equal</span>', first)
    at = min(len(first), len(second)) if at is None else at
    lines = [
        format_html(
            '<code class="gv-wrap">{}<mark class="gv-diff">{}</mark>{}</code>',
            h[:at],
            h[at : at + 1],
            h[at + 1 :],
        )
        for h in (first, second)
    ]
    return format_html("{}<br>{}", *lines)


def _decimal(value: float, places: int) -> str:
    text = f"{abs(value):.{places}f}"
    return text[1:] if text.startswith("0.") else text


def score(value: float | None, places: int = 4, *, absent: str = "not measured") -> SafeString:
    """`.8051`, minus as `−`; `places=10` in an opened row."""
    if value is None or not isfinite(value):
        return nothing(absent)
    sign = MINUS if value < 0 and round(value, places) != 0 else ""
    return SafeString(f"{sign}{_decimal(value, places)}")


def signed(value: float | None, places: int = 3, *, absent: str = "not measured") -> SafeString:
    """`+.031` or `−.125`."""
    if value is None or not isfinite(value):
        return nothing(absent)
    return SafeString(f"{'+' if value >= 0 else MINUS}{_decimal(value, places)}")


def gain(estimate: float | None, low: float | None, high: float | None, n: int | None) -> SafeString:
    """`+.031 [.012, .050] n 64`; without an interval it is not measured."""
    if estimate is None or low is None or high is None or n is None:
        return nothing("not measured")
    return format_html(
        '<span class="gv-num">{} [{}, {}] n {}</span>', signed(estimate), score(low, 3), score(high, 3), n
    )


def share(part: float | None, whole: float | None = 1.0, *, absent: str = "not measured") -> SafeString:
    """`4.1 %` of `whole`."""
    if part is None or not whole:
        return nothing(absent)
    return SafeString(f"{100 * part / whole:.1f}{NARROW_SPACE}%")


def count(value: int | None, *, absent: str = "not measured") -> SafeString:
    """An exact count with grouped digits: `1 204 331`."""
    if value is None:
        return nothing(absent)
    return SafeString(f"{value:,}".replace(",", NARROW_SPACE).replace("-", MINUS))


def about(value: float | None, *, absent: str = "not measured") -> SafeString:
    """A count out of statistics, which always says that it is one: `about 1.2 M`."""
    if value is None or value < 0:
        return nothing(absent)
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if value >= size:
            scale = 1e3 if unit == "k" else size
            return SafeString(f"about {value / scale:.{0 if unit == 'k' else 1}f}{NARROW_SPACE}{unit}")
    return SafeString(f"about {count(round(value))}")


def middle_cut(text: str, most: int = 28) -> str:
    """Long names keep their beginning and end: `oidc:login…#user-0033`."""
    if len(text) <= most:
        return text
    keep = most - 1
    return f"{text[: keep // 2]}…{text[-(keep - keep // 2) :]}"


def person(display_name: str, subject: str, *, href: str = "") -> SafeString:
    """A principal: its display name, the subject under it in monospace, cut in the middle."""
    if not display_name or display_name == subject:
        code = format_html('<code title="{}">{}</code>', subject, middle_cut(subject, 48))
        return format_html('<a href="{}">{}</a>', href, code) if href else code
    name = format_html('<a href="{}">{}</a>', href, display_name) if href else display_name
    return format_html(
        '<span class="gv-name"><span>{}</span><code title="{}">{}</code></span>',
        name,
        subject,
        middle_cut(subject),
    )
