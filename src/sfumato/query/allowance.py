# SPDX-License-Identifier: Apache-2.0
"""What a task may cost, and its shares."""

import math
from dataclasses import dataclass
from fractions import Fraction

from sfumato.accounting.convert import approx_from_zcdp, zcdp_within
from sfumato.errors import BudgetExceeded, InvalidNumber
from sfumato.exact.rational import Number, decimal_text
from sfumato.mechanisms.additive import AdditiveMechanism, gaussian, laplace
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.guarantee import ZeroConcentratedDP
from sfumato.query.price import price

# The ledger's unit of rho (RULES 3).
_UNIT = 10**12


@dataclass(frozen=True, slots=True)
class Allowance:
    """A pure epsilon (``norm`` L1) or a rho (L2), and the delta by which a rho was stated.

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
        """Parts in these proportions, or so many equal ones, that add up to it exactly."""
        parts = weights if len(weights) > 1 else (1,) * weights[0]
        one = self.amount / sum(parts)
        return tuple(one * weight for weight in parts)

    def noise(self, distance: Distance, share: Fraction) -> AdditiveMechanism:
        """Laplace or Gaussian noise for a share of it."""
        return laplace(distance, share) if self.norm is Norm.L1 else gaussian(distance, share)

    def refused(self, refusal: BudgetExceeded, left: Fraction) -> BudgetExceeded:
        """The refusal of a cost in epsilon and delta, with the largest epsilon that fits; ``left`` is a rho."""
        if self.delta is None:
            return refusal
        epsilon = _largest(left, self.delta)
        fits = (
            f"epsilon={decimal_text(epsilon)} with delta={decimal_text(self.delta)}"
            if epsilon
            else ""
        )
        allowed = " or ".join(filter(None, (refusal.allowed, fits)))
        return BudgetExceeded(refusal.problem, allowed=allowed, remedy=refusal.remedy)


def allowance(
    *, epsilon: Number | None = None, rho: Number | None = None, delta: Number | None = None
) -> Allowance:
    """What the keywords of a task state: ``rho``, a pure ``epsilon``, or an ``epsilon`` with a ``delta``.

    An epsilon with a delta buys Gaussian noise: the largest rho whose proved conversion lies within both.

    Raises:
        WrongUse: not exactly one of epsilon and rho, or a delta beside a rho.
        InvalidNumber: a cost outside [1e-12, 10^6], or an epsilon and delta that no rho lies within.

    >>> float(allowance(epsilon=1, delta="1e-6").amount)
    0.02435596573
    """
    asked = price(epsilon=epsilon, rho=rho, delta=delta)
    if asked.rho is not None:
        if asked.delta is not None:
            raise InvalidNumber(
                "A rho with a delta.", allowed="rho= alone, or epsilon= with delta="
            )
        return Allowance(Norm.L2, asked.rho)
    assert asked.epsilon is not None, "a price without a target has an epsilon or a rho"
    if asked.delta is None:
        return Allowance(Norm.L1, asked.epsilon)
    bought = _rho(asked.epsilon, asked.delta)
    if bought <= 0:
        raise InvalidNumber(
            f"No Gaussian noise is known to lie within epsilon = {asked.epsilon} and delta = {asked.delta}.",
            allowed="a larger epsilon or delta",
        )
    return Allowance(Norm.L2, bought, asked.delta)


def _rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    """In whole units of the ledger."""
    return Fraction(math.floor(zcdp_within(epsilon, delta) * _UNIT), _UNIT)


def _largest(rho: Fraction, delta: Fraction) -> Fraction:
    """The largest epsilon, to three digits, that buys at most a rho; 0: none."""
    if rho <= 0:
        return Fraction(0)
    epsilon = approx_from_zcdp(ZeroConcentratedDP(rho), delta).epsilon
    step = Fraction(10) ** (math.floor(math.log10(epsilon)) - 2) if epsilon > 0 else Fraction(1)
    steps = math.floor(epsilon / step)
    while steps > 0 and not 0 < _rho(steps * step, delta) <= rho:
        steps -= 1
    return steps * step
