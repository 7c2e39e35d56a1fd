# SPDX-License-Identifier: Apache-2.0
"""Converts the cost of a run (rho, or epsilon with delta) into the noise of its releases.

Recipes whose releases have Gaussian noise use it when a fit is planned.
"""

from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import ceil

from sfumato.accounting.budget_gates import INCREMENTS
from sfumato.accounting.calibrate import least_noise
from sfumato.accounting.curve import privacy_curve
from sfumato.accounting.order_price import price as price_at
from sfumato.errors import InvalidNumber, WrongUse
from sfumato.exact.rational import Number
from sfumato.exact.rounding import sqrt_up
from sfumato.learning.order import FullBatch, Order, event_of
from sfumato.mechanisms.additive import rounded_gaussian
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.event import Block, Event, Repeated
from sfumato.privacy.guarantee import ApproxDP
from sfumato.privacy.unit import Relation
from sfumato.query.price import cost_alone

# Multipliers are looked for up to this; a step of the search is a part in 2^10.
_MOST = Fraction(2**20)
_PRECISION = Fraction(1, 2**10)
# Below it noise hides nothing, and a rounded Gaussian may be too narrow.
_LEAST = Fraction(1, 2**9)


@dataclass(frozen=True, slots=True)
class Budgeted:
    """The cost limit of a training run: a rho (zCDP), or an epsilon with a delta.

    An epsilon with a delta is charged as one ``Block``: its noise is the least for which the
    privacy curve of the whole run stays within both.

    >>> from fractions import Fraction
    >>> Budgeted(rho=Fraction(1, 50)).block is None
    True
    """

    rho: Fraction | None = None
    epsilon: Fraction | None = None
    delta: Fraction | None = None

    @property
    def block(self) -> tuple[Fraction, Fraction] | None:
        """The epsilon and delta for which the run is charged as one ``Block``; None if the limit is
        a rho.
        """
        if self.epsilon is None or self.delta is None:
            return None
        return self.epsilon, self.delta

    def whole(self, plan: Event) -> Event:
        """Returns the privacy event to charge for a whole run: the event ``plan`` of its steps
        itself, or a ``Block`` of it with the epsilon and delta.
        """
        block = self.block
        if block is None:
            return plan
        return Block(plan, *block)

    def multiplier(
        self,
        order: Order,
        releases: int,
        orders: Collection[Fraction],
    ) -> Fraction:
        """Returns the least noise multiplier for which all releases of a run stay within the limit:
        the noise's standard deviation over the L2 sensitivity of a release.

        ``order`` says which units each release reads; ``orders`` are the Renyi orders of the
        accounts.

        Raises:
            InvalidNumber: no noise is enough.
        """
        if self.epsilon is not None and self.delta is not None:
            target = ApproxDP(self.epsilon, self.delta)
            noise = least_noise(target, partial(_plan, order, releases), curve=privacy_curve)
            return max(noise.value, _LEAST)
        assert self.rho is not None, "a rho, or an epsilon with a delta"
        if isinstance(order, FullBatch):
            return sqrt_up(Fraction(releases) / (2 * self.rho))
        return _least_multiplier(order, releases, self.rho, orders)


def budgeted(
    *,
    epsilon: Number | None = None,
    rho: Number | None = None,
    delta: Number | None = None,
) -> Budgeted:
    """Returns the cost limit that the keyword arguments of a fit state.

    Raises:
        WrongUse: not exactly one of epsilon and rho; an epsilon without a delta.
    """
    price = cost_alone(epsilon=epsilon, rho=rho, delta=delta)
    if price.rho is not None and price.delta is not None:
        raise InvalidNumber("A rho with a delta.", allowed="rho= alone, or epsilon= with delta=")
    if price.epsilon is not None and price.delta is None:
        raise WrongUse(
            "A training for a pure epsilon: its noise is Gaussian, which spends a delta.",
            allowed='epsilon=1, delta="1e-7"; or rho="0.02"',
            remedy="State delta= too. NaiveBayes and DecisionTree take a pure epsilon.",
        )
    return Budgeted(price.rho, price.epsilon, price.delta)


def _plan(
    order: Order,
    releases: int,
    multiplier: Fraction,
) -> Event:
    """The event of a run with this noise multiplier, for a sensitivity of 2^10 steps."""
    relation = Relation.ADD_REMOVE
    if order.design is not None:
        relation = order.design.relation
    unit = Distance(Norm.L2, Fraction(2**20), relation)
    noise = max(multiplier, _LEAST)
    return Repeated(event_of(order, rounded_gaussian(unit, noise).event(unit)), releases)


def _least_multiplier(
    order: Order,
    releases: int,
    rho: Fraction,
    orders: Collection[Fraction],
) -> Fraction:
    """Returns the least multiplier at which sampled releases cost at most ``rho`` at every
    order.
    """

    def fits(multiplier: Fraction) -> bool:
        return price_at(_plan(order, releases, multiplier), orders).rho <= rho * INCREMENTS

    low = high = Fraction(1, 16)
    while not fits(high):
        low, high = high, 2 * high
        if high > _MOST:
            raise InvalidNumber(f"No noise is enough for rho = {rho}.", allowed="a larger rho")
    while high - low > _PRECISION * high:
        middle = (low + high) / 2
        if fits(middle):
            high = middle
        else:
            low = middle
    return Fraction(ceil(high * 2**20), 2**20)
