# SPDX-License-Identifier: Apache-2.0
"""Privacy filters and an odometer, for events that are chosen adaptively.

A filter has a cap and admits events while their costs add up to at most the cap; then all of them
together have ``guarantee``, however they were chosen. An odometer has no cap: it bounds the loss so
far at any time. Both take events, never a ``Curve``, since the privacy loss distribution of a plan
is valid only if the plan was fixed before the first answer (Rogers et al. 2016).

Both are immutable: ``spend`` returns the state after the charge. Proof: odometer.proof.md.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Self

from sfumato.accounting.account import account, relations_of
from sfumato.accounting.budget_gates import INCREMENTS
from sfumato.accounting.gaussian_dp import mu_squared
from sfumato.accounting.profile import Profile
from sfumato.accounting.renyi import bound, profile_of, renyi
from sfumato.accounting.zcdp import conversion_cost
from sfumato.errors import BudgetExceeded, InvalidDeclaration
from sfumato.exact.rational import Number, positive
from sfumato.exact.rounding import log_up
from sfumato.privacy.event import (
    BestOf,
    Composed,
    Event,
    Group,
    Nonadaptive,
    Repeated,
    Sampled,
)
from sfumato.privacy.guarantee import GaussianDP, PureDP, RenyiDP, ZeroConcentratedDP
from sfumato.privacy.unit import Relation

# gaps from 1 of 2^-3 ... 2^12 in half octaves, whole where they can be
_ORDERS = tuple(
    1 + Fraction(round(2 ** (step / 2)) if step > 1 else Fraction(round(2 ** (step / 2 + 8)), 256))
    for step in range(-6, 25)
)
_RATIOS = tuple(order.as_integer_ratio() for order in _ORDERS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter(ABC):
    """Base of all filters: a cap, the spent cost in multiples of 1e-12, and the neighbour relation.

    Guarantees:
        a filter never spends more than its cap
        a cost that fits exactly is admitted
        a filter takes no curve
        a filter never mixes neighbour relations

    Raises:
        InvalidNumber: the cap is not above 0.
    """

    cap: Fraction
    relation: Relation = Relation.ADD_REMOVE
    spent: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "cap", positive("The cap of a filter", self.cap))

    @abstractmethod
    def cost(self, event: Event) -> Fraction:
        """Returns the cost of an event; raises if none is proved."""

    def admits(self, event: Event) -> bool:
        """Whether the cost of the event is at most what is left."""
        return self.spent + self._increments(event) <= self.cap * INCREMENTS

    def spend(self, event: Event) -> Self:
        """Returns the filter after the event.

        Raises:
            BudgetExceeded: the event is not admitted.
            InvalidDeclaration: the event has another neighbour relation, or no proved cost.
        """
        total = self.spent + self._increments(event)
        if total > self.cap * INCREMENTS:
            raise BudgetExceeded(
                f"The event costs {float(self.cost(event)):g}, and {float(self.left):g} is left.",
                allowed="at most what is left",
            )
        return replace(self, spent=total)

    @property
    def left(self) -> Fraction:
        """The largest next cost that would be admitted."""
        return max(
            Fraction(math.floor(self.cap * INCREMENTS) - self.spent, INCREMENTS), Fraction(0)
        )

    def _increments(self, event: Event) -> int:
        _check(event, self.relation)
        return math.ceil(self.cost(event) * INCREMENTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class PureFilter(Filter):
    """Admits events while their pure losses (epsilon) add up to at most the cap.

    >>> from sfumato.privacy import PureEvent
    >>> PureFilter(cap=Fraction(1)).spend(PureEvent(Fraction(1, 10))).left
    Fraction(9, 10)
    """

    def cost(self, event: Event) -> Fraction:
        """The pure epsilon of the event."""
        profile = _without_delta(event)
        if profile.epsilon is None:
            raise InvalidDeclaration(
                f"{type(event).__name__} has no pure loss.", allowed="events with a pure epsilon"
            )
        return profile.epsilon

    @property
    def guarantee(self) -> PureDP:
        """The guarantee of everything that is ever admitted (Rogers, Roth, Ullman, Vadhan 2016)."""
        return PureDP(self.cap)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConcentratedFilter(Filter):
    """Admits events while their zCDP costs (rho) add up to at most the cap.

    >>> from sfumato.privacy import PureEvent
    >>> ConcentratedFilter(cap=Fraction(1)).spend(PureEvent(Fraction(1))).left
    Fraction(1, 2)
    """

    def cost(self, event: Event) -> Fraction:
        """The rho of the event."""
        return _without_delta(event).rho

    @property
    def guarantee(self) -> ZeroConcentratedDP:
        """The guarantee of everything that is ever admitted (Whitehouse et al. 2023)."""
        return ZeroConcentratedDP(self.cap)


@dataclass(frozen=True, slots=True, kw_only=True)
class RenyiFilter(Filter):
    """Admits events while their Renyi divergences of one order add up to at most the cap.

    The order is fixed in advance.

    >>> from sfumato.privacy import PureEvent
    >>> RenyiFilter(order=Fraction(8), cap=Fraction(1)).guarantee
    RenyiDP(order=Fraction(8, 1), epsilon=Fraction(1, 1))
    """

    order: Fraction

    def __post_init__(self) -> None:
        # no super(): a slotted dataclass is a new class, which a bare super() does not know
        Filter.__post_init__(self)
        object.__setattr__(self, "order", RenyiDP(self.order, 0).order)

    def cost(self, event: Event) -> Fraction:
        """The Renyi divergence of the event at the filter's order."""
        return _renyi(event, self.order)

    @property
    def guarantee(self) -> RenyiDP:
        """The guarantee of everything that is ever admitted (Feldman and Zrnic 2021)."""
        return RenyiDP(self.order, self.cap)


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianFilter(Filter):
    """Admits events with a proved mu of Gaussian DP while their mu^2 add up to at most the cap.

    >>> from sfumato.privacy import BoundedRange
    >>> GaussianFilter(cap=Fraction(1)).admits(BoundedRange(Fraction(1)))
    True
    """

    def cost(self, event: Event) -> Fraction:
        """The mu^2 of the event."""
        return _mu_squared(event)

    @property
    def guarantee(self) -> GaussianDP:
        """The guarantee of everything that is ever admitted.

        Source: Koskela et al. 2023; Smith and Thakurta 2022.
        """
        return GaussianDP(self.cap)


