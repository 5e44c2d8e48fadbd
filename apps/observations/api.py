"""Routes of the journal. What a caller does not own is not there; what failed inside is not told."""

from typing import ClassVar, TypeVar
from uuid import UUID

from django.http import HttpResponse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from pydantic import BaseModel
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from apps.accounts import throttles
from apps.accounts.api_base import CallerAPIView, PrincipalAPIView
from apps.core.api_answers import answer, id_of, query_values
from apps.core.db.sessions import principal_session
from apps.core.problems import InvalidRequest
from apps.core.schemas import parse
from apps.observations import gate, selectors, status
from apps.observations.exceptions import InvalidFeedback
from apps.observations.models.exports import Location
from apps.observations.schemas import (
    EnrolmentShown,
    Envelope,
    ErasureCall,
    EvidencePosted,
    EvidenceShown,
    FeedbackAnswer,
    FeedbackRequest,
    JournalCertificates,
    JournalPlan,
    ObservationDetail,
    ObservationPage,
    PageQuery,
)
from apps.observations.selectors.certificates import certificate_page, own_certificate
from apps.observations.services import enrolments, erasure, evidence, exports
from apps.observations.services.feedback import give_feedback
from apps.operations.erasure import certificates
from apps.operations.erasure.schemas import Certificate

LIMIT = OpenApiParameter("limit", int, description="1..50, default 10.")
CURSOR = OpenApiParameter("cursor", str, description="`next_cursor` of the page before.")
FEEDBACK_PER_MINUTE = 60
UNKNOWN = {"status": "unknown"}

M = TypeVar("M", bound=BaseModel)


def _page(request: Request) -> PageQuery:
    return parse(PageQuery, query_values(request, whole=("limit",)))


class JournalAPIView(PrincipalAPIView):
    """A route of one's own journal. Its view must be marked `own_transactions`: the gate is asked first."""

    required_scope: ClassVar[str] = "feedback"


class ObservationsView(JournalAPIView):
    @extend_schema(responses={200: ObservationPage}, parameters=[LIMIT, CURSOR])
    def get(self, request: Request) -> HttpResponse:
        """List the records of your searches, newest first, as long as they live. `journal_closed` 503."""
        query = _page(request)
        gate.require_open()
        with principal_session(self.principal):
            return answer(selectors.observation_page(limit=query.limit, cursor=query.cursor))


class ObservationView(JournalAPIView):
    @extend_schema(responses={200: ObservationDetail})
    def get(self, request: Request, observation_id: str) -> HttpResponse:
        """Show one record with your feedback on it. `unknown_observation` 404, `journal_closed` 503."""
        gate.require_open()
        with principal_session(self.principal):
            return answer(selectors.observation_detail(id_of(observation_id)))

    @extend_schema(responses={202: Certificate})
    def delete(self, request: Request, observation_id: str) -> Response:
        """Erase one record with its text and feedback; the certificate is at `Location`. `unknown_observation` 404."""
        with principal_session(self.principal):
            begun = erasure.begin(observation_id=id_of(observation_id))
        return _begun(begun)


class EnrolmentView(JournalAPIView):
    @extend_schema(operation_id="observations_enrolment", responses={200: EnrolmentShown})
    def get(self, request: Request) -> HttpResponse:
        """Show whether and on what terms you take part in the journal."""
        with principal_session(self.principal):
            return answer(selectors.enrolment_shown())

    @extend_schema(operation_id="observations_enrolment_withdraw", responses={200: EnrolmentShown})
    def delete(self, request: Request) -> HttpResponse:
        """Withdraw. From its answer on, nothing more is recorded; what is there keeps its deadline unless erased."""
        with principal_session(self.principal):
            enrolments.withdraw_own()
            return answer(selectors.enrolment_shown())


class ErasureView(JournalAPIView):
    @extend_schema(
        operation_id="observations_erasure",
        request=ErasureCall,
        responses={200: JournalPlan, 202: Certificate},
    )
    def post(self, request: Request) -> Response:
        """Erase all records of your searches; with `withdraw` also end your taking part.

        Without `confirm` the answer is the plan: rows by table, hidden ones included.
        """
        wanted = parse(ErasureCall, request.data)
        with principal_session(self.principal):
            if wanted.confirm is None:
                return Response(erasure.plan().model_dump(mode="json"))
            begun = erasure.begin(withdraw=wanted.withdraw)
        return _begun(begun)


