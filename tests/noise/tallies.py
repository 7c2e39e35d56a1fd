# SPDX-License-Identifier: Apache-2.0
"""Draws counted in cells, against laws in doubles that are worked out here, without sfumato.

A law is given by its tails: for integers e, P(X < e) and P(X >= e), both relatively precise to
about 1e-12. With 1e9 draws the counts tell nothing below 1e-5, so this is the exact law.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from sfumato.noise import SYSTEM, Entropy
from sfumato.testing import assert_counts_follow

Integers: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Tails: TypeAlias = Callable[[Floats], tuple[Floats, Floats]]
Draw: TypeAlias = Callable[[int], Integers]

_AT_ONCE = 1 << 20
_LOW = 1 << 10


def geometric(scale: float) -> Tails:
    """P proportional to e^(-x / scale) on x >= 0."""

    def tails(e: Floats) -> tuple[Floats, Floats]:
        e = np.maximum(e, 0)
        return -np.expm1(-e / scale), np.exp(-e / scale)

    return tails


def laplace(scale: float) -> Tails:
    """P proportional to e^(-|x| / scale)."""

    def tails(e: Floats) -> tuple[Floats, Floats]:
        with np.errstate(over="ignore"):
            left, right = np.exp((e - 1) / scale), np.exp(-e / scale)
        total = 1 + np.exp(-1 / scale)
        return np.where(e < 1, left, total - right) / total, np.where(
            e < 1, total - left, right
        ) / total

    return tails


def gaussian(sigma: float) -> Tails:
    """P proportional to e^(-x^2 / (2 sigma^2)): added up, or, where wide, by the midpoint rule.

    The rule errs by about x / (24 sigma^3) of the probability: below 1e-8 here.
    """
    if sigma > 10_000:
        return lambda e: (stats.norm.cdf((e - 0.5) / sigma), stats.norm.sf((e - 0.5) / sigma))
    return added_up(lambda x: np.exp(-x * x / (2 * sigma * sigma)), int(40 * sigma) + 4)


def added_up(weight: Callable[[Floats], Floats], reach: int) -> Tails:
    """P proportional to ``weight`` on -reach .. reach."""
    weights = weight(np.arange(-reach, reach + 1, dtype=np.float64))
    below = np.concatenate(([0.0], np.cumsum(weights)))
    beyond = np.concatenate(([0.0], np.cumsum(weights[::-1])))[::-1]

    def tails(e: Floats) -> tuple[Floats, Floats]:
        place = np.clip(e + reach, 0, len(weights)).astype(np.int64)
        return below[place] / below[-1], beyond[place] / below[-1]

    return tails


@dataclass(frozen=True)
class Case:
    """A law, a wrong one that must be noticed, and cells of 2^shift integers from -half to half,
    and two beyond.
    """

    right: Tails
    wrong: Tails
    shift: int
    half: int

    def count(self, draws: Integers) -> Integers:
        """How many draws fall into each cell."""
        place = np.clip((draws >> self.shift) + self.half, -1, 2 * self.half) + 1
        return np.bincount(place.astype(np.int64), minlength=2 * self.half + 2)

    def cells(self, tails: Tails) -> Floats:
        """The probability of each cell."""
        edges = np.arange(-self.half, self.half + 1, dtype=np.float64) * 2.0**self.shift
        below, beyond = tails(edges)
        inner = np.where(below[1:] < 0.5, np.diff(below), -np.diff(beyond))
        return np.concatenate(([below[0]], inner, [beyond[-1]]))


def case(law: Callable[[float], Tails], width: float, wrong_width: float, reach: int = 48) -> Case:
    """The law of a width; cells are a 256th to a 512th of it, finer than the blocks of the
    engine.
    """
    shift = max(int(width / 256).bit_length() - 1, 0)
    return Case(law(width), law(wrong_width), shift, int((reach * width + 8) / 2**shift) + 1)


def counted(count: Callable[[Integers], Integers], draw: Draw, n: int) -> Integers:
    """The counts of ``n`` draws, made a few at a time."""
    return sum(count(draw(min(_AT_ONCE, n - start))) for start in range(0, n, _AT_ONCE))


def plainly(sampler: Callable[[Fraction, Entropy], int], number: Fraction) -> Draw:
    """Draws of a slow sampler, one by one."""
    return lambda count: np.array([sampler(number, SYSTEM) for _ in range(count)])


def assert_draws_follow(case: Case, draw: Draw, n: int) -> None:
    """Fails unless ``n`` draws follow the law, and are enough to notice the wrong one."""
    assert_counts_follow(
        counted(case.count, draw, n), case.cells(case.right), notices=case.cells(case.wrong)
    )


def assert_low_bits_follow(law: Floats, draw: Draw, n: int) -> None:
    """Fails unless the ten lowest bits of ``n`` draws have this law, together and each alone.

    Sure to notice any bit that is 1% more often one, and a value in 1024 that never comes.
    """
    low_bits = partial(np.bincount, minlength=_LOW)
    counts = counted(lambda draws: low_bits(draws % _LOW), draw, n)
    never = np.where(np.arange(_LOW) == 5, 0.0, law)
    assert_counts_follow(counts, law, notices=never / never.sum(), false_alarm=5e-11)
    for bit in range(10):
        ones = np.arange(_LOW) >> bit & 1 == 1
        heads, chance = counts[ones].sum(), law[ones].sum()
        wrong = 1.01 * chance
        assert_counts_follow(
            [n - heads, heads], [1 - chance, chance], notices=[1 - wrong, wrong], false_alarm=5e-11
        )


def low_bits_of_laplace(scale: float) -> Floats:
    """P(X mod 1024 = r) = (1-g)/(1+g) (g^r + g^(1024-r)) / (1 - g^1024)."""
    r = np.arange(_LOW)
    weights = np.exp(-r / scale) + np.exp(-(_LOW - r) / scale)
    return weights / weights.sum()


def low_bits_of_geometric(scale: float) -> Floats:
    """P(X mod 1024 = r) proportional to g^r."""
    weights = np.exp(-np.arange(_LOW) / scale)
    return weights / weights.sum()


def low_bits_of_gaussian(sigma: float) -> Floats:
    """1/1024 each, by Poisson summation within 2 e^(-2 pi^2 sigma^2 / 2^20).

    Sigma >= 2000 makes that e^-75.
    """
    assert sigma >= 2000
    return np.full(_LOW, 1 / _LOW)
