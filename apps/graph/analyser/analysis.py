"""Documents and queries as terms.

Terms are text with a class in front: `c:` code tokens, `j:` bigrams of scripts without spaces, `w:` lexemes.
"""

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from .languages import SIMPLE, detect
from .lexemes import POSTGRES, LexemeSource
from .scripts import fold_marks
from .tokens import Forms, count_runs, forms_of

ANALYSER_VERSION = "terms-v1"
"""Changes with anything that makes other terms of the same text; stored indexes are then rebuilt."""

REMEMBERED_RUNS = 100_000
"""A language, in one process (some 20 MB at most)."""

MAX_QUERY_RUNS = 512
PREFIX_LEAST = 3
"""Characters of a query word that may stand for the longer terms it begins."""


@dataclass(frozen=True, slots=True)
class Analysed:
    """A document's terms with their counts, and the sum of the counts."""

    terms: Counter[str]
    length: int
    language: str


@dataclass(frozen=True, slots=True)
class Group:
    """The forms of one query word, any of which is a match; `prefix` widens them if none is known."""

    forms: tuple[str, ...]
    prefix: str | None = None


class Analyser:
    """Analyses with one source of lexemes. Remembers the terms of runs; threads may share it."""

    def __init__(self, lexemes: LexemeSource, limit: int = REMEMBERED_RUNS) -> None:
        self._lexemes = lexemes
        self._limit = limit
        self._remembered: dict[str, dict[str, tuple[str, ...]]] = {}

    def documents(
        self, texts: Sequence[tuple[str, str | None]], *, configurations: Container[str] | None = None
    ) -> list[Analysed]:
        """Analyses (text, language or None) pairs; one look-up of unknown words a language for all of them.

        `configurations` are those installed; a given or guessed language outside them counts as `simple`.
        """
        counted = [count_runs(text) for text, _ in texts]
        languages = [
            self._installed(given or detect(text, runs), configurations)
            for (text, given), runs in zip(texts, counted, strict=True)
        ]
        tables = {
            language: self._terms(
                language, [c for c, of in zip(counted, languages, strict=True) if of == language]
            )
            for language in set(languages)
        }
        return [
            _document(runs, language, tables[language])
            for runs, language in zip(counted, languages, strict=True)
        ]

    @staticmethod
    def _installed(language: str, configurations: Container[str] | None) -> str:
        return language if configurations is None or language in configurations else SIMPLE

    def _terms(self, language: str, counted: Sequence[Counter[str]]) -> Mapping[str, tuple[str, ...]]:
        """The terms of every run of these documents."""
        table = self._remembered.setdefault(language, {})
        runs = set().union(*counted)
        missing = [run for run in runs if run not in table]
        if not missing:
            return table
        if len(table) + len(missing) > self._limit:
            # A new table, so that a thread that still reads the old one misses nothing.
            table = {run: table[run] for run in runs if run in table}
            self._remembered[language] = table
        forms = {run: forms_of(run) for run in missing}
        words = {word for form in forms.values() for word in form.words}
        known = self._lexemes.lexemes(language, words)
        table.update({run: _terms_of(form, known) for run, form in forms.items()})
        return table

    def query(self, text: str, languages: Sequence[str]) -> tuple[list[Group], int]:
        """The groups of a query, in its order and without duplicates, and the number of its runs.

        Args:
            languages: configurations of the owner's documents; each word is stemmed under every one of them
                and kept as it is, because a document was analysed under its own. A word that is a stop word
                in all of them (but `simple`, which knows none) makes no group.
        """
        runs = list(count_runs(text))[:MAX_QUERY_RUNS]
        forms = [forms_of(run) for run in runs]
        words = {word for form in forms for word in form.words}
        stemming = [language for language in dict.fromkeys(languages) if language != SIMPLE]
        known = [self._lexemes.lexemes(language, words) for language in stemming]
        return list(dict.fromkeys(group for form in forms for group in _groups(form, known))), len(runs)


def _terms_of(form: Forms, known: Mapping[str, str | None]) -> tuple[str, ...]:
    lexemes = [known[word] for word in form.words]
    stemmed = tuple("w:" + fold_marks(lexeme) for lexeme in lexemes if lexeme is not None)
    return form.code + form.bigrams + stemmed


def _document(runs: Counter[str], language: str, table: Mapping[str, tuple[str, ...]]) -> Analysed:
    terms: Counter[str] = Counter()
    for run, times in runs.items():
        for term in table[run]:
            terms[term] += times
    return Analysed(terms, terms.total(), language)


def _groups(form: Forms, known: Sequence[Mapping[str, str | None]]) -> Iterable[Group]:
    for term in (*form.code, *form.bigrams):
        yield Group((term,))
    for word in form.words:
        stems = [table[word] for table in known]
        if stems and all(stem is None for stem in stems):
            continue
        folded = fold_marks(word)
        variants = [f"w:{fold_marks(stem)}" for stem in stems if stem is not None]
        names = dict.fromkeys([*variants, f"w:{folded}", f"c:{word}"])
        yield Group(tuple(names), f"w:{folded}" if len(folded) >= PREFIX_LEAST else None)


ANALYSER = Analyser(POSTGRES)
