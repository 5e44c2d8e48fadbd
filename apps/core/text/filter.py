"""The filter: texts that must not be kept at all.

It knows shapes of credentials and of personal numbers. It cannot see names or disclosures in prose.
"""

from collections.abc import Iterator
from urllib.parse import unquote

from .patterns import Use, table
from .unicode import nfkc, without_ignorable

_ROWS = table(Use.FILTER)


def forms_of(text: str) -> Iterator[str]:
    """What a text may hide its content behind, undone: NFKC, then without default-ignorable characters, then
    once percent-decoded (with and without such characters). Equal forms come once."""
    seen: set[str] = set()
    folded = nfkc(text)
    bare = nfkc(without_ignorable(folded))
    decoded = nfkc(unquote(bare)) if "%" in bare else bare
    for form in (folded, bare, decoded, nfkc(without_ignorable(decoded))):
        if form not in seen:
            seen.add(form)
            yield form


def refused_by(text: str) -> int | None:
    """Number of the first row of the table that refuses the text, or None when it may be kept."""
    candidates = list(forms_of(text))
    for pattern, forms in _ROWS:
        for form in forms:
            if any(True for candidate in candidates for _ in form.matches(candidate)):
                return pattern.number
    return None
