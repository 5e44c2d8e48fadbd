"""Query sets from collections in the BEIR layout: `queries.jsonl` and `qrels/SPLIT.tsv`."""

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from apps.learning.requests import QuerySetRequest, SetJudgment, SetQuery

HEADING = "query-id"
NOT_UTF8 = "surrogateescape"
"""Bytes that are no UTF-8 come as what no text may hold, so that their line is refused by its number."""


class QrelsError(ValueError):
    """A line that cannot be read; the message names file and line, never their text."""


@dataclass(frozen=True, slots=True)
class Layout:
    """What the files mean: documents are of `repo`; `group_by`, `slice_by` name metadata of a query."""

    repo: str
    split: str = "test"
    group_by: str | None = None
    slice_by: str | None = None


def read_query_set(folder: Path, layout: Layout, *, name: str) -> QuerySetRequest:
    """The queries that the split judges with something relevant, and all its judgments of them.

    A grade below 0 is 0, as in collections that mark spam. Raises QrelsError.
    """
    judgments = list(_judgments(folder / "qrels" / f"{layout.split}.tsv", layout.repo))
    relevant = {judgment.query for judgment in judgments if judgment.grade}
    queries = [query for query in _queries(folder / "queries.jsonl", layout) if query.id in relevant]
    known = {query.id for query in queries}
    try:
        return QuerySetRequest(
            name=name,
            queries=queries,
            judgments=[judgment for judgment in judgments if judgment.query in known],
        )
    except ValidationError:
        raise QrelsError(
            f"qrels/{layout.split}.tsv and queries.jsonl give no set of 1 to 2,000 queries"
        ) from None


def _queries(path: Path, layout: Layout) -> Iterator[SetQuery]:
    with path.open(encoding="utf-8", errors=NOT_UTF8) as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                yield _query(json.loads(line), layout)
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                raise QrelsError(f"line {number} of {path.name} is not a query") from None


def _query(given: dict[str, Any], layout: Layout) -> SetQuery:
    metadata = given.get("metadata") or {}
    return SetQuery(
        id=str(given["_id"]),
        text=given["text"],
        group=_value(metadata, layout.group_by),
        slice=_value(metadata, layout.slice_by),
    )


def _value(metadata: dict[str, Any], name: str | None) -> str | None:
    value = metadata.get(name) if name else None
    return None if value is None else str(value)


def _judgments(path: Path, repo: str) -> Iterator[SetJudgment]:
    with path.open(encoding="utf-8", errors=NOT_UTF8, newline="") as lines:
        rows = csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
        try:
            for number, row in enumerate(rows, 1):
                if row and (number, row[0]) != (1, HEADING):
                    query, document, grade = row
                    yield SetJudgment(query=query, repo=repo, identity=document, grade=max(0, int(grade)))
        except (ValueError, csv.Error):
            raise QrelsError(
                f"line {rows.line_num} of {path.name} is not query, document and a grade of 0 to 4"
            ) from None
