"""Walks every route: who is refused, how, and that nothing but the credential says who calls."""

import pytest
from django.http import HttpResponse
from django.test import Client

from apps.accounts import services
from apps.accounts.api_base import CallerAPIView, OpenAPIView
from apps.accounts.caller import SCOPES
from apps.accounts.grants import GRANTS
from apps.core.db.sessions import staff_session
from tests.support import foreign
from tests.support.factories import make_staff, make_token, make_world
from tests.support.walk import Route, api_views, routes

pytestmark = pytest.mark.django_db

# Routes without a credential, and why.
OPEN = {
    "health/live": "a balancer asks whether the process answers",
    "health/ready": "a balancer asks whether it may send calls",
    "v1/erasures/<uuid:certificate_id>": "names nobody, and the tokens are gone",
    "v1/docs": "documentation",
}
ROUTES = routes()
WITH_BODY = [route for route in ROUTES if route.method in {"post", "put", "patch"}]
WITH_ID = [route for route in ROUTES if route.parameters]


def call(
    route: Route, client: Client, address: str = "", body: object = None, **headers: str
) -> HttpResponse:
    data = {} if body is None else body
    return getattr(client, route.method)(
        address or route.address(),
        data if isinstance(data, str) or route.method != "get" else None,
        content_type="application/json",
        headers=headers,
    )


def bearer(secret: str) -> Client:
    return Client(headers={"Authorization": f"Bearer {secret}"})


def staff_bearer(world, *scopes: str) -> Client:
    user = make_staff(world.workspace, *GRANTS)
    with staff_session(user):
        return bearer(services.create_token(name="t", scopes=list(scopes), user_id=user.pk).secret)


def client_for(route: Route, world, *scopes: str) -> Client:
    """A caller of the kind that the route is for."""
    if "principal" in route.view.kinds:
        return bearer(make_token(world.principal, *scopes))
    return staff_bearer(world, *scopes)


def problem(answer: HttpResponse) -> tuple[int, str]:
    assert answer["Content-Type"] == "application/problem+json", answer.content
    return answer.status_code, answer.json()["code"]


def test_every_view_says_who_may_call_it() -> None:
    views = list(api_views())
    assert views
    for path, _, view in views:
        if path in OPEN:
            continue
        assert issubclass(view, CallerAPIView), f"{path} is open and not on the list"
        assert isinstance(view.required_scope, str) or set(view.required_scope.values()) <= set(SCOPES)
        assert (
            view.required_scope == ""
            or not isinstance(view.required_scope, str)
            or (view.required_scope in SCOPES)
        ), path


def test_the_list_of_open_routes_holds_nothing_more() -> None:
    found = {path for path, _, view in api_views() if issubclass(view, OpenAPIView)}
    assert found <= OPEN.keys()


@pytest.mark.parametrize("route", ROUTES, ids=str)
def test_anonymous_is_401(route: Route) -> None:
    assert problem(call(route, Client())) == (401, "unauthenticated")
    refused = call(route, Client(), Authorization="Bearer none")
    assert problem(refused) == (401, "unauthenticated")


@pytest.mark.parametrize("route", [route for route in ROUTES if route.scope], ids=str)
def test_a_credential_without_the_scope_is_403(route: Route) -> None:
    world = make_world()
    others = [scope for scope in SCOPES if scope != route.scope]
    assert problem(call(route, client_for(route, world, *others))) == (403, "forbidden")


@pytest.mark.parametrize("route", [route for route in ROUTES if len(route.view.kinds) == 1], ids=str)
def test_the_other_kind_of_caller_is_403(route: Route) -> None:
    world = make_world()
    if "principal" in route.view.kinds:
        other = staff_bearer(world, *SCOPES)
    else:
        other = bearer(make_token(world.principal, *SCOPES))
    assert problem(call(route, other)) == (403, "forbidden")


@pytest.mark.parametrize("body", ['{"', "[NaN]", '{"a": 1, "a": 2}', '{"\\u0000": "\\ud800"}', '"text"'])
@pytest.mark.parametrize("route", WITH_BODY, ids=str)
def test_a_malformed_body_is_400(route: Route, body: str) -> None:
    world = make_world()
    answer = call(route, client_for(route, world, *SCOPES), body=body)
    status, code = problem(answer)
    # Where the path names nothing, a route may look there first.
    assert status == 400 or (status == 404 and route.parameters and code.startswith("unknown_"))


@pytest.mark.parametrize("route", WITH_BODY, ids=str)
def test_a_member_that_nobody_knows_is_400(route: Route) -> None:
    """An identity in the body is such a member."""
    world = make_world()
    body = {"principal_id": str(make_world().principal.principal_id), "user_id": 1}
    status, code = problem(call(route, client_for(route, world, *SCOPES), body=body))
    assert status == 400 or (status == 404 and route.parameters and code.startswith("unknown_"))


@pytest.mark.parametrize("route", ROUTES, ids=str)
def test_identities_in_headers_change_nothing(route: Route) -> None:
    world, other = make_world(), make_world()
    client = client_for(route, world, *SCOPES)
    address = route.address()
    forged = {
        "X-User-Id": str(other.principal.principal_id),
        "X-Principal-Id": str(other.principal.principal_id),
        "X-Workspace-Id": str(other.workspace.pk),
        "X-Forwarded-User": other.superuser.username,
        "Remote-User": other.superuser.username,
    }
    if route.method != "get":
        # A call that changes something is compared by how it is refused.
        plain, told = (call(route, client, address, '{"', **headers) for headers in ({}, forged))
    else:
        plain, told = (call(route, client, address, **headers) for headers in ({}, forged))
    assert told.status_code == plain.status_code
    if route.view.__name__ not in VOLATILE:
        assert told.content == plain.content


# Answers that hold the present time.
VOLATILE = {"MetricsView", "JobsView", "MonitorView", "ExportView"}


@pytest.mark.parametrize("route", WITH_ID, ids=str)
def test_a_foreign_id_is_answered_like_an_unknown_one(route: Route) -> None:
    if route.name in foreign.NO_OWNER:
        return
    assert route.name in foreign.MAKERS, f"say in tests/support/foreign.py how to make one for {route.name}"
    theirs, world = make_world(), make_world()
    values = foreign.MAKERS[route.name](theirs)
    client = client_for(route, world, *SCOPES)
    body = foreign.BODIES.get(route.name, {})
    unknown, not_mine = (call(route, client, a, body) for a in (route.address(), route.address(**values)))
    assert unknown.status_code == not_mine.status_code
    assert unknown.content == not_mine.content
    assert 400 <= unknown.status_code < 500


def test_the_erasure_certificate_route_takes_no_credential_into_account() -> None:
    world = make_world()
    address = "/v1/erasures/01a22a46-3065-71d8-b525-920cf19aa9aa"
    anonymous = Client().get(address)
    assert problem(anonymous) == (404, "unknown_erasure")
    assert bearer(make_token(world.principal, "search")).get(address).content == anonymous.content
