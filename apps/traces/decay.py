"""Exponential decay by half-life, in Python and in SQL, with one rule for both.

A clock that steps back decays nothing. Values that have lost all meaning become 0 instead of underflowing,
which PostgreSQL would answer with an error.
"""

from datetime import datetime

SPENT_HALF_LIVES = 100
"""After so many half-lives nothing is left (2^-100 of at most 10)."""
LEAST = 1e-200
"""Smaller values count as 0."""


def decay(value: float, since: datetime, until: datetime, half_life_s: float) -> float:
    """max(0, value) · 2^(−(until − since) ÷ half-life) for until > since, else max(0, value)."""
    age = (until - since).total_seconds() / half_life_s
    if value < LEAST or age >= SPENT_HALF_LIVES:
        return 0.0
    return value if age <= 0 else value * 2.0**-age


def decay_sql(value: str, since: str, until: str, half_life_s: str) -> str:
    """The same as an SQL expression. The arguments are SQL; they are repeated, so keep them columns."""
    age = f"(extract(epoch FROM ({until}) - ({since}))::float8 / {half_life_s})"
    return (
        f"(CASE WHEN {value} < {LEAST}::float8 OR {age} >= {SPENT_HALF_LIVES} THEN 0::float8 "
        f"WHEN {age} <= 0 THEN {value} ELSE {value} * power(2::float8, -{age}) END)"
    )
