# SPDX-License-Identifier: Apache-2.0
"""The interface of a distribution on the integers, and helpers of its implementations."""

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

# The largest array size: at eight bytes an entry it fits a 64-bit size, but no machine's memory.
_MOST = 1 << 60


class Law(Protocol):
    """The interface of a probability distribution on the integers, from which noise is drawn.

    Samples are exact: no probability is rounded. Every ``Bracket`` contains the true value.

    >>> from sfumato.noise import DiscreteLaplace
    >>> law: Law = DiscreteLaplace(1)
    >>> law.half_width("0.95"), law.cdf(0).lower > 0.5
    (3, True)
    """

    def sample(self, shape: Shape, entropy: Entropy = ...) -> Integers:
        """Returns an array of independent exact draws as int64; for scales above 2^52 as Python
        integers (object).
        """
        ...

    def sample_one(self, entropy: Entropy = ...) -> int:
        """Returns one exact draw as an integer."""
        ...

    def pmf(self, x: int) -> Bracket:
        """Returns bounds of P(X = x)."""
        ...

    def cdf(self, x: int) -> Bracket:
        """Returns bounds of P(X <= x)."""
        ...

    def above(self, x: int) -> Bracket:
        """Returns bounds of P(X > x), with a small relative error even in the far tail."""
        ...

    def tail(self, half_width: int) -> Bracket:
        """Returns bounds of P(|X| > half_width)."""
        ...

    def quantile(self, probability: Number) -> int:
        """Returns the smallest x with P(X <= x) >= probability; the result is proved not to be too
        small.
        """
        ...

    def half_width(self, confidence: Number) -> int:
        """Returns the smallest h with P(|X| <= h) >= confidence; the result is proved not to be too
        small.
        """
        ...

    @property
    def variance(self) -> Bracket:
        """Bounds of the variance."""
        ...


def size_of(shape: Shape) -> int:
    """Returns the number of entries of a shape; raises ``InvalidNumber`` for an invalid shape.

    >>> size_of((3, 4)), size_of(0)
    (12, 0)
    """
    if type(shape) is int and 0 <= shape <= _MOST:
        return shape
    sides = shape if isinstance(shape, tuple) else (shape,)
    if not all(map(_is_length, sides)):
        raise InvalidNumber(
            f"shape = {shown(shape)}.", allowed="an integer >= 0, or a tuple of them"
        )
    size = math.prod(int(side) for side in sides)
    if size > _MOST or any(side > _MOST for side in sides):
        raise InvalidNumber(
            f"shape = {shown(shape)} has more than 2^60 entries.", allowed="what fits the memory"
        )
    return size


def _is_length(side: object) -> bool:
    """Whether ``side`` is an integer >= 0, of Python or of numpy."""
    if isinstance(side, bool) or not isinstance(side, int | np.integer):
        return False
    return bool(side >= 0)


def open_unit(name: str, value: Number) -> Fraction:
    """Returns a probability as an exact number, if it is in (0, 1 - 1e-15]; else raises
    InvalidNumber.
    """
    exact = to_fraction(name, value)
    return positive(name, exact, at_most=1 - Fraction(1, 10**15))


def bracket(lower: Fraction, upper: Fraction) -> Bracket:
    """Returns bounds of a probability as floats in [0, 1], rounded outward."""
    least = max(float_down(lower), 0.0)
    most = min(float_up(upper), 1.0)
    return Bracket(least, most)


def quantile_of(cdf: Callable[[int], Bracket], probability: Number, *, guess: int = 0) -> int:
    """Returns the smallest x with a proved P(X <= x) >= ``probability``; ``guess`` only saves time."""
    target = open_unit("probability", probability)

    def reaches(x: int) -> bool:
        return cdf(x).lower >= target

    return smallest(reaches, below=guess)


def half_width_of(tail: Callable[[int], Bracket], confidence: Number, *, guess: int = 0) -> int:
    """Returns the smallest h with a proved P(|X| <= h) >= ``confidence``; ``guess`` only saves
    time.
    """
    miss = 1 - open_unit("confidence", confidence)

    def suffices(half_width: int) -> bool:
        return tail(half_width).upper <= miss

    return smallest(suffices, below=guess)
