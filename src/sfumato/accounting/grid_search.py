# SPDX-License-Identifier: Apache-2.0
"""Searches a grid for the first point that provably meets a target, and the last that does not.

``calibrate`` searches parameters with it. Costs are brackets. The result is proved by the readings
at these two points alone; it does not rely on monotonicity, the start or the slope. Proof:
grid_search.proof.md.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol, TypeAlias

from sfumato.errors import InvalidNumber

Real: TypeAlias = float | Fraction
# Bounds (lower, upper) of the true cost at an index; a lower bound of -inf: nothing is known.
Reading: TypeAlias = Callable[[int], tuple[Real, Real]]

_LOWER, _UPPER = 0, 1
_FARTHEST_DECADE = 30
# The farthest extrapolation: a factor of a thousand.
_FARTHEST = math.log(1000)
# The assumed slope of the log cost where nothing is known: cost times size is constant.
_FALLS = -1.0


class _Grid(Protocol):
    """Points by index; higher indices meet a target more easily.

    ``place`` and ``near`` only steer a search.
    """

    @property
    def lowest(self) -> int: ...

    @property
    def highest(self) -> int: ...

    def place(self, index: int) -> float:
        """The position of a point on a logarithmic scale."""
        ...

    def near(self, place: float) -> int:
        """The index of a point near a position."""
        ...


@dataclass(frozen=True, slots=True)
class Decimals:
    """A search grid for calibration: the decimals with a given number of significant digits, from
    1e-30 to 1e30.

    ``falling``: the smaller a number, the easier the target is met.

    >>> grid = Decimals(3)
    >>> [str(grid.value(grid.near(math.log(4.3026)) + step)) for step in (0, 1)]
    ['43/10', '431/100']
    """

    digits: int
    falling: bool = False

    @property
    def lowest(self) -> int:
        return -_FARTHEST_DECADE * self._decade

    @property
    def highest(self) -> int:
        return _FARTHEST_DECADE * self._decade

    def value(self, index: int) -> Fraction:
        """Returns the decimal number with this index in the grid."""
        exponent, rest = divmod(-index if self.falling else index, self._decade)
        return (self._power + rest) * Fraction(10) ** (exponent - self.digits + 1)

    def place(self, index: int) -> float:
        place = math.log(self.value(index))
        return -place if self.falling else place

    def near(self, place: float) -> int:
        exponent, rest = divmod((-place if self.falling else place) / math.log(10), 1)
        index = int(exponent) * self._decade + round((10**rest - 1) * self._power)
        return -index if self.falling else index

    @property
    def _decade(self) -> int:
        """The number of points per power of ten."""
        return 9 * self._power

    @property
    def _power(self) -> int:
        return int(10 ** (self.digits - 1))


@dataclass(frozen=True, slots=True)
class Counts:
    """A search grid for calibration: the integers up to ``most``, whose smaller numbers meet a
    target more easily.

    Index -n stands for n.
    """

    most: int

    @property
    def lowest(self) -> int:
        return -self.most

    @property
    def highest(self) -> int:
        return 0

    def place(self, index: int) -> float:
        return -math.log(-index) if index else 1.0

    def near(self, place: float) -> int:
        return -round(math.exp(min(-place, 100.0)))


@dataclass(frozen=True, slots=True)
class Found:
    """The result of a search on a grid: the index ``meets`` is proved to meet the target, ``fails``
    not to.

    The first is proved by the upper bound of its cost (``cost``), the second by the lower bound of
    its own. ``fails`` None: no index is known to fail.
    """

    meets: int
    fails: int | None
    cost: tuple[Real, Real]


def frontier(
    reading: Reading,
    target: Fraction,
    grid: _Grid,
    *,
    start: int,
    precision: float = 0.0,
    slope: float = _FALLS,
) -> Found:
    """Returns the neighbouring grid indices at which the cost first meets the target, proved by
    readings (bounds of the cost at an index), within a relative ``precision``.

    ``start`` and ``slope`` (of the logarithm of the cost, below 0) are guesses: they save readings
    and prove nothing.

    Guarantees:
        what meets is proved by its upper end
        what fails is proved by its lower end
        a search ends within its precision or where neighbours tell no more

    Raises:
        InvalidNumber: no index of the grid is known to meet the target.

    >>> def cost(index):
    ...     return -0.5 * index, -0.5 * index
    >>> frontier(cost, Fraction(7, 4), Counts(10**6), start=-1)
    Found(meets=-3, fails=-4, cost=(1.5, 1.5))
    """
    search = _Search(reading, target, grid, slope)
    search.read(min(max(start, grid.lowest), grid.highest))
    tries = {_UPPER: 0, _LOWER: 0}
    while not search.within(precision):
        unsettled = [side for side in tries if search.unsettled(side)]
        if not unsettled:
            break
        side = min(unsettled, key=tries.__getitem__)
        search.read(search.aim(side, tries[side], precision / 4))
        tries[side] += 1
    meets, fails = search.meets, search.edge(_LOWER)[0]
    if meets > grid.highest:
        raise InvalidNumber(
            "No point of the grid is known to meet the target.",
            allowed="a target that enough noise can meet",
        )
    return Found(meets, fails if fails >= grid.lowest else None, search.seen[meets])


class _Search:
    """The readings so far. An edge without readings is just off the grid."""

    def __init__(self, reading: Reading, target: Fraction, grid: _Grid, slope: float) -> None:
        self._reading, self._target, self._grid, self._slope = reading, target, grid, slope
        self.seen: dict[int, tuple[Real, Real]] = {}

    def read(self, index: int) -> None:
        self.seen[index] = self._reading(index)

    @property
    def meets(self) -> int:
        """The first index known to meet the target."""
        return min(
            (i for i, cost in self.seen.items() if cost[_UPPER] <= self._target),
            default=self._grid.highest + 1,
        )

    def edge(self, side: int) -> tuple[int, int]:
        """The last index below ``meets`` where this end of the cost is above the target, and the
        next index that was read.
        """
        meets = self.meets
        above = (i for i, cost in self.seen.items() if i < meets and cost[side] > self._target)
        low = max(above, default=self._grid.lowest - 1)
        return low, min((i for i in self.seen if i > low), default=self._grid.highest + 1)

    def unsettled(self, side: int) -> bool:
        """Whether there are unread indices inside this edge."""
        low, high = self.edge(side)
        return high - low > 1 and any(cost[side] > -math.inf for cost in self.seen.values())

    def within(self, precision: float) -> bool:
        """Whether the two indices are adjacent or close enough."""
        low, high = self.edge(_LOWER)[0], self.meets
        if low < self._grid.lowest or high > self._grid.highest:
            return False
        return high - low <= 1 or self._grid.place(high) - self._grid.place(low) <= precision

    def aim(self, side: int, tries: int, beyond: float) -> int:
        """The next index to read: slightly beyond where the secant crosses the target."""
        low, high = self.edge(side)
        crossing = self._crossing(side)
        if crossing is None or tries % 4 == 3:
            return self._middle(low, high, tries)
        index = self._grid.near(crossing + (beyond if side == _UPPER else -beyond))
        if not low < index < high:
            index = self._grid.near(crossing)
        return min(max(index, low + 1), high - 1)

    def _middle(self, low: int, high: int, tries: int) -> int:
        """The midpoint; if one end is off the grid, exponentially growing steps from the other."""
        grid, step = self._grid, math.log(10) * 2.0**tries
        if low < grid.lowest:
            return min(max(grid.near(grid.place(high) - step), grid.lowest), high - 1)
        if high > grid.highest:
            return max(min(grid.near(grid.place(low) + step), grid.highest), low + 1)
        return (low + high) // 2

    def _crossing(self, side: int) -> float | None:
        """The position where the secant of the nearest readings crosses the target; from one
        reading, with the guessed slope.
        """
        ends = {index: cost[side] for index, cost in self.seen.items() if 0 < cost[side] < math.inf}
        heights = {index: _log(cost) - _log(self._target) for index, cost in ends.items()}
        nearest = sorted(heights, key=lambda index: abs(heights[index]))[:2]
        if not nearest:
            return None
        places = [self._grid.place(index) for index in nearest]
        slope = self._slope
        if len(nearest) == 2:
            slope = (
                min((heights[nearest[0]] - heights[nearest[1]]) / (places[0] - places[1]), 0.0)
                or slope
            )
        return places[0] + min(max(heights[nearest[0]] / -slope, -_FARTHEST), _FARTHEST)


def _log(number: Real) -> float:
    exact = Fraction(number)
    return math.log(exact.numerator) - math.log(exact.denominator)
