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


class ActivationNeeded(StateConflict):
    code, title = "activation_needed", "A stronger mode is published by an approved activation run alone"


class ActivationBlocked(StateConflict):
    """`items` names each part that is missing, failed or stale."""

    code, title = "activation_blocked", "Evidence is missing, failed or stale"


class ActivationState(StateConflict):
    code, title = "activation_state", "The run is not at this step"


class ActivationRunning(StateConflict):
    code, title = "activation_running", "This workspace has an activation run already"


class ApprovalVoid(StateConflict):
    code, title = "approval_void", "What was asked for has changed, or the approval has run out"


class OneEnrolmentNeeded(StateConflict):
    code, title = "one_enrolment_needed", "A pilot has exactly one enrolled principal"


class MachineFirst(StateConflict):
    code, title = "machine_evidence_first", "The probe of this item comes before its attestation"


class AlreadyAttested(StateConflict):
    code, title = "deletion_attested", "The deletion of this copy is attested already"


class NothingExported(StateConflict):
    code, title = "nothing_exported", "This export held nothing, so there is no copy to delete"
