# SPDX-License-Identifier: Apache-2.0
"""The part of a privacy curve that needs no dominating pairs: by cost, Renyi divergence, rare
draws.

``curve`` combines it with the pairs of a plan. Proof: curve.proof.md.
"""

from sfumato.accounting.closed import Converted, Curve, Diverging, Least
from sfumato.accounting.dominating_pairs import FixedPlan
from sfumato.accounting.loss import Gaussian, SwappedNormal
from sfumato.accounting.loss import Sampled as SampledPair
from sfumato.accounting.loss.pair import MAX_MU
from sfumato.accounting.rare_samples import RareSamples
from sfumato.accounting.renyi import profile_of, renyi
from sfumato.errors import InvalidDeclaration, InvalidNumber
from sfumato.privacy.event import Composed, Event, Repeated


def gather_equal(event: Event) -> Event:
    """Returns the same plan with equal events gathered into one ``Repeated`` each, so that equal
    plans have one privacy curve.
    """
    times: dict[Event, int] = {}

    def count(part: Event, uses: int) -> None:
        if isinstance(part, Repeated):
            count(part.event, uses * part.times)
        elif isinstance(part, Composed):
            for inner in part.events:
                count(inner, uses)
        else:
            times[part] = times.get(part, 0) + uses

    count(event, 1)
    parts = [part if uses == 1 else Repeated(part, uses) for part, uses in times.items()]
    return parts[0] if len(parts) == 1 else Composed(tuple(parts))


def find_pairs(event: Event) -> FixedPlan | None:
    """Returns the composition of an event's dominating pairs; None if some event inside it has no
    dominating pair.
    """
    try:
        return FixedPlan.of(event)
    except (InvalidDeclaration, InvalidNumber):
        # no rule of its own, or losses too large for a pair
        return None


def imply_curve(event: Event) -> Curve:
    """Returns the privacy curve that follows from an event's cost, its Renyi divergences, and the
    rarity of its samples, without dominating pairs.

    Raises:
        InvalidDeclaration: an event has no rule.
    """
    cost = profile_of(event)
    if cost is not None and cost.delta:
        return Converted(cost)
    # refuses an event without a rule
    renyi(event, 2)
    rare = RareSamples.of(event)
    known = (None if cost is None else Converted(cost), rare, Diverging(event))
    return Least(tuple(curve for curve in known if curve is not None))


def is_sharp(plan: FixedPlan) -> bool:
    """Whether the composed dominating pairs are known to give the least curve.

    If so, the curves implied by costs and Renyi divergences need not be computed; this only saves
    work.
    """
    normal = all(
        isinstance(pair, SwappedNormal)
        or (isinstance(pair, SampledPair) and isinstance(pair.pair, Gaussian))
        for pair, _ in plan.pairs
    )
    return plan.reached or (normal and plan.squared <= MAX_MU**2)
