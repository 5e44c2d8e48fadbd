"""Evaluation inputs from imported receipts and label records, in a session of their principal."""

from collections.abc import Iterator, Mapping

from apps.learning.evaluate import EvaluationInputs
from apps.learning.exceptions import NotReproducible
from apps.learning.prme_inputs import evaluation_inputs
from apps.retrieval.exceptions import CorruptReceipt
from apps.retrieval.imported import prme_label_records, prme_receipts
from apps.retrieval.prme.reading import PrmeReceipt


def stored_prme_inputs(
    *, query_groups: Mapping[str, str] | None = None, owner: str | None = None
) -> EvaluationInputs:
    """All that the caller imported, as the same files give it: same checksums, same report, byte for byte.

    `owner` is PRME's user id; without it, that of the receipts. Raises NotReproducible for a receipt that does not
    hold any more, and what `evaluation_inputs` raises.
    """
    return evaluation_inputs(_receipts(), prme_label_records(), query_groups=query_groups, owner=owner)


def _receipts() -> Iterator[PrmeReceipt]:
    try:
        yield from prme_receipts()
    except CorruptReceipt:
        raise NotReproducible("an imported receipt does not hold") from None
