"""Counters of the web processes: answers without a trace leave no row to count."""

from prometheus_client import Counter

SEARCHES = Counter(
    "memory_searches_total", "Searches answered, by how their recording went.", ("mode", "recording")
)
