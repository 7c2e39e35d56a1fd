# SPDX-License-Identifier: Apache-2.0
"""What every distribution of this room states about itself."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidNumber, shown
from sfumato.exact.bracket import Bracket
from sfumato.exact.rational import Number, positive, to_fraction
from sfumato.exact.rounding import float_down, float_up
from sfumato.noise.entropy import Entropy
from sfumato.noise.search import smallest

Integers: TypeAlias = NDArray[np.int64]
Shape: TypeAlias = int | tuple[int, ...]

# 8 EiB of int64; no machine holds it, and its product with 8 still fits 64 bits.
_MOST = 1 << 60


class Law(Protocol):
    """A distribution on the integers: drawn exactly, stated with outward bounds."""

    def sample(self, shape: Shape, entropy: Entropy = ...) -> Integers:
        """Independent exact draws as int64; as Python integers (dtype object) where a scale is beyond 2^52."""
        ...

    def sample_one(self, entropy: Entropy = ...) -> int:
        """One exact draw."""
        ...

    def pmf(self, x: int) -> Bracket:
        """P(X = x)."""
        ...

    def cdf(self, x: int) -> Bracket:
        """P(X <= x)."""
        ...

    def above(self, x: int) -> Bracket:
        """P(X > x), precise also where it is tiny."""
        ...

    def tail(self, half_width: int) -> Bracket:
        """P(|X| > half_width)."""
        ...

    def quantile(self, probability: Number) -> int:
        """The smallest x with P(X <= x) >= probability, certain not to be too small."""
        ...

    def half_width(self, confidence: Number) -> int:
        """The smallest h with P(|X| <= h) >= confidence, certain not to be too small."""
        ...

    @property
    def variance(self) -> Bracket:
        """The variance."""
        ...


def size_of(shape: Shape) -> int:
    """The number of draws of a shape, or ``InvalidNumber`` for one that cannot be.

    >>> size_of((3, 4)), size_of(0)
    (12, 0)
    """
    if type(shape) is int and 0 <= shape <= _MOST:
        return shape
    sides = shape if isinstance(shape, tuple) else (shape,)
    if not all(
        isinstance(side, int | np.integer) and not isinstance(side, bool) and side >= 0
        for side in sides
    ):
        raise InvalidNumber(
            f"shape = {shown(shape)}.", allowed="an integer >= 0, or a tuple of them"
        )
    size = math.prod(int(side) for side in sides)
    if size > _MOST or any(side > _MOST for side in sides):
        raise InvalidNumber(
            f"shape = {shown(shape)} has more than 2^60 entries.", allowed="what fits the memory"
        )
    return size


def open_unit(name: str, value: Number) -> Fraction:
    """A probability in (0, 1 - 1e-15]."""
    return positive(name, to_fraction(name, value), at_most=1 - Fraction(1, 10**15))


def bracket(lower: Fraction, upper: Fraction) -> Bracket:
    """Bounds of a probability as floats, rounded outward into [0, 1]."""
    return Bracket(max(float_down(lower), 0.0), min(float_up(upper), 1.0))


def quantile_of(cdf: Callable[[int], Bracket], probability: Number, *, guess: int = 0) -> int:
    """The smallest x whose cdf is certain to reach ``probability``."""
    target = open_unit("probability", probability)
    return smallest(lambda x: cdf(x).lower >= target, below=guess)


def half_width_of(tail: Callable[[int], Bracket], confidence: Number, *, guess: int = 0) -> int:
    """The smallest h whose tail is certain to be within 1 - ``confidence``."""
    miss = 1 - open_unit("confidence", confidence)
    return smallest(lambda h: tail(h).upper <= miss, below=guess)
