"""Calls of the API as somebody outside makes them: the whole stack of this process, with a credential or without.

A probe that calls the function behind the door proves nothing of the door. What a probe asks with lives for two
minutes, is used here alone, and is revoked when the probe ends; making and revoking are in the audit log.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from io import BytesIO
from typing import Any
from uuid import UUID
from wsgiref.util import setup_testing_defaults

from django.conf import settings
from django.core.handlers.wsgi import WSGIHandler
from django.db import connections

from apps.accounts.models import Principal
from apps.accounts.services import create_principal, create_token, revoke_token
from apps.core import clock
from apps.core.db.sessions import staff_session

LIVES_FOR = timedelta(minutes=2)
REASON = "probe of the journal"
PROBE = "token:journal-probe"
"""The principal that asks where nobody may be observed. It never takes part."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back; `document` is empty where the body is no JSON object."""

    status: int
    document: Mapping[str, Any]


def post(path: str, body: Mapping[str, Any], headers: Mapping[str, str]) -> Answer:
    """In a thread of its own, so that neither transaction nor identity nor log context of the caller is there."""
    with ThreadPoolExecutor(max_workers=1) as apart:
        return apart.submit(_post, path, json.dumps(body).encode(), headers).result()


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


@contextmanager
def credential(principal_id: UUID, user_id: int, *scopes: str) -> Iterator[dict[str, str]]:
    """Headers with a token of a principal, for an operator of its workspace; outside of sessions. Raises Forbidden."""
    with staff_session(user_id):
        owner = Principal.objects.defer("hash_key").get(pk=principal_id)
        made = create_token(
            name=REASON,
            scopes=list(scopes),
            principal=owner,
            expires_at=clock.now() + LIVES_FOR,
            reason=REASON,
        )
    try:
        yield bearer(made.secret)
    finally:
        with staff_session(user_id):
            revoke_token(made.token.pk, reason=REASON)


def probe_principal(workspace_id: UUID, user_id: int) -> UUID:
    """The principal of the workspace that probes ask as, made at first use; outside of sessions."""
    with staff_session(user_id):
        known = Principal.objects.filter(workspace_id=workspace_id, subject=PROBE)
        found = known.values_list("pk", flat=True).first()
        if found is not None:
            return found
        made = create_principal(
            workspace=workspace_id, subject=PROBE, display_name="Journal probe", reason=REASON
        )
        return UUID(str(made.pk))


def _post(path: str, body: bytes, headers: Mapping[str, str]) -> Answer:
    environ: dict[str, Any] = {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": path,
        "CONTENT_TYPE": "application/json",
        "CONTENT_LENGTH": str(len(body)),
        "HTTP_HOST": _host(),
        "REMOTE_ADDR": "127.0.0.1",
        "wsgi.url_scheme": "https",
        "wsgi.input": BytesIO(body),
        **{f"HTTP_{name.upper().replace('-', '_')}": value for name, value in headers.items()},
    }
    if settings.SECURE_PROXY_SSL_HEADER:
        name, value = settings.SECURE_PROXY_SSL_HEADER
        environ[name] = value
    setup_testing_defaults(environ)
    try:
        response = WSGIHandler()(environ, _start)
        content, status = b"".join(response), response.status_code
        response.close()
    finally:
        connections.close_all()
    try:
        document = json.loads(content)
    except ValueError:
        document = None
    return Answer(status, document if isinstance(document, dict) else {})


def _start(status: str, headers: list[tuple[str, str]], error: Any = None, /) -> Callable[[bytes], object]:
    """The status is the response's; nothing is written besides its body."""
    return BytesIO().write


def _host() -> str:
    """A name that the stack takes for its own."""
    named = [host for host in settings.ALLOWED_HOSTS if not host.startswith((".", "*"))]
    return str(named[0]) if named else "localhost"
