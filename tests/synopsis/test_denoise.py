# SPDX-License-Identifier: Apache-2.0
"""Denoising: the basis is orthonormal, and the error is never above that of the noisy series."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import WrongUse
from sfumato.synopsis import denoise as exported
from sfumato.synopsis.denoise import _basis, _series_of, _shrink, _wavelets, denoise

SHAPES = {
    "nothing": lambda t: 0 * t,
    "a line": lambda t: t / 3,
    "weeks": lambda t: 60 * (t % 7 < 5),
    "months": lambda t: 40 * (t % 30 < 3),
    "a step": lambda t: 100.0 * (t > t.mean()),
    "spikes": lambda t: 500.0 * (t % 97 == 0),
    "noise of its own": lambda t: 1e4 * np.sin(t**2),
    "waves": lambda t: 80 * np.sin(t / 20) + 20 * (t % 7 == 6),
    "growth": lambda t: np.exp(t / (len(t) / 9)),
    "small": lambda t: 0.5 * (t % 2),
}


def noisy(truth: np.ndarray, error: float, seed: int) -> np.ndarray:
    return truth + np.random.default_rng(seed).normal(size=len(truth)) * error


@pytest.mark.parametrize("length", [1, 2, 3, 5, 7, 8, 31, 64, 100])
def test_wavelets_of_any_length_are_orthonormal(length):
    columns = []
    for place in range(length):
        levels, top, sizes = _wavelets(np.eye(length)[place])
        assert np.allclose(_series_of(levels, top, sizes), np.eye(length)[place])
        columns.append(np.concatenate([*levels, [top]]))
    matrix = np.array(columns)
    assert np.allclose(matrix @ matrix.T, np.eye(length))


@pytest.mark.parametrize("period", [1, 2, 7, 12, 30])
def test_the_basis_of_a_period_is_orthonormal(period):
    basis = _basis(period)
    assert np.allclose(basis @ basis.T, np.eye(period))
    assert np.allclose(basis[0], 1 / np.sqrt(period))


@given(st.integers(3, 31), st.floats(0, 8))
@settings(deadline=None, max_examples=10)
def test_a_shrunk_block_is_nearer_in_the_mean(count, size):
    """The theorem of James and Stein, over 2,000 draws of one block."""
    truth = np.full(count, size)
    draws = truth + np.random.default_rng(count).normal(size=(2_000, count))
    shrunk = draws.copy()
    estimated = [_shrink(block) for block in shrunk]
    errors = ((shrunk - truth) ** 2).sum(axis=1)
    raw = ((draws - truth) ** 2).sum(axis=1)
    # six standard errors
    assert (errors - raw).mean() <= 6 * (errors - raw).std() / 2_000**0.5
    # the estimate of Stein has the same mean
    apart = errors - np.array(estimated)
    assert abs(apart.mean()) <= 6 * apart.std() / 2_000**0.5 + 0.02 * count


def ratios_of(places: range, draws: int) -> list[float]:
    """The error of denoised series beside that of raw ones, each in the mean over draws.

    Every shape, several lengths, sizes of noise and periods.
    """
    ratios = []
    for place in places:
        shape = list(SHAPES.values())[place % len(SHAPES)]
        length = (40, 365, 800, 1_000)[place // 10 % 4]
        error = (0.3, 5.0, 60.0)[place // 40 % 3]
        period = (7, 1)[place // 120 % 2]
        truth = shape(np.arange(float(length)))
        raw = denoised = 0.0
        for seed in range(draws):
            series = noisy(truth, error, 100 * place + seed)
            found = denoise(series, error, period=period).values
            raw += ((series - truth) ** 2).sum()
            denoised += ((found - truth) ** 2).sum()
        ratios.append((denoised / raw) ** 0.5)
    return ratios


def test_series_of_every_shape_are_never_worse_than_raw():
    ratios = ratios_of(range(0, 1_000, 9), draws=8)
    assert max(ratios) <= 1.01
    assert np.mean(ratios) < 0.8


@pytest.mark.long
def test_a_thousand_series_are_never_worse_than_raw():
    assert max(ratios_of(range(1_000), draws=40)) <= 1.01


def test_a_weekly_pattern_is_kept_and_noise_goes():
    days = np.arange(3_650.0)
    truth = 11_000 + 2_000 * (days % 7 < 5) + 500 * np.sin(days / 58)
    series = noisy(truth, 700, 1)
    found = denoise(series, 700)
    error = np.sqrt(((found.values - truth) ** 2).mean())
    assert error < 0.4 * 700 and abs(found.error - error) < 0.15 * 700
    assert found.raw_error == 700
    # plain wavelets do not see weeks
    assert np.sqrt(((denoise(series, 700, period=1).values - truth) ** 2).mean()) > error


def test_a_mutant_that_shrinks_too_much_is_caught():
    """Blocks shrunk by twice the rule are worse than raw on a series of large values."""
    truth = 6.0 * np.ones(16)
    draws = truth + np.random.default_rng(2).normal(size=(4_000, 16))
    energy = (draws**2).sum(axis=1, keepdims=True)
    worse = draws * np.maximum(1 - 3 * 14 / energy, 0)
    assert ((worse - truth) ** 2).sum() > ((draws - truth) ** 2).sum()


def test_short_series_stay_as_they_are():
    for length in (1, 2):
        series = np.arange(float(length))
        assert np.allclose(denoise(series, 1.0, period=1).values, series)
    assert denoise([3.0] * 6, 1.0).values.tolist() == [3.0] * 6


@pytest.mark.parametrize(
    "values, error, period",
    [
        ([], 1, 7),
        (["a"], 1, 7),
        ([[1, 2]], 1, 7),
        ([float("nan")], 1, 7),
        ([1, 2], 0, 7),
        ([1, 2], float("inf"), 7),
        ([1, 2], True, 7),
        ([1, 2], 1, 0),
        ([1, 2], 1, 7.5),
        (None, 1, 7),
    ],
)
def test_what_is_no_series_is_refused(values, error, period):
    with pytest.raises(WrongUse):
        exported(values, error, period=period)
