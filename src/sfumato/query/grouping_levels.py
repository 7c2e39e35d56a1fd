# SPDX-License-Identifier: Apache-2.0
"""Chooses which levels of grouping sets are measured, so that every error is kept."""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from sfumato.exact.rounding import sqrt_up
from sfumato.metadata.dataset import Dataset
from sfumato.noise import DiscreteGaussian, DiscreteLaplace, Noise
from sfumato.noise.search import smallest
from sfumato.plan.levels import Level
from sfumato.plan.question import Question
from sfumato.plan.stages import Bounded, Part
from sfumato.plan.value import GroupKey
from sfumato.privacy.distance import Norm
from sfumato.query.pipeline import UNPREPARED, compile_plan
from sfumato.query.target import Wanted

# The least cost of an error is searched among multiples of these, so that it is a short decimal.
EPSILON_GRID, _RHO_GRID = Fraction(1, 10**6), Fraction(1, 10**9)
# The increment of that search by the norm of the noise.
GRIDS = {Norm.L1: EPSILON_GRID, Norm.L2: _RHO_GRID}


def size_of(key: GroupKey) -> int:
    """The number of groups of a key whose groups are declared."""
    return len(key.codes or ()) + key.missing


def copies_of(keys: Iterable[int], coarser_keys: Collection[int], sizes: Sequence[int]) -> int:
    """How many groups by all ``keys`` make up one group by those of them in ``coarser_keys``.

    ``sizes`` are the numbers of groups of each key.
    """
    return math.prod(sizes[key] for key in keys if key not in coarser_keys)


def level_name(question: Question, keys: Sequence[int]) -> str:
    """The name of the groups by some keys: "by e, s", or "total" for none."""
    names = [question.raw.keys[key].value.name for key in keys]
    return f"by {', '.join(names)}" if names else "total"


# Where the search for the scale of a noise begins, in 64ths of a power of 2.
_FIRST = 640


