"""Which text search configuration fits a text: by script, then by function words."""

import re
from collections import defaultdict
from collections.abc import Collection
from importlib.resources import files
from itertools import islice

from .tokens import count_runs

SIMPLE = "simple"

_TABLE = (files(__package__) / "function_words.txt").read_text(encoding="utf-8")
_FUNCTION_WORDS = dict(line.split(": ", 1) for line in _TABLE.splitlines())
"""Frequent function words of the languages that PostgreSQL stems and that share the Latin script."""

_SCRIPTS = {
    "russian": re.compile("[\u0400-\u04ff]"),
    "greek": re.compile("[\u0370-\u03ff\u1f00-\u1fff]"),
    "arabic": re.compile("[\u0600-\u06ff]"),
    "hindi": re.compile("[\u0900-\u097f]"),
    "armenian": re.compile("[\u0530-\u058f]"),
    "tamil": re.compile("[\u0b80-\u0bff]"),
}
_SERBIAN = re.compile("[ђјљњћџЂЈЉЊЋЏ]")
_NON_LATIN = re.compile("[\u0370-\u1fff\u2e80-\uffff]")

DETECTABLE = (*_FUNCTION_WORDS, *_SCRIPTS, "serbian")
SAMPLE = 2_000
SAMPLE_RUNS = 400
"""Characters, and distinct runs, at the start of a text from which its language is guessed."""
_LEAST = 0.5
"""Share-weighted function words a text must show; `in`, which six languages share, alone is no evidence."""


def _weights() -> dict[str, tuple[tuple[str, float], ...]]:
    owners: dict[str, list[str]] = defaultdict(list)
    for language, words in _FUNCTION_WORDS.items():
        for word in dict.fromkeys(words.split()):
            owners[word].append(language)
    return {word: tuple((name, 1 / len(names)) for name in names) for word, names in owners.items()}


_WEIGHTS = _weights()


def detect(text: str, runs: Collection[str] | None = None) -> str:
    """The configuration for a text: one of `DETECTABLE`, or `simple` where neither script nor words tell.

    `runs` are the distinct runs of the text, for a caller who has them already.
    """
    if not text.isascii() and (by_script := _by_script(text[:SAMPLE])):
        return by_script
    scores: dict[str, float] = defaultdict(float)
    words = count_runs(text) if runs is None else runs
    for word in {run.lower() for run in islice(words, SAMPLE_RUNS)}:
        for language, weight in _WEIGHTS.get(word, ()):
            scores[language] += weight
    ranked = sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:2]
    if not ranked or ranked[0][1] < _LEAST or (len(ranked) > 1 and ranked[0][1] == ranked[1][1]):
        return SIMPLE
    return ranked[0][0]


def _by_script(sample: str) -> str | None:
    others = len(_NON_LATIN.findall(sample))
    letters = sum(character.isalpha() for character in sample)
    if others * 2 < letters or not others:
        return None
    for language, script in _SCRIPTS.items():
        if len(script.findall(sample)) * 2 > others:
            return "serbian" if language == "russian" and _SERBIAN.search(sample) else language
    return SIMPLE
