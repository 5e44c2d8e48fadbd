"""How long evidence is kept: what is registered with the operations of expiry."""

from datetime import timedelta

from apps.feedback.retention import EVIDENCE
from apps.operations.expiry import Expiry, register

LEARNING = "learning"
"""Evaluations, holdouts and query sets."""


def register_evidence() -> None:
    register(Expiry(LEARNING, interval=timedelta(days=1), batch=200, group=EVIDENCE))
