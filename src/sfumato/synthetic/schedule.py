# SPDX-License-Identifier: Apache-2.0
"""Divides the cost of a fit among its steps, from declarations only, so that its event is known
first.
"""

import math
from dataclasses import dataclass, field
from fractions import Fraction

from sfumato.errors import InvalidNumber, WrongUse, shown
from sfumato.exact.rational import Number, to_fraction
from sfumato.mechanisms.additive import AdditiveMechanism
from sfumato.mechanisms.selection import SelectionMechanism, exponential
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.event import Composed, Event, Repeated
from sfumato.query.allowance import Allowance
from sfumato.synthetic.counts import Plan

# Beyond this many columns, and below this rho, only a forest is measured.
FOREST_COLUMNS, FOREST_RHO = 60, 1e-3
# The cells of all tables of the junction tree, and of one measured marginal.
_LEAST_CELLS, _MOST_CELLS = 300_000, 1_000_000
_PAIR_SHARE = 10
# The most rounds, and how many marginals are chosen before the model is fitted again.
MOST_ROUNDS, BATCH = 1000, 4
# How many marginals the honest check counts, and the blocks of each of their axes.
CHECKS, CHECK_BLOCKS = 10, 4
_PARTS = 10**12
# Neighbours of an ordered column are one block up to so many standard deviations of their noise: in
# one table; and in several where little is spent, since pairs of many cells would be noise alone.
ALIKE_ALONE, ALIKE_TOGETHER = 3.0, 10.0
# Rounds for each column: one, and so many more for every tenfold rho; never more than the last.
_ROUNDS, _MOST_TIMES = 1.8, 3.5
# A rho is compared as if the table had so many rows, unless its size is declared.
ROWS = 30_000


