"""Why an evaluation or a holdout cannot be computed, and why a profile cannot be made or moved.

Messages name ids and fields, never a query.
"""

from typing import ClassVar

from apps.core.problems import NotFound, StateConflict


class LearningInputError(ValueError):
    """Base of every refusal of inputs; `code` is stable."""

    code: ClassVar[str] = "invalid_learning_input"


class ConflictingIdentity(LearningInputError):
    """Two different things under one id, or two names for one query."""

    code = "conflicting_identity"


class UnknownReference(LearningInputError):
    """A label, group or trial names a receipt or a node that is not among the inputs."""

    code = "unknown_reference"


class ForeignInput(LearningInputError):
    """A receipt or a label belongs to another owner."""

    code = "foreign_input"


class TooLarge(LearningInputError):
    """More records or pairs than the configuration allows."""

    code = "too_large"


class NotReproducible(LearningInputError):
    """A stored baseline score is not reproduced from the stored features."""

    code = "not_reproducible"


class PairMismatch(LearningInputError):
    """The two arms of a trial differ in something other than their multipliers."""

    code = "pair_mismatch"


class Overlap(LearningInputError):
    """The holdout shares queries, groups or receipts with the evaluation that it is to confirm."""

    code = "overlap"


class CorpusChanged(LearningInputError):
    """The memory changed while the arms of a holdout were run; nothing of it is stored."""

    code = "corpus_changed"


class RetrievalIncomplete(LearningInputError):
    """A channel failed in an arm, so that what it returned says nothing of the multipliers."""

    code = "retrieval_incomplete"


class UnknownEvaluation(NotFound):
    code, title = "unknown_evaluation", "There is no such evaluation"


class UnknownHoldout(NotFound):
    code, title = "unknown_holdout", "There is no such holdout"


class UnknownQuerySet(NotFound):
    code, title = "unknown_query_set", "There is no such query set"


class AlreadyEnded(StateConflict):
    code, title = "already_ended", "It has ended and cannot be cancelled any more"


class NoProposal(StateConflict):
    """The evaluation has not ended well, fitted nothing, or is of another surface than results."""

    code, title = "no_proposal", "This evaluation proposes no multipliers for results"


class QueriesOverlap(StateConflict):
    code, title = "overlap", "The query set shares queries or groups with the evaluation"


class UnknownProfile(NotFound):
    code, title = "unknown_profile", "There is no such ranking profile"


class UnknownProposal(NotFound):
    code, title = "unknown_proposal", "There is no such proposal to activate a profile"


class NotPromotable(StateConflict):
    """The evidence is not enough, or was made under something that no longer holds; `reason` says what."""

    code, title = "not_promotable", "This evidence does not carry a ranking profile"


class EvidenceNotReproducible(StateConflict):
    """A label was withdrawn, a receipt erased: what is stored does not give its report again."""

    code, title = "not_reproducible", "The stored evidence does not reproduce"


class WrongBaseline(StateConflict):
    """A profile improves upon one state, and another one is meant or active."""

    code, title = "wrong_baseline", "The profile was not measured against this baseline"


class StaleState(StateConflict):
    """The pointer is not where the caller saw it; `active` is what is active now, null at base."""

    code, title = "stale_state", "Another profile is active than was expected"


class NeverActive(StateConflict):
    """Only what was active before on this pointer can be gone back to."""

    code, title = "never_active", "The profile was never active here"


class ApprovalRequired(StateConflict):
    """Another person has to approve what somebody proposed; `reason` says what is missing."""

    code, title = "approval_required", "The activation needs the approval of a second person"
