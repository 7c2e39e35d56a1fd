# SPDX-License-Identifier: Apache-2.0
"""Chooses which levels of grouping sets are measured, for the least cost at a wanted error.

A level is a set of keys whose groups are measured with noise of their own. A grouping set (of
ROLLUP or CUBE) is read from a level with at least its keys, by adding up groups.
``choose.plans_for_target`` uses it.
"""

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
    """Returns the number of groups of a key whose groups are declared."""
    return len(key.codes or ()) + key.missing


def copies_of(keys: Iterable[int], coarser_keys: Collection[int], sizes: Sequence[int]) -> int:
    """Returns how many groups by ``keys`` add up to one group by the fewer ``coarser_keys``.

    Keys are indices; ``sizes`` has the number of groups of each.
    """
    return math.prod(sizes[key] for key in keys if key not in coarser_keys)


def level_name(question: Question, keys: Sequence[int]) -> str:
    """Returns the name of a level: "by e, s" for the keys e and s, "total" for no key."""
    names = [question.raw.keys[key].value.name for key in keys]
    return f"by {', '.join(names)}" if names else "total"


# Where the search for the scale of a noise begins, in 64ths of a power of 2.
_FIRST = 640


class Grouping:
    """A search for the levels (sets of group keys) at which a question's grouping sets are measured
    at least cost.

    Without grouping sets there is a single level, with all keys. All costs are under one norm.
    """

    def __init__(
        self,
        question: Question,
        dataset: Dataset,
        norm: Norm,
        layouts: Mapping[str, int] = UNPREPARED,
    ) -> None:
        self.question = question
        self.dataset = dataset
        self.norm = norm
        self.every = tuple(range(len(question.raw.keys)))
        self.sets = question.output.sets or (self.every,)
        self._sizes = [] if question.raw.is_open else [size_of(key) for key in question.raw.keys]
        self._kept = layouts
        self._bounded: dict[tuple[int, ...], Bounded] = {}

    def bounded(self, keys: tuple[int, ...]) -> Bounded:
        """Returns the bounded plan of the level with these keys, cached."""
        if keys not in self._bounded:
            raw = replace(
                self.question.raw, keys=tuple(self.question.raw.keys[key] for key in keys)
            )
            self._bounded[keys] = compile_plan(raw, self.dataset, self.norm, self._kept)
        return self._bounded[keys]

    def cheapest(self, wanted: Wanted, max_epsilon: Fraction) -> "list[LevelCost] | None":
        """Returns the levels that meet every wanted error at the least cost, with their costs.

        None if they cost more than ``max_epsilon``. The search starts with the cheaper of two
        choices: one level of all keys, or each grouping set as a level of its own. Then it adds or
        removes single levels while the cost falls.
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
                    least[name] = _least_cost(part, bounded.norm, GRIDS[bounded.norm], most, meets)
                costs.append(least[name])
            known = tuple(cost for cost in costs if cost is not None)
            if len(known) < len(costs):
                return None
            level_costs.append(LevelCost(Level(level, bounded, tuple(copies_of_sets)), known))
        total = sum((cost for each in level_costs for cost in each.costs), Fraction(0))
        return level_costs if total <= most else None

    def roughly_cheapest(self, wanted: Wanted) -> tuple[set[tuple[int, ...]], Fraction]:
        """Returns the levels (sets of keys) with about the least cost, and that cost within a few
        percent, in epsilon or rho.
        """
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
        """Yields about the least cost of each part of a level, if ``copies`` groups are added up.

        ``scales`` caches the widest noise that meets the error: it does not depend on the distance.
        """
        bounded = self.bounded(level)
        for index, part in enumerate(bounded.parts):
            name = index, bounded.refinement, copies
            if name not in scales:
                meets = wanted.test(index, part.aggregate, bounded.refinement, copies)
                scales[name] = _widest_noise(self.norm, meets)
            scale = scales[name]
            yield part.distance.value / (scale if self.norm is Norm.L1 else 2 * scale)

    def least_factor(self, wanted: Wanted, max_epsilon: Fraction) -> Fraction:
        """Returns about the smallest factor by which all wanted errors must grow to cost at most
        ``max_epsilon``.
        """
        factor = Fraction(1)
        for _ in range(3):
            # the cost falls with the error, or with its square, once the noise is wide
            _, cost = self.roughly_cheapest(wanted.times(factor))
            spent = cost if self.norm is Norm.L1 else sqrt_up(2 * cost)
            factor *= (spent / max_epsilon).limit_denominator(10**6)
        return factor

    def _served(self, levels: Collection[tuple[int, ...]]) -> dict[tuple[int, ...], dict[int, int]]:
        """For each level, the grouping sets read from it and how many groups each of them adds up.

        Each set is read from the level from which it adds up the fewest groups. Empty if a set
        cannot be read from any level.
        """
        served: dict[tuple[int, ...], dict[int, int]] = {}
        for set_index, set_keys in enumerate(self.sets):
            above = [level for level in sorted(levels) if set(set_keys) <= set(level)]
            if not above:
                return {}
            copies = {level: copies_of(level, set_keys, self._sizes) for level in above}
            nearest = min(above, key=copies.__getitem__)
            served.setdefault(nearest, {})[set_index] = copies[nearest]
        return served


@dataclass(frozen=True, slots=True)
class LevelCost:
    """A level that serves some grouping sets, and the cost of each of its aggregates in epsilon or
    rho.
    """

    level: Level
    costs: tuple[Fraction, ...]


def _least_cost(
    part: Part,
    norm: Norm,
    grid: Fraction,
    most: Fraction,
    meets: Callable[[Noise], bool],
) -> Fraction | None:
    """The least multiple of ``grid`` whose noise meets the error; None if even ``most`` does not."""

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


def _widest_noise(norm: Norm, meets: Callable[[Noise], bool]) -> Fraction:
    """About the largest scale (or variance) of a noise that meets a test; at most 2% too small."""

    def holds(steps: int) -> bool:
        # a step is a factor of 2^(1/64) in the scale
        scale = Fraction(2 ** (steps / 64))
        if norm is Norm.L1:
            return not meets(DiscreteLaplace(scale))
        return not meets(DiscreteGaussian(sigma_squared=scale * scale))

    widest = Fraction(2 ** ((smallest(holds, below=_FIRST) - 1) / 64))
    return widest if norm is Norm.L1 else widest * widest
