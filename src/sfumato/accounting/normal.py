# SPDX-License-Identifier: Apache-2.0
"""The tail of the standard normal law between proved bounds, and its inverse.

No libm and no table: a series of positive terms near 0, a continued fraction beyond, both
in decimal intervals that round outward. Proof: normal.proof.md.
"""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist

from sfumato.exact.rounding import exp_down, exp_up, log_down, log_up, sqrt_up

_DOWN = Context(prec=50, rounding=ROUND_FLOOR, Emin=-(10**9), Emax=10**9, traps=[])
_UP = Context(prec=50, rounding=ROUND_CEILING, Emin=-(10**9), Emax=10**9, traps=[])
# sqrt(2 pi), cut after 60 places and one more
_ROOT_DOWN = Fraction("2.506628274631000502415765284811045253006986740609938316629923")
_ROOT_UP = _ROOT_DOWN + Fraction(1, 10**60)
# where floats, and where our exponentials, are zero
_FLOAT_SIGHT = Fraction(1, 10**300)
_SIGHT = Fraction(1, 10**4000)

_Bounds = tuple[Fraction, Fraction]


@lru_cache(maxsize=4096)
def normal_tail(x: Fraction) -> _Bounds:
    """Lower and upper bounds of P(Z > x), Z standard normal; within 1e-24 relative for |x| <= 100.

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
        low, high = _density(x)
        below, above = _central(x)
        return Fraction(1, 2) - high * above, Fraction(1, 2) - low * below
    low, high = _density(x)
    below, above = _hazard(x)
    return low / above, high / below


def normal_point(chance: Fraction) -> Fraction:
    """t >= 0 with P(Z > t) <= ``chance``, nearly the smallest; 0 < ``chance`` <= 1/2.

    Guarantees:
        the normal point is beyond its chance

    >>> round(float(normal_point(Fraction(1, 40))), 6)
    1.959964
    """
    if chance < _SIGHT:
        return _start(chance)
    point = _from_float(chance) if chance > _FLOAT_SIGHT else _from_above(chance)
    slack = Fraction(1, 2**120)
    while normal_tail(point)[1] > chance:
        point, slack = point + slack, 16 * slack
    return point


def _from_float(chance: Fraction) -> Fraction:
    """One of Newton's steps from a float."""
    start = Fraction(-NormalDist().inv_cdf(float(chance)))
    return _cut(start + (normal_tail(start)[1] - chance) / _density(start)[0])


def _from_above(chance: Fraction) -> Fraction:
    """Newton's steps on ln P."""
    point, target = _start(chance), log_down(chance)
    for _ in range(7):
        lower, upper = normal_tail(point)
        point = _cut(point + (log_up(upper) - target) * lower / _density(point)[1])
    return point


def _start(chance: Fraction) -> Fraction:
    """sqrt(2 ln(1/(2 chance))), which is beyond its chance already: P(Z > t) <= e^(-t^2/2) / 2."""
    return sqrt_up(2 * log_up(1 / (2 * chance)))


def _cut(point: Fraction) -> Fraction:
    return Fraction(math.floor(max(point, Fraction(0)) * 2**120), 2**120)


def _density(x: Fraction) -> _Bounds:
    """e^(-x^2/2) / sqrt(2 pi)."""
    power = -x * x / 2
    return exp_down(power) / _ROOT_UP, exp_up(power) / _ROOT_DOWN


def _central(x: Fraction) -> _Bounds:
    """(P(Z <= x) - 1/2) / density(x) = x + x^3/3 + x^5/(3 5) + ..., 0 <= x < 1."""
    low, high = _decimals(x)
    sums = terms = (low, high)
    index = 3
    while terms[1] > Decimal("1e-60"):
        terms = (_next(_DOWN, terms[0], low, index), _next(_UP, terms[1], high, index))
        sums = (_DOWN.add(sums[0], terms[0]), _UP.add(sums[1], terms[1]))
        index += 2
    # each further term is less than a third of the one before
    return Fraction(sums[0]), Fraction(_UP.add(sums[1], terms[1]))


def _next(context: Context, term: Decimal, x: Decimal, index: int) -> Decimal:
    return context.divide(context.multiply(context.multiply(term, x), x), Decimal(index))


def _hazard(x: Fraction) -> _Bounds:
    """density(x) / P(Z > x) = x + 1/(x + 2/(x + 3/(x + ...))), x >= 1, from a tail that is known roughly."""
    low, high = _decimals(x)
    depth = 16 + math.ceil(1600 / min(x, Fraction(26)) ** 2)
    below, above = low, _UP.add(high, _UP.divide(Decimal(depth + 1), low))
    for step in range(depth, 0, -1):
        count = Decimal(step)
        below, above = _DOWN.add(low, _DOWN.divide(count, above)), _UP.add(high, _UP.divide(count, below))
    return Fraction(below), Fraction(above)


def _decimals(x: Fraction) -> tuple[Decimal, Decimal]:
    over, under = Decimal(x.numerator), Decimal(x.denominator)
    return _DOWN.divide(over, under), _UP.divide(over, under)
