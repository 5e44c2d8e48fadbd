"""Names of parts of a principal's memory, as callers give them."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from apps.core.schemas import Text

MAX_SCOPES = 16
_SLUG = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


def _slug(value: str) -> str:
    if not _SLUG.fullmatch(value):
        raise PydanticCustomError("bad_scope", "A scope is a slug of at most 64 characters")
    return value


Scope = Annotated[Text, AfterValidator(_slug)]
ScopeSet = Annotated[list[Scope], Field(min_length=1, max_length=MAX_SCOPES)]
"""Distinct or not, in any order; whoever stores it sorts it."""


def are_scopes(names: list[str]) -> bool:
    """Whether these are what a `ScopeSet` takes, where they come in another form."""
    return 1 <= len(names) <= MAX_SCOPES and all(_SLUG.fullmatch(name) for name in names)
