"""Errors of outcomes. The code is the whole message."""

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
