"""Every stored receipt replayed, one principal's session after the other, a batch in each.

Who has receipts is told by a narrow function of the database; what they hold is read as their owner alone.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

from django.db import connection

from apps.core.db.sessions import UnknownPrincipal, maintenance_session, principal_session
from apps.retrieval.models import PrmeReceipt, Receipt
from apps.retrieval.verdicts import Verdict, native_verdict, prme_verdict

BATCH = 200
"""Receipts of one session; an imported one may have some 2 MB."""
OWNERS = 500
FORMS: tuple[tuple[Any, Callable[[Any], Verdict]], ...] = (
    (Receipt, native_verdict),
    (PrmeReceipt, prme_verdict),
)

Told = Callable[[UUID, str], None]


def owners(*, workspace: UUID | None = None, subject: str | None = None) -> Iterator[UUID]:
    """Ids of the principals that have receipts, all or those of a workspace or a subject, by id.

    Disabled ones are left out: nobody can read as them.
    """
    after: UUID | None = None
    while True:
        with maintenance_session(), connection.cursor() as cursor:
            cursor.execute(
                "SELECT * FROM retrieval_receipt_owners(%s, %s, %s, %s)", [workspace, subject, after, OWNERS]
            )
            found = [row[0] for row in cursor.fetchall()]
        yield from found
        if len(found) < OWNERS:
            return
        after = found[-1]


def replay_all(
    principal_id: UUID, *, drifted: Told, progress: Callable[[int], object] = lambda count: None
) -> Counter[str]:
    """Counts over all receipts of a principal: receipts, replayed, not_replayable, drifted.

    `drifted` hears the id of each that does not hold and what differs first; nothing is changed.
    """
    counts: Counter[str] = Counter()
    for model, judge in FORMS:
        after = UUID(int=0)
        while True:
            try:
                with principal_session(principal_id):
                    rows = list(
                        model.objects.filter(principal_id=principal_id, pk__gt=after).order_by("pk")[:BATCH]
                    )
            except UnknownPrincipal:  # disabled or erased on the way
                return counts
            for row in rows:
                verdict = judge(row)
                counts["receipts"] += 1
                counts[_outcome(verdict)] += 1
                if not verdict.holds:
                    drifted(row.pk, verdict.fault)
            progress(len(rows))
            if len(rows) < BATCH:
                break
            after = rows[-1].pk
    return counts


def _outcome(verdict: Verdict) -> str:
    if not verdict.holds:
        return "drifted"
    return "replayed" if verdict.replayed else "not_replayable"
