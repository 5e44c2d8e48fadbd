"""Views of the API: kinds of caller, scopes, CSRF, and what answers where no view does."""

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client, override_settings
from django.urls import path
from drf_spectacular.utils import extend_schema
from pydantic import BaseModel
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts import services
from apps.accounts.api_base import OpenAPIView, PrincipalAPIView, StaffAPIView
from apps.core.db.sessions import staff_session
from memory_platform import urls as platform_urls
from tests.support.factories import make_staff, make_token, make_world

pytestmark = pytest.mark.django_db


class Echo(BaseModel):
    said: str
    loud: bool = False


class MineView(PrincipalAPIView):
    required_scope = {"GET": "search", "POST": "feedback"}

    @extend_schema(operation_id="mine_read", responses=Echo)
    def get(self, request: Request) -> Response:
        return Response({"said": str(self.principal.principal_id), "loud": False})

    @extend_schema(operation_id="mine_write", request=Echo, responses={200: Echo})
    def post(self, request: Request) -> Response:
        return Response({"said": request.data["said"], "loud": True})


class TheirsView(StaffAPIView):
    required_scope = "curation"

    @extend_schema(responses=Echo)
    def get(self, request: Request) -> Response:
        return Response({"user": self.staff.user_id, "name": request.user.username})

    @extend_schema(request=Echo, responses=Echo)
    def post(self, request: Request) -> Response:
        return Response({"user": self.staff.user_id})


class DoorView(OpenAPIView):
    @extend_schema(responses=Echo)
    def get(self, request: Request) -> Response:
        return Response({})


class Routes:
    urlpatterns = [
        path("v1/mine", MineView.as_view()),
        path("v1/theirs", TheirsView.as_view()),
        path("v1/door", DoorView.as_view()),
        *platform_urls.urlpatterns,
    ]
    handler404 = platform_urls.handler404
    handler500 = platform_urls.handler500


@pytest.fixture(autouse=True)
def _routes():
    with override_settings(ROOT_URLCONF=Routes):
        yield


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def staff_token(user: User, *scopes: str) -> str:
    with staff_session(user):
        return services.create_token(name="t", scopes=list(scopes), user_id=user.pk).secret


def problem(response: HttpResponse) -> tuple[int, str]:
    assert response["Content-Type"] == "application/problem+json"
    return response.status_code, response.json()["code"]


def test_a_principal_is_let_in_by_scope() -> None:
    world = make_world()
    client = Client(headers=bearer(make_token(world.principal, "search")))
    assert client.get("/v1/mine").json()["said"] == str(world.principal.principal_id)
    assert problem(client.post("/v1/mine", {"said": "a"}, "application/json")) == (403, "forbidden")
    assert problem(client.delete("/v1/mine"))[0] in {403, 405}


def test_anonymous_is_401_and_the_other_kind_403() -> None:
    world = make_world()
    anonymous = Client().get("/v1/mine")
    assert problem(anonymous) == (401, "unauthenticated")
    assert anonymous["WWW-Authenticate"] == "Bearer"
    theirs = Client(headers=bearer(make_token(world.principal, "search", "curation")))
    assert problem(theirs.get("/v1/theirs")) == (403, "forbidden")
    staff = make_staff(world.workspace, "curate")
    mine = Client(headers=bearer(staff_token(staff, "search", "curation")))
    assert problem(mine.get("/v1/mine")) == (403, "forbidden")
    assert mine.get("/v1/theirs").json() == {"user": staff.pk, "name": staff.username}


def test_a_token_without_scopes_can_do_nothing() -> None:
    world = make_world()
    client = Client(headers=bearer(make_token(world.principal)))
    assert problem(client.get("/v1/mine")) == (403, "forbidden")


def test_a_cookie_needs_its_csrf_token() -> None:
    world = make_world()
    staff = make_staff(world.workspace, "curate")
    client = Client(enforce_csrf_checks=True)
    client.force_login(staff)
    assert client.get("/v1/theirs").status_code == 200
    assert problem(client.post("/v1/theirs", {}, "application/json")) == (403, "csrf_failed")
    token = "a" * 32
    client.cookies["csrftoken"] = token
    answer = client.post("/v1/theirs", {}, "application/json", headers={"X-CSRFToken": token})
    assert answer.json() == {"user": staff.pk}


def test_a_bearer_needs_no_csrf_token_and_outweighs_the_cookie() -> None:
    world = make_world()
    client = Client(enforce_csrf_checks=True, headers=bearer(make_token(world.principal, "feedback")))
    client.force_login(make_staff(world.workspace, "curate"))
    assert client.post("/v1/mine", {"said": "a"}, "application/json").status_code == 200
    assert problem(client.get("/v1/theirs")) == (403, "forbidden")


def test_an_invalid_credential_is_never_anonymous() -> None:
    world = make_world()
    client = Client()
    client.force_login(make_staff(world.workspace, "curate"))
    for header in ("Bearer mp_wrong", "Bearer", "Basic YTpi", "", "Bearer a b", "Token x"):
        for address in ("/v1/theirs", "/v1/door", "/v1/schema"):
            answer = client.get(address, headers={"Authorization": header})
            assert problem(answer) == (401, "unauthenticated"), header


def test_a_credential_does_not_open_the_admin() -> None:
    world = make_world()
    client = Client()
    client.force_login(world.superuser)
    answer = client.get("/admin/", headers=bearer(make_token(world.principal, "search")))
    assert answer.status_code == 302
    assert "/admin/login/" in answer["Location"]


@pytest.mark.parametrize("address", ["/v1/nowhere", "/v1/", "/v1", "/v1/mine/", "/v1/admin/x"])
def test_an_unknown_address_is_a_problem_document(address) -> None:
    for method in ("get", "post"):
        assert problem(getattr(Client(enforce_csrf_checks=True), method)(address)) == (404, "unknown_route")


def test_the_schema_knows_bodies_answers_scopes_and_refusals() -> None:
    schema = Client().get("/v1/schema").json()
    post = schema["paths"]["/v1/mine"]["post"]
    sent = post["requestBody"]["content"]["application/json"]["schema"]["$ref"]
    got = post["responses"]["200"]["content"]["application/json"]["schema"]["$ref"]
    parts = schema["components"]["schemas"]
    assert parts[sent.rsplit("/", 1)[1]]["required"] == ["said"]
    assert (sent.rsplit("/", 1)[1], got.rsplit("/", 1)[1]) == ("EchoRequest", "Echo")
    assert {"400", "401", "403", "429", "default"} <= post["responses"].keys()
    assert "application/problem+json" in post["responses"]["401"]["content"]
    assert "`feedback`" in post["description"]
    assert post["security"] == [{"bearer": []}]
    assert schema["paths"]["/v1/door"]["get"].get("security", []) in ([], [{}])


def test_the_documentation_loads_nothing_from_elsewhere() -> None:
    page = Client().get("/v1/docs").content.decode()
    assert "//cdn" not in page
    assert "drf_spectacular_sidecar" in page
