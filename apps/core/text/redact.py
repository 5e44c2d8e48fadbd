"""Redaction: credentials in a text are replaced, the rest of it stays.

Works on the text as it stands, row after row in the order of the table. A replacement can bring a further
match into reach only by ending a word before it; passes are therefore repeated until one changes nothing,
so that redacting twice equals redacting once. Each pass is linear, and their number is bounded.
"""

import re

from .patterns import Form, Use, table

_FORMS = tuple(form for _, forms in table(Use.REDACT) for form in forms)
_PASSES = 8


def redact(text: str) -> str:
    """The text with what matches replaced by `[redacted]`; names of credentials and hosts of URLs stay."""
    for _ in range(_PASSES):
        before = text
        for form in _FORMS:
            text = _replace(form, text)
        if text == before:
            break
    return text


def _replace(form: Form, text: str) -> str:
    def replacement(match: re.Match[str]) -> str:
        return match.expand(form.replacement) if form.accepts(match) else match[0]

    return form.regex.sub(replacement, text)
