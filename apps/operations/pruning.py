"""What operations keep for a fixed term and then drop. The terms stand in the functions in PostgreSQL.

An app whose own rows have such a term (audit, certificates: 1826 days) adds a kind in the same way.
"""

from datetime import timedelta

from apps.operations.expiry import Expiry, register

GROUP = "prune"
# Deliveries before alarms, which they name; names sort in the order in which they are pruned.
PRUNED = (
    "deliveries",
    "alarms",
    "samples",
    "newest_samples",
    "job_runs",
    "processes",
    "leases",
    "holds",
    "certificates",
)


def register_prune(name: str, function: str) -> None:
    """Have `operations.prune` drain `function(batch int, cutoff timestamptz)` every night."""
    register(
        Expiry(
            name,
            interval=timedelta(days=1),
            function=function,
            status_function=None,
            group=GROUP,
            budget=timedelta(minutes=5),
            batch=5000,
        )
    )


def register_own() -> None:
    for name in PRUNED:
        register_prune(f"prune_{name}", f"operations_prune_{name}")
