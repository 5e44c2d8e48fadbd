"""Start-up says so when a setting names an extension that is not installed."""

from collections.abc import Sequence
from typing import Any

from django.core.checks import CheckMessage, Warning, register

from apps.retrieval.extensions import rerankers
from memory_platform.environment import environment


@register()
def reranker_is_installed(app_configs: Sequence[Any] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """retrieval.W001: every search would answer without it, and say so."""
    name = environment().reranker
    if not name or name in rerankers.names():
        return []
    installed = ", ".join(rerankers.names()) or "none is installed"
    return [Warning(f"RERANKER names no installed reranker ({installed})", id="retrieval.W001")]
