# SPDX-License-Identifier: Apache-2.0
"""The random number of runs of ``tune``: its distribution, and what one run may cost."""

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass
from fractions import Fraction

from sfumato.accounting.budget_gates import INCREMENTS
from sfumato.accounting.order_price import certified_epsilon, price
from sfumato.errors import InvalidNumber, WrongUse, shown
from sfumato.learning.recipe import Asked
from sfumato.noise import NegativeBinomial
from sfumato.privacy.event import BestOf, Event
from sfumato.query.price import price as asked_price

# The logarithmic law: with it the best of pure runs costs twice a run, whatever their number is.
SHAPE = Fraction(0)
_MOST_RUNS = 1000
# A stop is a whole number of these; halvings and bisections of a search for the cost of a run.
_STOPS = 2**20
_HALVINGS, _BISECTIONS = 24, 6
# What one run may cost, in a gate: one of its kinds, or its events.
Runs = Callable[[Asked], tuple[Event, ...]]


def law_of(runs: int) -> NegativeBinomial:
    """Returns the (logarithmic) distribution of the secret number of tuning runs, whose mean is
    about ``runs``.

    >>> round(float(law_of(10).mean.upper), 3)
    10.0
    """
    if type(runs) is not int or not 2 <= runs <= _MOST_RUNS:
        raise WrongUse(f"runs={shown(runs)}.", allowed="a whole number from 2 to 1,000")
    low, high = 1 / _STOPS, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        # the mean falls as the stop grows
        if (1 / middle - 1) / -math.log(middle) > runs:
            low = middle
        else:
            high = middle
    return NegativeBinomial(SHAPE, Fraction(math.ceil(low * _STOPS), _STOPS))


@dataclass(frozen=True, slots=True)
class RunShares:
    """The division of a tuning's privacy cost among its training runs, whose number is random and
    secret.

    ``one`` returns the cost that a single run may have. The best of several runs costs more than
    one run; ``law`` is the distribution of their number.

    >>> half = RunShares(Asked(epsilon=1), law_of(10), ())
    >>> half.one(lambda asked: ())
    Asked(epsilon=Fraction(1, 2), rho=None, delta=None)
    """

    asked: Asked
    law: NegativeBinomial
    orders: Collection[Fraction]

    def one(self, runs: Runs) -> Asked:
        """Returns the largest cost of a single training run for which the whole tuning stays within
        its cost.

        ``runs`` returns the events of the candidate runs at a given cost.

        Raises:
            WrongUse, InvalidNumber: an invalid cost, or one that is too small for any run.
        """
        told = asked_price(epsilon=self.asked.epsilon, rho=self.asked.rho, delta=self.asked.delta)
        if told.epsilon is not None and told.delta is None:
            return Asked(epsilon=told.epsilon / (2 + self.law.shape))
        most = told.rho or told.epsilon
        assert most is not None, "a rho or an epsilon"
        return Asked(rho=self._largest(most, lambda rho: self._fits(runs(Asked(rho=rho)))))

    def whole(self, runs: tuple[Event, ...]) -> BestOf:
        """Returns the privacy event of a tuning, which releases the best of randomly many runs;
        ``runs`` are the events of the candidate runs.
        """
        return BestOf(runs, self.law.shape, self.law.stop)

    @property
    def block(self) -> tuple[Fraction, Fraction] | None:
        """The epsilon and delta for which the tuning is charged as one ``Block``; None if the cost
        is a rho or a pure epsilon.
        """
        told = asked_price(epsilon=self.asked.epsilon, rho=self.asked.rho, delta=self.asked.delta)
        if told.epsilon is None or told.delta is None:
            return None
        return told.epsilon, told.delta

    def _fits(self, runs: tuple[Event, ...]) -> bool:
        """Whether the best of these runs costs no more than the tuning may."""
        event, block = self.whole(runs), self.block
        if block is not None:
            epsilon, delta = block
            return certified_epsilon(event, delta) <= epsilon
        rho = asked_price(rho=self.asked.rho).rho
        assert rho is not None, "a rho is asked for"
        return price(event, self.orders).rho <= rho * INCREMENTS

    def _largest(self, most: Fraction, fits: Callable[[Fraction], bool]) -> Fraction:
        """Returns about the largest cost for which ``fits`` is true, in multiples of 1e-12."""
        low, high = most / 2, most
        for _ in range(_HALVINGS):
            if fits(_round_down(low)):
                break
            low, high = low / 2, low
        else:
            raise InvalidNumber(
                f"{float(most):g} is too little for the best of about {self._mean} runs.",
                allowed="a larger cost, or fewer runs",
                remedy="A pure epsilon is never too little; an account of a small epsilon has an "
                "order at which the best of runs costs less.",
            )
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            if fits(_round_down(middle)):
                low = middle
            else:
                high = middle
        return _round_down(low)

    @property
    def _mean(self) -> int:
        """The mean number of runs."""
        return round(self.law.mean.upper)


def _round_down(cost: Fraction) -> Fraction:
    """Rounds a cost down to the ledger's multiples."""
    return Fraction(math.floor(cost * INCREMENTS), INCREMENTS)
