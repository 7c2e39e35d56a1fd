# SPDX-License-Identifier: Apache-2.0
"""Conversions between kinds of guarantees, each named after its theorem and rounding outward.

``CONVERSIONS`` lists every ordered pair of kinds that has a conversion; for other pairs none holds.
For (epsilon, delta) there are two directions: the least epsilon at a delta (``approx_from_...``,
here), and the least delta at an epsilon (``delta``). Those that a charge needs are in ``zcdp``.
Proof: convert.proof.md.
"""

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from sfumato.accounting.divergence import HUGE, pure_divergence, range_divergence
from sfumato.accounting.normal import normal_point, normal_tail
from sfumato.accounting.renyi_to_approx import epsilon_of_renyi
from sfumato.accounting.zcdp import approx_from_zcdp, conversion_cost, delta_to_spend
from sfumato.accounting.zcdp import zcdp_from_pure as zcdp_from_pure
from sfumato.errors import InvalidNumber
from sfumato.exact.rational import Number
from sfumato.exact.rounding import exp_down, exp_up, log_up, sqrt_down, sqrt_up
from sfumato.privacy.guarantee import (
    ApproxDP,
    BoundedRangeDP,
    GaussianDP,
    PureDP,
    RenyiDP,
    ZeroConcentratedDP,
)

_NEWTON = 12


def pure_from_range(guarantee: BoundedRangeDP) -> PureDP:
    """A range of eta implies eta-DP: 0 is in it (Durfee and Rogers 2019; tight)."""
    return PureDP(guarantee.eta)


def range_from_pure(guarantee: PureDP) -> BoundedRangeDP:
    """epsilon-DP implies a range of 2 epsilon: from -epsilon to epsilon (Durfee and Rogers 2019;
    tight).

    >>> range_from_pure(PureDP("0.1")).eta
    Fraction(1, 5)
    """
    return BoundedRangeDP(2 * guarantee.epsilon)


def tightest_zcdp_from_pure(guarantee: PureDP) -> ZeroConcentratedDP:
    """epsilon-DP implies epsilon tanh(epsilon/2)-zCDP.

    Randomised response attains it as the order nears 1.

    Guarantees:
        the tightest zcdp is above every order of randomised response

    >>> round(float(tightest_zcdp_from_pure(PureDP(2)).rho), 6)
    1.523188
    """
    epsilon = guarantee.epsilon
    if epsilon > HUGE:
        return ZeroConcentratedDP(epsilon)
    return ZeroConcentratedDP(min(epsilon - 2 * epsilon / (exp_up(epsilon) + 1), epsilon**2 / 2))


def zcdp_from_range(guarantee: BoundedRangeDP) -> ZeroConcentratedDP:
    """A range of eta implies eta^2/8-zCDP (Cesar and Rogers 2021).

    >>> zcdp_from_range(BoundedRangeDP(2)).rho
    Fraction(1, 2)
    """
    return ZeroConcentratedDP(guarantee.eta**2 / 8)


def zcdp_from_gaussian(guarantee: GaussianDP) -> ZeroConcentratedDP:
    """mu-GDP implies mu^2/2-zCDP (Dong, Roth, Su 2022, Corollary B.6; tight)."""
    return ZeroConcentratedDP(guarantee.mu_squared / 2)


def renyi_from_pure(guarantee: PureDP, order: Number) -> RenyiDP:
    """The Renyi divergence of randomised response, the largest that epsilon-DP allows (tight).

    ln((e^(a epsilon) + e^((1-a) epsilon)) / (1 + e^epsilon)) / (a - 1): Mironov 2017, Proposition
    5, and Kairouz, Oh, Viswanath 2015, by which randomised response dominates.

    Guarantees:
        randomised response has the largest renyi divergence

    >>> round(float(renyi_from_pure(PureDP(1), 2).epsilon), 6)
    0.735326
    """
    a = _order(order)
    return RenyiDP(a, pure_divergence(guarantee.epsilon, a))


def renyi_from_range(guarantee: BoundedRangeDP, order: Number) -> RenyiDP:
    """The largest Renyi divergence of two losses eta apart (Dong, Durfee, Rogers 2020; tight).

    Guarantees:
        a bounded range has no larger renyi divergence

    >>> round(float(renyi_from_range(BoundedRangeDP(1), 2).epsilon), 6)
    0.240229
    """
    a = _order(order)
    return RenyiDP(a, range_divergence(guarantee.eta, a))


def renyi_from_zcdp(guarantee: ZeroConcentratedDP, order: Number) -> RenyiDP:
    """rho-zCDP is (a, a rho)-Renyi DP at every order a: its definition (Bun and Steinke 2016)."""
    a = _order(order)
    return RenyiDP(a, a * guarantee.rho)


