# SPDX-License-Identifier: Apache-2.0
"""Proved bounds of the tail of the standard normal distribution, and of its inverse.

Neither libm nor a table is used: a series of positive terms near 0, a continued fraction elsewhere,
both in decimal intervals that round outward. Proof: normal.proof.md.
"""

import math
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist

from sfumato.accounting.decimals import DOWN, UP, above, below, exp_above, exp_below
from sfumato.exact.rounding import log_down, log_up, sqrt_up

# sqrt(2 pi), rounded down and up after 35 digits.
_ROOT_DOWN = Decimal("2.50662827463100050241576528481104525")
_ROOT_UP = Decimal("2.50662827463100050241576528481104526")
_HALF = Fraction(1, 2)
# Below these, floats and our exponentials are treated as zero.
_FLOAT_SIGHT = Fraction(1, 10**300)
_SIGHT = Fraction(1, 10**4000)

_NOTHING = Decimal("1e-36")

_Bounds = tuple[Fraction, Fraction]


@lru_cache(maxsize=4096)
def normal_tail(x: Fraction) -> _Bounds:
    """Returns lower and upper bounds of P(Z > x), Z standard normal, within 1e-24 relative.

    For |x| <= 100.

    Guarantees:
        the normal tail lies between its bounds

    >>> lower, upper = normal_tail(Fraction(2))
    >>> float(lower), float(upper)
    (0.0227501319481792..., 0.0227501319481792...)
    """
    if x < 0:
        lower, upper = normal_tail(-x)
        return 1 - upper, 1 - lower
    if x < 1:
        return _HALF - Fraction(UP.multiply(_density_up(x), _central(UP, x))), _tail_up(x)
    return Fraction(DOWN.divide(_density_down(x), _hazard(x)[1])), _tail_up(x)


@lru_cache(maxsize=4096)
def normal_excess(near: Fraction, far: Fraction) -> _Bounds:
    """Returns lower and upper bounds of P(Z > near) - e^((far^2 - near^2)/2) P(Z > far).

    near < far, far > 0. It is the hockey-stick divergence of two normals, computed without
    e^(far^2/2).

    Guarantees:
        the excess lies between its bounds
    """
    lower, upper = normal_tail(near)
    least, most = _hazard(far) if far >= 1 else _ratio(far)
    taken = UP.divide(_density_up(near), least), DOWN.divide(_density_down(near), most)
    return lower - Fraction(taken[0]), upper - Fraction(taken[1])


def _ratio(x: Fraction) -> tuple[Decimal, Decimal]:
    """density(x) / P(Z > x), 0 <= x < 1."""
    lower, upper = normal_tail(x)
    return DOWN.divide(_density_down(x), above(upper)), UP.divide(_density_up(x), below(lower))


def _tail_up(x: Fraction) -> Fraction:
    """The upper bound, x >= 0."""
    if x < 1:
        return _HALF - Fraction(DOWN.multiply(_density_down(x), _central(DOWN, x)))
    return Fraction(UP.divide(_density_up(x), _hazard(x)[0]))


def normal_point(chance: Fraction) -> Fraction:
    """Returns nearly the smallest t >= 0 with P(Z > t) <= ``chance``; 0 < ``chance`` <= 1/2.

    Guarantees:
        the normal point is beyond its chance

    >>> round(float(normal_point(Fraction(1, 40))), 6)
    1.959964
    """
    if chance >= _HALF:
        return Fraction(0)
    if chance < _SIGHT:
        return _start(chance)
    point, slack = (
        _from_float(chance) if chance > _FLOAT_SIGHT else (_from_above(chance), Fraction(1, 2**120))
    )
    while _tail_up(point) > chance:
        point, slack = point + slack, 16 * slack
    return point


def _from_float(chance: Fraction) -> tuple[Fraction, Fraction]:
    """A float quantile with a margin for its error, and a step to increase it by."""
    start = -NormalDist().inv_cdf(float(chance))
    slack = Fraction(2.0**-50 * (start + 2.0**-3))
    return max(Fraction(start), Fraction(0)) + slack, slack


def _from_above(chance: Fraction) -> Fraction:
    """Newton's method on ln P, from above."""
    point, target = _start(chance), log_down(chance)
    for _ in range(7):
        lower, upper = normal_tail(point)
        point = _cut(point + (log_up(upper) - target) * lower / Fraction(_density_up(point)))
    return point


def _start(chance: Fraction) -> Fraction:
    """sqrt(2 ln(1/(2 chance))), where the tail is at most ``chance``: P(Z > t) <= e^(-t^2/2) /
    2.
    """
    return sqrt_up(2 * log_up(1 / (2 * chance)))


def _cut(point: Fraction) -> Fraction:
    return Fraction(math.floor(max(point, Fraction(0)) * 2**120), 2**120)


def _density_up(x: Fraction) -> Decimal:
    """e^(-x^2/2) / sqrt(2 pi)."""
    return UP.divide(exp_above(-x * x / 2), _ROOT_DOWN)


def _density_down(x: Fraction) -> Decimal:
    return DOWN.divide(exp_below(-x * x / 2), _ROOT_UP)


def _central(context: Context, x: Fraction) -> Decimal:
    """(P(Z <= x) - 1/2) / density(x) = x + x^3/3 + x^5/(3 5) + ..., 0 <= x < 1."""
    total = term = context.divide(Decimal(x.numerator), Decimal(x.denominator))
    square = context.multiply(term, term)
    index = 3
    while term > _NOTHING:
        term = context.divide(context.multiply(term, square), Decimal(index))
        total = context.add(total, term)
        index += 2
    # each further term is less than a third of the one before
    return context.add(total, term) if context is UP else total


def _hazard(x: Fraction) -> tuple[Decimal, Decimal]:
    """density(x) / P(Z > x) = x + 1/(x + 2/(x + 3/(x + ...))), x >= 1, from a rough value of the
    tail.
    """
    low, high = below(x), above(x)
    depth = 16 + math.ceil(1600 / min(x, Fraction(26)) ** 2)
    under, over = low, UP.add(high, UP.divide(Decimal(depth + 1), low))
    for step in range(depth, 0, -1):
        count = Decimal(step)
        under, over = DOWN.add(low, DOWN.divide(count, over)), UP.add(high, UP.divide(count, under))
    return under, over
