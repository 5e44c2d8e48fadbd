"""The journal's tables.

The law: a record and everything that hangs on it is gone 2160 hours after it was observed, and unreadable from then
on whether or not it is gone. A deadline is only ever moved earlier. Nothing else of a record is ever changed.
"""

from .activation import ActivationRun, Evidence
from .enrolments import Enrolment, KillSwitch
from .erasures import JournalErasure
from .exports import ExportRecord
from .observations import Observation, ObservationFeedback, ObservationText
from .staff import StaffObservation
from .state import MaintenanceState
from .visible import VisibleObservation

__all__ = [
    "ActivationRun",
    "Enrolment",
    "Evidence",
    "ExportRecord",
    "JournalErasure",
    "KillSwitch",
    "MaintenanceState",
    "Observation",
    "ObservationFeedback",
    "ObservationText",
    "StaffObservation",
    "VisibleObservation",
]