def renyi_from_gaussian(guarantee: GaussianDP, order: Number) -> RenyiDP:
    """mu-GDP is (a, a mu^2/2)-Renyi DP (Dong, Roth, Su 2022, Corollary B.6; tight)."""
    return renyi_from_zcdp(zcdp_from_gaussian(guarantee), order)


def renyi_from_renyi(guarantee: RenyiDP, order: Number) -> RenyiDP:
    """A Renyi guarantee also holds at every smaller order (van Erven and Harremoes 2014, Theorem
    3).

    Raises:
        InvalidNumber: the order is larger than the guarantee's, where nothing follows.
    """
    a = _order(order)
    if a > guarantee.order:
        raise InvalidNumber(
            f"Order {a} from order {guarantee.order}.", allowed="an order of at most the one known"
        )
    return RenyiDP(a, guarantee.epsilon)


def gaussian_from_pure(guarantee: PureDP) -> GaussianDP:
    """epsilon-DP implies mu-GDP with mu = 2 Phi^-1(e^epsilon / (1 + e^epsilon)) (tight).

    The curve of mu passes through the corner of that of randomised response and lies below it
    elsewhere, being convex.

    Guarantees:
        a pure loss is no easier to see than its gaussian

    >>> round(float(gaussian_from_pure(PureDP(1)).mu_squared) ** 0.5, 6)
    1.232035
    """
    if guarantee.epsilon > HUGE:
        return GaussianDP(8 * guarantee.epsilon)
    return GaussianDP(4 * normal_point(1 / (1 + exp_up(guarantee.epsilon))) ** 2)


def gaussian_from_range(guarantee: BoundedRangeDP) -> GaussianDP:
    """A range of eta implies mu-GDP with mu = 2 Phi^-1(e^(eta/2) / (1 + e^(eta/2))) (tight).

    Its trade-off curve is at worst that of a logistic law shifted by eta (Dong, Durfee, Rogers
    2020), which a normal law shifted by mu is below.

    Guarantees:
        a bounded range is no easier to see than its gaussian
    """
    return gaussian_from_pure(PureDP(guarantee.eta / 2))


def approx_from_approx(guarantee: ApproxDP, delta: Number) -> ApproxDP:
    """Returns the least epsilon at a larger delta (tight).

    It is that of randomised response that fails with probability delta, which dominates every
    mechanism of the guarantee (Kairouz, Oh, Viswanath 2015).

    Guarantees:
        an approximate guarantee holds at every larger delta

    Raises:
        InvalidNumber: delta is smaller than the guarantee's, where nothing follows.
    """
    slack, epsilon, own = _delta(delta), guarantee.epsilon, guarantee.delta
    if slack < own:
        raise InvalidNumber(
            f"delta = {slack} from a guarantee of delta = {own}.",
            allowed="at least the guarantee's own delta",
        )
    if slack == 1:
        return ApproxDP(Fraction(0), slack)
    if slack == own or epsilon > HUGE:
        return ApproxDP(epsilon, slack)
    gain = (slack - own) / (1 - own)
    odds = (1 - gain) * exp_up(epsilon) - gain
    return ApproxDP(min(log_up(odds), epsilon) if odds > 1 else Fraction(0), slack)


def approx_from_pure(guarantee: PureDP, delta: Number = 0) -> ApproxDP:
    """The least epsilon at delta of a pure guarantee; with delta = 0 epsilon itself, exactly
    (tight).

    >>> approx_from_pure(PureDP(1000 * Fraction(1, 1000)))
    ApproxDP(epsilon=Fraction(1, 1), delta=Fraction(0, 1))
    """
    return approx_from_approx(ApproxDP(guarantee.epsilon, 0), delta)


def approx_from_range(guarantee: BoundedRangeDP, delta: Number = 0) -> ApproxDP:
    """The least epsilon at delta of a bounded range: 2 ln(e^(eta/2) - sqrt(delta (e^eta - 1)))
    (tight).

    Dong, Durfee, Rogers 2020: delta = (e^(eta/2) - e^(epsilon/2))^2 / (e^eta - 1).

    Guarantees:
        a bounded range keeps its delta
    """
    slack, eta = _delta(delta), guarantee.eta
    if slack == 0 or eta > HUGE:
        return ApproxDP(eta, slack)
    root = exp_up(eta / 2) - sqrt_down(slack * max(exp_down(eta) - 1, Fraction(0)))
    return ApproxDP(min(2 * log_up(root), eta) if root > 1 else Fraction(0), slack)