@dataclass(frozen=True, slots=True)
class Schedule:
    """The numbers of measurements and selections of a fit, and the share of the cost of each.

    ``limit`` is the largest number of cells of all tables of the junction tree. ``faint`` is the
    number of standard deviations below which values are merged. ``is_forest`` means that selected
    pairs form no loops. With ``neighbours``, adjacent values of ordered columns are merged up to
    ``alike`` standard deviations, so that noise in an empty tail averages out and does not raise a
    mean.

    >>> from sfumato.query.allowance import allowance
    >>> plan = Schedule.of(15, allowance(rho="0.015"))
    >>> plan.rounds, plan.is_forest, float(sum(plan.shares))
    (44, False, 1.0)
    """

    allowance: Allowance
    columns: int
    rounds: int
    limit: int
    faint: int
    check: Fraction
    neighbours: bool = False
    # a fit of one table has one value, one of several tables another
    alike: float = field(default=ALIKE_ALONE, compare=False)

    @classmethod
    def of(
        cls,
        columns: int,
        allowance: Allowance,
        *,
        size: int | None = None,
        rounds: int | None = None,
        check: Number = "0.05",
    ) -> "Schedule":
        """Returns the schedule for a table with this number of columns; ``size`` is its declared
        number of rows, if any.

        Raises:
            WrongUse: rounds or a check outside their ranges.
        """
        share = to_fraction("check", check)
        if not 0 <= share <= Fraction(1, 2):
            raise WrongUse(f"check={shown(check)}.", allowed="a share of the cost from 0 to 0.5")
        if rounds is not None and (type(rounds) is not int or not 0 <= rounds <= MOST_ROUNDS):
            raise WrongUse(f"rounds={shown(rounds)}.", allowed=f"from 0 to {MOST_ROUNDS:,}")
        strength = math.log10(_strength(allowance, size))
        richness = max(0.0, strength - math.log10(FOREST_RHO))
        is_small = columns > FOREST_COLUMNS or richness == 0
        taken = rounds
        if taken is None:
            factor = 1.0 if is_small else min(1 + _ROUNDS * richness, _MOST_TIMES)
            taken = min(round(factor * (columns - 1)), MOST_ROUNDS)
        pairs = columns * (columns - 1) // 2
        growth = (_MOST_CELLS / _LEAST_CELLS) ** min(1.0, max(0.0, richness - 1) / 2)
        return cls(
            allowance,
            columns,
            min(taken, pairs),
            round(_LEAST_CELLS * growth),
            1 if richness == 0 else 3,
            share if pairs else Fraction(0),
            neighbours=True,
        )

    @property
    def is_forest(self) -> bool:
        """Whether the selected pairs of columns must form no loops."""
        return self.rounds < self.columns or self.columns > FOREST_COLUMNS

    @property
    def largest(self) -> int:
        """The largest number of cells of a measured marginal."""
        return self.limit // _PAIR_SHARE

    @property
    def checks(self) -> int:
        """The number of marginals that the honest check counts."""
        if not self.check:
            return 0
        return min(CHECKS, self.columns * (self.columns - 1) // 2)

    @property
    def checked_triples(self) -> int:
        """How many of the checked marginals have three columns; for a fit of a single table."""
        return self.checks // 3

    @property
    def shares(self) -> tuple[Fraction, Fraction, Fraction, Fraction]:
        """The shares of the fit's cost: of single columns, selections, selected marginals, and the
        honest check.
        """
        left = 1 - self.check
        if not self.rounds:
            return left, Fraction(0), Fraction(0), self.check
        first = Fraction(1, 5) if self.is_forest else Fraction(1, 10)
        selections = Fraction(1, 10)
        return first * left, selections * left, (1 - first - selections) * left, self.check

    def noises(self, plan: Plan) -> "Noises":
        """Returns the mechanisms of all measurements of a counted table."""
        return Noises(self, plan)

    def each(self, step: int, times: int) -> Fraction:
        """Returns the cost (epsilon or rho) of one of ``times`` equal measurements that together
        get one of the ``shares``.

        ``step`` is the index in ``shares``.

        Raises:
            InvalidNumber: it is less than the ledger's unit.
        """
        exact = self.allowance.amount * self.shares[step] / max(times, 1)
        cost = Fraction(math.floor(exact * _PARTS), _PARTS)
        if exact and not cost:
            name = "epsilon" if self.allowance.norm is Norm.L1 else "rho"
            raise InvalidNumber(
                f"{name} = {float(self.allowance.amount):g} is too little to measure "
                f"{self.columns} columns: a count would get less than 1e-12 of it.",
                allowed="a larger cost",
            )
        return cost


def _strength(allowance: Allowance, size: int | None) -> float:
    """Returns the rho of a cost, scaled to a table of 30,000 rows."""
    rho = float(allowance.amount)
    if allowance.norm is Norm.L1:
        rho = rho**2 / 2
    return rho * ((size or ROWS) / ROWS) ** 2


@dataclass(frozen=True, slots=True)
class Noises:
    """The mechanisms of all measurements of one table in a fit, and their privacy event."""

    schedule: Schedule
    plan: Plan

    @property
    def distance(self) -> Distance:
        """The sensitivity of the counts of one marginal, in the norm of the noise."""
        if self.schedule.allowance.norm is Norm.L1:
            return self.plan.l1
        return self.plan.l2

    @property
    def single(self) -> AdditiveMechanism:
        """The mechanism for the counts of a single column."""
        return self._noise(0, self.schedule.columns)

    @property
    def chosen(self) -> AdditiveMechanism:
        """The mechanism that adds noise to a selected marginal."""
        return self._noise(2, self.schedule.rounds)

    @property
    def checked(self) -> AdditiveMechanism:
        """The mechanism for a marginal of the honest check."""
        return self._noise(3, self.schedule.checks)

    def choice(self, heaviest: int) -> SelectionMechanism:
        """Returns the mechanism that selects the next marginal; ``heaviest`` is the largest weight
        of one.
        """
        share = self.schedule.each(1, self.schedule.rounds)
        epsilon = share
        if self.schedule.allowance.norm is Norm.L2:
            # an exponential mechanism of epsilon costs epsilon^2 / 8
            parts = math.isqrt(math.floor(8 * share * _PARTS**2))
            epsilon = Fraction(parts, _PARTS)
        return exponential(self.scored(heaviest), epsilon)

    def scored(self, heaviest: int) -> Distance:
        """Returns the sensitivity of the score of one candidate in the selection."""
        apart = self.plan.apart
        return Distance(apart.norm, apart.value * heaviest, apart.relation)

    def event(self, heaviest: int) -> Event:
        """Returns the privacy event of all measurements and selections of the table."""
        schedule, moved = self.schedule, self.distance
        steps: list[Event] = [Repeated(self.single.event(moved), schedule.columns)]
        if schedule.checks:
            steps.append(Repeated(self.checked.event(moved), schedule.checks))
        if schedule.rounds:
            selection = self.choice(heaviest).event(self.scored(heaviest))
            pair = Composed((selection, self.chosen.event(moved)))
            steps.append(Repeated(pair, schedule.rounds))
        return Composed(tuple(steps))

    def _noise(self, step: int, times: int) -> AdditiveMechanism:
        return self.schedule.allowance.noise(self.distance, self.schedule.each(step, times))
