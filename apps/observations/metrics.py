"""Counters of the web processes: what the journal did not take leaves no row to count."""

from prometheus_client import Counter

ADMISSIONS = Counter(
    "memory_observation_admissions_total",
    "Searches by whether the journal admitted them, or why not.",
    ("code",),
)
WRITES = Counter(
    "memory_observation_writes_total", "Admitted searches by whether they were stored, or why not.", ("code",)
)
