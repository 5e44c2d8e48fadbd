"""OpenTelemetry, where its SDK and exporter are installed and an endpoint is named; elsewhere spans cost nothing.

Spans are made by the request middleware and by the runs of jobs, with routes, names, codes and times alone: no
automatic instrumentation, which would send statements and addresses along.
"""

import importlib

from opentelemetry import trace

from memory_platform.environment import Environment

SDK = "opentelemetry.sdk"
EXPORTER = "opentelemetry.exporter.otlp.proto.http.trace_exporter"


def configure_telemetry(env: Environment) -> bool:
    """Send spans from now on; says whether it does. Called once in each process that serves, after a fork."""
    if env.otel_exporter_otlp_endpoint is None:
        return False
    try:
        sdk = importlib.import_module(f"{SDK}.trace")
        export = importlib.import_module(f"{SDK}.trace.export")
        resources = importlib.import_module(f"{SDK}.resources")
        exporter = importlib.import_module(EXPORTER)
    except ModuleNotFoundError:
        return False
    resource = resources.Resource.create(
        {"service.name": "memory-platform", "service.version": env.memory_release or "unknown"}
    )
    provider = sdk.TracerProvider(resource=resource)
    endpoint = f"{env.otel_exporter_otlp_endpoint.rstrip('/')}/v1/traces"
    provider.add_span_processor(export.BatchSpanProcessor(exporter.OTLPSpanExporter(endpoint=endpoint)))
    trace.set_tracer_provider(provider)
    return True
