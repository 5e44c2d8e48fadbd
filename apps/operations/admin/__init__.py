"""Staff pages of operations: alarms and where they are sent, runs of jobs, legal holds, erasures, retention reviews."""

from .alarms import AlarmAdmin
from .destinations import DestinationAdmin
from .erasures import ErasureCertificateAdmin
from .holds import LegalHoldAdmin
from .jobs import JobRunAdmin
from .reviews import RetentionReviewAdmin
from .verification import AuditTrailAdmin

__all__ = [
    "AlarmAdmin",
    "AuditTrailAdmin",
    "DestinationAdmin",
    "ErasureCertificateAdmin",
    "JobRunAdmin",
    "LegalHoldAdmin",
    "RetentionReviewAdmin",
]
