# SPDX-License-Identifier: Apache-2.0
"""The privacy cost of a task other than SQL, and its division among the task's steps.

Marginals, synopses, synthetic data and models make one from ``epsilon=``, ``rho=`` and ``delta=``,
split it by ``shares``, and buy a mechanism for each share.
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from sfumato.accounting.zcdp import approx_from_zcdp, zcdp_within
from sfumato.errors import BudgetExceeded, InvalidNumber
from sfumato.exact.rational import Number, decimal_text, positive
from sfumato.mechanisms.additive import AdditiveMechanism, gaussian, laplace
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.guarantee import ZeroConcentratedDP
from sfumato.query.price import cost_alone

# The ledger counts rho in multiples of 1e-12 (RULES 3).
_INCREMENTS = 10**12


@dataclass(frozen=True, slots=True)
class Allowance:
    """The cost that a task may spend: a pure epsilon (``norm`` L1) or a rho (``norm`` L2).

    ``delta`` is set if the rho was stated as an (epsilon, delta).

    Guarantees:
        shares add up to the whole
        an approximate guarantee buys a rho that converts into it

    >>> allowance(rho="0.3").shares(3)
    (Fraction(1, 10), Fraction(1, 10), Fraction(1, 10))
    """

    norm: Norm
    amount: Fraction
    delta: Fraction | None = None

    def shares(self, *weights: int) -> tuple[Fraction, ...]:
        """Splits the allowed cost exactly in proportion to weights; a single weight n means n equal
        shares.
        """
        parts = weights if len(weights) > 1 else (1,) * weights[0]
        one = self.amount / sum(parts)
        return tuple(one * weight for weight in parts)

    def noise(self, distance: Distance, share: Fraction) -> AdditiveMechanism:
        """Returns the Laplace or Gaussian mechanism whose cost at the sensitivity ``distance`` is
        ``share``.
        """
        if self.norm is Norm.L1:
            return laplace(distance, share)
        return gaussian(distance, share)

    def refused(self, refusal: BudgetExceeded, left: Fraction) -> BudgetExceeded:
        """Adds to a refusal the largest epsilon, at this delta, whose rho still fits.

        ``left`` is the rho that the account has left.
        """
        if self.delta is None:
            return refusal
        epsilon = _largest(left, self.delta)
        fits = ""
        if epsilon:
            fits = f"epsilon={decimal_text(epsilon)} with delta={decimal_text(self.delta)}"
        allowed = " or ".join(text for text in (refusal.allowed, fits) if text)
        return BudgetExceeded(refusal.problem, allowed=allowed, remedy=refusal.remedy)


def allowance(
    *, epsilon: Number | None = None, rho: Number | None = None, delta: Number | None = None
) -> Allowance:
    """Reads the keywords of a task: a rho, a pure epsilon, or an epsilon with a delta.

    An epsilon with a delta buys Gaussian noise: the largest rho whose proved conversion to
    approximate differential privacy stays within both.

    Raises:
        WrongUse: not exactly one of epsilon and rho, or a delta beside a rho.
        InvalidNumber: a cost is outside [1e-12, 10^6], or no rho lies within epsilon and delta.

    >>> float(allowance(epsilon=1, delta="1e-6").amount)
    0.02435596573
    """
    price = cost_alone(epsilon=epsilon, rho=rho, delta=delta)
    if price.rho is not None:
        if price.delta is not None:
            raise InvalidNumber(
                "A rho with a delta.", allowed="rho= alone, or epsilon= with delta="
            )
        return Allowance(Norm.L2, price.rho)
    assert price.epsilon is not None, "a price without a target has an epsilon or a rho"
    if price.delta is None:
        return Allowance(Norm.L1, price.epsilon)
    bought = _rho(price.epsilon, price.delta)
    if bought <= 0:
        raise InvalidNumber(
            f"No Gaussian noise is known to lie within epsilon = {price.epsilon} "
            f"and delta = {price.delta}.",
            allowed="a larger epsilon or delta",
        )
    return Allowance(Norm.L2, bought, price.delta)


def price_of(
    *,
    keys: bool,
    epsilon: Number | None,
    rho: Number | None,
    delta: Number | None,
) -> Allowance:
    """Reads the keywords of a task; if it shows unknown ``keys``, its ``delta`` pays for these.

    Of an epsilon with a delta, half of the delta is for the keys. ``delta`` of the result is that
    half, or what was stated beside a rho.

    >>> cost = price_of(keys=True, epsilon=1, rho=None, delta="1e-6")
    >>> cost == allowance(epsilon=1, delta="5e-7")
    True
    """
    if not keys or delta is None:
        return allowance(epsilon=epsilon, rho=rho, delta=delta)
    whole = positive("delta", delta, at_most=Fraction(1, 2))
    if epsilon is not None:
        return allowance(epsilon=epsilon, rho=rho, delta=whole / 2)
    return replace(allowance(rho=rho), delta=whole)


def _rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest rho within (epsilon, delta), rounded down to a multiple of 1e-12."""
    return Fraction(math.floor(zcdp_within(epsilon, delta) * _INCREMENTS), _INCREMENTS)


def _largest(rho: Fraction, delta: Fraction) -> Fraction:
    """The largest epsilon, to three digits, that buys at most ``rho``; 0 if there is none."""
    if rho <= 0:
        return Fraction(0)
    epsilon = approx_from_zcdp(ZeroConcentratedDP(rho), delta).epsilon
    step = Fraction(1)
    if epsilon > 0:
        step = Fraction(10) ** (math.floor(math.log10(epsilon)) - 2)
    steps = math.floor(epsilon / step)
    while steps > 0 and not 0 < _rho(steps * step, delta) <= rho:
        steps -= 1
    return steps * step
