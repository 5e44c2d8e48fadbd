"""The lint: points at what a reviewed text should not hold. A clean lint is evidence, never a proof."""

from dataclasses import dataclass

from .filter import forms_of
from .patterns import Use, table
from .unicode import Utf16Text

_ROWS = table(Use.LINT)


@dataclass(frozen=True)
class Finding:
    """A row of the table that matched. `start` and `end` are UTF-16 offsets of a half-open span of the text;
    both are None where the match shows only in a normalised or decoded form."""

    pattern: int
    name: str
    start: int | None
    end: int | None


def lint(text: str) -> list[Finding]:
    """Findings in the order of the table, then of the text."""
    hidden = [form for form in forms_of(text) if form != text]
    offsets = Utf16Text(text)
    findings: list[Finding] = []
    for pattern, forms in _ROWS:
        spans = sorted({match.span() for form in forms for match in form.matches(text)})
        findings += [
            Finding(pattern.number, pattern.name, offsets.offset(start), offsets.offset(end))
            for start, end in spans
        ]
        if not spans and any(True for form in forms for other in hidden for _ in form.matches(other)):
            findings.append(Finding(pattern.number, pattern.name, None, None))
    return findings
