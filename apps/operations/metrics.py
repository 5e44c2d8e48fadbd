"""What `/metrics` shows: counters of the web processes, and what jobs, processes and samples say in the database.

Counters are made with prometheus_client in the app they belong to; under gunicorn its workers share them
(PROMETHEUS_MULTIPROC_DIR). Names begin with `memory_`.
"""

import os
from collections import defaultdict
from collections.abc import Iterator

from django.db.models import Count
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import REGISTRY, GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from apps.operations import samples
from apps.operations.models import NewestSample
from apps.operations.models.processes import ProcessKind
from apps.operations.selectors import freshness, live_processes, open_alarms

PREFIX = "memory_"
MULTIPROCESS = "PROMETHEUS_MULTIPROC_DIR"

REQUESTS = Counter("memory_http_requests_total", "Requests answered.", ("method", "route", "status"))
REQUEST_SECONDS = Histogram("memory_http_request_seconds", "Time to answer.", ("route",))


def exposition() -> bytes:
    """The whole text, in Prometheus' format. Outside of sessions."""
    return generate_latest(_process_registry()) + generate_latest(_database_registry())


def _process_registry() -> CollectorRegistry:
    if MULTIPROCESS not in os.environ:
        return REGISTRY
    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return registry


def _database_registry() -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(DatabaseCollector())
    return registry


class DatabaseCollector(Collector):
    """Reads at each scrape; nothing is kept between two."""

    def collect(self) -> Iterator[GaugeMetricFamily]:
        yield from _jobs()
        yield from _processes()
        yield from _alarms()
        yield from _samples()


def _jobs() -> Iterator[GaugeMetricFamily]:
    age = GaugeMetricFamily("memory_job_age_seconds", "Seconds since the last success.", labels=["job"])
    limit = GaugeMetricFamily("memory_job_age_limit_seconds", "Age that is an alarm.", labels=["job"])
    failures = GaugeMetricFamily("memory_job_failures", "Failures since the last success.", labels=["job"])
    for job in freshness():
        age.add_metric([job.name], job.age)
        limit.add_metric([job.name], job.limit)
        failures.add_metric([job.name], job.consecutive_failures)
    yield from (age, limit, failures)


def _processes() -> Iterator[GaugeMetricFamily]:
    live = GaugeMetricFamily("memory_processes_live", "Processes seen within 60 s.", labels=["kind"])
    found = dict(live_processes().order_by().values_list("kind").annotate(Count("id")))
    for kind in ProcessKind.values:
        live.add_metric([kind], found.get(kind, 0))
    yield live


def _alarms() -> Iterator[GaugeMetricFamily]:
    alarms = GaugeMetricFamily("memory_alarms_open", "Open alarms.", labels=["source", "reason"])
    found = open_alarms().order_by("source", "reason").values_list("source", "reason").annotate(Count("id"))
    for source, reason, count in found:
        alarms.add_metric([source, reason], count)
    yield alarms


def _samples() -> Iterator[GaugeMetricFamily]:
    """The newest sample of each series, and when it was taken."""
    by_name: dict[str, list[NewestSample]] = defaultdict(list)
    for sample in samples.newest():
        by_name[sample.name].append(sample)
    for name, found in by_name.items():
        labels = sorted({label for sample in found for label in sample.labels})
        value = GaugeMetricFamily(PREFIX + name, "Newest sample.", labels=["workspace", *labels])
        taken = GaugeMetricFamily(
            f"{PREFIX}{name}_time_seconds", "When it was taken, Unix time.", labels=["workspace", *labels]
        )
        for sample in found:
            marks = [str(sample.workspace_id or ""), *(str(sample.labels.get(label, "")) for label in labels)]
            value.add_metric(marks, sample.value)
            taken.add_metric(marks, sample.at.timestamp())
        yield from (value, taken)
