"""Template side of `apps.core.ui`: filters for values, tags for signs and empty cells. Load with `{% load gov %}`.

Parts need no tag: `{{ part }}` draws them.
"""

from datetime import datetime
from typing import Any
from uuid import UUID

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from apps.core import ui
from apps.core.ui.marks import SIGNS, Tone

register = template.Library()

WORDS: dict[Tone, str] = {
    "ok": "in order",
    "warn": "attention",
    "bad": "danger",
    "run": "in progress",
    "held": "held",
    "plain": "neutral",
}


@register.filter
def gv_when(at: datetime | None, absent: str = "never") -> SafeString:
    return ui.when(at, absent=absent)


@register.filter
def gv_ago(at: datetime | None, absent: str = "never") -> SafeString:
    """Absolute time, then the distance from now."""
    return ui.when(at, relative=True, absent=absent)


@register.filter
def gv_deadline(at: datetime | None, absent: str = "no deadline") -> SafeString:
    return ui.deadline(at, absent=absent)


@register.filter
def gv_id(value: UUID | str | None, name: str = "id") -> SafeString:
    return ui.short_id(value, name)


@register.filter
def gv_hash(value: str | None, name: str = "hash") -> SafeString:
    return ui.short_hash(value, name)


@register.filter
def gv_score(value: float | None, places: int = 4) -> SafeString:
    return ui.score(value, places)


@register.filter
def gv_signed(value: float | None, places: int = 3) -> SafeString:
    return ui.signed(value, places)


@register.filter
def gv_count(value: int | None) -> SafeString:
    return ui.count(value)


@register.filter
def gv_about(value: float | None) -> SafeString:
    return ui.about(value)


@register.filter
def gv_share(part: float | None, whole: float = 1.0) -> SafeString:
    return ui.share(part, whole)


@register.filter
def gv_json(value: Any, name: str = "document") -> ui.JsonTree:
    return ui.JsonTree(value, name)


@register.filter
def gv_long(text: str | None) -> ui.LongText | SafeString:
    return ui.LongText(text) if text else ui.nothing()


@register.simple_tag
def gv_gain(estimate: float | None, low: float | None, high: float | None, n: int | None) -> SafeString:
    return ui.gain(estimate, low, high, n)


@register.simple_tag
def gv_nothing(why: str = "none") -> SafeString:
    return ui.nothing(why)


@register.simple_tag
def gv_mark(tone: Tone, text: str, title: str = "", bare: bool = False) -> ui.Mark:
    return ui.Mark(tone, text, title, bare=bare)


@register.simple_tag
def gv_sign(tone: Tone) -> SafeString:
    """The sign of a tone alone, with its word for readers."""
    sign = SIGNS[tone] or "⚿"
    return format_html(
        '<span class="gv-mark gv-{} bare"><span class="gv-sign" aria-hidden="true">{}</span><span class="gv-sr">{}</span></span>',
        tone,
        sign,
        WORDS[tone],
    )