@dataclass(frozen=True, slots=True)
class Odometer:
    """A bound of the privacy loss of all events so far; there is no cap.

    ``epsilon_spent(delta)`` may be read at any time, and stopping may depend on it and on all
    answers: with probability at least 1 - delta, the losses at ALL times are at most the bounds
    returned at those times. ``epsilon_if_planned`` is smaller and valid only if the events and the
    time of reading were fixed before the first answer.

    Guarantees:
        an odometer is right at all times together
        an odometer of a plan is right at its end

    >>> from sfumato.privacy import PureEvent
    >>> Odometer().spend(PureEvent(Fraction(1, 1000))).epsilon_spent("1e-6")
    Fraction(1, 1000)
    """

    relation: Relation = Relation.ADD_REMOVE
    pure: int | None = 0
    rho: int = 0
    renyi: tuple[int, ...] = (0,) * len(_ORDERS)

    def spend(self, event: Event) -> "Odometer":
        """Returns the odometer after the event.

        Raises:
            InvalidDeclaration: the event has another neighbour relation, or no proved cost.
        """
        _check(event, self.relation)
        pure, rho, more = _costs(event)
        return Odometer(
            self.relation,
            None if self.pure is None or pure is None else self.pure + pure,
            self.rho + rho,
            self.renyi
            if more is None
            else tuple(one + other for one, other in zip(self.renyi, more, strict=True)),
        )

    def epsilon_spent(self, delta: Number) -> Fraction:
        """Returns a bound of the loss; all such bounds hold together, except with probability
        delta.

        Ville's inequality for an equal mixture over the orders: sum + ln(orders/delta)/(order - 1)
        (Whitehouse et al. 2023 prove time-uniform bounds of this kind).
        """
        return self._least(_anytime(positive("delta", delta, at_most=Fraction(1))))

    def epsilon_if_planned(self, delta: Number) -> Fraction:
        """Returns epsilon at delta, if the events and the time of reading were fixed in advance."""
        return self._least(_planned(positive("delta", delta, at_most=Fraction(1))))

    def _least(self, prices: tuple[int, ...]) -> Fraction:
        sums = (
            spent - (-self.rho * over // under) + price
            for (over, under), spent, price in zip(_RATIOS, self.renyi, prices, strict=True)
        )
        least = max(min(sums), 0)
        return Fraction(least if self.pure is None else min(least, self.pure), INCREMENTS)


def _check(event: Event, relation: Relation) -> None:
    other = relations_of(event) - {relation}
    if other:
        raise InvalidDeclaration(
            f"An event about {', '.join(sorted(each.value for each in other))} neighbours.",
            allowed=f"{relation.value}: the relation that these books were opened with",
        )


def _without_delta(event: Event) -> Profile:
    profile = account(event)
    if profile.delta > 0:
        raise InvalidDeclaration(
            f"{type(event).__name__} spends delta of its own.",
            allowed="events whose own delta is 0",
            remedy="Use Gates, which count such deltas apart.",
        )
    return profile


@lru_cache(maxsize=1024)
def _renyi(event: Event, order: Fraction) -> Fraction:
    return bound(event, order)


@lru_cache(maxsize=1024)
def _mu_squared(event: Event) -> Fraction:
    return mu_squared(event)


@lru_cache(maxsize=1024)
def _costs(event: Event) -> tuple[int | None, int, tuple[int, ...] | None]:
    """The pure loss, rho and Renyi divergences of an event, in multiples of 1e-12; it has one of
    the last two.
    """
    if isinstance(event, Sampled | Composed | Repeated | Nonadaptive | Group | BestOf):
        return (
            _pure(event),
            0,
            tuple(math.ceil(renyi(event, order) * INCREMENTS) for order in _ORDERS),
        )
    return _pure(event), math.ceil(_without_delta(event).rho * INCREMENTS), None


def _pure(event: Event) -> int | None:
    profile = profile_of(event)
    return (
        None
        if profile is None or profile.epsilon is None
        else math.ceil(profile.epsilon * INCREMENTS)
    )


@lru_cache(maxsize=64)
def _anytime(delta: Fraction) -> tuple[int, ...]:
    price = log_up(len(_ORDERS) / delta)
    return tuple(math.ceil(price / (order - 1) * INCREMENTS) for order in _ORDERS)


@lru_cache(maxsize=64)
def _planned(delta: Fraction) -> tuple[int, ...]:
    return tuple(math.ceil(conversion_cost(delta, order) * INCREMENTS) for order in _ORDERS)