def approx_from_renyi(guarantee: RenyiDP, delta: Number) -> ApproxDP:
    """Returns the least epsilon at ``delta`` that follows from a Renyi bound of a single order.

    The better of two: the closed form of Canonne, Kamath, Steinke (2020, Proposition 12; Balle et
    al. 2020, Theorem 21), and the optimum of Asoodeh, Liao, Calmon, Kosut, Sankar (2021), computed
    in floats and then proved by a tangent (``renyi_to_approx``).

    Guarantees:
        the two point optimum is never exceeded
    """
    slack = delta_to_spend(guarantee.epsilon, delta)
    if guarantee.epsilon == 0 or slack == 1:
        return ApproxDP(Fraction(0), slack)
    # if delta is at least 1/order, the optimal event is the whole space, and the loss is bounded by
    # cutting off at 1 - delta
    wide = slack * guarantee.order >= 1
    cost = log_up(1 - slack) if wide else conversion_cost(slack, guarantee.order)
    closed = max(guarantee.epsilon + cost, Fraction(0))
    optimum = epsilon_of_renyi(guarantee.order, guarantee.epsilon, slack)
    return ApproxDP(closed if optimum is None else min(optimum, closed), slack)


def approx_from_gaussian(guarantee: GaussianDP, delta: Number) -> ApproxDP:
    """The least epsilon at delta of the exact Gaussian curve, within about 1e-15 relative (tight).

    Balle and Wang 2018, Theorem 8; Dong, Roth, Su 2022, Corollary 2.13. Newton's method starts at
    the epsilon that zCDP gives. The delta of every iterate is proved, so the result is an upper
    bound of the least epsilon.

    Guarantees:
        the gaussian curve is never exceeded

    >>> round(float(approx_from_gaussian(GaussianDP(1), "1e-6").epsilon), 5)
    4.88655
    """
    slack = delta_to_spend(guarantee.mu_squared, delta)
    if gaussian_bound(guarantee.mu_squared, Fraction(0))[0] <= slack:
        return ApproxDP(Fraction(0), slack)
    best = point = approx_from_zcdp(zcdp_from_gaussian(guarantee), slack).epsilon
    for _ in range(_NEWTON):
        reached, slope = gaussian_bound(guarantee.mu_squared, point)
        if not 0 < reached <= slack or slope <= 0:
            break
        best = point
        point = Fraction(
            math.ceil((point - log_up(slack / reached) * reached / slope) * 2**100), 2**100
        )
    return ApproxDP(best, slack)


def gaussian_bound(mu_squared: Fraction, epsilon: Fraction) -> tuple[Fraction, Fraction]:
    """Returns an upper bound of delta at epsilon for mu-GDP, and a lower bound of -d delta / d
    epsilon.

    delta = P(Z > epsilon/mu - mu/2) - e^epsilon P(Z > epsilon/mu + mu/2); the second term is the
    slope.
    """
    if mu_squared == 0:
        return Fraction(0), Fraction(0)
    mu = sqrt_up(mu_squared)
    near, far = normal_tail(epsilon / mu - mu / 2), normal_tail(epsilon / mu + mu / 2)
    slope = exp_down(epsilon) * far[0] if epsilon <= HUGE else Fraction(0)
    return min(max(near[1] - slope, Fraction(0)), Fraction(1)), slope


def _order(order: Number) -> Fraction:
    return RenyiDP(order, 0).order


def _delta(delta: Number) -> Fraction:
    return ApproxDP(0, delta).delta


CONVERSIONS: Mapping[tuple[type, type], Callable[..., Any]] = {
    (PureDP, BoundedRangeDP): range_from_pure,
    (PureDP, ApproxDP): approx_from_pure,
    (PureDP, ZeroConcentratedDP): tightest_zcdp_from_pure,
    (PureDP, RenyiDP): renyi_from_pure,
    (PureDP, GaussianDP): gaussian_from_pure,
    (BoundedRangeDP, PureDP): pure_from_range,
    (BoundedRangeDP, ApproxDP): approx_from_range,
    (BoundedRangeDP, ZeroConcentratedDP): zcdp_from_range,
    (BoundedRangeDP, RenyiDP): renyi_from_range,
    (BoundedRangeDP, GaussianDP): gaussian_from_range,
    (ApproxDP, ApproxDP): approx_from_approx,
    (ZeroConcentratedDP, ApproxDP): approx_from_zcdp,
    (ZeroConcentratedDP, RenyiDP): renyi_from_zcdp,
    (RenyiDP, ApproxDP): approx_from_renyi,
    (RenyiDP, RenyiDP): renyi_from_renyi,
    (GaussianDP, ApproxDP): approx_from_gaussian,
    (GaussianDP, ZeroConcentratedDP): zcdp_from_gaussian,
    (GaussianDP, RenyiDP): renyi_from_gaussian,
}
