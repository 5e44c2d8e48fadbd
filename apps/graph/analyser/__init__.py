"""The analyser: what a text is found by. Deterministic; its version is stored with what it indexed."""

from .analysis import ANALYSER_VERSION, Analysed, Group, analyse_documents, analyse_query
from .languages import SIMPLE, detect
from .lexemes import POSTGRES, LexemeSource, PostgresLexemes, SimpleLexemes, installed

__all__ = [
    "ANALYSER_VERSION",
    "POSTGRES",
    "SIMPLE",
    "Analysed",
    "Group",
    "LexemeSource",
    "PostgresLexemes",
    "SimpleLexemes",
    "analyse_documents",
    "analyse_query",
    "detect",
    "installed",
]
