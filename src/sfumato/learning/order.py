# SPDX-License-Identifier: Apache-2.0
"""Which units a step of a training reads: all of them, a secret random sample, or a batch.

The sample of a step is drawn by the curator, of units, and the very design that is drawn is
charged. A loader of batches cannot be passed: no shuffled batch is priced as a sample.
Proof: order.proof.md.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from sfumato.errors import WrongUse, shown
from sfumato.exact.rational import Number, to_fraction
from sfumato.mechanisms.encoder import MOST_TICKS
from sfumato.privacy.event import Design, Event, FixedSample, PoissonSample, Sampled
from sfumato.privacy.unit import Relation
from sfumato.query.curator import Curator, Sample


@dataclass(frozen=True, slots=True)
class FullBatch:
    """Every step reads all units.

    >>> FullBatch().share
    Fraction(1, 1)
    """

    @property
    def design(self) -> Design | None:
        """None: nothing is sampled."""
        return None

    @property
    def share(self) -> Fraction:
        """The share of the units that a step reads."""
        return Fraction(1)


@dataclass(frozen=True, slots=True, init=False)
class Poisson:
    """Each step reads a sample in which each unit is with probability ``rate``, under add-remove.

    The size of the sample is secret, and it may be empty.

    Raises:
        WrongUse: a rate that is not above 0 and at most 1.

    >>> Poisson("0.01").share
    Fraction(1, 100)
    """

    rate: Fraction

    def __init__(self, rate: Number) -> None:
        share = to_fraction("rate", rate)
        if not 0 < share <= 1:
            raise WrongUse(f"rate={shown(rate)}.", allowed="above 0 and at most 1")
        object.__setattr__(self, "rate", share)

    @property
    def design(self) -> Design | None:
        """The design that is drawn and charged."""
        return PoissonSample(self.rate)

    @property
    def share(self) -> Fraction:
        """The expected share of the units that a step reads."""
        return self.rate


@dataclass(frozen=True, slots=True)
class Fixed:
    """Each step reads ``size`` of ``population`` units, under replace-one.

    Under replace-one the number of units is public; the draw fails if it is not ``population``.

    Raises:
        InvalidNumber: a size that is not from 1 to ``population``.

    >>> Fixed(100, 50_000).share
    Fraction(1, 500)
    """

    size: int
    population: int

    def __post_init__(self) -> None:
        # the design refuses what is no sample
        FixedSample(self.size, self.population)

    @property
    def design(self) -> Design | None:
        """The design that is drawn and charged."""
        return FixedSample(self.size, self.population)

    @property
    def share(self) -> Fraction:
        """The share of the units that a step reads."""
        return Fraction(self.size, self.population)


@dataclass(frozen=True, slots=True)
class Cyclic:
    """Each unit is in one of ``separation`` batches, which take turns; for ``torch.Network``.

    A unit's batch is drawn by itself, anew after each checkpoint. Between two checkpoints a unit
    takes part once in any ``separation`` steps. Nothing is saved by sampling; in return the noise
    of a step may take away a part of the noise of earlier ones (``MatrixNoise``). Under both
    neighbour relations.

    Raises:
        WrongUse: a separation that is no whole number from 1 to 2^21.

    >>> Cyclic(20).share
    Fraction(1, 20)
    """

    separation: int

    def __post_init__(self) -> None:
        if type(self.separation) is not int or not 1 <= self.separation <= MOST_TICKS:
            raise WrongUse(
                f"separation={shown(self.separation)}.", allowed=f"from 1 to {MOST_TICKS:,}"
            )

    @property
    def share(self) -> Fraction:
        """The expected share of the units that a step reads."""
        return Fraction(1, self.separation)


# What a measurement may be of; ``Cyclic`` is one of steps in a stream alone.
Order: TypeAlias = FullBatch | Poisson | Fixed


def require_order(order: object, neighbours: Relation) -> None:
    """Refuses what is no order, and an order for other neighbours than those of the data.

    Raises:
        WrongUse: a loader of batches, say; or samples of the other neighbour relation.
    """
    if isinstance(order, Cyclic):
        raise WrongUse(
            f"order={shown(order)} of a recipe without streams.",
            allowed="FullBatch(), Poisson(rate), Fixed(size, population)",
            remedy="torch.Network takes Cyclic.",
        )
    if not isinstance(order, Order):
        raise WrongUse(
            f"order={shown(order)}.",
            allowed="FullBatch(), Poisson(rate), Fixed(size, population)",
            remedy="Batches are drawn by sfumato: a shuffled one has no price of a sample.",
        )
    design = order.design
    if design is not None and design.relation is not neighbours:
        raise WrongUse(
            f"{type(order).__name__} where neighbours are by {neighbours.value}.",
            allowed="Poisson under add-remove, Fixed under replace-one, FullBatch under both",
        )


def event_of(order: Order, step: Event) -> Event:
    """The event of a step that does ``step`` on the units of an order.

    Guarantees:
        what is drawn is what is charged
    """
    design = order.design
    if design is None:
        return step
    return Sampled(design, step)


def drawn(order: Order, curator: Curator) -> Sample | None:
    """The sample of one step; None for all units."""
    design = order.design
    if design is None:
        return None
    return curator.sample(design)
