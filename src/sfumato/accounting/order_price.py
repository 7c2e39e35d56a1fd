# SPDX-License-Identifier: Apache-2.0
"""The price of an event at the gates of an account, also of an event without a zCDP cost.

Gate (b) of an account converts at one Renyi order a. There an event costs D_a / a, its divergence
at that order over the order, which is all that the proof of the gate uses. A ``Block`` costs its
certified epsilon and delta, and at gate (b) the divergence of its plan. Proof:
budget_gates.proof.md.
"""

import math
from collections.abc import Collection
from fractions import Fraction
from functools import lru_cache

from sfumato.accounting.account import account, check_relations
from sfumato.accounting.budget_gates import DELTA_INCREMENTS, INCREMENTS, Charge, charge_for
from sfumato.errors import InvalidDeclaration
from sfumato.privacy.event import BestOf, Block, Composed, Event, Repeated, Sampled


def price(event: Event, orders: Collection[Fraction]) -> Charge:
    """Returns the charge of an event to a ledger account that composes at these Renyi orders,
    rounded up once.

    An event with a zCDP cost has the same cost at every order. Any other event costs its largest
    D_a / a over ``orders``, and the charge names these orders. Without an order it gets a cost that
    no gate admits.

    Guarantees:
        an event with a zcdp cost is priced as ever
        a sampled gaussian costs its divergence over the order
        the best of gaussian runs costs its divergence over the order
        a block costs its certified curve at one gate and its divergence at the other
        a price holds at the orders that it names

    Raises:
        InvalidDeclaration: an event has no rule, or the epsilon or delta of a block is not proved.

    >>> from sfumato.noise import DiscreteGaussian
    >>> from sfumato.privacy import Distance, Norm
    >>> from sfumato.privacy.event import AdditiveNoise, PoissonSample
    >>> noise = AdditiveNoise(DiscreteGaussian(2), Distance(Norm.L2, Fraction(1)))
    >>> run = Repeated(Sampled(PoissonSample(Fraction(1, 100)), noise), 1000)
    >>> price(run, [Fraction(8)]).rho / INCREMENTS
    0.014469518492
    """
    return _price(event, frozenset(orders))


# cached, since a ledger prices one event several times, and a curve takes a second
@lru_cache(maxsize=256)
def _price(event: Event, orders: frozenset[Fraction]) -> Charge:
    if isinstance(event, Block):
        _require_certified(event)
        plan = event.event
        inner = _price(plan, orders)
        epsilon = math.ceil(event.epsilon * INCREMENTS)
        delta = math.ceil(event.delta * DELTA_INCREMENTS)
        return Charge(epsilon, inner.rho, delta, inner.orders)
    if not _needs_order(event):
        return charge_for(account(event))
    # late, since few ledgers hold such a charge
    from sfumato.accounting.renyi import renyi

    check_relations(event)
    costs = [renyi(event, order) / order for order in orders]
    most = max(costs, default=Fraction(0))
    rho = math.ceil(most * INCREMENTS)
    return Charge(None, rho, 0, orders)


def _needs_order(event: Event) -> bool:
    """Whether an event holds a sample of noise whose pure loss is unbounded, or the best of runs
    whose own is.
    """
    if isinstance(event, Sampled | BestOf):
        return not _has_cost(event)
    if isinstance(event, Repeated):
        return _needs_order(event.event)
    return isinstance(event, Composed) and any(map(_needs_order, event.events))


def _has_cost(event: Event) -> bool:
    try:
        account(event)
    except InvalidDeclaration:
        return False
    return True


def certified_epsilon(event: Event, delta: Fraction) -> Fraction:
    """Returns an epsilon at which a plan fixed in advance is proved to be (epsilon, delta)-DP.

    It is read from the privacy curve. A ``BestOf`` whose runs have no pure loss has no curve: its
    epsilon is converted from Renyi divergences.

    Raises:
        InvalidNumber: no finite epsilon is proved at delta.
    """
    from sfumato.accounting.curve import privacy_curve
    from sfumato.accounting.renyi import epsilon_from_renyi

    if isinstance(event, BestOf) and not _has_cost(event):
        return epsilon_from_renyi(event, delta)
    return Fraction(privacy_curve(event).epsilon(delta).upper)


def _require_certified(block: Block) -> None:
    """Refuses a block whose plan is not proved to be (epsilon, delta)-DP."""
    least = certified_epsilon(block.event, block.delta)
    if least > block.epsilon:
        raise InvalidDeclaration(
            f"A block of epsilon = {float(block.epsilon):.6g} and delta = {float(block.delta):.3g}"
            f" whose curve reaches epsilon = {float(least):.6g}.",
            allowed="an epsilon of at least that of the curve",
            remedy="Let the block be calibrated: it then has the noise that it needs.",
        )
