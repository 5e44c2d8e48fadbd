"""Calls of the API as a principal would make them."""

import json
from typing import Any

from django.db import connection
from django.http import HttpResponse
from django.test import Client

from apps.core.db.identity import PrincipalIdentity
from tests.support.factories import make_token


class Api:
    """A client that holds a token of one principal."""

    def __init__(self, principal: PrincipalIdentity, *scopes: str, superuser: Any = None) -> None:
        self.client = Client(raise_request_exception=False)
        secret = make_token(principal, *(scopes or ("search", "feedback")), superuser=superuser)
        self.headers = {"Authorization": f"Bearer {secret}"}

    def get(self, path: str, **query: Any) -> HttpResponse:
        return self._whole(self.client.get(path, query, headers=self.headers))

    def post(self, path: str, body: Any, **headers: str) -> HttpResponse:
        data = body if isinstance(body, bytes) else json.dumps(body)
        return self._whole(
            self.client.post(path, data, content_type="application/json", headers=self.headers | headers)
        )

    def delete(self, path: str) -> HttpResponse:
        return self._whole(self.client.delete(path, headers=self.headers))

    @staticmethod
    def _whole(response: HttpResponse) -> HttpResponse:
        """DRF marks the transaction around a failed view for rollback; here that is the test's own."""
        if connection.in_atomic_block:
            connection.set_rollback(False)
        return response


def code_of(response: HttpResponse) -> str:
    return str(json.loads(response.content)["code"])
