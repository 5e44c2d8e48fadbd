"""The re-check of active profiles: their term, whether they apply, and what they are worth on what was judged since.

The law: it records and alarms. But for the end of a term, which was fixed when the profile was made, no pointer is
moved: that is for a person.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
from django.db import connection

from apps.core import canonical, clock
from apps.core.db.sessions import maintenance_session
from apps.feedback.selectors.labels import FoldedLabels, folded_labels
from apps.learning.alerts import INAPPLICABLE, REGRESSED
from apps.learning.applicability import cause_against
from apps.learning.exceptions import LearningInputError
from apps.learning.models import RankingProfile, Recheck, Verdict
from apps.learning.native_inputs import label_set, outvoted
from apps.learning.native_receipts import NativeReceiptSet, load_receipt_set
from apps.learning.policy import GateInEffect, gate_in_effect
from apps.learning.receipt_set import BoolArray
from apps.learning.recheck import Worth, worth_of
from apps.learning.scorer import FEATURES, FloatArray
from apps.learning.selectors.active import scorer_in
from apps.learning.selectors.profiles import pointer_at, profile_of, scope_set_of
from apps.learning.services.pointers import expire_profile
from apps.retrieval.policy import SCORER_CONTRACT, in_force

FAILED = "recheck_failed"
EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class ActiveProfile:
    """A profile that some pointer is at."""

    workspace_id: UUID
    principal_id: UUID
    profile_id: UUID


@dataclass(frozen=True, slots=True)
class Checked:
    """What a re-check found: what to count it as, and what needs a human, by reason of the alarm."""

    outcome: str
    alarms: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    still_active: bool = True


def active_profiles() -> list[ActiveProfile]:
    """Every active profile of the installation, by ids alone; outside of any session."""
    with maintenance_session(), connection.cursor() as cursor:
        cursor.execute("SELECT workspace_id, principal_id, profile_id FROM learning_active_profiles()")
        return [ActiveProfile(*row) for row in cursor.fetchall()]


def recheck_profile(*, profile_id: UUID) -> Checked:
    """Look at one active profile, in the session of its principal. Raises UnknownProfile."""
    profile = profile_of(profile_id)
    if expire_profile(profile_id=profile_id):
        return Checked(EXPIRED, still_active=False)
    if pointer_at(profile.scope_key).active != profile_id:  # moved since it was listed
        return Checked("moved", still_active=False)
    cause = cause_against(profile, scorer_in(in_force(profile.workspace_id)), at=clock.now())
    if cause is not None:
        return Checked(INAPPLICABLE, {INAPPLICABLE: {"cause": cause}})
    try:
        return _measured(profile)
    except LearningInputError as refused:
        return Checked(FAILED, {FAILED: {"code": refused.code}})


def _measured(profile: RankingProfile) -> Checked:
    gate = gate_in_effect(profile.workspace_id)
    folded = _judged_since(_labels_until(profile))
    receipts = load_receipt_set(folded.receipt_ids)
    config = gate.document.evaluation
    worth = worth_of(
        receipts,
        label_set(folded, receipts, left_out=_left_out(folded, gate)),
        scopes=scope_set_of(profile),
        contract=SCORER_CONTRACT,
        baseline=_baseline_of(profile),
        profile=np.array(profile.multipliers),
        config=config,
    )
    regressed = worth.has_regressed(config)
    verdict = Verdict.REGRESSED if regressed else Verdict.HOLDS
    if not worth.is_enough(config):
        verdict = Verdict.INSUFFICIENT
    _keep(profile, worth, verdict, _checksum(folded, receipts))
    alarm = {REGRESSED: {"groups": worth.groups, "ndcg_gain": worth.gain}}
    return Checked(verdict.value, alarm if regressed else {})


def _labels_until(profile: RankingProfile) -> datetime:
    """What was admitted until then is in the profile's evidence already."""
    until = profile.evidence.get("evaluation", {}).get("labels_until")
    return datetime.fromisoformat(until) if until else profile.created_at


def _judged_since(since: datetime) -> FoldedLabels:
    """All labels in force on receipts that were judged since: half of a receipt's labels would be no evidence."""
    known = folded_labels(surface="results")
    judged = {receipt for receipt, at in zip(known.receipt_ids, known.admitted_at, strict=True) if at > since}
    return folded_labels(receipt_ids=sorted(judged), surface="results")


def _left_out(folded: FoldedLabels, gate: GateInEffect) -> BoolArray:
    return outvoted(folded) if gate.document.annotators == "majority" else np.zeros(len(folded), dtype=bool)


def _baseline_of(profile: RankingProfile) -> FloatArray:
    """(6,) what was active before the profile."""
    if profile.baseline_profile_id is None:
        return np.ones(len(FEATURES))
    return np.array(profile_of(profile.baseline_profile_id).multipliers)


def _checksum(folded: FoldedLabels, receipts: NativeReceiptSet) -> str:
    labels = zip(map(str, folded.record_ids), folded.positions.tolist(), folded.values.tolist(), strict=True)
    return canonical.checksum({"labels": [list(label) for label in labels], "receipts": receipts.checksums})


def _keep(profile: RankingProfile, worth: Worth, verdict: Verdict, checksum: str) -> None:
    """Write the finding, unless the newest one stands on the same."""
    newest = Recheck.objects.filter(principal_id=profile.principal_id, profile=profile)
    known = newest.order_by("-checked_at").values_list("input_sha256", "verdict").first()
    if known == (checksum, verdict.value):
        return
    low, high = worth.interval or (None, None)
    Recheck.objects.create(
        workspace_id=profile.workspace_id,
        principal_id=profile.principal_id,
        profile=profile,
        checked_at=clock.now(),
        input_sha256=checksum,
        verdict=verdict,
        groups=worth.groups,
        ndcg_gain=worth.gain,
        interval_low=low,
        interval_high=high,
    )
