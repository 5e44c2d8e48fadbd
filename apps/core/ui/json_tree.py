"""A JSON document as a tree of `<details>`: every key shown, long arrays and strings cut until asked for."""

import json
from dataclasses import dataclass
from typing import Any, ClassVar

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from .base import Part, dom_id

ARRAY_SHOWN = 20
STRING_SHOWN = 300
OPEN_DEPTH = 1
DEEPEST = 60


@dataclass(frozen=True)
class JsonTree(Part):
    """`value` is any JSON value. `name` names the document and its download (`<name>.json`)."""

    value: Any
    name: str = "document"
    template_name: ClassVar[str] = "core/parts/json_tree.html"

    @property
    def text(self) -> str:
        return json.dumps(self.value, ensure_ascii=False, indent=2, default=str)

    @property
    def text_id(self) -> str:
        return dom_id("json", self.name, self.text)

    @property
    def tree(self) -> SafeString:
        return _value(self.value, 0)


def _leaf(value: Any) -> SafeString:
    if isinstance(value, str):
        if len(value) <= STRING_SHOWN:
            return format_html('<span class="str">"{}"</span>', value)
        return format_html(
            '<details><summary><span class="str">"{}…"</span> show all ({} characters)</summary>'
            '<span class="str gv-long">"{}"</span></details>',
            value[:STRING_SHOWN],
            f"{len(value):,}",
            value,
        )
    return format_html('<span class="lit">{}</span>', json.dumps(value, default=str))


def _line(key: object, value: Any, depth: int) -> SafeString:
    if isinstance(value, dict | list) and value:
        size = f"{len(value)} {'keys' if isinstance(value, dict) else 'items'}"
        return format_html(
            '<li><details{}><summary><span class="key">{}</span> {}</summary>{}</details></li>',
            SafeString(" open") if depth < OPEN_DEPTH else "",
            key,
            size,
            _value(value, depth + 1),
        )
    return format_html('<li><span class="key">{}</span> {}</li>', key, _value(value, depth + 1))


def _value(value: Any, depth: int) -> SafeString:
    if depth > DEEPEST:
        return format_html("<pre>{}</pre>", json.dumps(value, ensure_ascii=False, default=str))
    if isinstance(value, dict):
        lines = [(key, item) for key, item in value.items()]
        return format_html("<ul>{}</ul>", _lines(lines, depth)) if lines else SafeString("{}")
    if isinstance(value, list):
        numbered: list[tuple[object, Any]] = list(enumerate(value))
        if not numbered:
            return SafeString("[]")
        first = _lines(numbered[:ARRAY_SHOWN], depth)
        if len(numbered) <= ARRAY_SHOWN:
            return format_html("<ul>{}</ul>", first)
        return format_html(
            "<ul>{}<li><details><summary>{} of {}, show all</summary><ul>{}</ul></details></li></ul>",
            first,
            ARRAY_SHOWN,
            len(numbered),
            _lines(numbered[ARRAY_SHOWN:], depth),
        )
    return _leaf(value)


def _lines(pairs: list[tuple[Any, Any]], depth: int) -> SafeString:
    return format_html_join("", "{}", ((_line(key, item, depth),) for key, item in pairs))
