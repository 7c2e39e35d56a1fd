# SPDX-License-Identifier: Apache-2.0
"""Answers to questions about graphs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from sfumato.errors import InvalidNumber, WrongUse, shown
from sfumato.graph.isotonic import stars_of
from sfumato.noise import Integers
from sfumato.query.cost import Cost
from sfumato.query.task import Stored
from sfumato.show.bars import Bar, bar_chart
from sfumato.show.render import text_table
from sfumato.show.svg import Figure

if TYPE_CHECKING:
    import pyarrow

# The most nodes of a sequence, 8 GB; the most rows that are printed.
_MOST_NODES, _SHOWN = 10**9, 20


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Released:
    """The stored facts of an answer, and the charge that paid for it."""

    facts: Mapping[str, Any]
    stored: Stored

    @property
    def charge_id(self) -> str:
        """The id of the charge that paid for the answer."""
        return self.stored.charge or str(self.facts["charge_id"])

    @property
    def recalled(self) -> bool:
        """Whether the answer was stored before, so that it cost nothing this time."""
        return self.stored.recalled

    @property
    def cost(self) -> Cost:
        """The cost, with an item for each step."""
        cost = self.facts["cost"]
        return Cost(cost["epsilon"], cost["rho"], cost["delta"], tuple(cost["items"]))

    @property
    def limit(self) -> int | None:
        """The limit of degrees under which edges were kept; None if an edge is the unit."""
        limit: int | None = self.facts.get("limit")
        return limit

    @property
    def notes(self) -> tuple[str, ...]:
        """Who is protected, and what was left out."""
        notes = list(self.facts["protected"])
        if self.limit is not None:
            notes.append(
                f"No node kept more than {self.limit:,} edges; an interval is one of the kept "
                "edges, and says nothing of those that were not kept."
            )
        return tuple(notes)

    def to_arrow(self) -> "pyarrow.Table":
        """The numbers as a pyarrow table."""
        raise NotImplementedError

    def to_arrow_bytes(self) -> bytes:
        """The table of ``to_arrow`` as an Arrow stream."""
        import pyarrow

        table, sink = self.to_arrow(), pyarrow.BufferOutputStream()
        with pyarrow.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
        return bytes(sink.getvalue().to_pybytes())

    def to_json(self) -> dict[str, Any]:
        """The stored facts, with the notes."""
        return {**self.facts, "charge_id": self.charge_id, "notes": list(self.notes)}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Count(_Released):
    """The answer to a question for a number of edges or triangles: the noisy number, with a 95%
    confidence interval.
    """

    @property
    def value(self) -> int:
        """The noisy number of edges or triangles."""
        return int(self.facts["value"])

    @property
    def low(self) -> int:
        """The lower end of the 95% confidence interval."""
        return int(self.facts["low"])

    @property
    def high(self) -> int:
        """The upper end of the 95% confidence interval."""
        return int(self.facts["high"])

    def to_arrow(self) -> "pyarrow.Table":
        """Returns a pyarrow table of one row, with the noisy number and the ends of its 95%
        interval.
        """
        return _arrow({name: [self.facts[name]] for name in ("value", "low", "high")})

    def plot(self) -> Figure:
        """Returns a chart of one bar: the noisy number, with its 95% interval."""
        name = str(self.facts["question"])
        return bar_chart(name, name, [Bar(name, name, self.value, self.low, self.high)])

    def __repr__(self) -> str:
        line = f"{self.facts['question']}: {self.value:,} ({self.low:,} to {self.high:,})"
        return "\n".join([line, *self.notes])


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DegreeTable(_Released):
    """The answer to a question for the degrees of a graph: a noisy degree histogram."""

    @property
    def histogram(self) -> dict[int, int]:
        """The noisy number of nodes for each degree, by rising degree; degrees of no node are left
        out.
        """
        return {int(degree): int(nodes) for degree, nodes in self.facts["degrees"]}

    @property
    def sequence(self) -> Integers:
        """The noisy degree sequence: the degrees of all nodes in the histogram, in descending
        order.

        Raises:
            WrongUse: there are more than 10^9: the noise was larger than any graph.
        """
        histogram = self.histogram
        if sum(histogram.values()) > _MOST_NODES:
            raise WrongUse(
                "More than 10^9 nodes.", remedy="Ask at a higher cost; or read .histogram."
            )
        rising = np.repeat(np.array([*histogram], np.int64), [*histogram.values()])
        return rising[::-1]

    def stars(self, size: int) -> int:
        """Returns the number of stars in the noisy histogram: choices of ``size`` edges that share
        a node.

        Raises:
            InvalidNumber: a size below 1.
        """
        if type(size) is not int or size < 1:
            raise InvalidNumber(f"size = {shown(size)} of a star.", allowed="an integer >= 1")
        return stars_of(self.histogram, size)

    def to_arrow(self) -> "pyarrow.Table":
        """Returns a pyarrow table with a row for each degree: the degree and its noisy number of
        nodes.
        """
        histogram = self.histogram
        return _arrow({"degree": [*histogram], "nodes": [*histogram.values()]})

    def plot(self) -> Figure:
        """Returns a bar chart of the noisy number of nodes by ranges of degrees (1, 2 to 3, 4 to 7,
        ...).
        """
        return degree_chart({"degrees": self.histogram})

    def __repr__(self) -> str:
        body = [[f"{degree:,}", f"{nodes:,}"] for degree, nodes in self.histogram.items()]
        lines = [text_table(["degree", "nodes"], body[:_SHOWN])]
        if len(body) > _SHOWN:
            lines.append(f"... {len(body) - _SHOWN:,} more degrees")
        return "\n".join([*lines, *self.notes])


Answer: TypeAlias = Count | DegreeTable


def degree_chart(histograms: Mapping[str, Mapping[int, int]]) -> Figure:
    """Returns a bar chart of numbers of nodes by ranges of degrees; ``histograms`` has a degree
    histogram for each name of a series.
    """
    highest = max([1, *(degree for each in histograms.values() for degree in each)])
    bars = []
    for power in range(-1, highest.bit_length()):
        first, last = (0, 0) if power < 0 else (2**power, 2 ** (power + 1) - 1)
        label = f"{first:,}" if first == last else f"{first:,} to {last:,}"
        for series, histogram in histograms.items():
            nodes = sum(count for degree, count in histogram.items() if first <= degree <= last)
            bars.append(Bar(label, series, nodes, nodes, nodes))
    return bar_chart("nodes by degree", "nodes", bars)


def _arrow(columns: dict[str, list[int]]) -> "pyarrow.Table":
    import pyarrow

    return pyarrow.table(columns)
