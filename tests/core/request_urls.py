"""Routes of the tests of request sessions."""

from django.db import connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template import engines
from django.template.response import TemplateResponse
from django.urls import path

from apps.accounts.models import Principal
from apps.core.db.sessions import current, own_transactions, principal_session


def whoami(request: HttpRequest) -> HttpResponse:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_user, coalesce(current_setting('memory.principal_id', true), '')")
        role, principal = cursor.fetchone()
    return JsonResponse({"role": role, "principal": principal, "session": current() is not None})


def fails(request: HttpRequest) -> HttpResponse:
    Principal.objects.create(workspace_id=request.GET["workspace"], subject="token:left-behind")
    raise RuntimeError("after the write")


def rendered_late(request: HttpRequest) -> HttpResponse:
    template = engines["django"].from_string("{% for p in rows %}[{{ p.workspace.name }}]{% endfor %}")
    return TemplateResponse(request, template, {"rows": Principal.objects.defer("hash_key").all()})


@own_transactions
def opens_its_own(request: HttpRequest) -> HttpResponse:
    outside = connection.in_atomic_block
    caller = request.caller  # type: ignore[attr-defined]
    with principal_session(caller.identity), connection.cursor() as cursor:
        cursor.execute("SELECT current_user")
        return JsonResponse({"in_transaction": outside, "role": cursor.fetchone()[0]})


urlpatterns = [
    path("whoami", whoami),
    path("fails", fails),
    path("rendered-late", rendered_late),
    path("own", opens_its_own),
]
