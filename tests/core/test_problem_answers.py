"""Errors of API views as problem documents, and how views read bodies."""

import json
from typing import Any

import psycopg
import pytest
from django.core.exceptions import ObjectDoesNotExist, RequestDataTooBig, SuspiciousOperation
from django.core.exceptions import PermissionDenied as DjangoPermissionDenied
from django.db import InterfaceError, OperationalError
from django.http import Http404
from rest_framework import exceptions, serializers
from rest_framework.response import Response
from rest_framework.test import APIRequestFactory
from rest_framework.views import APIView

from apps.core import problems
from apps.core.api_parsers import StrictJSONParser
from apps.core.problems_drf import exception_handler

SECRET = "hunter2-driver-message"


def answer(exc):
    response = exception_handler(exc, {})
    assert response is not None
    body = json.loads(response.content)
    assert response["Content-Type"] == "application/problem+json"
    assert body["status"] == response.status_code
    assert body["type"].endswith(body["code"])
    assert SECRET not in response.content.decode()
    return response, body


@pytest.mark.parametrize(
    ("exc", "status", "code"),
    [
        (exceptions.ParseError(SECRET), 400, "invalid_request"),
        (exceptions.NotAuthenticated(SECRET), 401, "unauthenticated"),
        (exceptions.AuthenticationFailed(SECRET), 401, "unauthenticated"),
        (exceptions.PermissionDenied(SECRET), 403, "forbidden"),
        (DjangoPermissionDenied(SECRET), 403, "forbidden"),
        (exceptions.NotFound(SECRET), 404, "not_found"),
        (Http404(SECRET), 404, "not_found"),
        (ObjectDoesNotExist(SECRET), 404, "not_found"),
        (exceptions.MethodNotAllowed("PATCH"), 405, "method_not_allowed"),
        (exceptions.NotAcceptable(SECRET), 406, "not_acceptable"),
        (RequestDataTooBig(SECRET), 413, "payload_too_large"),
        (exceptions.UnsupportedMediaType(SECRET), 415, "unsupported_media_type"),
        (exceptions.Throttled(2.2), 429, "rate_limited"),
        (exceptions.Throttled(), 429, "rate_limited"),
        (SuspiciousOperation(SECRET), 400, "invalid_request"),
        (OperationalError(SECRET), 503, "unavailable"),
        (InterfaceError(SECRET), 503, "unavailable"),
        (psycopg.OperationalError(SECRET), 503, "unavailable"),
        (psycopg.errors.QueryCanceled(SECRET), 503, "unavailable"),
        (exceptions.APIException(SECRET), 503, "unavailable"),
        (problems.StateConflict(code="idempotency_conflict"), 409, "idempotency_conflict"),
        (problems.NotFound(code="unknown_trace"), 404, "unknown_trace"),
        (problems.ResponseTooLarge(), 422, "response_too_large"),
        (problems.VersionRequired(), 428, "version_required"),
        (problems.StaleVersion(), 412, "stale_version"),
        (problems.UnknownCursor(), 400, "unknown_cursor"),
    ],
)
def test_every_exception_becomes_its_problem(exc, status, code):
    _, body = answer(exc)
    assert (body["status"], body["code"]) == (status, code)


def test_headers_tell_what_to_do():
    assert answer(exceptions.Throttled(2.2))[0]["Retry-After"] == "3"
    assert answer(exceptions.Throttled())[0]["Retry-After"] == "1"
    assert answer(exceptions.NotAuthenticated())[0]["WWW-Authenticate"] == "Bearer"


def test_a_mistake_of_ours_stays_an_error_of_the_server():
    assert exception_handler(RuntimeError(SECRET), {}) is None


def test_validation_errors_point_at_fields_without_their_values():
    class Inner(serializers.Serializer):
        n = serializers.IntegerField(max_value=5)

    class Outer(serializers.Serializer):
        name = serializers.CharField(max_length=3)
        kind = serializers.ChoiceField(["a", "b"])
        inner = Inner(many=True)

        def validate(self, data):
            raise serializers.ValidationError(SECRET)

    serializer = Outer(data={"name": SECRET, "kind": SECRET, "inner": [{"n": 1}, {"n": 9}]})
    with pytest.raises(exceptions.ValidationError) as caught:
        serializer.is_valid(raise_exception=True)
    _, body = answer(caught.value)
    assert body["pointer"] == "/name"
    assert [error["pointer"] for error in body["errors"]] == ["/name", "/kind", "/inner/1/n"]

    serializer = Outer(data={"name": "x", "kind": "a", "inner": []})
    with pytest.raises(exceptions.ValidationError) as caught:
        serializer.is_valid(raise_exception=True)
    _, body = answer(caught.value)
    assert body["pointer"] == ""

    assert answer(exceptions.ValidationError(SECRET))[1]["pointer"] == ""


class Echo(APIView):
    authentication_classes = ()
    permission_classes = ()
    parser_classes = (StrictJSONParser,)
    max_body_bytes = 100

    def get_exception_handler(self):
        return exception_handler

    def post(self, request):
        return Response(request.data)


def post(body, content_type="application/json"):
    request = APIRequestFactory().generic("POST", "/", body, content_type)
    response = Echo.as_view()(request)
    if hasattr(response, "render"):
        response.render()
    return response.status_code, json.loads(response.content)


def test_bodies_are_read_strictly():
    assert post(b'{"a": [1, "\xc3\xa9"]}') == (200, {"a": [1, "é"]})
    assert post(b'{"a": 1}', "application/json; charset=UTF-8")[0] == 200
    status, body = post(b'{"a": NaN}')
    assert (status, body["code"], body["pointer"]) == (400, "invalid_request", "/a")
    assert post(b'{"a": 1, "a": 2}')[0] == 400
    assert post(b'{"a": 1}', "application/json; charset=latin-1")[0] == 415
    assert post(b"a=1", "application/x-www-form-urlencoded")[0] == 415


def test_a_body_has_a_limit():
    exact = b'"' + b"x" * 98 + b'"'
    assert post(exact)[0] == 200
    status, body = post(exact + b" ")
    assert (status, body["code"], body["limit"]) == (413, "payload_too_large", 100)


def test_a_body_whose_length_is_not_declared_is_measured():
    request: Any = APIRequestFactory().generic("POST", "/", '"' + "x" * 300 + '"', "application/json")
    request.META["CONTENT_LENGTH"] = "50"
    response = Echo.as_view()(request)
    assert response.status_code in (400, 413)