class Grouping:
    """The levels in which the grouping sets of a statement can be measured, under one norm.

    Without grouping sets there is one level, of all keys.
    """

    def __init__(
        self,
        question: Question,
        dataset: Dataset,
        norm: Norm,
        kept: Mapping[str, int] = UNPREPARED,
    ) -> None:
        self.question = question
        self.dataset = dataset
        self.norm = norm
        self.every = tuple(range(len(question.raw.keys)))
        self.sets = question.output.sets or (self.every,)
        self._sizes = [] if question.raw.is_open else [size_of(key) for key in question.raw.keys]
        self._kept = kept
        self._bounded: dict[tuple[int, ...], Bounded] = {}

    def bounded(self, keys: tuple[int, ...]) -> Bounded:
        """The bounded plan of the groups by these keys."""
        if keys not in self._bounded:
            raw = replace(
                self.question.raw, keys=tuple(self.question.raw.keys[key] for key in keys)
            )
            self._bounded[keys] = compile_plan(raw, self.dataset, self.norm, self._kept)
        return self._bounded[keys]

    def cheapest(self, wanted: Wanted, max_epsilon: Fraction) -> "list[LevelCost] | None":
        """The levels that keep every wanted error, at the least cost; None if it is too much.

        All sets are read from the level of all keys, or each is measured apart, whichever costs
        less; then single levels are added or left out as long as that costs less.
        """
        most = max_epsilon if self.norm is Norm.L1 else max_epsilon**2 / 2
        levels = {self.every}
        if len(self.sets) > 1 or self.sets != (self.every,):
            levels, _ = self.roughly_cheapest(wanted)
        level_costs = []
        least: dict[tuple[int, int, int, Fraction], Fraction | None] = {}
        for level, copies_of_sets in self._served(levels).items():
            bounded = self.bounded(level)
            copies = max(copies_of_sets.values())
            costs = []
            for index, part in enumerate(bounded.parts):
                # many levels have parts of the same distance
                name = index, bounded.refinement, copies, part.distance.value
                if name not in least:
                    meets = wanted.test(index, part.aggregate, bounded.refinement, copies)
                    least[name] = _least(part, bounded.norm, GRIDS[bounded.norm], most, meets)
                costs.append(least[name])
            known = tuple(cost for cost in costs if cost is not None)
            if len(known) < len(costs):
                return None
            level_costs.append(LevelCost(Level(level, bounded, tuple(copies_of_sets)), known))
        total = sum((cost for each in level_costs for cost in each.costs), Fraction(0))
        return level_costs if total <= most else None

    def roughly_cheapest(self, wanted: Wanted) -> tuple[set[tuple[int, ...]], Fraction]:
        """The levels with the least cost, and that cost within a few hundredths."""
        scales: dict[tuple[int, int, int], Fraction] = {}

        def total(levels: set[tuple[int, ...]]) -> Fraction | float:
            served = self._served(levels)
            costs: list[Fraction] = []
            for level, copies in served.items():
                costs += self._rough_costs(level, max(copies.values()), wanted, scales)
            return sum(costs, Fraction(0)) if served else math.inf

        best = min(({self.every}, set(self.sets)), key=total)
        for level in dict.fromkeys([self.every, *self.sets]):
            other = best ^ {level}
            if total(other) < total(best):
                best = other
        return best, Fraction(total(best))

    def _rough_costs(
        self,
        level: tuple[int, ...],
        copies: int,
        wanted: Wanted,
        scales: dict[tuple[int, int, int], Fraction],
    ) -> Iterator[Fraction]:
        """About the least cost of each part of a level, of which so many groups are added up.

        ``scales`` caches how wide a noise may be: that does not depend on the distance.
        """
        bounded = self.bounded(level)
        for index, part in enumerate(bounded.parts):
            name = index, bounded.refinement, copies
            if name not in scales:
                meets = wanted.test(index, part.aggregate, bounded.refinement, copies)
                scales[name] = _widest(self.norm, meets)
            scale = scales[name]
            yield part.distance.value / (scale if self.norm is Norm.L1 else 2 * scale)

    def least_factor(self, wanted: Wanted, max_epsilon: Fraction) -> Fraction:
        """About the least factor by which every wanted error must grow to cost no more."""
        factor = Fraction(1)
        for _ in range(3):
            # the cost falls with the error, or with its square, once the noise is wide
            _, cost = self.roughly_cheapest(wanted.times(factor))
            spent = cost if self.norm is Norm.L1 else sqrt_up(2 * cost)
            factor *= (spent / max_epsilon).limit_denominator(10**6)
        return factor

    def _served(self, levels: Collection[tuple[int, ...]]) -> dict[tuple[int, ...], dict[int, int]]:
        """For each level the sets that are read from it, and how many groups each adds up.

        Each set is read from the level of which it adds up the fewest. Empty if a set can be read
        from none.
        """
        served: dict[tuple[int, ...], dict[int, int]] = {}
        for place, kept in enumerate(self.sets):
            above = [level for level in sorted(levels) if set(kept) <= set(level)]
            if not above:
                return {}
            copies = {level: copies_of(level, kept, self._sizes) for level in above}
            nearest = min(above, key=copies.__getitem__)
            served.setdefault(nearest, {})[place] = copies[nearest]
        return served


@dataclass(frozen=True, slots=True)
class LevelCost:
    """A level with the grouping sets that are read from it, and the cost of each part."""

    level: Level
    costs: tuple[Fraction, ...]


def _least(
    part: Part,
    norm: Norm,
    grid: Fraction,
    most: Fraction,
    meets: Callable[[Noise], bool],
) -> Fraction | None:
    """The least multiple of ``grid`` whose noise meets the error; None if ``most`` does not."""

    def noise(cost: Fraction) -> Noise:
        if norm is Norm.L1:
            return DiscreteLaplace(part.distance.value / cost)
        return DiscreteGaussian(sigma_squared=part.distance.value / (2 * cost))

    def enough(steps: int) -> bool:
        return steps > 0 and meets(noise(steps * grid))

    if most < grid or not enough(int(most / grid)):
        return None
    # ``most`` is enough, so nothing beyond it is tested
    return grid * smallest(lambda steps: steps >= most / grid or enough(steps), below=1)


def _widest(norm: Norm, meets: Callable[[Noise], bool]) -> Fraction:
    """About the largest scale, or variance, of a noise that meets a test: at most 2% below it."""

    def holds(steps: int) -> bool:
        # a step is a factor of 2^(1/64) in the scale
        scale = Fraction(2 ** (steps / 64))
        if norm is Norm.L1:
            return not meets(DiscreteLaplace(scale))
        return not meets(DiscreteGaussian(sigma_squared=scale * scale))

    widest = Fraction(2 ** ((smallest(holds, below=_FIRST) - 1) / 64))
    return widest if norm is Norm.L1 else widest * widest
