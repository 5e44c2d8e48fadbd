"""Decimal rounding of arrays that is equal, bit for bit, to CPython's `round(value, 10)`.

`numpy.round` multiplies, rounds and divides, and its product may be rounded across a half. CPython rounds
the exact binary value. The two differ only next to a half, so only those elements take the slow way.
"""

import numpy as np
import numpy.typing as npt

from apps.retrieval.prme.replay import DECIMALS

FloatArray = npt.NDArray[np.float64]
_FACTOR = 10.0**DECIMALS
# A product up to 2^37 (a score up to 13) is off by at most 2^-16 of a unit; four times that is looked at.
_DOUBT = 2.0**-14
_LARGEST_FAST = 2.0**37


def round_scores(values: FloatArray) -> FloatArray:
    """`round(v, 10)` of every element of a float64 array of any shape; a new array.

    An integer below 2^53 divided by 10^10 is correctly rounded, hence equal to the literal with ten
    decimals; what remains is to choose the right integer.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = values * _FACTOR
        units = np.rint(scaled)
        doubtful = ~(np.abs(np.abs(scaled - units) - 0.5) >= _DOUBT)
        doubtful |= ~(np.abs(scaled) < _LARGEST_FAST)
    rounded = units / _FACTOR
    if doubtful.any():
        rounded[doubtful] = [round(value, DECIMALS) for value in values[doubtful].tolist()]
    return rounded
