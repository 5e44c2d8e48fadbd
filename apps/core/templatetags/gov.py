"""Template side of `apps.core.ui`: filters for values, tags for signs and empty cells. Load with `{% load gov %}`.

Parts need no tag: `{{ part }}` draws them.
"""

from datetime import datetime
from typing import Any
from uuid import UUID

from django import template
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html, format_html_join
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
def gv_id(value: UUID | str | None, name: str = "id") -> SafeString:
    return ui.short_id(value, name)


@register.filter
def gv_count(value: int | None) -> SafeString:
    return ui.count(value)


@register.filter
def gv_about(value: float | None) -> SafeString:
    return ui.about(value)


@register.simple_tag
def gv_sign(tone: Tone) -> SafeString:
    """The sign of a tone alone, with its word for readers."""
    sign = SIGNS[tone] or "⚿"
    return format_html(
        '<span class="gv-mark gv-{} bare"><span class="gv-sign" aria-hidden="true">{}</span>'
        '<span class="gv-sr">{}</span></span>',
        tone,
        sign,
        WORDS[tone],
    )


@register.simple_tag
def gv_allowed(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Entries of a navigation group that the user may open."""
    return [item for item in items if item.get("has_permission")]


@register.simple_tag(takes_context=True)
def gv_crumbs(context: Any) -> list[dict[str, Any]]:
    """Where the page stands: the list above an object; pages may give `crumbs` of their own."""
    if "crumbs" in context:
        return list(context["crumbs"] or [])
    opts = context.get("opts")
    on_list = context.get("cl") is not None
    if opts is None or on_list:
        return []
    try:
        link = reverse(f"admin:{opts.app_label}_{opts.model_name}_changelist")
    except NoReverseMatch:
        return []
    model_admin = context.get("model_admin")
    name = getattr(model_admin, "list_name", "") or str(opts.verbose_name_plural)
    return [{"link": link, "title": name[:1].upper() + name[1:]}]


@register.simple_tag(takes_context=True)
def gv_heading(context: Any) -> Any:
    """The page's heading: its title as it was given, ids and hashes unchanged."""
    return context.get("heading") or context.get("title") or context.get("site_title") or ""


def filtered_empty(hiding: list[dict[str, str]]) -> ui.EmptyState:
    """Which single filter, if removed, would give rows; `hiding` holds words and address of each."""
    clear = SafeString('<a class="gv-button" href="?">Clear the filters</a>')
    if not hiding:
        why = "No single one of them hides rows; they are shown above the list."
        return ui.EmptyState("Nothing matches these filters.", why, clear)
    links = format_html_join(
        " ", '<a class="gv-button" href="{}">Without {}</a>', [(one["url"], one["text"]) for one in hiding]
    )
    row = format_html('<span class="gv-row-of">{} {}</span>', links, clear)
    return ui.EmptyState("Nothing matches all of these filters.", "There are rows without one of them:", row)


@register.simple_tag(takes_context=True)
def gv_empty(context: Any, changelist: Any) -> ui.EmptyState:
    """What a list without rows says: filters that hide everything, or nothing there yet and the next step."""
    empty = getattr(changelist.model_admin, "empty_state", None)
    if changelist.chips if hasattr(changelist, "chips") else changelist.has_active_filters:
        return filtered_empty(getattr(changelist, "hiding", []))
    if empty is not None:
        return empty(changelist)  # type: ignore[no-any-return]
    return ui.EmptyState(f"No {changelist.opts.verbose_name} yet.")
