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


def counted(counter: Counter) -> dict[str, int]:
    """What this process has counted since it began, by code."""
    return {
        sample.labels["code"]: int(sample.value)
        for metric in counter.collect()
        for sample in metric.samples
        if sample.name.endswith("_total")
    }
