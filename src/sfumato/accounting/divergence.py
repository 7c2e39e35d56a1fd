# SPDX-License-Identifier: Apache-2.0
"""Renyi divergences of order a > 1 of simple distributions, in closed form, rounded up.

Fractions in and out, decimals in between, since a filter computes one for each charge. Arguments
are not checked here (``convert`` and ``renyi`` do). Proof: divergence.proof.md.
"""

from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from sfumato.accounting.decimals import DOWN, ONE, UP, above, exp_above, exp_below, log_above

# Above this epsilon, e^epsilon would be a number of thousands of digits, and the protection is nil.
HUGE = 10_000
_HALF = Fraction(1, 2)


def pure_divergence(epsilon: Fraction, order: Fraction) -> Fraction:
    """Returns the largest Renyi divergence of this order between P and Q whose privacy loss is at
    most epsilon, attained by randomised response.

    ln(cosh((a - 1/2) epsilon) / cosh(epsilon/2)) / (a - 1).

    Guarantees:
        no pure loss diverges more

    >>> round(float(pure_divergence(Fraction(1), Fraction(2))), 6)
    0.735326
    """
    rough = min(epsilon, order * epsilon**2 / 2)
    if order * epsilon > HUGE:
        return rough
    rising, falling = exp_above((order - _HALF) * epsilon), max(exp_below(epsilon / 2), ONE)
    over, under = (
        UP.add(rising, UP.divide(ONE, rising)),
        DOWN.add(falling, DOWN.divide(ONE, falling)),
    )
    return _least(rough, UP.divide(over, under), order)


def range_divergence(eta: Fraction, order: Fraction) -> Fraction:
    """Returns the largest Renyi divergence of this order between P and Q whose privacy losses lie
    in an interval of length eta.

    Source: Dong, Durfee, Rogers 2020.

    Guarantees:
        no bounded range diverges more

    >>> round(float(range_divergence(Fraction(1), Fraction(2))), 6)
    0.240229
    """
    rough = min(eta, order * eta**2 / 8)
    if order * eta > HUGE:
        return rough
    rest = (1 - order) * eta
    falling, width = DOWN.subtract(ONE, exp_above(rest)), DOWN.subtract(exp_below(eta), ONE)
    if falling <= 0 or width <= 0:
        return rough
    rising = UP.subtract(exp_above(eta), exp_below(rest))
    one, other = _shares(order)
    first = log_above(UP.divide(UP.multiply(one, rising), width))
    second = log_above(UP.divide(UP.multiply(other, rising), falling))
    return min(max(Fraction(first) / (order - 1) + Fraction(second), Fraction(0)), rough)


def laplace_divergence(
    epsilon: Fraction, order: Fraction, scale: Fraction | None = None
) -> Fraction:
    """Returns the Renyi divergence between Laplace noise and the same noise shifted by epsilon
    times its scale.

    With a ``scale`` the noise is discrete. ln(A e^((a-1) epsilon) + (1 - A) e^(-a epsilon)) / (a -
    1), A = a/(2a - 1) (Mironov 2017, Proposition 6); on the integers A = (g +
    (1-g)/(1-g^(2a-1)))/(1+g), g = e^(-1/scale).

    Guarantees:
        laplace noise diverges no more
    """
    rough = min(epsilon, order * epsilon**2 / 2)
    if order * epsilon > HUGE:
        return rough
    weight = above(order / (2 * order - 1)) if scale is None else _weight(scale, order)
    less = UP.multiply(UP.subtract(ONE, weight), exp_above(-order * epsilon))
    return _least(rough, UP.fma(weight, exp_above((order - 1) * epsilon), less), order)


def response_divergence(epsilon: Fraction, categories: int, order: Fraction) -> Fraction:
    """Returns the Renyi divergence of randomised response among k categories, between two true
    values.

    ln((e^(a epsilon) + e^((1-a) epsilon) + k - 2)/(e^epsilon + k - 1)) / (a - 1).

    Guarantees:
        randomised response diverges no more
    """
    rough = min(epsilon, order * epsilon**2 / 2)
    if order * epsilon > HUGE:
        return rough
    over = UP.add(
        exp_above(order * epsilon),
        UP.add(exp_above((1 - order) * epsilon), Decimal(categories - 2)),
    )
    return _least(
        rough, UP.divide(over, DOWN.add(exp_below(epsilon), Decimal(categories - 1))), order
    )


@lru_cache(maxsize=64)
def _shares(order: Fraction) -> tuple[Decimal, Decimal]:
    """Returns 1/a and 1 - 1/a, rounded up; cached, since a filter always uses the same order."""
    return above(1 / order), above(1 - 1 / order)


def _weight(scale: Fraction, order: Fraction) -> Decimal:
    least, most, far = (
        exp_below(-1 / scale),
        exp_above(-1 / scale),
        exp_above((1 - 2 * order) / scale),
    )
    share = (
        min(UP.divide(UP.subtract(ONE, least), DOWN.subtract(ONE, far)), ONE) if far < ONE else ONE
    )
    return min(UP.divide(UP.add(most, share), DOWN.add(ONE, most)), ONE)


def _least(rough: Fraction, moment: Decimal, order: Fraction) -> Fraction:
    return min(max(Fraction(log_above(moment)), Fraction(0)) / (order - 1), rough)
