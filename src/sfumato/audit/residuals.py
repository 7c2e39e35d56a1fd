# SPDX-License-Identifier: Apache-2.0
"""The test of the stated noise: released minus exact numbers, against their law.

A claim bounds what an attacker can learn, and wrong noise may still keep it. So noise that is a
little too small passes every audit of a claim; here it does not. Proof: residuals.proof.md.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, chdtr, chdtrc, chdtri, gammaincinv, ndtr, ndtri

from sfumato.audit.attack import CONFIDENCE
from sfumato.audit.binomial import last_point
from sfumato.audit.verdict import Verdict
from sfumato.errors import InvalidDeclaration, InvalidNumber
from sfumato.exact.bracket import Bracket
from sfumato.exact.rational import Number, positive
from sfumato.exact.rounding import float_down
from sfumato.noise import Noise
from sfumato.noise.law import open_unit

Floats: TypeAlias = NDArray[np.float64]

_FEWEST = 20
_CELLS = 16
# Buckets of the sizes that are usual, and of the rare ones beyond.
_USUAL, _RARE = 300, 50
# Far above the relative errors of scipy's functions and of the sums here.
_SLACK = 1e-6
_TILTS = np.geomspace(1e-4, 50, 200)


@dataclass(frozen=True, slots=True)
class Residuals:
    """The result of ``residuals``, the test of released minus exact numbers.

    ``p_values`` has an upper bound for each test: how probable its result, or one further off, is
    under the stated noise, with both directions and all cells paid for. ``spread`` is an interval
    of the true noise over the stated one, if the law is the stated one times a ratio.

    >>> from sfumato.noise import DiscreteLaplace
    >>> from sfumato.testing import Replay
    >>> draws = DiscreteLaplace(5).sample(5000, Replay(1))
    >>> held = residuals(draws, law=DiscreteLaplace(5))
    >>> held.verdict.value, held.spread[0] < 1 < held.spread[1]
    ('UNDECIDED', True)
    """

    values: int
    confidence: Fraction
    p_values: dict[str, float]
    spread: tuple[float, float]

    @property
    def verdict(self) -> Verdict:
        """VIOLATED: the noise is not the stated one. Whether the guarantee holds is not tested."""
        doubt = _doubts(float_down(1 - self.confidence))
        if any(p <= doubt[name] for name, p in self.p_values.items()):
            return Verdict.VIOLATED
        return Verdict.UNDECIDED

    @property
    def sentence(self) -> str:
        """The result as a sentence."""
        low, high = self.spread
        ratio = f"the noise is {low:.3g} to {high:.3g} times the stated one"
        if self.verdict is Verdict.UNDECIDED:
            return f"UNDECIDED: {self.values} numbers fit the stated noise; {ratio}."
        doubt = _doubts(float_down(1 - self.confidence))
        failed = [name for name, p in self.p_values.items() if p <= doubt[name]]
        return (
            f"VIOLATED: {self.values} numbers do not fit the stated noise "
            f"({', '.join(failed)}); {ratio}. The guarantee itself may still hold."
        )


def residuals(
    values: ArrayLike,
    *,
    sigma: Number | None = None,
    law: Noise | None = None,
    confidence: Number = CONFIDENCE,
) -> Residuals:
    """Tests whether released minus exact numbers are independent draws of the stated noise.

    ``sigma``: continuous normal noise of this standard deviation (also discrete noise on a lattice
    far finer than that). ``law``: a symmetric law on the integers, for integer ``values``. Four
    tests: the spread, the counts in 16 cells, equal neighbours and equal halves, and the signs of
    neighbours.

    Guarantees:
        right noise is accused as rarely as stated

    Raises:
        InvalidDeclaration: not exactly one of sigma and law; values that are no finite numbers, or
            no integers for a law; a law that is not symmetric.
        InvalidNumber: fewer than 20 values.

    >>> import numpy as np
    >>> normal = np.random.default_rng(1)
    >>> residuals(normal.normal(0, 1.7, 2000), sigma=2).verdict.value
    'VIOLATED'
    """
    if (sigma is None) == (law is None):
        raise InvalidDeclaration("sigma and law.", allowed="exactly one of them")
    numbers = _finite(values)
    sure = open_unit("confidence", confidence)
    stated: _Stated
    if law is None:
        assert sigma is not None
        stated = _Normal(float(positive("sigma", sigma)), numbers)
    else:
        stated = _Integers(law, numbers)
    doubt = _doubts(float_down(1 - sure))
    low, high = stated.spread(doubt["spread"] / 2)
    return Residuals(
        values=len(numbers),
        confidence=sure,
        p_values={
            "spread": _both(*stated.spread_tails()),
            "cells": _cells(*stated.cells(), len(numbers)),
            "repeats": _repeats(stated, numbers),
            "order": _order(numbers),
        },
        spread=(low, high),
    )


class _Stated(Protocol):
    """The stated noise beside the numbers that are tested."""

    def spread_tails(self) -> tuple[float, float]:
        """P(a spread of at most, at least the one seen)."""
        ...

    def spread(self, miss: float) -> tuple[float, float]:
        """Bounds of the ratio of the true to the stated scale, each wrong with at most ``miss``."""
        ...

    def cells(self) -> tuple[NDArray[np.int64], Floats, Floats]:
        """Counts in cells that are fixed beforehand, with bounds of the cells' probabilities."""
        ...

    def chances(self, values: Floats) -> Floats:
        """An upper bound of the probability of each of these values."""
        ...


