"""Strengths of nothing go; credits go with their trace, by a function that deletion calls first.

Judgments and citations go at the age that the gate policy says (730 days by default), or with an erased trace;
with the last record of a receipt whose trace is gone, the receipt goes. A hold on the trace, or on all traces of the
principal, keeps them. Ablations are an expiry of their own with the same term; one stays while an assessment does.
"""

from datetime import timedelta

from apps.operations import expiry

EVIDENCE = "evidence"
"""The group of what goes by the days of the gate policy; `learning.prune` drains it."""
STRENGTHS, LABELS, ABLATIONS = "feedback_strength", "feedback_labels", "feedback_ablations"


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
    expiry.register(expiry.Expiry(LABELS, interval=timedelta(days=1), group=EVIDENCE))
    expiry.register(expiry.Expiry(ABLATIONS, interval=timedelta(days=1), group=EVIDENCE))
