"""Routes of evaluations, query sets and holdouts."""

from typing import Any, ClassVar, TypeVar

from django.http import HttpResponse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from pydantic import BaseModel
from rest_framework.request import Request

from apps.accounts.api_base import PrincipalAPIView
from apps.core import idempotency
from apps.core.api_answers import answer, id_of, query_values
from apps.core.problems import InvalidRequest
from apps.core.schemas import parse
from apps.learning import documents
from apps.learning.requests import (
    EvaluationRequest,
    HoldoutRequest,
    HoldoutsQuery,
    NoBody,
    PageQuery,
    QuerySetRequest,
    RunsQuery,
    ShownQuery,
)
from apps.learning.selectors import evaluations, holdouts, query_sets
from apps.learning.services.evaluations import cancel_evaluation, start_evaluation
from apps.learning.services.holdouts import cancel_holdout, start_holdout
from apps.learning.services.query_sets import create_query_set

M = TypeVar("M", bound=BaseModel)

LIMIT = OpenApiParameter("limit", int, description="1..50, default 10.")
PAGE_LIMIT = OpenApiParameter("limit", int, description="1..200, default 50.")
CURSOR = OpenApiParameter("cursor", str, description="`next_cursor` of the page before.")
STATUS = OpenApiParameter("status", str, enum=["queued", "running", "succeeded", "failed", "cancelled"])
REPORT = OpenApiParameter(
    "report", str, enum=["summary", "full"], description="full: with every id, checksum and query."
)
KEY_HEADER = OpenApiParameter(
    "Idempotency-Key",
    str,
    OpenApiParameter.HEADER,
    description="In place of `idempotency_key`; one of them is needed, both are refused.",
)


class LearningAPIView(PrincipalAPIView):
    """A route about evidence of the caller."""

    required_scope = "learning"

    def keyed(self, model: type[M]) -> tuple[str, M]:
        """The idempotency key of the call and its body."""
        data = self.request.data
        if not isinstance(data, dict):
            raise InvalidRequest("The body is an object", pointer="")
        body: Any = parse(model, data)
        return idempotency.key_of(self.request.headers.get("Idempotency-Key"), body.idempotency_key), body

    def asked(self, model: type[M]) -> M:
        """The query string."""
        return parse(model, query_values(self.request, whole=("limit",)))


class EvaluationsView(LearningAPIView):
    @extend_schema(
        request=EvaluationRequest, responses={202: documents.EvaluationShown}, parameters=[KEY_HEADER]
    )
    def post(self, request: Request) -> HttpResponse:
        """Ask for an offline evaluation: fit multipliers to your labels, and judge them on queries left out.

        Labels up to this moment count, corrections included. Settings that you leave out are those of the gate
        policy; asking for less makes it exploratory. It changes nothing. `idempotency_conflict` 409.

        `failure_code` may become: `too_large` (more records or pairs than allowed), `unknown_reference` (a receipt
        is gone, or a group names none), `not_reproducible` (a stored receipt does not hold),
        `conflicting_identity` (two names for one query), `time_limit`, `lost`, `internal_error`.
        """
        key, body = self.keyed(EvaluationRequest)
        asked = start_evaluation(idempotency_key=key, request=body)
        return answer(evaluations.evaluation_shown(asked), status=202)

    @extend_schema(responses={200: documents.EvaluationPage}, parameters=[LIMIT, CURSOR, STATUS])
    def get(self, request: Request) -> HttpResponse:
        """List your evaluations, newest first."""
        return answer(evaluations.evaluations_page(self.asked(RunsQuery)))


class EvaluationView(LearningAPIView):
    @extend_schema(responses={200: documents.EvaluationShown}, parameters=[REPORT])
    def get(self, request: Request, evaluation_id: str) -> HttpResponse:
        """Show one evaluation: how far it is, or its report. `unknown_evaluation` 404."""
        query = self.asked(ShownQuery)
        return answer(evaluations.evaluation_shown(id_of(evaluation_id), full=query.report == "full"))


class EvaluationQueriesView(LearningAPIView):
    @extend_schema(responses={200: documents.EvaluatedQueryPage}, parameters=[PAGE_LIMIT, CURSOR])
    def get(self, request: Request, evaluation_id: str) -> HttpResponse:
        """List the query groups of an evaluation with their metrics. `unknown_evaluation` 404."""
        return answer(evaluations.evaluated_queries_page(id_of(evaluation_id), self.asked(PageQuery)))


