"""Calls made up from the schema: no error of the server, and answers as the schema says."""

import json

import pytest
import schemathesis
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.validation import validate_schema
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import CHECKS

from apps.accounts import services
from apps.accounts.caller import SCOPES
from apps.core.db.sessions import staff_session
from memory_platform.wsgi import application
from scripts.write_openapi import PUBLISHED, as_text, generated
from tests.support.factories import make_staff, make_token, make_world
from tests.support.walk import PARAMETER, api_views

pytestmark = pytest.mark.django_db(transaction=True)

DOCUMENT = SchemaGenerator().get_schema(request=None, public=True)
schema = schemathesis.openapi.from_dict(DOCUMENT)
schema.app = application
EXAMPLES = 12
WANTED = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
)


@pytest.fixture
def credentials() -> dict[str, str]:
    """A token of each kind of caller, with every scope."""
    world = make_world()
    user = make_staff(world.workspace, "view_traces", "curate", "audit")
    with staff_session(user):
        staff = services.create_token(name="t", scopes=list(SCOPES), user_id=user.pk).secret
    return {"principal": make_token(world.principal, *SCOPES), "staff": staff}


KINDS = {
    "/" + PARAMETER.sub(lambda found: "{" + found["name"] + "}", path): getattr(view, "kinds", ("principal",))
    for path, _, view in api_views()
}


def kind_of(case) -> str:
    """The kind of caller that the route is for."""
    return "principal" if "principal" in KINDS[case.path] else "staff"


def test_the_schema_is_valid_and_names_every_operation() -> None:
    validate_schema(DOCUMENT)
    operations = [o for path in DOCUMENT["paths"].values() for o in path.values() if "operationId" in o]
    names = [operation["operationId"] for operation in operations]
    assert len(names) == len(set(names))


def test_the_published_document_is_the_generated_one(client) -> None:
    """After a change of the API: `make openapi`."""
    published = PUBLISHED.read_text(encoding="utf-8")
    assert published == as_text(generated())
    assert json.loads(published) == client.get("/v1/schema", headers={"accept": "application/json"}).json()


@schema.parametrize()
@settings(
    max_examples=EXAMPLES,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_answers_are_as_the_schema_says(case, credentials) -> None:
    checks = [CHECKS.get_one(name) for name in WANTED]
    headers = {"Authorization": f"Bearer {credentials[kind_of(case)]}"}
    case.call_and_validate(headers=headers, checks=checks)
