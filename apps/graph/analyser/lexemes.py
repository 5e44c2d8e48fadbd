"""Words to lexemes: PostgreSQL's dictionaries stem, a bounded memo spares the round trips."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Protocol

from django.db import connection

from apps.core.db.cursors import run

from .languages import SIMPLE

CACHED_WORDS = 200_000
"""Words a process remembers for each configuration (some 20 MB at most); the older half goes when full."""

_DICTIONARIES = """
    SELECT m.maptokentype = 1 AS ascii, d.oid::regdictionary::text
      FROM pg_ts_config_map m JOIN pg_ts_dict d ON d.oid = m.mapdict
     WHERE m.mapcfg = %s::regconfig
       AND m.maptokentype IN (1, 2) ORDER BY m.maptokentype, m.mapseqno
"""  # token types of the default parser: 1 asciiword, 2 word
_LEXIZE = "SELECT w, ts_lexize(%s::regdictionary, w) FROM unnest(%s::text[]) AS w"


class LexemeSource(Protocol):
    """Stems words. Implementations must be deterministic: an index outlives the process that made it."""

    def lexemes(self, configuration: str, words: Iterable[str]) -> Mapping[str, str | None]:
        """The lexeme of each word, None for a stop word. At least the asked words are in the answer."""
        ...


class SimpleLexemes:
    """The configuration `simple`: every word is its own lexeme. Needs no database."""

    def lexemes(self, configuration: str, words: Iterable[str]) -> Mapping[str, str | None]:
        return {word: word for word in words}


class PostgresLexemes:
    """Asks the database in one call for the words that the process has not seen yet."""

    def __init__(self, limit: int = CACHED_WORDS) -> None:
        self._limit = limit
        self._known: dict[str, dict[str, str | None]] = {}

    def lexemes(self, configuration: str, words: Iterable[str]) -> Mapping[str, str | None]:
        if configuration == SIMPLE:
            return {word: word for word in words}
        known = self._known.setdefault(configuration, {})
        missing = [word for word in words if word not in known]
        if missing:
            if len(known) + len(missing) > self._limit:
                known = self._halved(configuration, keep=words)
                missing = [word for word in words if word not in known]
            known.update(_lexize(configuration, missing))
        return known

    def _halved(self, configuration: str, keep: Iterable[str]) -> dict[str, str | None]:
        # A new dict, so that a thread that still reads the old one misses nothing.
        old = self._known[configuration]
        recent = dict(list(old.items())[len(old) // 2 :])
        recent.update({word: old[word] for word in keep if word in old})
        self._known[configuration] = recent
        return recent


@lru_cache(maxsize=64)
def _dictionaries(configuration: str) -> dict[bool, tuple[str, ...]]:
    """The dictionaries for words of ASCII letters (True) and others (False), in the order they are asked."""
    with connection.cursor() as cursor:
        cursor.execute(_DICTIONARIES, [configuration])
        rows = cursor.fetchall()
    return {ascii_: tuple(name for is_ascii, name in rows if is_ascii == ascii_) for ascii_ in (True, False)}


def _lexize(configuration: str, words: list[str]) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for is_ascii, dictionaries in _dictionaries(configuration).items():
        pending = [word for word in words if word.isascii() == is_ascii]
        for dictionary in dictionaries:
            if not pending:
                break
            answers = dict(run(_LEXIZE, [dictionary, pending]).fetchall())
            # NULL: the dictionary does not know the word and the next is asked; empty: a stop word.
            found.update({w: (lex[0] if lex else None) for w, lex in answers.items() if lex is not None})
            pending = [word for word in pending if answers[word] is None]
        found.update({word: word for word in pending})
    return found


POSTGRES = PostgresLexemes()


@lru_cache(maxsize=1)
def installed() -> frozenset[str]:
    """Names of the text search configurations of this database."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT cfgname FROM pg_ts_config WHERE cfgnamespace = 'pg_catalog'::regnamespace")
        return frozenset(name for (name,) in cursor.fetchall())