class CertificatesView(JournalAPIView):
    @extend_schema(
        operation_id="observations_erasure_certificates",
        responses={200: JournalCertificates},
        parameters=[LIMIT, CURSOR],
    )
    def get(self, request: Request) -> HttpResponse:
        """List the certificates of your erasures of the journal, newest first."""
        query = _page(request)
        return answer(certificate_page(self.principal, limit=query.limit, cursor=query.cursor))


class CertificateView(JournalAPIView):
    @extend_schema(operation_id="observations_erasure_certificate", responses={200: Certificate})
    def get(self, request: Request, certificate_id: str) -> HttpResponse:
        """Show one certificate of yours. `unknown_erasure` 404."""
        return answer(own_certificate(self.principal, id_of(certificate_id)))


class ExportView(JournalAPIView):
    required_scope = "export"

    @extend_schema(operation_id="observations_export", responses={200: Envelope})
    def get(self, request: Request) -> HttpResponse:
        """Export your own shared queries that are kept as text: one a distinct query, at most 1,000, newest first.

        Nobody has labelled them: this is no test set. Delete every copy by its `expires_at`. `journal_closed` 503.
        """
        gate.require_open()
        with principal_session(self.principal):
            found = exports.export(location=Location.API)
        return HttpResponse(
            found.body, content_type="application/json", headers={"Cache-Control": "no-store"}
        )


class FeedbackView(JournalAPIView):
    @extend_schema(request=FeedbackRequest, responses={200: FeedbackAnswer})
    def post(self, request: Request) -> HttpResponse:
        """Say of a hit of one of your observations whether it helped, and whether you cited it.

        Not written yet, expired, foreign, invented and not a hit of it are one answer. The last `helpful` wins, a known
        `cited` replaces and an unknown one keeps; `withdrawn` takes it back. No deadline moves. At most 60 a minute.
        `invalid_observation_feedback` 400.
        """
        given = _feedback(request)
        throttles.require("observation_feedback", str(self.principal.principal_id), FEEDBACK_PER_MINUTE)
        reason = give_feedback(caller=self.principal, given=given)
        return answer({"recorded": True} if reason is None else {"recorded": False, "reason": reason})


class EvidenceView(PrincipalAPIView):
    required_scope: ClassVar[str] = "evidence"

    @extend_schema(
        operation_id="observations_evidence", request=EvidencePosted, responses={201: EvidenceShown}
    )
    def post(self, request: Request) -> HttpResponse:
        """Post what CI measured for an activation run: A1 and A5, and B7, B8 and B9 of a disposable database.

        Only numbers, codes and hashes; a note of 500 characters at most. Credentials, addresses and personal numbers
        are refused. `unknown_activation_run` 404.
        """
        given = parse(EvidencePosted, request.data)
        with principal_session(self.principal):
            row = evidence.post(
                run_id=given.run_id,
                item=given.item,
                result=given.result,
                release=given.release,
                observed_at=given.observed_at,
                measured=given.measured,
                token_id=self.caller.token_id,
                method=given.method,
                subject=evidence.Subject(given.object.type, given.object.id, given.object.version),
                note=given.note,
            )
            row.refresh_from_db(fields=["recorded_at"])
        shown = EvidenceShown(
            id=row.pk, run_id=given.run_id, item=row.item, result=given.result, recorded_at=row.recorded_at
        )
        return answer(shown.model_dump(mode="json"), status=201)


@extend_schema(exclude=True)
class MonitorView(CallerAPIView):
    """How the journal's upkeep stands: 200 without alarm, 503 with one or when it cannot be read."""

    required_scope = "monitor"

    def get(self, request: Request) -> HttpResponse:
        try:
            reading = status.read()
        except Exception:
            # Whatever it was, an answer that is none is an alarm.
            return answer(UNKNOWN, status=503)
        return answer(reading.document(), status=503 if reading.alarm else 200)


def _feedback(request: Request) -> FeedbackRequest:
    """Decided before any statement on the journal."""
    try:
        return parse(FeedbackRequest, request.data)
    except InvalidRequest as refused:
        raise InvalidFeedback(
            refused.detail, pointer=refused.pointer, recorded=False, reason="malformed"
        ) from None


def _begun(certificate_id: UUID) -> Response:
    address = reverse("observations-erasure-certificate", args=[certificate_id])
    document = certificates.document(certificates.get(certificate_id))
    return Response(document, 202, headers={"Location": address})
