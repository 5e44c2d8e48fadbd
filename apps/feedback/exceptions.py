"""Errors of outcomes, judgments and citations. The code is the whole message."""

from apps.core.problems import NotFound, StaleVersion, StateConflict, Unprocessable


class UnknownConfirmation(NotFound):
    code, title = "unknown_confirmation", "The trace has no such confirmation"


class SourceIdsRequired(Unprocessable):
    code, title = "source_ids_required", "A confirmation names its sources, and nothing else"


class ConfirmationIdRequired(Unprocessable):
    code, title = "confirmation_id_required", "A reversal names its confirmation, and nothing else"


class UsedSourceRequired(StateConflict):
    code, title = "used_source_required", "Only a source that was used in this trace can be confirmed"


class StalePreview(StaleVersion):
    """The credits of the receipt, or the strength of their edges, are not those that the person saw."""


class NodeNotInReceipt(Unprocessable):
    code, title = "node_not_in_receipt", "The receipt did not return that node"


class NotInContext(Unprocessable):
    code, title = "not_in_context", "That is not in the context of the receipt"


class NoContent(Unprocessable):
    code, title = "no_content", "That entry of the context is a reference without content"


class UnknownJudgment(Unprocessable):
    code, title = "unknown_judgment", "The receipt has no such record of labels"


class NodeNotInJudgment(Unprocessable):
    code, title = "node_not_in_judgment", "The record does not label that node"


class OtherAnnotator(StateConflict):
    code, title = "other_annotator", "A correction is by the same annotator, on the same surface"


class UnknownAblation(NotFound):
    code, title = "unknown_ablation", "There is no such ablation"


class UnknownCitation(Unprocessable):
    code, title = "unknown_citation", "There is no such citation set"


class NotCited(Unprocessable):
    code, title = "not_cited", "The citation set does not cite the entry that was taken out"


class SeveralTargets(Unprocessable):
    code, title = "several_targets", "An ablation of one entry can be assessed"
