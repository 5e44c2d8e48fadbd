"""Codes of the journal in words: reasons of its status, and what became of searches."""

from apps.observations import admission
from apps.observations.services import records

# Of each reason: what is wrong, and what to do. `docs/observations-operate.md` has them with the same names.
REASONS: dict[str, tuple[str, str]] = {
    "never_succeeded": (
        "Expiry has never succeeded on this database.",
        "Start worker and scheduler; the task is observations.expire.",
    ),
    "success_stale": (
        "Expiry has not succeeded for 30 minutes or more: two runs were missed.",
        "See how its last runs ended, and whether a worker and the scheduler live.",
    ),
    "success_in_future": (
        "The last success of expiry lies in the future.",
        "The clock of the database server was moved. Mend it; the next run writes the time anew.",
    ),
    "expired_records": (
        "Records are past their deadline and not deleted.",
        "Nobody can read them. The next run deletes them, but for rows that another transaction holds.",
    ),
    "expired_texts": (
        "Texts are past their deadline and not deleted.",
        "Nobody can read them. The next run deletes them, but for rows that another transaction holds.",
    ),
    "failing": (
        "Expiry failed twice or more in a row.",
        "The code of the failure stands on the page of its run.",
    ),
    "identity_changed": (
        "This database is not the one for which the journal is open: it was restored or copied.",
        "The journal is closed. Run journal_gate drain and journal_gate open.",
    ),
}
# The same in alarms, after the name of their source.
ALARMS: dict[str, str] = {
    "never_succeeded": "has never succeeded",
    "success_stale": "has not succeeded in time",
    "success_in_future": "says it succeeded in the future",
    "expired_records": "left records past their deadline",
    "expired_texts": "left texts past their deadline",
    "identity_changed": "found a restored or copied database",
    "status_unknown": "has a status that cannot be read",
    "review_overdue": "is overdue",
}
# Inputs of a retention review, by group and name.
REVIEWED: dict[str, dict[str, str]] = {
    "journal": {"distinct_queries_a_week": "distinct queries in the last seven days"},
    "curation": {"curated_a_week": "cases curated a week"},
    "corpus": {
        "passages": "passages in the corpus",
        "passages_added": "passages added in the period",
        "passages_put_away": "passages put away in the period",
        "passages_deleted": "passages deleted in the period",
    },
    "deletions": {
        "overdue_copies": "exported copies past their deadline, not attested",
        "incomplete_erasures": "erasures that are not complete",
    },
    "alarms": {"alarms": "alarms of the journal in the period", "days": "days of the period"},
}
AGES = {"useful_0_7": "0–7 days", "useful_8_30": "8–30 days", "useful_31_90": "31–90 days"}
# Why a search was not admitted, or an admitted one not stored.
OUTCOMES: dict[str, str] = {
    admission.KILLED: "a kill switch is on",
    admission.MODE_OFF: "the mode is off",
    admission.JOURNAL_CLOSED: "the journal is closed after a restore",
    admission.NO_KEY: "no fingerprint key is set",
    admission.NOT_VERIFIED: "no credential of a principal came with the call",
    admission.NOT_ENROLLED: "the principal takes no part",
    admission.NOT_TRACED: "no trace was committed",
    admission.PRIVATE_NOT_ALLOWED: "more than the shared corpus was searched",
    admission.BUSY: "the circuit was open",
    admission.UNREADABLE: "what it rests on could not be read",
    records.CHANGED: "the policy changed meanwhile",
    records.FAILED: "the write failed or timed out",
    "erased": "its principal had it erased meanwhile",
    "observation_snapshot_mismatch": "the answer named a row that was not ranked",
    "observation_role_not_isolated": "the login is not bound by row policies",
}


def said(code: str, words: dict[str, str]) -> str:
    """A code that has no words is shown as it is."""
    return words.get(code, code.replace("_", " "))
