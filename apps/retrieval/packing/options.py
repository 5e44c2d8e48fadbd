"""How a context is to be packed: names, bounds, and the version that names all of it in a receipt."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

PACKING = "packing-1"
"""Bumped by hand when the same sources and options may give other bytes; a receipt names it."""

Ordering = Literal["balanced", "score", "density"]
Format = Literal["auditable", "compact"]
Guidance = Literal["off", "temporal", "all"]
Representation = Literal["full", "reference"]
Fidelity = Representation
Tier = Literal["instructions", "pinned", "multi_path", "rest"]
Reason = Literal["token_budget", "min_fidelity", "byte_budget"]

TIERS: tuple[Tier, ...] = ("instructions", "pinned", "multi_path", "rest")
"""In the order in which they are admitted, and so in which they stand."""

DEFAULT_BUDGET, MAX_BUDGET = 2_000, 32_000
"""Tokens of a whole rendered context."""
MAX_BYTES = 131_072
"""Bytes of a context as the JSON answer carries it: half of what an answer of search may have."""
REFERENCE_TITLE = 200
"""Characters of a title that a reference still names; a longer one is left out of it, never cut."""


@dataclass(frozen=True, slots=True)
class Packing:
    """What the caller asked of a context.

    token_budget: of the whole text, frame included. reference_time: what guidance calls the time of the request.
    """

    token_budget: int
    reference_time: datetime
    ordering: Ordering = "balanced"
    format: Format = "auditable"
    guidance: Guidance = "off"
    min_fidelity: Fidelity = "reference"
