"""Percentile intervals of a mean by the paired bootstrap.

Two index generators, each named in the report that used it. `python_mersenne` draws what CPython's
`random.Random(seed).choice` draws, so that PRME's intervals reproduce. `pcg64_multiply_shift` is for native
evaluations: one 32-bit draw an index, and its bias (below n / 2^32) is far under a percentile's error.
"""

import random
from collections.abc import Callable
from typing import Literal

import numpy as np

from apps.learning.scorer import FloatArray, IndexArray

Resampling = Literal["python_mersenne", "pcg64_multiply_shift"]
Interval = tuple[float, float]
# Indexes held at a time: 8 MB.
_CHUNK = 1_000_000


def bootstrap_interval(
    differences: FloatArray, *, samples: int, seed: int, resampling: Resampling
) -> Interval:
    """2.5 % and 97.5 % of `samples` means over draws with replacement from differences (n,), n ≥ 1.

    The indexes into the sorted means are int(.025 s) and min(s − 1, int(.975 s)).
    """
    means = np.empty(samples)
    draw = _GENERATORS[resampling](seed, len(differences))
    # Even, so that no chunk ends within a 64-bit word.
    rows = 2 * max(1, _CHUNK // (2 * len(differences)))
    for start in range(0, samples, rows):
        count = min(rows, samples - start)
        indexes = draw(count * len(differences)).reshape(count, len(differences))
        means[start : start + count] = differences.take(indexes).sum(axis=1)
    means /= len(differences)
    means.sort()
    return float(means[int(0.025 * samples)]), float(means[min(samples - 1, int(0.975 * samples))])


def _python_mersenne(seed: int, size: int) -> Callable[[int], IndexArray]:
    """Indexes below `size` as `random.Random(seed).choice` takes them.

    `choice` reads the top bits of one 32-bit word, as many as `size` has, and reads again while the value is
    not below `size`; filtering the stream of words is therefore the same draw.
    """
    generator = _mersenne_of(seed)
    bits = size.bit_length()
    left: IndexArray = np.empty(0, dtype=np.int64)

    def draw(count: int) -> IndexArray:
        nonlocal left
        while len(left) < count:
            wanted = (count - len(left)) * (1 << bits) // size + 64
            words = generator.random_raw(wanted) >> np.uint64(32 - bits)
            left = np.concatenate([left, words[words < size].astype(np.int64)])
        drawn, left = left[:count], left[count:]
        return drawn

    return draw


def _mersenne_of(seed: int) -> np.random.MT19937:
    """NumPy's Mersenne Twister in the state that CPython gives one of this seed."""
    *key, position = random.Random(seed).getstate()[1]  # noqa: S311 - statistics
    generator = np.random.MT19937()
    generator.state = {
        "bit_generator": "MT19937",
        "state": {"key": np.array(key, dtype=np.uint32), "pos": position},
    }
    return generator


def _pcg64_multiply_shift(seed: int, size: int) -> Callable[[int], IndexArray]:
    """Indexes floor(word · size / 2^32) from the 32-bit halves of PCG64's raw words, low half first."""
    generator = np.random.PCG64(abs(seed))

    def draw(count: int) -> IndexArray:
        words = generator.random_raw((count + 1) // 2).view(np.uint32)[:count]
        return ((words * np.uint64(size)) >> np.uint64(32)).astype(np.int64)

    return draw


_GENERATORS: dict[Resampling, Callable[[int, int], Callable[[int], IndexArray]]] = {
    "python_mersenne": _python_mersenne,
    "pcg64_multiply_shift": _pcg64_multiply_shift,
}
