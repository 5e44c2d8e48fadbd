"""Start-up refuses a tokenizer that is named and not there, and says so of a reranker."""

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register

from apps.retrieval.extensions import rerankers
from apps.retrieval.packing.installed import TokenizerMissing, load
from memory_platform.environment import environment


@register()
def tokenizer_is_there(**kwargs: Any) -> list[CheckMessage]:
    """retrieval.E001."""
    try:
        load(settings.TOKENIZER)
    except TokenizerMissing as missing:
        return [
            Error(str(missing), hint="Set MEMORY_TOKENIZER to a tokenizer that is here.", id="retrieval.E001")
        ]
    return []


@register()
def reranker_is_there(**kwargs: Any) -> list[CheckMessage]:
    """retrieval.W001: every search would answer without it, and say so."""
    name = environment().memory_reranker
    if not name or name in rerankers.names():
        return []
    installed = ", ".join(rerankers.names()) or "none is installed"
    return [Warning(f"MEMORY_RERANKER names no installed reranker ({installed})", id="retrieval.W001")]
