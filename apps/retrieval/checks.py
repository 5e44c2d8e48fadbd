"""Start-up refuses a tokenizer that is named and not there."""

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from apps.retrieval.packing.installed import TokenizerMissing, load


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
