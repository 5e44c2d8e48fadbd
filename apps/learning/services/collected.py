"""Pairs of receipts as a holdout compares them: just answered, stored before, or named by a caller."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from apps.core.db.sessions import current_principal
from apps.core.ids import uuid7
from apps.learning.bootstrap import Resampling
from apps.learning.exceptions import NotReproducible, UnknownReference
from apps.learning.metrics import retrieval_metrics
from apps.learning.models import EvaluationResult, Holdout, HoldoutPair, JudgedQuery
from apps.learning.native_arms import arm_of, judged_order, node_order, trial_of
from apps.learning.pairs import Arm, HoldoutInputs
from apps.learning.prme_holdout import HoldoutArguments
from apps.learning.prme_holdout import holdout_inputs as prme_inputs
from apps.learning.schemas import HoldoutConfig, HoldoutTrial, RankingMultipliers
from apps.learning.scorer import FEATURES
from apps.learning.services.arms import AnsweredArm, Answers
from apps.retrieval.exceptions import CorruptReceipt
from apps.retrieval.imported import own_receipts, read_row
from apps.retrieval.models import Receipt
from apps.retrieval.prme.reading import PrmeReceipt
from apps.retrieval.receipts.replay import verified
from apps.retrieval.receipts.schemas import ReceiptDocument

# Only what the platform says of the memory itself is a digest; a caller who says nothing has said this.
UNSAID_MEMORY = "0" * 64
_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class CollectedPair:
    """A trial with both arms; `documents` are those of the rows of each arm, empty where rows are documents."""

    trial: HoldoutTrial
    baseline: Arm
    candidate: Arm
    query_name: str = ""
    documents: tuple[Sequence[int], Sequence[int]] = ((), ())


@dataclass(frozen=True, slots=True)
class Collected:
    """All pairs of a holdout, the memory that answered them, and how their interval is drawn."""

    pairs: tuple[CollectedPair, ...]
    memory_artifact_sha256: str
    resampling: Resampling = "pcg64_multiply_shift"
    owner: str | None = None
    input_checksum: str | None = None


def collected_from_answers(answers: Answers) -> Collected:
    """What the platform has just answered."""
    owner = _owner()
    pairs = []
    for pair in answers.pairs:
        arms = [_answered_arm(arm, pair.query, owner) for arm in (pair.baseline, pair.candidate)]
        trial = trial_of(
            pair.query, baseline_request_id=arms[0].request_id, candidate_request_id=arms[1].request_id
        )
        documents = (pair.baseline.documents, pair.candidate.documents)
        pairs.append(CollectedPair(trial, arms[0], arms[1], pair.query.name, documents))
    return Collected(tuple(pairs), answers.corpus_digest)


def collected_from_receipts(holdout: Holdout) -> Collected:
    """What the platform answered before, out of its stored receipts and judgments. Raises NotReproducible."""
    owner = _owner()
    queries = {query.name: query for query in JudgedQuery.objects.filter(query_set_id=holdout.query_set_id)}
    pairs, digests = [], set()
    stored = list(HoldoutPair.objects.filter(holdout_id=holdout.pk).order_by("position"))
    documents = _documents(
        [i for pair in stored for i in (pair.baseline_receipt_id, pair.candidate_receipt_id)]
    )
    for pair in stored:
        query = queries[pair.query_name]
        arms = []
        for receipt_id, rows in (
            (pair.baseline_receipt_id, pair.baseline_documents),
            (pair.candidate_receipt_id, pair.candidate_documents),
        ):
            if receipt_id not in documents:
                raise NotReproducible("a receipt of the holdout is gone")
            document, checksum = documents[receipt_id]
            digests.add(document.corpus.digest)
            order = judged_order(document, rows, query)
            arms.append(arm_of(document, owner=owner, checksum=checksum, order=order))
        trial = trial_of(
            query,
            baseline_request_id=pair.baseline_request_id,
            candidate_request_id=pair.candidate_request_id,
        )
        places = (pair.baseline_documents, pair.candidate_documents)
        pairs.append(CollectedPair(trial, arms[0], arms[1], query.name, places))
    if len(digests) != 1:
        raise NotReproducible("the receipts of the holdout are not of one memory")
    return Collected(tuple(pairs), digests.pop())


def collected_from_trials(holdout: Holdout) -> Collected:
    """What a caller names: stored receipts of the principal, each row its own document.

    Raises UnknownReference, NotReproducible.
    """
    trials = [HoldoutTrial.model_validate(trial, strict=False) for trial in holdout.trials]
    named = {name: _as_id(name) for trial in trials for name in _names(trial)}
    imported = _imported([receipt_id for receipt_id in named.values() if receipt_id is not None])
    if imported:
        return _collected_from_imported(holdout, trials, imported)
    owner = _owner()
    documents = _documents(named.values())
    arms = {
        name: arm_of(document, owner=owner, checksum=checksum, order=node_order(document))
        for name, receipt_id in named.items()
        if receipt_id in documents
        for document, checksum in [documents[receipt_id]]
    }
    if len(arms) != len(named):
        raise UnknownReference("a trial names an unknown receipt")
    pairs = tuple(
        CollectedPair(trial, arms[trial.baseline_request_id], arms[trial.candidate_request_id])
        for trial in trials
    )
    return Collected(pairs, holdout.memory_artifact_sha256 or UNSAID_MEMORY)


def _imported(request_ids: Sequence[UUID]) -> list[PrmeReceipt]:
    """Imported receipts of the principal by request id. Raises NotReproducible."""
    try:
        return [read_row(row) for row in own_receipts().filter(request_id__in=request_ids)]
    except CorruptReceipt:
        raise NotReproducible("an imported receipt does not hold") from None


def _collected_from_imported(
    holdout: Holdout, trials: Sequence[HoldoutTrial], receipts: Sequence[PrmeReceipt]
) -> Collected:
    """Pairs that PRME wrote, evaluated as its own holdout would."""
    owner, memory = receipts[0].document.user_id, holdout.memory_artifact_sha256 or UNSAID_MEMORY
    arguments = HoldoutArguments(
        user_id=owner,
        scopes=None if holdout.scopes is None else tuple(holdout.scopes),
        proposal_input_checksum=_proposal(holdout),
        memory_artifact_sha256=memory,
        baseline_multipliers=multipliers_of(holdout.baseline_multipliers),
        candidate_multipliers=multipliers_of(holdout.candidate_multipliers),
        trials=tuple(trials),
    )
    config = HoldoutConfig.model_validate_json(json.dumps(holdout.config))
    inputs = prme_inputs(receipts, arguments, config)
    pairs = tuple(
        CollectedPair(trial, inputs.arms[trial.baseline_request_id], inputs.arms[trial.candidate_request_id])
        for trial in trials
    )
    return Collected(pairs, memory, "python_mersenne", owner, inputs.input_checksum)


def holdout_inputs(holdout: Holdout, collected: Collected) -> HoldoutInputs:
    """Inputs of `evaluate_holdout`."""
    arms = [arm for pair in collected.pairs for arm in (pair.baseline, pair.candidate)]
    return HoldoutInputs(
        owner=collected.owner or _owner(),
        scopes=None if holdout.scopes is None else tuple(holdout.scopes),
        arms={arm.request_id: arm for arm in arms},
        trials=[pair.trial for pair in collected.pairs],
        proposal_input_checksum=_proposal(holdout),
        memory_artifact_sha256=collected.memory_artifact_sha256,
        baseline_multipliers=multipliers_of(holdout.baseline_multipliers),
        candidate_multipliers=multipliers_of(holdout.candidate_multipliers),
        resampling=collected.resampling,
        input_checksum=collected.input_checksum,
    )


def _proposal(holdout: Holdout) -> str:
    """Checksum of what the multipliers were fitted to."""
    result = EvaluationResult.objects.only("input_checksum").get(evaluation_id=holdout.evaluation_id)
    return str(result.input_checksum)


def multipliers_of(values: Sequence[float]) -> RankingMultipliers:
    """From six numbers in the order of the features."""
    return RankingMultipliers(**dict(zip(FEATURES, values, strict=True)))


def pair_rows(holdout: Holdout, collected: Collected, *, k: int) -> list[HoldoutPair]:
    """The rows to be stored, with what each arm reached by itself."""
    native = collected.owner is None
    return [
        _pair_row(holdout, position, pair, k, native=native) for position, pair in enumerate(collected.pairs)
    ]


def _pair_row(holdout: Holdout, position: int, pair: CollectedPair, k: int, *, native: bool) -> HoldoutPair:
    before, after = (
        retrieval_metrics(arm.order, pair.trial.gains, k) for arm in (pair.baseline, pair.candidate)
    )
    return HoldoutPair(
        id=uuid7(),
        workspace_id=holdout.workspace_id,
        principal_id=holdout.principal_id,
        holdout=holdout,
        position=position,
        query_name=pair.query_name,
        group_id=pair.trial.group_id,
        slices=list(pair.trial.slices),
        baseline_request_id=pair.baseline.request_id,
        candidate_request_id=pair.candidate.request_id,
        baseline_receipt_id=_as_id(pair.baseline.request_id) if native else None,
        candidate_receipt_id=_as_id(pair.candidate.request_id) if native else None,
        baseline_documents=list(pair.documents[0]),
        candidate_documents=list(pair.documents[1]),
        baseline_recall=before.recall,
        candidate_recall=after.recall,
        baseline_ndcg=min(1.0, before.ndcg),
        candidate_ndcg=min(1.0, after.ndcg),
        baseline_mrr=before.mrr,
        candidate_mrr=after.mrr,
    )


def _answered_arm(answered: AnsweredArm, query: JudgedQuery, owner: str) -> Arm:
    receipt = answered.receipt
    document = _verified(receipt.document, receipt.checksum)
    order = judged_order(document, answered.documents, query)
    return arm_of(document, owner=owner, checksum=receipt.checksum, order=order)


def _documents(receipt_ids: Iterable[UUID | None]) -> Mapping[UUID | None, tuple[ReceiptDocument, str]]:
    """Receipts of the principal by id, each verified and replayed. Raises NotReproducible."""
    wanted = [receipt_id for receipt_id in receipt_ids if receipt_id is not None]
    owner = current_principal().principal_id
    found: dict[UUID | None, tuple[ReceiptDocument, str]] = {}
    for start in range(0, len(wanted), _AT_ONCE):
        rows = Receipt.objects.filter(principal_id=owner, pk__in=wanted[start : start + _AT_ONCE])
        for key, document, checksum in rows.values_list("id", "document", "checksum"):
            found[key] = _verified(document.encode(), checksum), checksum
    return found


def _verified(document: bytes, checksum: str) -> ReceiptDocument:
    try:
        return verified(document, checksum)
    except CorruptReceipt:
        raise NotReproducible("a stored receipt does not hold") from None


def _names(trial: HoldoutTrial) -> tuple[str, str]:
    return trial.baseline_request_id, trial.candidate_request_id


def _as_id(name: str) -> UUID | None:
    try:
        return UUID(name)
    except ValueError:
        return None


def _owner() -> str:
    return str(current_principal().principal_id)
