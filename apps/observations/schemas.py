"""What crosses the boundary of the journal."""

from typing import Annotated, Literal
from uuid import UUID

from pydantic import BaseModel, Field

from apps.core.schemas import AwareTime, Handle, StrictModel
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
