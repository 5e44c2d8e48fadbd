"""How small a gain the validation groups at hand can show."""

import math

from apps.learning.scorer import FloatArray

# Two-sided 5 % and a power of 80 %: 1.96 + 0.84 standard errors.
DETECTABLE_ERRORS = 1.959964 + 0.841621


def detectable_gain(differences: FloatArray) -> float | None:
    """Smallest true mean difference that n groups of this spread find four times out of five.

    None below two groups.
    """
    if len(differences) < 2:
        return None
    return float(DETECTABLE_ERRORS * differences.std(ddof=1) / math.sqrt(len(differences)))


def groups_for_gain(differences: FloatArray, gain: float) -> int | None:
    """Groups of this spread that are needed to find a true mean difference of `gain`; None if unknown."""
    if len(differences) < 2 or gain <= 0:
        return None
    return max(2, math.ceil((DETECTABLE_ERRORS * float(differences.std(ddof=1)) / gain) ** 2))
