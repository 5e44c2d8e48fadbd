"""What crosses the boundary of the journal."""

from typing import Annotated, Literal
from uuid import UUID

from pydantic import BaseModel, Field

from apps.core.schemas import AwareTime, Handle, StrictModel, Text
from apps.operations.erasure.schemas import Certificate


class FeedbackRequest(StrictModel):
    """What the caller says of one hit of its observation. `cited` null or absent: unknown."""

    observation_id: UUID
    hit_id: UUID
    helpful: bool
    cited: bool | None = None
    withdrawn: bool = False


class FeedbackAnswer(BaseModel):
    recorded: bool
    reason: Literal["observation_unavailable", "observation_or_hit_unavailable_retry"] | None = None


class PageQuery(StrictModel):
    limit: Annotated[int, Field(ge=1, le=50)] = 10
    cursor: Handle | None = None


class ErasureCall(StrictModel):
    """Without `confirm` the answer is the plan. `withdraw` also ends the enrolment."""

    confirm: Literal["erase"] | None = None
    withdraw: bool = False


class SnapshotHit(BaseModel):
    id: UUID
    rank: int
    sourceRef: str
    indexedContentHash: str | None
    retrievedContentHash: str
    returnedContentHash: str
    returnedParentHash: str | None
    excerpted: bool


class Snapshot(BaseModel):
    """What was returned of what was ranked: ids, ranks and hashes, no text."""

    version: Literal[1]
    availableCount: int
    returnedCount: int
    omittedHits: bool
    hits: list[SnapshotHit]


class FeedbackShown(BaseModel):
    hit_id: UUID
    helpful: bool
    cited: bool | None = None
    updated_at: AwareTime


class ObservationShown(BaseModel):
    """A record of one of your searches."""

    id: UUID
    observed_at: AwareTime
    corpus: Literal["shared", "private"]
    trace_id: UUID | None = None
    text_disposition: Literal["private", "disabled", "filtered", "retained", "expired"]
    query_text: str | None = None
    record_expires_at: AwareTime
    expires_at: AwareTime = Field(description="The earlier of the text's and the record's deadline.")
    purpose: str
    consent_version: str
    release: str | None = None
    ranking_profile_id: UUID | None = None
    fingerprint_linkable: bool = Field(description="Whether its fingerprint can still be compared.")
    snapshot: Snapshot


class ObservationDetail(ObservationShown):
    feedback: list[FeedbackShown]


class ObservationPage(BaseModel):
    observations: list[ObservationShown]
    next_cursor: str | None = None
    previous_cursor: str | None = None


class EnrolmentShown(BaseModel):
    """Whether and on what terms you take part."""

    enrolled: bool
    purpose: str | None = None
    consent_version: str | None = None
    enrolled_at: AwareTime | None = None
    withdrawn_at: AwareTime | None = None


class JournalPlan(BaseModel):
    """What an erasure of the journal would delete now."""

    scope: Literal["journal"]
    observations: int
    texts: int
    feedback: int
    confirm: Literal["erase"] = "erase"


class JournalCertificates(BaseModel):
    certificates: list[Certificate]
    next_cursor: str | None = None
    previous_cursor: str | None = None


class Candidate(BaseModel):
    """A kept query with what was returned for it. It is no test case: nobody has labelled it."""

    id: UUID
    query: str
    observedAt: AwareTime
    expires_at: AwareTime
    snapshot: Snapshot
    feedback: list[FeedbackShown]


class Envelope(BaseModel):
    """An export. Delete every copy by the candidates' `expires_at`."""

    version: Literal[1]
    kind: Literal["unlabelled-platform-query-candidates"]
    exportedAt: AwareTime
    rawRecordRetentionDays: Literal[90]
    expiryBasis: str
    candidates: list[Candidate]


class EvidenceObject(StrictModel):
    """What was looked at, as codes."""

    type: Annotated[str, Field(max_length=64)] = ""
    id: Annotated[str, Field(max_length=64)] = ""
    version: Annotated[str, Field(max_length=64)] = ""


class EvidencePosted(StrictModel):
    """One result of an item that is measured elsewhere. `measured`: numbers, booleans, codes and hashes."""

    run_id: UUID
    item: Literal["A1", "A5", "B7", "B8", "B9"]
    result: Literal["pass", "fail"]
    release: Annotated[str, Field(min_length=1, max_length=64)]
    observed_at: AwareTime
    method: Annotated[str, Field(min_length=1, max_length=64)]
    measured: dict[str, int | float | bool | str | None] = {}
    object: EvidenceObject = EvidenceObject()
    note: Text = ""


class EvidenceShown(BaseModel):
    id: UUID
    run_id: UUID
    item: str
    result: Literal["pass", "fail"]
    recorded_at: AwareTime
