"""A request runs as its caller from the first query to the last byte of its template."""

import pytest
from django.test import Client

from apps.accounts.models import Principal
from apps.core.db.sessions import staff_session
from tests.support.factories import make_staff, make_token, make_world

pytestmark = [pytest.mark.urls("tests.core.request_urls"), pytest.mark.django_db(transaction=True)]


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def test_anonymous_runs_without_a_session(client: Client) -> None:
    assert client.get("/whoami").json() == {"role": "memory_app", "principal": "", "session": False}


def test_a_token_runs_as_its_principal(client: Client) -> None:
    world = make_world()
    answer = client.get("/whoami", headers=bearer(make_token(world.principal, "search"))).json()
    assert answer == {"role": "memory_api", "principal": str(world.principal.principal_id), "session": True}


def test_the_next_request_on_the_connection_has_nothing_of_it(client: Client) -> None:
    world = make_world()
    client.get("/whoami", headers=bearer(make_token(world.principal, "search")))
    assert client.get("/whoami").json() == {"role": "memory_app", "principal": "", "session": False}


def test_identity_in_other_headers_changes_nothing(client: Client) -> None:
    mine, other = make_world(), make_world()
    headers = bearer(make_token(mine.principal, "search")) | {"X-User-Id": str(other.principal.principal_id)}
    assert client.get("/whoami", headers=headers).json()["principal"] == str(mine.principal.principal_id)
    assert client.get("/whoami", headers={"X-User-Id": "1"}).json()["session"] is False


@pytest.mark.parametrize("header", ["Bearer", "Bearer ", "Bearer nonsense", "Basic YTpi", "nonsense", ""])
def test_a_present_but_invalid_credential_is_an_error_never_anonymous(client: Client, header: str) -> None:
    answer = client.get("/whoami", headers={"Authorization": header})
    assert answer.status_code == 401
    assert answer.json()["code"] == "unauthenticated"
    assert answer["WWW-Authenticate"] == "Bearer"


def test_a_view_that_raises_leaves_no_row(client: Client) -> None:
    world = make_world()
    operator = make_staff(world.workspace, groups=("Operator",))
    client.force_login(operator)
    client.raise_request_exception = False
    answer = client.get("/fails", {"workspace": str(world.workspace.pk)})
    assert answer.status_code == 500
    with staff_session(world.superuser):
        assert not Principal.objects.filter(subject="token:left-behind").exists()


def test_a_template_rendered_after_the_view_still_sees_related_rows(client: Client) -> None:
    world = make_world()
    client.force_login(make_staff(world.workspace, "view_traces"))
    body = client.get("/rendered-late").content.decode()
    assert body.count(f"[{world.workspace.name}]") == 2


def test_a_view_may_open_its_own_sessions(client: Client) -> None:
    world = make_world()
    answer = client.get("/own", headers=bearer(make_token(world.principal, "search")))
    assert answer.json() == {"in_transaction": False, "role": "memory_api"}
