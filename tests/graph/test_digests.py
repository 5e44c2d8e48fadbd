"""Digests and priors against the values of the specification."""

from datetime import UTC, datetime, timedelta

import pytest

from apps.graph.digests import claim_digest, norm, passage_digest
from apps.graph.prior import prior

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def test_the_check_value_of_a_claim() -> None:
    digest = claim_digest(
        "decision", "The team  uses PostgreSQL for billing ", "Because row security is NEEDED"
    )
    assert digest == "2b2bda0e18d5651c1ccd9e3cbaa5997f494e188879fc39a9cc4dbcef2522b357"


def test_normalisation() -> None:
    assert norm("  Straße\t\nＡ ") == "strasse a"


def test_a_passage_is_its_place_and_text() -> None:
    base = {"repo": "conn:a", "type": "document", "identity": "x", "part": 0, "text": "t"}
    digests = {
        passage_digest(**base | change) for change in ({}, {"part": 1}, {"text": "u"}, {"identity": 1})
    }
    assert len(digests) == 4


def test_the_check_value_of_the_prior() -> None:
    found = prior(
        weight=10,
        useful=5,
        unhelpful=2,
        confidence=0.8,
        pinned=False,
        stale=True,
        accessed_at=None,
        updated_at=NOW - timedelta(days=90),
        at=NOW,
    )
    assert found.value == pytest.approx(0.7333797077709903, abs=1e-9)


def test_a_pinned_row_has_the_highest_prior_and_reading_is_activity() -> None:
    plain = {
        "weight": 1.0,
        "useful": 0,
        "unhelpful": 0,
        "confidence": 1.0,
        "stale": False,
        "updated_at": NOW - timedelta(days=400),
        "at": NOW,
    }
    assert prior(**plain, pinned=True, accessed_at=None).value == 1.5
    read = prior(**plain, pinned=False, accessed_at=NOW).value
    assert read == 1.0
    assert prior(**plain, pinned=False, accessed_at=None).value < read
