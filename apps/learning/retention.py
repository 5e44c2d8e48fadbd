"""How long evidence is kept: what is registered with the operations of expiry."""

from datetime import timedelta

from apps.operations.expiry import Expiry, register

EVIDENCE = "learning"


def register_evidence() -> None:
    register(Expiry(EVIDENCE, interval=timedelta(days=1), batch=200, budget=timedelta(minutes=5)))
