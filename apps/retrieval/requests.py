"""Queries of the routes about receipts, and their answers."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from apps.core.problems import InvalidRequest
from apps.core.schemas import AwareTime, Handle, StrictModel, Text
from apps.retrieval.receipts.schemas import Digest, Id, Mode, ProfileStatus, ReceiptDocument

Form = Literal["native", "prme"]
NATIVE_FILTERS = ("profile", "profile_id", "mode", "trace_id")
PRME_FILTERS = ("request_id",)


class ReceiptsQuery(StrictModel):
    """`GET /v1/receipts`. Times are half-open: since ≤ timestamp < until.

    `scope` comes once for each scope of the exact set that a request named.
    """

    limit: Annotated[int, Field(ge=1, le=50)] = 10
    cursor: Handle | None = None
    form: Form = "native"
    since: AwareTime | None = None
    until: AwareTime | None = None
    formula: Literal["none", "weighted", "rank_fusion"] | None = None
    scope: Annotated[tuple[Text, ...], Field(max_length=16)] = ()
    query_identity: Digest | None = None
    profile: ProfileStatus | None = None
    profile_id: Id | None = None
    mode: Mode | None = None
    trace_id: Id | None = None
    request_id: Id | None = None

    def check_form(self) -> None:
        """Refuse a filter that receipts of this form do not know. Raises InvalidRequest."""
        for name in PRME_FILTERS if self.form == "native" else NATIVE_FILTERS:
            if getattr(self, name) is not None:
                raise InvalidRequest("Receipts of this form are not narrowed by that", pointer=f"/{name}")

    @property
    def filters(self) -> dict[str, Any]:
        """What narrows the listing, as a cursor is bound to it."""
        return self.model_dump(mode="json", exclude={"limit", "cursor"}, exclude_defaults=True)


class ImportBody(StrictModel):
    """Lines as in a file that PRME exported, each as text, so that its bytes stay as they are."""

    lines: Annotated[tuple[Text, ...], Field(min_length=1)]


class ReceiptImported(BaseModel):
    request_id: str = Field(description="PRME's.")
    receipt_id: str
    checksum: str
    stored: bool = Field(description="False: it was there already, byte for byte.")


class ImportShown(BaseModel):
    receipts: list[ReceiptImported]
    labels: int = Field(description="Label records that were stored.")
    known_receipts: int
    known_labels: int


class NoQuery(StrictModel):
    """A route without parameters."""


class QueryReference(BaseModel):
    trace_id: str | None = Field(description="The home of the text; null where the trace is gone.")
    identity: str


class ProfileReference(BaseModel):
    id: str | None
    status: ProfileStatus


class RetrievalReceiptListed(BaseModel):
    """Of an imported one `timestamp` is the time of its import, and what it does not have is null."""

    receipt_id: str
    form: Form
    request_id: str | None = Field(description="PRME's, of an imported one.")
    timestamp: str
    mode: Mode | None
    query: QueryReference
    scopes: list[str] | None
    policy_id: str | None
    formula: Literal["none", "weighted", "rank_fusion"]
    contract: str = Field(description="Scorer contract; `prme-` and the schema version of an imported one.")
    profile: ProfileReference
    candidates: int
    checksum: str


class RetrievalReceiptPage(BaseModel):
    receipts: list[RetrievalReceiptListed]
    next_cursor: str | None


class RetrievalReceiptShown(BaseModel):
    """`receipt` is the canonical document; its SHA-256 is `checksum`."""

    checksum: str
    receipt: ReceiptDocument
    receipt_id: str
    timestamp: str
    trace_id: str | None


class ImportedReceiptShown(BaseModel):
    """`document` is the text as it came; its SHA-256 is `checksum`."""

    checksum: str
    document: str
    form: Literal["prme"]
    receipt_id: str
    request_id: str
    timestamp: str


class ScoreReplayed(BaseModel):
    node_id: str
    recorded: float
    replayed: float


class ReplayShown(BaseModel):
    """Of returned candidates only."""

    receipt_id: str
    checksum: str
    contract: str
    verified: bool = Field(description="Weights, every score and the order are equal, to the last bit.")
    candidates: int
    scores: list[ScoreReplayed]
    drifted: int
    weights_equal: bool
    order_equal: bool
