"""Erasure by the owner, and certificates for anyone who was told their id."""

from typing import ClassVar
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from apps.accounts.api_base import OpenAPIView, PrincipalAPIView
from apps.core.db.sessions import principal_session
from apps.core.schemas import parse
from apps.operations.erasure import certificates, services
from apps.operations.erasure.schemas import Certificate, ErasurePlan, ErasureRequest


class MyErasureView(PrincipalAPIView):
    """Erase everything that the caller owns, its tokens included. Opens its own session: the deletion begins
    on commit."""

    required_scope: ClassVar[str] = "erase"

    @extend_schema(
        operation_id="me_erasure",
        request=ErasureRequest,
        responses={200: ErasurePlan, 202: Certificate},
        description="Without `confirm` the answer is the plan: rows by table. With `confirm: erase` the caller is "
        "shut out at once, deletion runs in the background, and the certificate is at `Location`.",
    )
    def post(self, request: Request) -> Response:
        wanted = parse(ErasureRequest, request.data)
        if wanted.confirm is None:
            with principal_session(self.principal):
                return Response(services.plan().model_dump(mode="json"))
        with principal_session(self.principal):
            begun = services.begin()
        address = reverse("erasure", args=[begun])
        return Response(certificates.document(certificates.get(begun)), 202, headers={"Location": address})


class CertificateView(OpenAPIView):
    """The certificate of an erasure. Needs no credential: it names nobody, and the tokens are gone."""

    @extend_schema(operation_id="erasure_certificate", responses=Certificate)
    def get(self, request: Request, certificate_id: UUID) -> Response:
        return Response(certificates.document(certificates.get(certificate_id)))
