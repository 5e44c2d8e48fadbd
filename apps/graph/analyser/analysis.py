"""Documents and queries as terms.

Terms are text with a class in front: `c:` code tokens, `j:` bigrams of scripts without spaces, `w:` lexemes.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from .languages import SIMPLE, detect
from .lexemes import POSTGRES, LexemeSource
from .scripts import fold_marks
from .tokens import Forms, count_runs, forms_of

ANALYSER_VERSION = "terms-v1"
"""Changes with anything that makes other terms of the same text; stored indexes are then rebuilt."""

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


def analyse_documents(
    texts: Sequence[tuple[str, str | None]],
    *,
    lexemes: LexemeSource = POSTGRES,
    configurations: Iterable[str] | None = None,
) -> list[Analysed]:
    """Analyses (text, language or None) pairs; one look-up of unknown words a language for all of them.

    `configurations` are those installed; a given or guessed language outside them counts as `simple`.
    """
    allowed = frozenset(configurations) if configurations is not None else None
    runs = [count_runs(text) for text, _ in texts]
    languages = [_allowed(given or detect(text), allowed) for text, given in texts]
    words: dict[str, set[str]] = defaultdict(set)
    for counted, language in zip(runs, languages, strict=True):
        collected = words[language]
        for run in counted:
            collected.update(forms_of(run).words)
    known = {language: lexemes.lexemes(language, found) for language, found in words.items()}
    return [
        _document(counted, language, known[language])
        for counted, language in zip(runs, languages, strict=True)
    ]


def _allowed(language: str, allowed: frozenset[str] | None) -> str:
    return language if allowed is None or language in allowed else SIMPLE


def _document(counted: Counter[str], language: str, known: Mapping[str, str | None]) -> Analysed:
    terms: Counter[str] = Counter()
    lookup = known.__getitem__
    for run, times in counted.items():
        forms = forms_of(run)
        for term in forms.code:
            terms[term] += times
        for term in forms.bigrams:
            terms[term] += times
        for word in forms.words:
            lexeme = lookup(word)
            if lexeme is not None:
                terms["w:" + (lexeme if lexeme.isascii() else fold_marks(lexeme))] += times
    return Analysed(terms, terms.total(), language)


def analyse_query(
    text: str, languages: Sequence[str], *, lexemes: LexemeSource = POSTGRES
) -> tuple[list[Group], int]:
    """The groups of a query, in its order and without duplicates, and the number of its runs.

    Args:
        languages: configurations of the owner's documents; each word is stemmed under every one of them and
            kept as it is, because a document was analysed under its own. A word that is a stop word in all of
            them (but `simple`, which knows none) makes no group.
    """
    runs = list(count_runs(text))[:MAX_QUERY_RUNS]
    forms = [forms_of(run) for run in runs]
    words = {word for form in forms for word in form.words}
    stemming = [language for language in dict.fromkeys(languages) if language != SIMPLE]
    known = [lexemes.lexemes(language, words) for language in stemming]
    groups: dict[Group, None] = {}
    for form in forms:
        for group in _groups(form, known):
            groups[group] = None
    return list(groups), len(runs)


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
