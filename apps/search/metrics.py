"""Counters of the web processes: answers without a trace leave no row to count."""

from prometheus_client import Counter

SEARCHES = Counter(
    "memory_searches_total", "Searches answered, by how their recording went.", ("mode", "recording")
)
PROFILES = Counter(
    "memory_search_profiles_total",
    "Ranked searches by what became of the active profile, and why it did not apply.",
    ("status", "reason"),
)
