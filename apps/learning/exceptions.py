"""Why an evaluation or a holdout cannot be computed. Messages name ids and fields, never a query."""

from typing import ClassVar


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
