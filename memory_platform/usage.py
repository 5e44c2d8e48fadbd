"""How the memory is used, for the start page: searches, zero hits, stages reached, over 14 days.

Exact from the rows while they are few; beyond that from what the measuring tasks have sampled.
"""

from typing import Any

from django.http import HttpRequest


def usage(request: HttpRequest) -> dict[str, Any] | None:
    """Facts and charts, or None before the first search."""
    return None
