# SPDX-License-Identifier: Apache-2.0
"""The two gates of an account: a privacy filter for adaptively chosen questions.

A charge is admitted if at least one gate holds after it: (a) the pure losses add up to at most
epsilon; (b) the zCDP costs add up to at most the rho whose conversion at one order, fixed at
creation, gives (epsilon, delta_conversion). In both, the deltas of the events add up to at most
delta_events. An event without a zCDP cost has a cost at single orders (``order_price``).
Proof: budget_gates.proof.md. Source: Rogers et al. (2016); Whitehouse et al. (ICML 2023);
Feldman and Zrnic (2021).
"""

import math
from collections.abc import Collection
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

from sfumato.accounting.profile import Profile
from sfumato.accounting.zcdp import conversion_cost, order_for
from sfumato.errors import InvalidNumber
from sfumato.privacy.budget import Budget

# The ledger's integers: 1e-12 of epsilon and of rho, 1e-24 of delta (RULES 3).
INCREMENTS = 10**12
DELTA_INCREMENTS = 10**24
# The Renyi orders at which a cost holds; None: at every order.
Orders: TypeAlias = frozenset[Fraction] | None


@dataclass(frozen=True, slots=True)
class Charge:
    """The cost of an event as the ledger stores it: integers, in multiples of 1e-12 (delta: 1e-24).

    ``epsilon`` None: the pure loss is not bounded. ``orders`` are the Renyi orders at which ``rho``
    is a cost; None: at every order (zCDP). A sum is a cost at the orders that all its charges
    share.

    Guarantees:
        no charge is below nothing
        a sum is a cost at common orders only

    Raises:
        InvalidNumber: a field is no integer, or is below 0.

    >>> charge_for(Profile.pure(Fraction(1, 2)))
    Charge(epsilon=500000000000, rho=125000000000, delta=0)
    """

    epsilon: int | None
    rho: int
    delta: int
    orders: Orders = field(default=None, repr=False)

    def __post_init__(self) -> None:
        pure = 0 if self.epsilon is None else self.epsilon
        # without a loop, for speed: a verification makes one object for each charge
        is_whole = type(pure) is int and type(self.rho) is int and type(self.delta) is int
        if not is_whole or pure < 0 or self.rho < 0 or self.delta < 0:
            raise InvalidNumber("A charge with a part that is none.", allowed="integers >= 0")

    def __add__(self, other: "Charge") -> "Charge":
        pure = (
            None if self.epsilon is None or other.epsilon is None else self.epsilon + other.epsilon
        )
        orders = common(self.orders, other.orders)
        return Charge(pure, self.rho + other.rho, self.delta + other.delta, orders)

    def at(self, order: Fraction | None) -> int | None:
        """Returns ``rho``, the Renyi cost, if it is a cost at the Renyi order ``order``; else
        None.
        """
        if self.orders is None or order in self.orders:
            return self.rho
        return None


def common(one: Orders, other: Orders) -> Orders:
    """Returns the Renyi orders that two sets share; None stands for the set of all orders."""
    if one is None:
        return other
    if other is None:
        return one
    return one & other


NOTHING = Charge(0, 0, 0)


def charge_for(profile: Profile) -> Charge:
    """Returns an event's cost (a profile) as integers for the ledger, each rounded up once.

    Guarantees:
        a charge is never below the cost

    >>> charge_for(Profile(Fraction(1, 10), Fraction(1, 200)))
    Charge(epsilon=100000000000, rho=5000000000, delta=0)
    """
    return Charge(
        None if profile.epsilon is None else math.ceil(profile.epsilon * INCREMENTS),
        math.ceil(profile.rho * INCREMENTS),
        math.ceil(profile.delta * DELTA_INCREMENTS),
    )


@dataclass(frozen=True, slots=True)
class Gates:
    """The caps of a ledger account's total cost, as integers in the ledger's units, fixed when its
    budget is set.

    ``rho`` is None for a pure account, which has gate (a) alone.

    Guarantees:
        a tenth ten times is exactly one
        a gaussian closes the pure gate for good
        the rho cap converts to at most epsilon

    >>> gates = Gates.of(Budget(1))
    >>> gates.rho is None, gates.admits(charge_for(Profile.pure(Fraction(1, 2))))
    (True, True)
    """

    epsilon: int
    rho: int | None
    delta_events: int
    order: Fraction | None

    @classmethod
    def of(cls, budget: Budget, orders: Collection[Fraction] | None = None) -> "Gates":
        """Returns the caps of a budget, rounded down.

        ``orders``: the Renyi orders at which all earlier spending has a price; the best of them is
        used.

        Guarantees:
            a later limit converts at an order of what is spent

        >>> Gates.of(Budget(1)).rho is None
        True
        """
        epsilon = math.floor(budget.epsilon * INCREMENTS)
        if epsilon == 0:
            raise InvalidNumber("A budget below 1e-12.", allowed="epsilon >= 1e-12")
        if budget.delta == 0:
            return cls(epsilon, None, 0, None)
        conversion = budget.delta / 2
        allowed = sorted(orders or (order_for(budget.epsilon, conversion),))
        caps = [(budget.epsilon - conversion_cost(conversion, at)) / at for at in allowed]
        rho, order = max(zip(caps, allowed, strict=True))
        cap = math.floor(rho * INCREMENTS)
        delta_events = math.floor(conversion * DELTA_INCREMENTS)
        return cls(epsilon, max(cap, 0), delta_events, order)

    def admits(self, total: Charge) -> bool:
        """Whether the caps admit the total cost ``total`` of an account: spent, reserved and the
        new charge together.
        """
        if total.delta > self.delta_events:
            return False
        pure = total.epsilon is not None and total.epsilon <= self.epsilon
        rho = total.at(self.order)
        concentrated = self.rho is not None and rho is not None and rho <= self.rho
        return pure or concentrated

    def left(self, spent: Charge) -> "Left":
        """Returns the largest cost that one more charge may have, in each measure, after ``spent``."""
        pure = max(self.epsilon - spent.epsilon, 0) if spent.epsilon is not None else 0
        used = spent.at(self.order)
        rho = 0
        if self.rho is not None and used is not None:
            rho = max(self.rho - used, 0)
        # epsilon^2/2 must round up to at most rho: 1e-24 e^2 / 2 <= 1e-12 rho
        through_rho = math.isqrt(2 * rho * INCREMENTS)
        return Left(
            Fraction(max(pure, through_rho), INCREMENTS),
            Fraction(rho, INCREMENTS),
            self.delta_events - spent.delta,
        )

    def share(self, charge: Charge, spent: Charge) -> Fraction | None:
        """Returns the share of the remaining budget, from 0 to 1, that a charge would take.

        Of the two gates, the one with the smaller share counts. None if no gate admits the charge.
        """
        total = spent + charge
        if not self.admits(total):
            return None
        shares = []
        if (
            charge.epsilon is not None
            and spent.epsilon is not None
            and spent.epsilon + charge.epsilon <= self.epsilon
        ):
            shares.append(Fraction(charge.epsilon, self.epsilon - spent.epsilon))
        rho = total.at(self.order)
        if self.rho is not None and rho is not None and rho <= self.rho:
            shares.append(Fraction(charge.rho, self.rho - spent.rho))
        return min(shares)


@dataclass(frozen=True, slots=True)
class Left:
    """The remaining budget of an account: the largest single charge that it still admits, as a pure
    epsilon or as a zCDP rho.
    """

    epsilon: Fraction
    rho: Fraction
    delta: int
