"""Rows of operations, one module a topic."""

from apps.operations.erasure.models import ErasableTable, ErasureCertificate, ErasureRun
from apps.operations.models.alarms import Alarm, Delivery, Destination
from apps.operations.models.expiry import ExpiryState
from apps.operations.models.holds import HoldItem, LegalHold
from apps.operations.models.jobs import Job, JobRun, Lease, ScheduleDeclaration
from apps.operations.models.processes import Process
from apps.operations.models.reviews import RetentionReview
from apps.operations.models.samples import NewestSample, Sample

__all__ = [
    "Alarm",
    "Delivery",
    "Destination",
    "ErasableTable",
    "ErasureCertificate",
    "ErasureRun",
    "ExpiryState",
    "HoldItem",
    "Job",
    "JobRun",
    "Lease",
    "LegalHold",
    "NewestSample",
    "Process",
    "RetentionReview",
    "Sample",
    "ScheduleDeclaration",
]
