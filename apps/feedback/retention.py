"""Strengths of nothing go; credits go with their trace, by a function that deletion calls first."""

from datetime import timedelta

from apps.operations import expiry

STRENGTHS = "feedback_strength"


def register() -> None:
    """At start-up: what is drained."""
    expiry.register(
        expiry.Expiry(
            STRENGTHS,
            interval=timedelta(days=1),
            function="feedback_prune_strength",
            status_function=None,
            batch=5000,
        )
    )
