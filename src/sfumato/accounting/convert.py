# SPDX-License-Identifier: Apache-2.0
"""Conversions between guarantees, each by name with its theorem, each rounding outward.

Proof: convert.proof.md.
"""

import math
from fractions import Fraction

from sfumato.exact.rounding import log_up
from sfumato.privacy.guarantee import ApproxDP, PureDP, ZeroConcentratedDP


def zcdp_from_pure(guarantee: PureDP) -> ZeroConcentratedDP:
    """epsilon-DP implies epsilon^2/2-zCDP (Bun and Steinke 2016, Proposition 1.4).

    >>> zcdp_from_pure(PureDP(Fraction(1, 10))).rho
    Fraction(1, 200)
    """
    return ZeroConcentratedDP(guarantee.epsilon**2 / 2)


def approx_from_zcdp(guarantee: ZeroConcentratedDP, delta: Fraction, order: Fraction | None = None) -> ApproxDP:
    """The smallest epsilon of (epsilon, delta)-DP at ``order``, or at the best one.

    Source: Canonne, Kamath, Steinke (2020), Proposition 12 with the bound of one order.
    Valid at every order > 1, so the search for the best needs no proof.
    """
    chosen = order or _best_order(delta, rho=float(guarantee.rho))
    return ApproxDP(max(chosen * guarantee.rho + conversion_cost(delta, chosen), Fraction(0)), delta)


def conversion_cost(delta: Fraction, order: Fraction) -> Fraction:
    """c with: rho-zCDP implies (order * rho + c, delta)-DP; an upper bound.

    c = (ln(1/delta) - ln(order)) / (order - 1) + ln(1 - 1/order).
    """
    return log_up(1 / (delta * order)) / (order - 1) + log_up(1 - 1 / order)


def order_for(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The order at which (epsilon, delta) buys the most rho; fixed once per account."""
    return _best_order(delta, epsilon=float(epsilon))


def _best_order(delta: Fraction, *, rho: float | None = None, epsilon: float | None = None) -> Fraction:
    """A near-best order on a grid of sixteenths of an octave of (order - 1).

    Floats are enough: any order gives a sound conversion, a worse one only a looser one.
    """
    log_delta = math.log(delta.numerator) - math.log(delta.denominator)

    def score(gap: float) -> float:
        order = 1 + gap
        cost = (-log_delta - math.log(order)) / gap + math.log1p(-1 / order)
        return (cost - epsilon) / order if epsilon is not None else cost + order * (rho or 0.0)

    steps = range(-40 * 16, 60 * 16)
    best = min((score(2.0 ** (step / 16)), step) for step in steps)[1]
    return 1 + Fraction(round(2.0 ** (best / 16) * 2**20), 2**20) if best > -16 * 16 else 1 + Fraction(1, 2**16)
