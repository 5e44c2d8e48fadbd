"""Every path by which a free text reaches a record that is governed, against every sample of the filter.

Of an application the text is then not kept; of staff it is refused, with the field named. Either way its bytes are
nowhere afterwards: in no table, no log, no error. A path that is not listed in `tests.support.write_paths` fails.
"""

import inspect
import pkgutil
from collections.abc import Iterator
from importlib import import_module
from itertools import product
from typing import Any

import pytest
import structlog
from django.apps import apps
from psycopg import sql

from apps.core.problems import InvalidRequest
from apps.core.schemas import StrictModel
from apps.core.text import PATTERNS, refused_by
from apps.core.text.patterns import Use
from tests.observations.test_filter import FORMS, SAMPLES
from tests.support.factories import World
from tests.support.write_paths import ELSEWHERE, NOT_KEPT, REFUSED
from tests.support.writes import Scene

pytestmark = pytest.mark.django_db(transaction=True)

TEXTS = [FORMS[form](sample) for form in FORMS for sample in SAMPLES.values()]
# One sample of each pattern: that every sample of it is known is the filter's own test.
OF_EACH_PATTERN = {refused_by(sample): sample for sample in SAMPLES.values()}
FEW = [FORMS[form](sample) for form in FORMS for sample in OF_EACH_PATTERN.values()]
QUERIES = {"SearchRequest.query", "apps.traces.services.save.save_trace:query"}
"""What people type, by the hundred: against every sample."""
PARAMETERS = {"reason", "note", "reference", "purpose", "consent_version", "method", "query"}
FIELDS = {"reason", "note", "query", "text"}


@pytest.fixture
def scene(on: World, monkeypatch: pytest.MonkeyPatch) -> Scene:
    """Tasks are sent nowhere: erasures and runs that these calls begin stay where they are."""
    monkeypatch.setattr("apps.operations.tasks_base.PlatformTask.apply_async", lambda *_, **__: None)
    return Scene(on)


def everywhere(owner: Any) -> list[str]:
    """Tables with a row that holds one of the texts."""
    tables = owner.execute(
        "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1"
    ).fetchall()
    holds = sql.SQL(
        "SELECT EXISTS (SELECT FROM {} held, unnest(%s::text[]) sought WHERE strpos(held::text, sought) > 0)"
    )
    return [
        name
        for (name,) in tables
        if owner.execute(holds.format(sql.Identifier(name)), [TEXTS]).fetchone() == (True,)
    ]


def in_logs(lines: list[Any], caplog: pytest.LogCaptureFixture) -> list[str]:
    told = repr(lines) + caplog.text
    return [text for text in TEXTS if text in told or repr(text)[1:-1] in told]


def room(path: str) -> str:
    """The part of the platform that a path belongs to; its paths share a world."""
    return path.split(".")[1] if path.startswith("apps.") else "documents"


@pytest.mark.parametrize("part", sorted({room(path) for path in REFUSED}))
def test_of_staff_every_sample_is_refused_with_the_field_named(
    scene: Scene, admin_connection, caplog, part
) -> None:
    kept = []
    with structlog.testing.capture_logs() as lines:
        for path, text in product([path for path in REFUSED if room(path) == part], FEW):
            try:
                REFUSED[path](scene, text)
            except InvalidRequest as refused:
                told = repr(refused.document()) + str(refused)
                kept += [path] if text in told or not refused.pointer else []
            else:
                kept.append(path)
    assert kept == []
    assert everywhere(admin_connection) == []
    assert in_logs(lines, caplog) == []


@pytest.mark.parametrize("path", NOT_KEPT, ids=str)
def test_of_an_application_no_sample_is_kept(scene: Scene, admin_connection, caplog, path) -> None:
    with structlog.testing.capture_logs() as lines:
        for text in TEXTS if path in QUERIES else FEW:
            NOT_KEPT[path](scene, text)
    assert everywhere(admin_connection) == []
    assert in_logs(lines, caplog) == []


def test_samples_are_of_every_pattern_that_refuses() -> None:
    assert OF_EACH_PATTERN.keys() == {pattern.number for pattern in PATTERNS if pattern.forms_for(Use.FILTER)}


def test_every_path_is_listed() -> None:
    listed = {name.partition(" ")[0] for name in (*REFUSED, *NOT_KEPT)} | ELSEWHERE.keys()
    assert {*taking_texts(), *documents()} - listed == set()


def taking_texts() -> Iterator[str]:
    """Parameters of the services that writes go through, by name."""
    for config in apps.get_app_configs():
        if not config.name.startswith("apps."):
            continue
        for module in pkgutil.walk_packages([config.path], f"{config.name}."):
            if not any(
                part in module.name for part in ("services", "operations", "core.audit", "core.policies")
            ):
                continue
            if "migrations" in module.name or "management" in module.name:
                continue
            for name, function in inspect.getmembers(import_module(module.name), inspect.isfunction):
                if function.__module__ != module.name or name.startswith("_"):
                    continue
                for parameter, found in inspect.signature(function).parameters.items():
                    if parameter in PARAMETERS and "str" in str(found.annotation):
                        yield f"{module.name}.{name}:{parameter}"


def documents() -> Iterator[str]:
    """Members of bodies that are sent to the API."""
    waiting = [StrictModel]
    while waiting:
        model = waiting.pop()
        waiting += model.__subclasses__()
        sent = model.__name__.endswith("Request") or model.__module__.endswith(
            (".requests", "observations.schemas")
        )
        if sent:
            yield from (f"{model.__name__}.{name}" for name in model.model_fields if name in FIELDS)
