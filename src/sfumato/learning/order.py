# SPDX-License-Identifier: Apache-2.0
"""Which units a training step reads: all (``FullBatch``), a secret sample, or a batch in turn.

Recipes take one as ``order=``. The curator draws the sample of units, and exactly the drawn
sampling design is charged. A loader of batches cannot be passed: a shuffled batch would be no
random sample. Proof: order.proof.md.

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
    """The training order in which each step reads all units, without sampling.

    >>> FullBatch().share
    Fraction(1, 1)
    """

    @property
    def design(self) -> Design | None:
        """The sampling design of each step: None, since each step reads all units."""
        return None

    @property
    def share(self) -> Fraction:
        """The share of the units that a step reads, which is 1."""
        return Fraction(1)


@dataclass(frozen=True, slots=True, init=False)
class Poisson:
    """The training order in which each step reads a Poisson sample: every unit independently with
    probability ``rate``.

    It is for add-remove neighbours. The size of the sample is secret, and it may be empty.

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
        """The sampling design of each step, from which samples are drawn and the privacy cost is
        computed.
        """
        return PoissonSample(self.rate)

    @property
    def share(self) -> Fraction:
        """The expected share of the units that a step reads."""
        return self.rate


@dataclass(frozen=True, slots=True)
class Fixed:
    """The training order in which each step reads a random sample of exactly ``size`` of
    ``population`` units.

    It is for replace-one neighbours, where the number of units is public; the draw fails if that
    number is not ``population``.

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
        """The sampling design of each step, from which samples are drawn and the privacy cost is
        computed.
        """
        return FixedSample(self.size, self.population)

    @property
    def share(self) -> Fraction:
        """The share of the units that a step reads."""
        return Fraction(self.size, self.population)


@dataclass(frozen=True, slots=True)
class Cyclic:
    """The training order in which each unit is in one of ``separation`` batches, and steps read the
    batches in turn; for ``torch.Network``.

    The batch of a unit is drawn at random, anew after each checkpoint. Between two checkpoints a
    unit takes part once in any ``separation`` steps. Sampling saves no cost here; in return a step
    may cancel part of the noise of earlier steps (``MatrixNoise``). It is for both neighbour
    relations.

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
    """Raises an error unless ``order`` is a training order that is defined for this neighbour
    relation.

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
    """Returns the privacy event of one training step in this order: ``step`` itself, or ``step`` on
    a sample of the units.

    Guarantees:
        what is drawn is what is charged
    """
    design = order.design
    if design is None:
        return step
    return Sampled(design, step)


def drawn(order: Order, curator: Curator) -> Sample | None:
    """Returns the random sample of units that a training step reads; None if it reads all units."""
    design = order.design
    if design is None:
        return None
    return curator.sample(design)
