"""Texts: what they may hold, UTF-16 offsets, the pattern table and its three uses, the byte budget."""

from .budget import (
    RESERVED,
    SEARCH_BUDGET,
    SOURCES_BUDGET,
    Fitted,
    check_request_id,
    fit_budget,
    largest_end,
    render_json,
)
from .filter import refused_by
from .lint import Finding, lint
from .patterns import PATTERNS, REDACTED
from .redact import redact
from .unicode import (
    BadText,
    Utf16Text,
    check_text,
    excerpt,
    nfc,
    nfkc,
    text_fault,
    trim,
    utf16_cut,
    utf16_len,
    without_ignorable,
)

__all__ = [
    "PATTERNS",
    "REDACTED",
    "RESERVED",
    "SEARCH_BUDGET",
    "SOURCES_BUDGET",
    "BadText",
    "Finding",
    "Fitted",
    "Utf16Text",
    "check_request_id",
    "check_text",
    "excerpt",
    "fit_budget",
    "largest_end",
    "lint",
    "nfc",
    "nfkc",
    "redact",
    "refused_by",
    "render_json",
    "text_fault",
    "trim",
    "utf16_cut",
    "utf16_len",
    "without_ignorable",
]
