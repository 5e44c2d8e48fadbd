"""Which profile a request is ranked with. Every search asks, so it is one statement, and one step in an index."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import LiteralString
from uuid import UUID

from apps.core.db.cursors import Question, Rows, ask
from apps.core.db.sessions import current_principal
from apps.learning.applicability import Scorer, first_cause
from apps.learning.pointer import scope_key_of
from apps.learning.scorer import FEATURES
from apps.retrieval.policy import SCORER_CONTRACT, PolicyInForce
from apps.retrieval.receipts.document import ProfileUse


@dataclass(frozen=True, slots=True)
class Resolved:
    """What a pointer gives a request: how the profile was used, and its multipliers by feature (None: base)."""

    use: ProfileUse
    multipliers: Mapping[str, float] | None = None


AT_BASE = Resolved(ProfileUse())

# Ended by the database's clock, as all terms are.
NEWEST: LiteralString = """
SELECT p.id, p.multipliers, p.contract, p.formula, p.policy_sha256,
  coalesce(p.effective_until <= statement_timestamp(), false)
FROM (SELECT resulting_profile_id FROM learning_transition
      WHERE principal_id = %(owner)s AND scope_key = %(key)s ORDER BY recorded_at DESC LIMIT 1) newest
JOIN learning_ranking_profile p ON p.principal_id = %(owner)s AND p.id = newest.resulting_profile_id
"""


def pointed(owner: UUID, scopes: tuple[str, ...] | None) -> Question[Rows]:
    """What the pointer of exactly these scopes names (None: all scopes), for `resolved`."""
    return _pointed(owner, scope_key_of(scopes))


def _pointed(owner: UUID, scope_key: str) -> Question[Rows]:
    return Question(NEWEST, {"owner": owner, "key": scope_key}, lambda rows: rows)


def resolve(scopes: tuple[str, ...] | None, ruling: PolicyInForce) -> Resolved:
    """The active profile of the caller's exact scope set (None: all scopes) under the policy that rules.

    One that does not apply leaves the base scoring, with `inapplicable` and the cause.
    """
    return resolve_key(scope_key_of(scopes), ruling)


def resolve_key(scope_key: str, ruling: PolicyInForce) -> Resolved:
    """The same for a pointer named by its key."""
    asked = _pointed(current_principal().principal_id, scope_key)
    ask(asked)
    return resolved(asked.answer, ruling)


def resolved(rows: Rows, ruling: PolicyInForce) -> Resolved:
    """What the answer of `pointed` gives a request under the policy that rules."""
    if not rows:
        return AT_BASE
    profile_id, multipliers, contract, formula, policy_sha256, expired = rows[0]
    cause = first_cause(
        contract=contract,
        formula=formula,
        policy_sha256=policy_sha256,
        expired=expired,
        scorer=scorer_in(ruling),
    )
    if cause is not None:
        return Resolved(ProfileUse(UUID(str(profile_id)), "inapplicable", cause))
    return Resolved(
        ProfileUse(UUID(str(profile_id)), "applied"), dict(zip(FEATURES, multipliers, strict=True))
    )


def scorer_in(ruling: PolicyInForce) -> Scorer:
    """What scores where this policy rules."""
    return Scorer(SCORER_CONTRACT, ruling.document.formula, ruling.reference.sha256)
