"""Numbers on which the journal's promises rest; the CHECKs and policies of its tables hold the same."""

from datetime import timedelta
from typing import Final

RECORD_HOURS: Final = 2160
"""Life of a record and of all that hangs on it, in absolute hours: calendar days differ over a clock change."""
LEAST_RECORD_HOURS: Final = 24
TEXT_DAYS: Final = 90
"""Longest text window, in days of 24 hours."""
MAX_QUERY_UNITS: Final = 4000
"""UTF-16 units of a query text that is kept."""
MAX_HITS: Final = 100
CLOCK_TOLERANCE: Final = timedelta(minutes=5)

KEY_CHARACTERS: Final = 32
"""Least length of an HMAC key."""
LOCK_TIMEOUT_MS: Final = 100
STATEMENT_TIMEOUT_MS: Final = 250
POLICY_SECONDS: Final = 5.0
"""How long a process may trust what it read of policy, kill switch and enrolment."""

SPACE: Final = 0x6A726E6C  # jrnl
"""Key space of the journal's advisory locks."""
