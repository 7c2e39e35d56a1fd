# SPDX-License-Identifier: Apache-2.0
"""Estimates of counts from reports: for each value its estimate, error and exposure to liars.

``Aggregator.estimate`` returns them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from sfumato.show.svg import Figure
from sfumato.telemetry.estimate_plot import estimate_chart, largest
from sfumato.telemetry.intervals import Coins, Floats

# The share of lying devices whose effect is shown beside each estimate.
LIARS = 0.01


@dataclass(frozen=True)
class Estimates:
    """The estimated number of reports of each value, unbiased, with intervals.

    ``low`` and ``high`` contain the true number with the stated confidence, for each value alone
    or, if ``simultaneous``, for all values together. ``p_value`` bounds the probability of such an
    estimate if no device held the value. Estimates may be negative and need not add up to the
    number of reports; those of ``consistent`` are non-negative and do.

    >>> from fractions import Fraction
    >>> coins = Coins(1000, Fraction(3, 4), Fraction(1, 4))
    >>> shown = Estimates(("a", "b"), np.array([700, 240]), coins, "0.95")
    >>> shown.estimate.tolist(), shown.consistent().tolist()
    ([900.0, -20.0], [960.0, 40.0])
    >>> round(shown.liars_up)
    15
    """

    values: tuple[object, ...]
    support: "np.ndarray[tuple[int], np.dtype[np.int64]]"
    coins: Coins
    confidence: str
    simultaneous: bool = False
    notes: tuple[str, ...] = ()

    @property
    def reports(self) -> int:
        """The number of reports."""
        return self.coins.reports

    @cached_property
    def estimate(self) -> Floats:
        """The unbiased estimates."""
        return self.coins.estimate(self.support)

    @cached_property
    def standard_error(self) -> Floats:
        """The standard deviation of each estimate, at the estimated count."""
        return np.sqrt(self.coins.variance(self.estimate))

    @cached_property
    def _ends(self) -> tuple[Floats, Floats]:
        return self.coins.interval(self.support, self.confidence)

    @property
    def low(self) -> Floats:
        """The lower end of each value's interval, in reports."""
        return self._ends[0]

    @property
    def high(self) -> Floats:
        """The upper end of each value's interval, in reports."""
        return self._ends[1]

    @cached_property
    def p_value(self) -> Floats:
        """Upper bounds of the probability of at least this support if no device held the value."""
        return self.coins.p_value(self.support)

    @property
    def liars_down(self) -> float:
        """The largest amount by which 1% of devices, if they lie, can lower an estimate."""
        return self.coins.moved_by(LIARS)[0]

    @property
    def liars_up(self) -> float:
        """The largest amount by which 1% of devices, if they lie, can raise an estimate."""
        return self.coins.moved_by(LIARS)[1]

    def consistent(self) -> Floats:
        """Returns the nearest non-negative numbers that add up to the number of reports; biased.

        It needs all values of the domain. Their squared error, summed over all values, is at most
        that of the estimates: the true counts satisfy the same constraints, and a projection onto a
        convex set that contains them does not increase the distance to them.
        """
        ordered = np.sort(self.estimate)[::-1]
        surplus = (np.cumsum(ordered) - self.reports) / np.arange(1, len(ordered) + 1)
        kept = int(np.flatnonzero(ordered > surplus)[-1])
        nearest: Floats = np.maximum(self.estimate - surplus[kept], 0)
        return nearest

    @property
    def columns(self) -> dict[str, Sequence[object] | Floats]:
        """Returns the table as a mapping from column names to columns."""
        return {
            "value": self.values,
            "estimate": self.estimate,
            "standard_error": self.standard_error,
            "low": self.low,
            "high": self.high,
            "p_value": self.p_value,
        }

    def to_arrow(self) -> pa.Table:
        """Returns the estimates as an Arrow table with a row for each value."""
        return pa.table({name: pa.array(column) for name, column in self.columns.items()})

    def to_dicts(self) -> list[dict[str, object]]:
        """Returns the estimates as a dictionary for each value."""
        rows: list[dict[str, object]] = self.to_arrow().to_pylist()
        return rows

    def top(self, count: int) -> Iterator[tuple[object, float]]:
        """Yields the ``count`` values with the largest estimates, the largest first."""
        for place in np.argsort(-self.estimate, kind="stable")[:count].tolist():
            yield self.values[place], float(self.estimate[place])

    @property
    def found_level(self) -> float:
        """The largest p-value at which a value counts as held by some device, with the confidence
        for all values together.
        """
        miss = 1 - float(self.confidence)
        if self.simultaneous:
            return miss
        return miss / max(len(self.values), 1)

    def plot(self, count: int = 20) -> Figure:
        """Draws the largest estimates with their intervals and p-values.

        Blue values are held by some device; with the confidence, this is right for all of them.
        """
        group = largest(self.to_arrow(), count, self.found_level)
        title = f"Estimated number of devices, of {self.reports:,} reports"
        return estimate_chart(title, [group], self.confidence)
