"""Packing: found sources become one text within a token budget. Pure: nothing here reads or writes.

The law: a source is in the text whole, or as a reference, or not at all; the text never counts more tokens than its
budget; and what a memory says cannot end the block that holds it, nor begin a turn of a conversation.
"""

from .options import (
    DEFAULT_BUDGET,
    MAX_BUDGET,
    MAX_BYTES,
    PACKING,
    TIERS,
    Fidelity,
    Format,
    Guidance,
    Ordering,
    Packing,
    Reason,
    Representation,
    Tier,
)
from .pack import LeftOut, PackedContext, PackedEntry, pack
from .render import Entry, context_hash, render
from .sources import Source
from .tokens import ESTIMATE, Tokenizer, estimate

__all__ = [
    "DEFAULT_BUDGET",
    "ESTIMATE",
    "MAX_BUDGET",
    "MAX_BYTES",
    "PACKING",
    "TIERS",
    "Entry",
    "Fidelity",
    "Format",
    "Guidance",
    "LeftOut",
    "Ordering",
    "PackedContext",
    "PackedEntry",
    "Packing",
    "Reason",
    "Representation",
    "Source",
    "Tier",
    "Tokenizer",
    "context_hash",
    "estimate",
    "pack",
    "render",
]