class _Normal:
    """Normal noise: the sum of squares has a chi squared law."""

    def __init__(self, sigma: float, numbers: Floats) -> None:
        self._sigma = sigma
        self._numbers = numbers
        self._square = float(np.sum((numbers / sigma) ** 2))

    def spread_tails(self) -> tuple[float, float]:
        count = len(self._numbers)
        return float(chdtr(count, self._square)), float(chdtrc(count, self._square))

    def spread(self, miss: float) -> tuple[float, float]:
        count = len(self._numbers)
        most = float(chdtri(count, miss)) * (1 + _SLACK)
        least = 2 * float(gammaincinv(count / 2, miss)) * (1 - _SLACK)
        return math.sqrt(self._square / most), math.sqrt(self._square / least)

    def cells(self) -> tuple[NDArray[np.int64], Floats, Floats]:
        edges = self._sigma * ndtri(np.arange(1, _CELLS) / _CELLS)
        counts = np.bincount(np.searchsorted(edges, self._numbers), minlength=_CELLS)
        exact = np.diff(np.concatenate([[0.0], ndtr(edges / self._sigma), [1.0]]))
        return counts, exact * (1 - _SLACK), exact * (1 + _SLACK)

    def chances(self, values: Floats) -> Floats:
        # on a lattice, its step is at most the least difference between two values
        steps = np.diff(np.unique(self._numbers))
        step = float(steps.min(initial=math.inf))
        most = min(1.0, step / (self._sigma * math.sqrt(2 * math.pi)))
        return np.full(len(values), most)


class _Integers:
    """A symmetric law on the integers: the mean of |x| is bounded by its moments (Chernoff)."""

    def __init__(self, law: Noise, numbers: Floats) -> None:
        if (numbers != np.rint(numbers)).any() or np.abs(numbers).max() > 2**52:
            raise InvalidDeclaration("A value that is no integer.", allowed="integers for a law")
        bounds = [(law.pmf(x), law.pmf(-x)) for x in (1, 2, law.half_width("0.9"))]
        if any(one.lower > other.upper or other.lower > one.upper for one, other in bounds):
            raise InvalidDeclaration("A law that is not symmetric.", allowed="a symmetric law")
        self._law = law
        self._numbers = numbers
        self._mean = float(np.abs(numbers).mean())
        self._sizes = _sizes_of(law)

    def spread_tails(self) -> tuple[float, float]:
        return self._below(self._mean), self._above(self._mean)

    def spread(self, miss: float) -> tuple[float, float]:
        low, high = 0.0, self._sizes.largest
        least = last_point(lambda mean: self._below(mean) <= miss, low, high)
        most = -last_point(lambda mean: self._above(-mean) <= miss, -high, low)
        upper = self._mean / least if least > 0 else math.inf
        return self._mean / most, upper

    def _above(self, mean: float) -> float:
        """P(the mean of |x| is at least ``mean``), bounded from above."""
        return self._chernoff(mean, *self._sizes.upward)

    def _below(self, mean: float) -> float:
        """P(the mean of |x| is at most ``mean``), bounded from above."""
        return self._chernoff(mean, *self._sizes.downward)

    def _chernoff(self, mean: float, tilts: Floats, moments: Floats) -> float:
        count = len(self._numbers)
        exponent = float(np.min(count * (moments - tilts * mean))) + _SLACK
        return min(1.0, math.exp(min(exponent, 0.0)) + count * self._sizes.rest)

    def cells(self) -> tuple[NDArray[np.int64], Floats, Floats]:
        edges, least, most = _cells_of(self._law)
        counts = np.bincount(np.searchsorted(edges, self._numbers), minlength=len(least))
        return counts, least, most

    def chances(self, values: Floats) -> Floats:
        distinct, places = np.unique(values, return_inverse=True)
        chances = np.array([self._law.pmf(int(value)).upper for value in distinct])
        return chances[places]


@dataclass(frozen=True, slots=True)
class _Sizes:
    """What is known of |x|: its moments exp(t |x|) as (t, logarithm), for t above and below 0.

    ``rest`` bounds P(|x| > largest), which the moments leave out.
    """

    upward: tuple[Floats, Floats]
    downward: tuple[Floats, Floats]
    largest: float
    rest: float