class EvaluationCancelView(LearningAPIView):
    @extend_schema(request=NoBody, responses={202: documents.EvaluationShown})
    def post(self, request: Request, evaluation_id: str) -> HttpResponse:
        """Have an evaluation stop. Twice is once. `unknown_evaluation` 404, `already_ended` 409."""
        parse(NoBody, request.data)
        cancel_evaluation(evaluation_id=id_of(evaluation_id))
        return answer(evaluations.evaluation_shown(id_of(evaluation_id)), status=202)


class QuerySetsView(LearningAPIView):
    max_body_bytes: ClassVar[int] = 16 * 1024 * 1024

    @extend_schema(request=QuerySetRequest, responses={201: documents.QuerySetShown}, parameters=[KEY_HEADER])
    def post(self, request: Request) -> HttpResponse:
        """Make a query set: questions, and everything that is relevant to them. It never changes.

        A judgment names a document by its repository and identity; how many passages it was cut into does not
        matter. `idempotency_conflict` 409.
        """
        key, body = self.keyed(QuerySetRequest)
        made = create_query_set(idempotency_key=key, request=body)
        return answer(query_sets.query_set_shown(made, PageQuery()), status=201)

    @extend_schema(responses={200: documents.QuerySetPage}, parameters=[PAGE_LIMIT, CURSOR])
    def get(self, request: Request) -> HttpResponse:
        """List your query sets, newest first."""
        return answer(query_sets.query_sets_page(self.asked(PageQuery)))


class QuerySetView(LearningAPIView):
    @extend_schema(responses={200: documents.QuerySetShown}, parameters=[PAGE_LIMIT, CURSOR])
    def get(self, request: Request, query_set_id: str) -> HttpResponse:
        """Show one query set; the cursor pages its queries. `unknown_query_set` 404."""
        return answer(query_sets.query_set_shown(id_of(query_set_id), self.asked(PageQuery)))


class HoldoutsView(LearningAPIView):
    @extend_schema(request=HoldoutRequest, responses={202: documents.HoldoutShown}, parameters=[KEY_HEADER])
    def post(self, request: Request) -> HttpResponse:
        """Ask whether the multipliers of an evaluation retrieve better on queries that it has not seen.

        With a query set the platform answers every query under both arms, over one state of the memory. Pairs of
        receipts that are there (`trials`) are judged alike and are always exploratory. Settings that you leave out
        are those of the gate policy.

        `unknown_evaluation`, `unknown_query_set` 404; `no_proposal`, `overlap`, `idempotency_conflict` 409.
        `failure_code` may become: `corpus_changed`, `retrieval_incomplete`, `overlap`, `pair_mismatch`,
        `conflicting_identity`, `unknown_reference`, `not_reproducible`, `time_limit`, `lost`, `internal_error`.
        """
        key, body = self.keyed(HoldoutRequest)
        asked = start_holdout(idempotency_key=key, request=body)
        return answer(holdouts.holdout_shown(asked), status=202)

    @extend_schema(
        responses={200: documents.HoldoutPage},
        parameters=[
            LIMIT,
            CURSOR,
            STATUS,
            OpenApiParameter("evaluation", str, description="Those of one evaluation."),
        ],
    )
    def get(self, request: Request) -> HttpResponse:
        """List your holdouts, newest first."""
        return answer(holdouts.holdouts_page(self.asked(HoldoutsQuery)))


class HoldoutView(LearningAPIView):
    @extend_schema(responses={200: documents.HoldoutShown}, parameters=[REPORT])
    def get(self, request: Request, holdout_id: str) -> HttpResponse:
        """Show one holdout: how far it is, or its report. `unknown_holdout` 404."""
        query = self.asked(ShownQuery)
        return answer(holdouts.holdout_shown(id_of(holdout_id), full=query.report == "full"))


class HoldoutQueriesView(LearningAPIView):
    @extend_schema(responses={200: documents.HoldoutPairPage}, parameters=[PAGE_LIMIT, CURSOR])
    def get(self, request: Request, holdout_id: str) -> HttpResponse:
        """List the pairs of a holdout with their receipts and metrics. `unknown_holdout` 404."""
        return answer(holdouts.holdout_pairs_page(id_of(holdout_id), self.asked(PageQuery)))


class HoldoutCancelView(LearningAPIView):
    @extend_schema(request=NoBody, responses={202: documents.HoldoutShown})
    def post(self, request: Request, holdout_id: str) -> HttpResponse:
        """Have a holdout stop. Twice is once. `unknown_holdout` 404, `already_ended` 409."""
        parse(NoBody, request.data)
        cancel_holdout(holdout_id=id_of(holdout_id))
        return answer(holdouts.holdout_shown(id_of(holdout_id)), status=202)
