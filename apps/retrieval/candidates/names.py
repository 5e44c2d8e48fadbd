"""What a query names: the keys of entities and the slugs of pages that its words may be."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from apps.graph.entities import entity_key

MAX_WORDS = 64
"""Words of a query that are looked at."""
MAX_NAME_WORDS = 3
"""Words that a name may have."""

# Whatever a name of a page or a thing cannot hold ends it.
_WORDS = re.compile(r"[^\s,;:!?()\[\]{}<>\"'`/\\|]+")


@dataclass(frozen=True, slots=True)
class Names:
    """`keys` of entities and `slugs` of pages, each once, in the order of the query."""

    keys: tuple[str, ...]
    slugs: tuple[str, ...]


def names_in(query: str) -> Names:
    """What the words of a query may name; every run of up to three words may be an entity."""
    words = [word for found in _WORDS.findall(query) if (word := found.strip("."))][:MAX_WORDS]
    keys = (key for run in _runs(words) if (key := entity_key(run)) is not None)
    slugs = (form for word in words for form in (word, word.lower()))
    return Names(tuple(dict.fromkeys(keys)), tuple(dict.fromkeys(slugs)))


def _runs(words: list[str]) -> Iterator[str]:
    for size in range(1, MAX_NAME_WORDS + 1):
        for start in range(len(words) - size + 1):
            yield " ".join(words[start : start + size])
