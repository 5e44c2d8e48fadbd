"""Intervals: PRME's draws exactly, and a stable generator of our own."""

import random
from typing import get_args

import numpy as np
import pytest

from apps.learning.bootstrap import Resampling, bootstrap_interval
from apps.learning.power import detectable_gain, groups_for_gain


@pytest.mark.parametrize("size", [1, 2, 3, 16, 29, 100, 257])
@pytest.mark.parametrize("seed", [0, 42, -7, 2**40])
def test_the_python_form_draws_like_random_choice(size: int, seed: int) -> None:
    differences = np.random.default_rng(size).normal(0.01, 0.1, size)
    generator, values = random.Random(seed), differences.tolist()
    means = sorted(sum(generator.choice(values) for _ in values) / size for _ in range(200))
    low, high = bootstrap_interval(differences, samples=200, seed=seed, resampling="python_mersenne")
    assert low == pytest.approx(means[5], abs=1e-12)
    assert high == pytest.approx(means[195], abs=1e-12)


@pytest.mark.parametrize("resampling", get_args(Resampling))
def test_chunks_do_not_change_the_draws(monkeypatch: pytest.MonkeyPatch, resampling: Resampling) -> None:
    differences = np.random.default_rng(1).normal(0, 1, 37)
    whole = bootstrap_interval(differences, samples=500, seed=1, resampling=resampling)
    monkeypatch.setattr("apps.learning.bootstrap._CHUNK", 100)
    parts = bootstrap_interval(differences, samples=500, seed=1, resampling=resampling)
    assert parts == pytest.approx(whole, abs=1e-15)


def test_the_native_form_is_frozen() -> None:
    differences = np.arange(10, dtype=np.float64)
    interval = bootstrap_interval(differences, samples=1000, seed=42, resampling="pcg64_multiply_shift")
    assert interval == FROZEN
    other = bootstrap_interval(differences, samples=1000, seed=43, resampling="pcg64_multiply_shift")
    assert other != interval


FROZEN = (2.7, 6.3)


def test_the_native_form_has_the_width_of_theory() -> None:
    differences = np.random.default_rng(3).normal(0.02, 0.1, 1000)
    low, high = bootstrap_interval(differences, samples=10_000, seed=1, resampling="pcg64_multiply_shift")
    error = differences.std() / np.sqrt(len(differences))
    assert high - low == pytest.approx(2 * 1.96 * error, rel=0.05)
    assert (low + high) / 2 == pytest.approx(differences.mean(), abs=0.1 * error)


def test_power_shrinks_with_groups_and_grows_with_spread() -> None:
    spread = np.tile([0.1, -0.1], 50)
    few, many = detectable_gain(spread[:20]), detectable_gain(spread)
    assert few is not None
    assert many is not None
    assert few == pytest.approx(2.8016 * np.std(spread[:20], ddof=1) / np.sqrt(20), rel=1e-3)
    assert many < few
    needed = groups_for_gain(spread, 0.01)
    assert needed is not None
    assert needed == pytest.approx((2.8016 * np.std(spread, ddof=1) / 0.01) ** 2, rel=0.01)
    assert detectable_gain(spread[:1]) is None
    assert groups_for_gain(spread, 0) is None
