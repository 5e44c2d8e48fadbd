"""Health and metrics. Live and ready are open and say codes alone; the others need the scope `monitor`."""

from typing import Any

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from prometheus_client import CONTENT_TYPE_LATEST
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.api_base import CallerAPIView, OpenAPIView
from apps.core import clock
from apps.operations import health, metrics
from apps.operations.models import Process
from apps.operations.selectors import Freshness, freshness, live_processes

OK, FAILING = "ok", "failing"


@extend_schema(exclude=True)
class LiveView(OpenAPIView):
    """This process answers. Touches nothing else."""

    def get(self, request: Request) -> Response:
        return Response({"status": OK})


@extend_schema(exclude=True)
class ReadyView(OpenAPIView):
    """Database, roles, migrations and broker; 503 when one is not as it should be."""

    def get(self, request: Request) -> Response:
        checks = health.readiness()
        ready = all(answer == health.OK for answer in checks.values())
        return Response({"status": OK if ready else FAILING, "checks": checks}, status=200 if ready else 503)


@extend_schema(exclude=True)
class JobsView(CallerAPIView):
    """Freshness of every scheduled job, and the live processes; 503 when a job is overdue."""

    required_scope = "monitor"

    def get(self, request: Request) -> Response:
        jobs = freshness()
        overdue = any(job.overdue for job in jobs)
        body = {
            "status": FAILING if overdue else OK,
            "jobs": [_job(job) for job in jobs],
            "processes": [_process(process) for process in live_processes()],
        }
        return Response(body, status=503 if overdue else 200)


@extend_schema(exclude=True)
class MetricsView(CallerAPIView):
    """Prometheus' text format."""

    required_scope = "monitor"

    def get(self, request: Request) -> HttpResponse:
        return HttpResponse(metrics.exposition(), content_type=CONTENT_TYPE_LATEST)


def _job(job: Freshness) -> dict[str, Any]:
    return {
        "job": job.name,
        "schedule": job.schedule,
        "last_success_at": clock.iso(job.last_success_at) if job.last_success_at else None,
        "age_seconds": round(job.age),
        "limit_seconds": round(job.limit),
        "overdue": job.overdue,
        "consecutive_failures": job.consecutive_failures,
        "last_failure_code": job.last_failure_code or None,
    }


def _process(process: Process) -> dict[str, Any]:
    return {
        "kind": process.kind,
        "release": process.release or None,
        "started_at": clock.iso(process.started_at),
        "seen_at": clock.iso(process.seen_at),
    }
