"""The analyser: what a text is found by. Deterministic; its version is stored with what it indexed."""

from .analysis import ANALYSER, ANALYSER_VERSION, Analysed, Analyser, Group
from .languages import SIMPLE, detect
from .lexemes import LexemeSource, PostgresLexemes, SimpleLexemes, installed

__all__ = [
    "ANALYSER",
    "ANALYSER_VERSION",
    "SIMPLE",
    "Analysed",
    "Analyser",
    "Group",
    "LexemeSource",
    "PostgresLexemes",
    "SimpleLexemes",
    "detect",
    "installed",
]
