"""Reasons and notes of staff: kept for years, so what should not be kept is refused with the field named."""

from apps.core.problems import InvalidRequest
from apps.core.text import PATTERNS, refused_by, text_fault, trim, utf16_len

LONGEST_REASON = 1000
"""UTF-16 units of a reason or note."""

_NAMES = {pattern.number: pattern.name for pattern in PATTERNS}


def check_reason(
    text: str, *, pointer: str = "/reason", required: bool = True, longest: int = LONGEST_REASON
) -> str:
    """The text as given. Raises `InvalidRequest` with the pointer for a blank one (when `required`), one that is
    too long, and one that the text filter refuses."""
    if fault := text_fault(text):
        raise InvalidRequest(fault, pointer=pointer)
    if required and not trim(text):
        raise InvalidRequest("A reason is needed", pointer=pointer)
    if utf16_len(text) > longest:
        raise InvalidRequest(f"At most {longest} characters", pointer=pointer)
    if (row := refused_by(text)) is not None:
        raise InvalidRequest(f"This may not be kept: it looks like it holds a {_NAMES[row]}", pointer=pointer)
    return text
