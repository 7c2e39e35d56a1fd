# SPDX-License-Identifier: Apache-2.0
"""Denoises a noisy time series as post-processing: at no cost, without any privacy argument.

The series is transformed to an orthonormal basis in which daily series have few large coefficients:
a basis of the days of a week, times Haar wavelets along the weeks. There, blocks of 16 coefficients
are shrunk towards 0 by the rule of James and Stein. Source: James and Stein (1961); Cai (1999),
"Adaptive wavelet estimation: a block thresholding and oracle inequality approach".
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sfumato.errors import WrongUse, shown
from sfumato.synopsis.workload import Floats

# The coefficients of a block, and the fewest that the rule improves.
_BLOCK, _FEWEST = 16, 3
_MOST_PERIOD = 366


@dataclass(frozen=True, eq=False)
class Denoised:
    """A denoised series with error estimates.

    ``error`` is Stein's unbiased estimate of its root mean squared error, computed from the noisy
    series; ``raw_error`` is the root mean squared error of the noisy series.

    >>> denoise([5.0, 5.0, 5.0, 5.0], 2, period=1).raw_error
    2.0
    """

    values: Floats
    error: float
    raw_error: float


def denoise(values: object, standard_error: float, *, period: int = 7) -> Denoised:
    """Denoises a series whose numbers have independent Gaussian noise of one standard error.

    The expected squared error is never above that of the noisy series, whatever the true series is.
    For other noise (Laplace, or differences of running totals, whose errors are correlated) this is
    not proved.

    Args:
        values: the noisy numbers, in order.
        standard_error: the standard deviation of the noise of each number.
        period: the period of the series: 7 for daily numbers with a weekly pattern; 1 for none.

    Raises:
        WrongUse: no list of finite numbers, a standard error that is not above 0, or a period out
            of range.

    >>> import numpy as np
    >>> days = np.tile([10.0, 10, 10, 10, 10, 0, 0], 40)
    >>> noisy = days + np.random.default_rng(1).normal(size=280) * 2
    >>> found = denoise(noisy, 2)
    >>> bool(np.abs(found.values - days).mean() < 0.7 * np.abs(noisy - days).mean())
    True
    """
    series = _series(values)
    error = _positive(standard_error)
    if type(period) is not int or not 1 <= period <= _MOST_PERIOD:
        raise WrongUse(f"period={shown(period)}.", allowed=f"from 1 to {_MOST_PERIOD}")
    weeks = len(series) // period
    # days before the first whole week stay as they are
    spare = len(series) - weeks * period
    basis = _basis(period)
    shrunk = series.copy()
    left = float(len(series))
    if weeks:
        pattern = series[spare:].reshape(weeks, period) @ basis.T
        columns = [_shrunk(column / error) for column in pattern.T]
        left = spare + sum(risk for _, risk in columns)
        back = np.stack([column for column, _ in columns], axis=1) * error
        shrunk[spare:] = (back @ basis).ravel()
    mean = max(left, 0.0) / len(series)
    return Denoised(shrunk, error * math.sqrt(mean), error)


def _shrunk(series: Floats) -> tuple[Floats, float]:
    """A series of noise 1 with its wavelet coefficients shrunk, and the estimated squared error."""
    levels, top, sizes = _wavelets(series)
    risk = 1.0
    for level in levels:
        for block in _blocks(level):
            risk += _shrink(block)
    return _series_of(levels, top, sizes), risk


def _shrink(block: Floats) -> float:
    """Shrinks a block in place; returns Stein's estimate of its squared error.

    The positive part of the rule of James and Stein: y max(0, 1 - (k - 2) / |y|^2).
    """
    count = len(block)
    if count < _FEWEST:
        return float(count)
    energy = float(block @ block)
    if energy <= count - 2:
        block[:] = 0
        return energy - count
    block *= 1 - (count - 2) / energy
    return count - (count - 2) ** 2 / energy


def _blocks(level: Floats) -> Iterator[Floats]:
    """Yields the blocks of a level, of 16 coefficients each, the last one of up to 31."""
    count = max(len(level) // _BLOCK, 1)
    for place in range(count):
        end = len(level) if place == count - 1 else (place + 1) * _BLOCK
        yield level[place * _BLOCK : end]


def _wavelets(series: Floats) -> tuple[list[Floats], float, list[Floats]]:
    """The Haar coefficients of a series of any length, from fine to coarse, and that of its mean.

    Neighbours are paired; an odd one at the end waits for the next level. A mean of w numbers is
    kept as their sum over the root of w, so that the basis is orthonormal. Also returns the
    numbers w of each level.
    """
    scaled, sizes = series, np.ones(len(series))
    levels, every = [], []
    while len(scaled) > 1:
        every.append(sizes)
        pairs = len(scaled) // 2 * 2
        one, other = scaled[:pairs:2], scaled[1:pairs:2]
        cosine, sine = _angles(sizes)
        levels.append(sine * one - cosine * other)
        scaled = np.concatenate([cosine * one + sine * other, scaled[pairs:]])
        sizes = np.concatenate([sizes[:pairs:2] + sizes[1:pairs:2], sizes[pairs:]])
    return levels, float(scaled[0]), every


def _series_of(levels: list[Floats], top: float, every: list[Floats]) -> Floats:
    """Returns the series that ``_wavelets`` gives these coefficients."""
    scaled = np.array([top])
    for details, sizes in zip(reversed(levels), reversed(every), strict=True):
        means, odd = scaled[: len(details)], scaled[len(details) :]
        cosine, sine = _angles(sizes)
        finer = np.empty(2 * len(details))
        finer[::2] = cosine * means + sine * details
        finer[1::2] = sine * means - cosine * details
        scaled = np.concatenate([finer, odd])
    return scaled


def _angles(sizes: Floats) -> tuple[Floats, Floats]:
    """Returns the roots of the shares that the two of each pair have in their sum."""
    pairs = len(sizes) // 2 * 2
    one, other = sizes[:pairs:2], sizes[1:pairs:2]
    return np.sqrt(one / (one + other)), np.sqrt(other / (one + other))


def _basis(period: int) -> Floats:
    """An orthonormal basis of a period: its mean, then cosines (the discrete cosine transform)."""
    places = np.arange(period)
    basis: Floats = np.cos(math.pi / period * np.outer(places, places + 0.5))
    basis *= math.sqrt(2 / period)
    basis[0] /= math.sqrt(2)
    return basis


def _series(values: object) -> Floats:
    """Returns the values as floats (WrongUse unless they are a list of finite numbers)."""
    try:
        series: Floats = np.array(values, float)
    except (TypeError, ValueError):
        series = np.zeros(0)
    if series.ndim != 1 or not len(series) or not np.isfinite(series).all():
        raise WrongUse("No series.", allowed="a list of finite numbers, at least one")
    return series


def _positive(error: object) -> float:
    """Returns the standard error (WrongUse unless it is a finite number above 0)."""
    if isinstance(error, int | float) and not isinstance(error, bool) and 0 < error < math.inf:
        return float(error)
    raise WrongUse(f"standard_error={shown(error)}.", allowed="a number above 0")
