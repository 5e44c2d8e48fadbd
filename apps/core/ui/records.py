"""The record table: rows that can be told apart, with one main cell, and more behind a button."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from .base import Part, dom_id


@dataclass(frozen=True, slots=True)
class Column:
    """A heading. `kind` main: the widest, clamped to two lines; num: right-aligned. `later`: not on phones.

    Where a phone folds the table, a number keeps its heading before it, and so does what is `named`.
    """

    label: str
    kind: Literal["", "main", "num"] = ""
    later: bool = False
    hidden_label: bool = False
    named: bool = False

    @property
    def classes(self) -> str:
        css = "gv-num" if self.kind == "num" else self.kind
        return f"{css} later" if self.later else css

    @property
    def folded_label(self) -> str:
        """What is written before the value where there is no line of headings."""
        return self.label if self.named or self.kind == "num" else ""


@dataclass(frozen=True)
class Record:
    """One row. `header` is the index of the cell that names it; `tone` marks an exception, never the normal."""

    cells: Sequence[Any]
    more: Any = None
    tone: Literal["", "bad", "warn", "quiet"] = ""
    id: str = ""


@dataclass(frozen=True)
class Records(Part):
    """A table with a caption (shown or for readers). `wide` keeps columns on phones and scrolls instead."""

    caption: str
    columns: Sequence[Column]
    rows: Sequence[Record]
    header: int = 0
    show_caption: bool = False
    wide: bool = False
    empty: Any = ""
    foot: Sequence[Any] = field(default_factory=tuple)
    template_name: ClassVar[str] = "core/parts/records.html"

    @property
    def expands(self) -> bool:
        return any(row.more is not None for row in self.rows)

    @property
    def width(self) -> int:
        return len(self.columns)

    @property
    def lines(self) -> list[dict[str, Any]]:
        """Each row with its cells paired with their columns."""
        return [
            {
                "record": row,
                "more_id": dom_id(self.caption, number, row.id) if row.more is not None else "",
                "cells": [
                    {
                        "value": cell,
                        "column": column,
                        "header": at == self.header,
                        "first": at == 0,
                        "label": column.folded_label if cell != "" and at not in (0, self.header) else "",
                    }
                    for at, (cell, column) in enumerate(zip(row.cells, self.columns, strict=True))
                ],
            }
            for number, row in enumerate(self.rows)
        ]
