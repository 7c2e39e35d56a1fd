# SPDX-License-Identifier: Apache-2.0
"""The least delta that each kind of guarantee gives at an epsilon, rounded up.

``convert`` has the other direction, the least epsilon at a delta. Proof: delta.proof.md.
"""

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from sfumato.accounting.convert import gaussian_bound
from sfumato.accounting.divergence import HUGE
from sfumato.accounting.renyi_to_approx import delta_of_renyi
from sfumato.accounting.zcdp import order_of_least
from sfumato.errors import InvalidDeclaration, shown
from sfumato.exact.rational import Number
from sfumato.exact.rounding import exp_down, exp_up, log_up
from sfumato.privacy.guarantee import (
    ApproxDP,
    BoundedRangeDP,
    GaussianDP,
    Guarantee,
    PureDP,
    RenyiDP,
    ZeroConcentratedDP,
)


def delta_at(guarantee: Guarantee, epsilon: Number) -> ApproxDP:
    """Returns the (epsilon, delta) guarantee with the least delta that follows at an epsilon.

    Guarantees:
        no mechanism of a guarantee exceeds its delta

    >>> delta_at(PureDP(1), 1)
    ApproxDP(epsilon=Fraction(1, 1), delta=Fraction(0, 1))
    """
    rule = _RULES.get(type(guarantee))
    if rule is None:
        raise InvalidDeclaration(
            f"{shown(guarantee)} is no guarantee.",
            allowed=", ".join(kind.__name__ for kind in _RULES),
        )
    loss = PureDP(epsilon).epsilon
    return ApproxDP(loss, min(max(rule(guarantee, loss), Fraction(0)), Fraction(1)))


def _of_approx(guarantee: ApproxDP, epsilon: Fraction) -> Fraction:
    """delta + (1 - delta) (e^own - e^epsilon) / (1 + e^own) (Kairouz, Oh, Viswanath 2015;
    tight).
    """
    if epsilon >= guarantee.epsilon:
        return guarantee.delta
    if guarantee.epsilon > HUGE:
        return Fraction(1)
    return 1 - (1 - guarantee.delta) * (1 + exp_down(epsilon)) / (1 + exp_up(guarantee.epsilon))


def _of_pure(guarantee: PureDP, epsilon: Fraction) -> Fraction:
    """(e^own - e^epsilon) / (1 + e^own), and exactly 0 from its own epsilon on (tight)."""
    return _of_approx(ApproxDP(guarantee.epsilon, 0), epsilon)


def _of_range(guarantee: BoundedRangeDP, epsilon: Fraction) -> Fraction:
    """(e^(eta/2) - e^(epsilon/2))^2 / (e^eta - 1), and exactly 0 for epsilon >= eta (Dong, Durfee,
    Rogers 2020; tight).
    """
    eta = guarantee.eta
    pure = _of_pure(PureDP(eta), epsilon)
    if epsilon >= eta or eta > HUGE or exp_down(eta) <= 1:
        return pure
    return min(pure, (exp_up(eta / 2) - exp_down(epsilon / 2)) ** 2 / (exp_down(eta) - 1))


def _of_zcdp(guarantee: ZeroConcentratedDP, epsilon: Fraction) -> Fraction:
    """The bound of one order (Canonne, Kamath, Steinke 2020, Proposition 12), at the best of a
    grid.
    """
    if guarantee.rho == 0:
        return Fraction(0)
    rho, loss = float(min(guarantee.rho, _LARGE)), float(min(epsilon, _LARGE))

    def score(gap: float) -> float:
        return gap * ((1 + gap) * rho - loss) + _log_peak(gap)

    order = order_of_least(score)
    return _at_order(order, order * guarantee.rho, epsilon)


def _of_renyi(guarantee: RenyiDP, epsilon: Fraction) -> Fraction:
    """The closed form at its order, or the two-point optimum of Asoodeh et al.

    (2021) if smaller.
    """
    if guarantee.epsilon == 0:
        return Fraction(0)
    closed = _at_order(guarantee.order, guarantee.epsilon, epsilon)
    optimum = delta_of_renyi(guarantee.order, guarantee.epsilon, epsilon)
    return closed if optimum is None else min(optimum, closed)


def _of_gaussian(guarantee: GaussianDP, epsilon: Fraction) -> Fraction:
    """P(Z > epsilon/mu - mu/2) - e^epsilon P(Z > epsilon/mu + mu/2) (Balle and Wang 2018;
    tight).
    """
    return gaussian_bound(guarantee.mu_squared, epsilon)[0]


def _at_order(order: Fraction, divergence: Fraction, epsilon: Fraction) -> Fraction:
    """e^((a-1)(divergence - epsilon)) (1 - 1/a)^(a-1) / a; for small epsilon 1 - e^(epsilon -
    divergence).
    """
    below = epsilon - divergence
    if below <= 0 and exp_up(below) <= 1 - 1 / order:
        return 1 - exp_down(below)
    exponent = (order - 1) * (log_up(1 - 1 / order) - below) + log_up(1 / order)
    return Fraction(1) if exponent >= 0 else exp_up(exponent)


def _log_peak(gap: float) -> float:
    order = 1 + gap
    return gap * math.log(gap / order) - math.log(order)


# A larger number would overflow a float; these floats only guide the search for an order.
_LARGE = Fraction(10**100)
_RULES: Mapping[type, Callable[[Any, Fraction], Fraction]] = {
    PureDP: _of_pure,
    BoundedRangeDP: _of_range,
    ApproxDP: _of_approx,
    ZeroConcentratedDP: _of_zcdp,
    RenyiDP: _of_renyi,
    GaussianDP: _of_gaussian,
}