@lru_cache(maxsize=8)
def _sizes_of(law: Noise) -> _Sizes:
    """Bounds the moments of |x| from above, by the ends of buckets."""
    last = law.half_width(1 - Fraction(1, 10**15))
    while law.tail(last).upper > 1e-30 and last < 2**60:
        last *= 2
    usual = law.half_width("0.999")
    edges = sorted(
        {-1, last}
        | {usual * step // _USUAL for step in range(_USUAL)}
        | {usual + (last - usual) * step // _RARE for step in range(_RARE)}
    )
    beyond = [Bracket(1.0, 1.0), *(law.tail(edge) for edge in edges[1:])]
    tails = np.array([bounds.upper for bounds in beyond])
    lower = np.array([bounds.lower for bounds in beyond])
    masses = np.maximum(tails[:-1] - lower[1:], 0) * (1 + _SLACK)
    ends = np.array(edges, np.float64)
    least, most = ends[:-1] + 1, ends[1:]
    tilts = _TILTS / max(float(masses @ most), 1e-9)
    return _Sizes(
        upward=(tilts, _log_moments(tilts, most, masses)),
        downward=(-tilts, _log_moments(-tilts, least, masses)),
        largest=float(last),
        rest=float(tails[-1]),
    )


@lru_cache(maxsize=8)
def _cells_of(law: Noise) -> tuple[list[int], Floats, Floats]:
    """The upper edges of cells, all but the last, and bounds of the probabilities of the cells."""
    edges = sorted({law.quantile(Fraction(step, _CELLS)) for step in range(1, _CELLS)})
    below = [law.cdf(edge) for edge in edges]
    lower = np.array([0.0, *(bound.lower for bound in below), 1.0])
    upper = np.array([0.0, *(bound.upper for bound in below), 1.0])
    least = np.maximum(lower[1:] - upper[:-1], 0)
    most = np.minimum(upper[1:] - lower[:-1], 1)
    return edges, least, most


def _log_moments(tilts: Floats, sizes: Floats, masses: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        logs = np.outer(tilts, sizes) + np.log(masses)
    largest = logs.max(axis=1)
    moments: Floats = largest + np.log(np.exp(logs - largest[:, None]).sum(axis=1))
    return moments


def _doubts(doubt: float) -> dict[str, float]:
    """How the doubt is divided: half of it is for the spread."""
    return {"spread": doubt / 2, "cells": doubt / 6, "repeats": doubt / 6, "order": doubt / 6}


def _both(below: float, above: float) -> float:
    """The p-value of a test of both directions."""
    return min(1.0, 2 * min(below, above) * (1 + _SLACK))


def _cells(counts: NDArray[np.int64], least: Floats, most: Floats, total: int) -> float:
    """The p-value of the cell that is furthest off; each is binomial."""
    smallest = 1.0
    for count, low, high in zip(counts.tolist(), least, most, strict=True):
        too_many = _binomial_tail(count, total, high)
        too_few = _binomial_tail(total - count, total, 1 - low)
        smallest = min(smallest, too_many, too_few)
    return min(1.0, 2 * len(counts) * smallest)


def _repeats(stated: _Stated, numbers: Floats) -> float:
    """The p-value of equal values, of neighbours and of the two halves, the less probable one.

    Given one value of each pair, the other is equal with its probability under the law.
    """
    half = len(numbers) // 2
    pairs = (
        (numbers[0 : 2 * half : 2], numbers[1 : 2 * half : 2]),
        (numbers[:half], numbers[half : 2 * half]),
    )
    smallest = 1.0
    for first, second in pairs:
        equal = int((first == second).sum())
        mean = min(1.0, float(stated.chances(first).mean()) * (1 + _SLACK))
        # Hoeffding (1956): beyond its mean, such a sum is at most as spread as a binomial
        if equal >= half * mean + 1:
            smallest = min(smallest, _binomial_tail(equal, half, mean))
    return min(1.0, 2 * smallest)


def _order(numbers: Floats) -> float:
    """The p-value of the signs of neighbours: products of signs are independent fair coins."""
    signs = np.sign(numbers[numbers != 0])
    alike = int((signs[:-1] == signs[1:]).sum())
    pairs = max(len(signs) - 1, 0)
    more, fewer = _binomial_tail(alike, pairs, 0.5), _binomial_tail(pairs - alike, pairs, 0.5)
    return _both(fewer, more)


def _binomial_tail(count: int, total: int, chance: float) -> float:
    """P(X >= count), X binomial, bounded from above."""
    if count <= 0 or chance >= 1:
        return 1.0
    return min(1.0, float(betainc(count, total - count + 1, chance)) * (1 + _SLACK))


def _finite(values: ArrayLike) -> Floats:
    """The values as floats; refuses what is no list of finite numbers."""
    numbers = np.asarray(values)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iuf" or not np.isfinite(numbers).all():
        raise InvalidDeclaration(
            f"values of shape {numbers.shape}.", allowed="a list of finite numbers"
        )
    if len(numbers) < _FEWEST:
        raise InvalidNumber(f"{len(numbers)} values.", allowed=f"at least {_FEWEST}")
    return numbers.astype(np.float64)
