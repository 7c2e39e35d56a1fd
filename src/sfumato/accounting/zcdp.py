# SPDX-License-Identifier: Apache-2.0
"""The conversions to and from zCDP that a charge needs: pure to zCDP, zCDP to (epsilon, delta).

A charge rests on these alone; the conversions between all other guarantees are in ``convert``.
Each rounds outward. Proof: zcdp.proof.md.
"""

import math
from collections.abc import Callable
from fractions import Fraction

from sfumato.exact.rational import Number, positive, to_fraction
from sfumato.exact.rounding import log_up
from sfumato.privacy.guarantee import ApproxDP, PureDP, ZeroConcentratedDP

# A larger number would overflow a float; these floats only guide the search for an order.
_LARGE = Fraction(10**100)


def zcdp_from_pure(guarantee: PureDP) -> ZeroConcentratedDP:
    """epsilon-DP implies epsilon^2/2-zCDP (Bun and Steinke 2016, Proposition 1.4).

    >>> zcdp_from_pure(PureDP(Fraction(1, 10))).rho
    Fraction(1, 200)
    """
    return ZeroConcentratedDP(guarantee.epsilon**2 / 2)


def approx_from_zcdp(
    guarantee: ZeroConcentratedDP, delta: Fraction, order: Fraction | None = None
) -> ApproxDP:
    """Returns the (epsilon, delta) guarantee that zCDP implies at a delta, by ``order`` or the best
    one.

    Source: Canonne, Kamath, Steinke (2020), Proposition 12 with the bound of one order. Valid at
    every order > 1, so the search for the best needs no proof.

    >>> round(float(approx_from_zcdp(ZeroConcentratedDP("0.5"), "1e-6").epsilon), 4)
    5.2215
    """
    slack = delta_to_spend(guarantee.rho, delta)
    if guarantee.rho == 0 or slack == 1:
        return ApproxDP(Fraction(0), slack)
    rho = float(min(guarantee.rho, _LARGE))
    cost = _float_cost(slack)
    chosen = order or order_of_least(lambda gap: cost(gap) + (1 + gap) * rho)
    epsilon = chosen * guarantee.rho + conversion_cost(slack, chosen)
    return ApproxDP(max(epsilon, Fraction(0)), slack)


def zcdp_within(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Returns the largest rho for which rho-zCDP, converted at one order, implies (epsilon,
    delta)-DP; <= 0 if there is none.

    Guarantees:
        the zcdp within an approximate guarantee converts to at most its epsilon

    >>> round(float(zcdp_within(Fraction(1), Fraction(1, 10**6))), 5)
    0.02436
    """
    order = order_of_least(_per_rho(epsilon, delta))
    return (epsilon - conversion_cost(delta, order)) / order


def conversion_cost(delta: Fraction, order: Fraction) -> Fraction:
    """Returns an upper bound of c such that rho-zCDP implies (order * rho + c, delta)-DP.

    c = (ln(1/delta) - ln(order)) / (order - 1) + ln(1 - 1/order).
    """
    return log_up(1 / (delta * order)) / (order - 1) + log_up(1 - 1 / order)


def order_for(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Returns the Renyi order at which a budget of (epsilon, delta) allows the most rho; fixed once
    per account.
    """
    return _rounded(_coarse(_per_rho(epsilon, delta)) / 16, 20)


def order_of_least(score: Callable[[float], float]) -> Fraction:
    """Returns an order that nearly minimises ``score``, a function of the order's distance from 1.

    Floats are enough: any order gives a sound conversion, a worse one only a looser one.
    """
    best = _coarse(score) / 16
    finer = (best + part / 512 for part in range(-32, 33))
    _, octaves = min((score(2.0**octaves), octaves) for octaves in finer)
    return _rounded(octaves, 40)


def delta_to_spend(cost: Fraction, delta: Number) -> Fraction:
    """Returns the delta of a conversion as a fraction; it must be above 0 if there is a zCDP cost,
    since that implies no pure loss.

    Raises:
        InvalidNumber: delta is 0 or less, or above 1, for a cost above 0.
    """
    slack = to_fraction("delta", delta)
    if cost == 0 and slack == 0:
        return slack
    return positive("delta", slack, at_most=Fraction(1))


def _per_rho(epsilon: Fraction, delta: Fraction) -> Callable[[float], float]:
    """Minus the rho that (epsilon, delta) buys at an order, in floats, of its gap from 1."""
    loss = float(min(epsilon, _LARGE))
    cost = _float_cost(delta)
    return lambda gap: (cost(gap) - loss) / (1 + gap)


def _float_cost(delta: Fraction) -> Callable[[float], float]:
    """``conversion_cost`` in floats, of the gap from 1."""
    log_delta = math.log(delta.numerator) - math.log(delta.denominator)
    return lambda gap: (-log_delta - math.log1p(gap)) / gap + math.log(gap / (1 + gap))


def _coarse(score: Callable[[float], float]) -> int:
    """The index of the best gap on a grid of sixteenths of octaves, from 2^-16 on."""
    grid = range(-16 * 16, 60 * 16)
    _, step = min((score(2.0 ** (step / 16)), step) for step in grid)
    return step


def _rounded(octaves: float, places: int) -> Fraction:
    """Returns the order that is 2^octaves above 1, with so many binary places."""
    gap = round(2.0 ** (octaves + places))
    least = 2 ** (places - 16)
    return 1 + Fraction(max(gap, least), 2**places)
