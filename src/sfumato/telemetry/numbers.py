# SPDX-License-Identifier: Apache-2.0
"""Estimates about the devices' numbers: mean, shares, quantiles, with proved intervals.

``Aggregator.mean`` and ``Aggregator.distribution`` return them. Proof: numbers.proof.md.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.errors import WrongUse
from sfumato.exact.rational import Number
from sfumato.noise import Integers
from sfumato.noise.law import open_unit
from sfumato.show.svg import Figure
from sfumato.telemetry.distribution_plot import Middle, Span, distribution_chart
from sfumato.telemetry.domain import Lattice
from sfumato.telemetry.intervals import Floats
from sfumato.telemetry.oracles.category import CategoryOracle
from sfumato.telemetry.oracles.levels import LevelOracle, LevelsOracle
from sfumato.telemetry.oracles.mean import MeanOracle
from sfumato.telemetry.tails import half_width

# The most ranges of a chart.
_RANGES = 32


@dataclass(frozen=True, slots=True)
class NumberEstimate:
    """An estimate of a statistic of the devices' numbers, with an upper bound of its standard
    error, and its interval.

    >>> NumberEstimate(3.0, 0.5, 2.0, 4.0).low
    2.0
    """

    estimate: float
    standard_error: float
    low: float
    high: float


def mean_of(
    oracle: MeanOracle,
    domain: Lattice,
    tally: Integers,
    confidence: Number,
) -> NumberEstimate:
    """Returns the unbiased estimate of the mean of the devices' numbers, from the tally of the
    reports to a mean oracle.

    Guarantees:
        an interval of a mean holds it as often as stated

    >>> from fractions import Fraction
    >>> from sfumato.noise import SYSTEM
    >>> from sfumato.telemetry.oracles.mean import mean
    >>> oracle, ages = mean(101, 4), Lattice(0, 100, Fraction(1))
    >>> tally = oracle.tally(oracle.encode_many(np.full(50_000, 30), SYSTEM))
    >>> abs(mean_of(oracle, ages, tally, "0.95").estimate - 30) < 1
    True
    """
    miss = float(1 - open_unit("confidence", confidence))
    readings = np.array([float(reading) for reading in oracle.readings()])
    reports = int(tally.sum())
    variances = oracle.variances()
    largest = float(np.ptp(readings)) / reports
    most = float(variances.max()) / reports
    least = float(variances.min()) / reports
    half = half_width(most, least, largest, miss)
    middle = float(np.dot(tally, readings)) / reports
    steps = domain.upper - domain.lower
    scale = float(steps * domain.step)
    start = float(domain.lower * domain.step)
    center = start + scale * middle
    reach = scale * half
    error = scale * most**0.5
    return NumberEstimate(center, error, center - reach, center + reach)


@dataclass(frozen=True)
class Distribution:
    """The estimated distribution of a number over devices: shares of ranges, and quantiles.

    Each estimate is unbiased and a sum over few nodes of the levels; ``confidence`` is that of each
    interval alone.

    >>> from fractions import Fraction
    >>> from sfumato.noise import SYSTEM
    >>> from sfumato.telemetry.oracles.levels import levels
    >>> oracle = levels(64, 4)
    >>> tally = oracle.tally(oracle.encode_many(np.arange(64_000) % 64, SYSTEM))
    >>> found = Distribution(oracle, Lattice(0, 63, Fraction(1)), tally, "0.95")
    >>> abs(found.below(16).estimate - 0.25) < 0.1, abs(found.quantile("0.5").estimate - 32) < 8
    (True, True)
    """

    oracle: LevelsOracle
    domain: Lattice
    tally: Integers
    confidence: Number

    @cached_property
    def _reports(self) -> int:
        """The number of reports of all levels."""
        return sum(reports for reports, _ in self.oracle.split(self.tally))

    @cached_property
    def _levels(self) -> "list[_Level]":
        """The shares of the nodes of each level."""
        levels = []
        chances = self.oracle.chances
        for place, (reports, support) in enumerate(self.oracle.split(self.tally)):
            # reports of the level that would be expected: with them, and not with those that came,
            # an estimate is a sum of independent terms of all devices
            expected = chances[place] * self._reports
            levels.append(_Level(self.oracle.parts[place], reports, support, expected))
        return levels

    def below(self, number: object) -> NumberEstimate:
        """Returns the share of devices whose number is smaller than ``number``."""
        return self._share(self._from_nodes(self.domain.known(number)))

    def between(self, low: object, high: object) -> NumberEstimate:
        """Returns the share of devices whose number is from ``low`` to ``high``, both included."""
        first, last = self.domain.known(low), self.domain.known(high)
        if first > last:
            raise WrongUse("A range that ends before it begins.", remedy="Exchange its ends.")
        return self._share(self._range_nodes(first, last + 1))

    def quantile(self, level: Number) -> NumberEstimate:
        """Returns the least number with at least this share of devices at or below it.

        Its interval has no standard error (0): it is the set of numbers that the shares below
        them do not exclude.

        Guarantees:
            an interval of a quantile holds it as often as stated
        """
        wanted = float(open_unit("level", level))
        shares, halves = self._prefixes
        # the shares below each number, put into ascending order, are no further from the true ones
        ordered = np.sort(shares)
        found = int(np.searchsorted(ordered[1:], wanted, side="left"))
        place = min(found, self.oracle.values - 1)
        below = shares - halves <= wanted
        above = shares + halves >= wanted
        allowed = np.flatnonzero(below[:-1] & above[1:])
        # beside those that are not excluded, the estimate itself
        candidates = np.append(allowed, place)
        labels = self.domain.labels
        low = float(labels[int(candidates.min())])
        high = float(labels[int(candidates.max())])
        return NumberEstimate(float(labels[place]), 0.0, low, high)

    def plot(self, title: str = "Distribution over devices") -> Figure:
        """Draws the shares of up to 32 ranges with their intervals, and the median."""
        middle = self.quantile("0.5")
        median = Middle(middle.estimate, middle.low, middle.high)
        return distribution_chart(title, self._spans(), median, str(self.confidence))

    def _spans(self) -> list[Span]:
        """Returns the ranges of the chart: neighbours of one size, the last may be smaller."""
        labels = self.domain.labels
        size = -(-len(labels) // _RANGES)
        half = float(self.domain.step) / 2
        spans = []
        for start in range(0, len(labels), size):
            first, last = labels[start], labels[min(start + size, len(labels)) - 1]
            found = self.between(first, last)
            name = str(first) if first == last else f"{first} to {last}"
            ends = (float(first) - half, float(last) + half)
            spans.append(Span(name, ends, found.estimate, found.low, found.high))
        return spans

    @cached_property
    def _prefixes(self) -> tuple[Floats, Floats]:
        """The share below each number, up to all, and half the widths of their intervals."""
        count = self.oracle.values
        found = [self._share(self._from_nodes(number)) for number in range(count + 1)]
        shares = np.array([each.estimate for each in found])
        halves = np.array([(each.high - each.low) / 2 for each in found])
        return shares, halves

    def _from_nodes(self, number: int) -> "list[tuple[int, int, int]]":
        """Returns the nodes of the numbers below one: (level, first, end) of each run."""
        return self._range_nodes(0, number)

    def _range_nodes(self, first: int, end: int) -> "list[tuple[int, int, int]]":
        """Returns the largest nodes of a range of numbers, as runs of neighbours."""
        branching = self.oracle.branching
        runs = []
        for level in range(len(self.oracle.parts)):
            if first >= end:
                break
            last = level == len(self.oracle.parts) - 1
            left = right = end
            if not last:
                left = min(-(-first // branching) * branching, end)
                right = max(end // branching * branching, left)
            runs.append((level, first, left))
            runs.append((level, right, end))
            first = left // branching
            end = right // branching
        return [run for run in runs if run[1] < run[2]]

    def _share(self, runs: "list[tuple[int, int, int]]") -> NumberEstimate:
        """Returns the sum of the shares of some nodes, and its interval."""
        if not runs:
            return NumberEstimate(0.0, 0.0, 0.0, 0.0)
        total = most = least = extra = largest = 0.0
        counts: dict[int, int] = {}
        for level, first, end in runs:
            total += float(self._levels[level].shares[first:end].sum())
            counts[level] = counts.get(level, 0) + end - first
        for level, count in counts.items():
            bounds = self._levels[level].bounds(count)
            least += bounds.least
            most += bounds.most
            extra = max(extra, bounds.more)
            largest = max(largest, bounds.largest)
        miss = float(1 - open_unit("confidence", self.confidence))
        half = half_width(most + extra, least, largest + 1 / self._reports, miss)
        return NumberEstimate(total, (most + extra) ** 0.5, total - half, total + half)


@dataclass(frozen=True, slots=True)
class _Bounds:
    """Of a sum of shares of nodes of one level: bounds of its variance, without and with devices
    in these nodes (``more``), and the largest distance of one term from 0.
    """

    least: float
    most: float
    more: float
    largest: float


@dataclass(frozen=True)
class _Level:
    """The reports of one level, and how many of them were expected."""

    part: LevelOracle
    reports: int
    support: Integers
    expected: float

    @cached_property
    def shares(self) -> Floats:
        """The unbiased share of each node, of all devices."""
        own, other = float(self.part.own), float(self.part.other)
        excess: Floats = self.support.astype(np.float64) - self.reports * other
        shares: Floats = excess / (self.expected * (own - other))
        return shares

    def bounds(self, nodes: int) -> _Bounds:
        """Returns the error of a sum of the shares of so many nodes."""
        own, other = float(self.part.own), float(self.part.other)
        apart = (own - other) ** 2
        if isinstance(self.part, CategoryOracle):
            # a report is in one of the nodes, or in none
            outside, inside = nodes * other, own + (nodes - 1) * other
            absent, present = outside * (1 - outside) / apart, inside * (1 - inside) / apart
            terms = 1
        else:
            each = other * (1 - other)
            absent = nodes * each / apart
            present = absent + (own * (1 - own) - each) / apart
            terms = nodes
        return _Bounds(
            max(min(absent, present), 0.0) / self.expected,
            absent / self.expected,
            max(present - absent + 1, 0.0) / self.expected,
            terms / ((own - other) * self.expected),
        )
