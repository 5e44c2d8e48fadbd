"""OpenTelemetry is optional: without its SDK or an endpoint nothing changes; with both, spans are sent."""

import sys
from types import SimpleNamespace
from typing import Any

from opentelemetry import trace

from memory_platform.environment import Environment
from memory_platform.telemetry import EXPORTER, SDK, configure_telemetry


def test_without_an_endpoint_or_an_sdk_it_stays_off(monkeypatch) -> None:
    assert not configure_telemetry(Environment(otel_exporter_otlp_endpoint=None))
    monkeypatch.setitem(sys.modules, f"{SDK}.trace", None)
    assert not configure_telemetry(Environment(otel_exporter_otlp_endpoint="http://collector:4318"))


def test_with_both_it_exports_to_the_endpoint(monkeypatch) -> None:
    made: dict[str, Any] = {}
    provider = SimpleNamespace(add_span_processor=lambda processor: made.update(processor=processor))
    modules = {
        f"{SDK}.trace": SimpleNamespace(
            TracerProvider=lambda resource: made.update(resource=resource) or provider
        ),
        f"{SDK}.trace.export": SimpleNamespace(BatchSpanProcessor=lambda exporter: exporter),
        f"{SDK}.resources": SimpleNamespace(Resource=SimpleNamespace(create=lambda given: given)),
        EXPORTER: SimpleNamespace(OTLPSpanExporter=lambda endpoint: endpoint),
    }
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(trace, "set_tracer_provider", lambda given: made.update(provider=given))
    assert configure_telemetry(
        Environment(otel_exporter_otlp_endpoint="http://collector:4318/", memory_release="abc")
    )
    assert made["provider"] is provider
    assert made["processor"] == "http://collector:4318/v1/traces"
    assert made["resource"]["service.version"] == "abc"
