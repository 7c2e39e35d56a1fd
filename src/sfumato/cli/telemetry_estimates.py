# SPDX-License-Identifier: Apache-2.0
"""Formats the estimates of a telemetry task as lines and as a chart.

``sfumato telemetry estimate`` and ``simulate`` print a ``Mean``, ``Spread`` or ``Counts``.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sfumato.errors import WrongUse
from sfumato.show.bars import Bar, bar_chart
from sfumato.show.render import number, text_table
from sfumato.show.svg import Figure
from sfumato.telemetry import (
    Aggregator,
    Distribution,
    Estimates,
    Listed,
    NumberEstimate,
    Record,
    TextEstimates,
    Texts,
    Words,
)
from sfumato.telemetry.estimate_plot import estimate_chart, largest
from sfumato.telemetry.oracles.levels import LevelsOracle
from sfumato.telemetry.oracles.mean import MeanOracle

_HEADER = ("value", "estimate", "95% interval", "p-value of absent", "note")
# What the chart of the estimates does not draw in blue.
_MAY_BE_ABSENT = "may be nobody's"
_QUANTILES = ("0.25", "0.5", "0.75")


@dataclass(frozen=True, slots=True)
class Mean:
    """The estimated mean of a telemetry task, as the command line prints and draws it."""

    title: str
    found: NumberEstimate

    def lines(self, top: int) -> Iterator[str]:
        """Yields a line with the mean and its confidence interval."""
        yield f"mean {_interval(self.found)}"

    def picture(self, top: int) -> Figure:
        """Returns a chart with the mean as a single bar."""
        found = self.found
        bar = Bar("mean", "", found.estimate, found.low, found.high)
        return bar_chart(self.title, "mean of a device", [bar])


@dataclass(frozen=True, slots=True)
class Spread:
    """The estimated distribution of numbers of a telemetry task, as the command line prints and
    draws it.
    """

    title: str
    found: Distribution

    def lines(self, top: int) -> Iterator[str]:
        """Yields a line for each quartile."""
        for level in _QUANTILES:
            yield f"quantile {level}: {_interval(self.found.quantile(level))}"

    def picture(self, top: int) -> Figure:
        """A chart of the shares of ranges, and of the median."""
        return self.found.plot(self.title)


@dataclass(frozen=True, slots=True)
class Counts:
    """The estimated numbers of devices by value, for each attribute of a telemetry task, as the
    command line prints and draws them.
    """

    title: str
    found: Mapping[str, Estimates | TextEstimates]

    def lines(self, top: int) -> Iterator[str]:
        """Yields a table of the ``top`` largest estimates of each attribute, line by line."""
        for name, each in self.found.items():
            if name:
                yield f"attribute {name}"
            yield _table(each, top)

    def picture(self, top: int) -> Figure:
        """Returns a chart of the ``top`` largest estimates with their intervals and p-values."""
        groups = []
        for name, each in self.found.items():
            groups.append(largest(each.to_arrow(), top, each.found_level, name))
        return estimate_chart(self.title, groups, "0.95")


def findings(
    sums: Aggregator,
    texts: Sequence[str] | None = None,
) -> Mean | Spread | Counts:
    """Returns the estimates of a telemetry task from the sums of its reports, in printable form;
    ``texts`` are candidate strings whose counts are estimated.

    Raises:
        WrongUse: a task about unlisted strings without candidates; or candidates for another kind
            of task.
        UnknownName: a candidate that was never in the list.
    """
    oracle, domain = sums.task.oracle, sums.task.domain
    if texts is not None and not isinstance(domain, Texts | Listed):
        raise WrongUse("Candidates of a task that tests none.", remedy="Leave --candidates out.")
    title = sums.task.question[:90]
    if isinstance(oracle, MeanOracle):
        return Mean(title, sums.mean())
    if isinstance(oracle, LevelsOracle):
        return Spread(title, sums.distribution())
    if isinstance(domain, Record):
        parts = {name: sums.attribute(name) for name in domain.names}
        return Counts(title, parts)
    if isinstance(domain, Words):
        return Counts(title, {"": sums.discover()})
    if not isinstance(domain, Texts):
        return Counts(title, {"": sums.estimate(texts)})
    if texts is None:
        raise WrongUse("Texts that nobody listed.", remedy="--candidates words.txt")
    return Counts(title, {"": sums.texts(texts)})


def _table(estimates: Estimates | TextEstimates, top: int) -> str:
    """A table of the largest estimates with their intervals."""
    listed = estimates.to_arrow().to_pylist()
    ordered = sorted(listed, key=lambda row: -row["estimate"])
    rows = []
    for row in ordered[:top]:
        estimate, low, high = (number(round(row[name])) for name in ("estimate", "low", "high"))
        held = "" if row["p_value"] <= estimates.found_level else _MAY_BE_ABSENT
        p_value = f"{row['p_value']:.2g}"
        rows.append([str(row["value"]), estimate, f"[{low}, {high}]", p_value, held])
    return text_table(_HEADER, rows, top)


def _interval(estimate: NumberEstimate) -> str:
    """A number with its interval."""
    return f"{estimate.estimate:,.6g}, 95% interval [{estimate.low:,.6g}, {estimate.high:,.6g}]"
