"""Problems of the journal, and why a record was not written."""

from apps.core.problems import InvalidRequest, StateConflict, Unavailable


class NotStored(Exception):
    """An admitted search does not become a record. `code` is counted and never answered."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class SnapshotMismatch(NotStored):
    """The answer names an id that was not ranked."""

    def __init__(self) -> None:
        super().__init__("observation_snapshot_mismatch")


class RoleNotIsolated(NotStored):
    """The login could see or change what row policies keep from it."""

    def __init__(self) -> None:
        super().__init__("observation_role_not_isolated")


class InvalidFeedback(InvalidRequest):
    code, title = "invalid_observation_feedback", "The feedback is not well formed"


class JournalClosed(Unavailable):
    code, title = "journal_closed", "The journal is closed after a restore"


class AlreadyEnrolled(StateConflict):
    code, title = "already_enrolled", "This principal takes part already"


class KillSwitchThrown(StateConflict):
    code, title = "kill_switch_thrown", "The kill switch is on already"
