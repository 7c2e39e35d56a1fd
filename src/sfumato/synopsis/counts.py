# SPDX-License-Identifier: Apache-2.0
"""The counts of a stream over one range of ticks: one number for each cell.

``Stream`` returns them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, TypeAlias

from sfumato.errors import UnknownName, WrongUse, shown
from sfumato.metadata.column import Text
from sfumato.plan.value import Value
from sfumato.show.render import number, text_table
from sfumato.synopsis.estimate import Estimate
from sfumato.synopsis.workload import Floats

if TYPE_CHECKING:
    import pyarrow

# A value of an axis; None: missing.
Label: TypeAlias = object
# The most counts that are shown as text.
_SHOWN = 20


@dataclass(frozen=True, eq=False)
class Counts:
    """The noisy count of each cell of a stream over a range of ticks, with one error for all cells.

    An interval contains, with at least the requested confidence, the count of the rows that the
    limits of the stream did not leave out; ``limits`` describes these rows.

    >>> import numpy as np
    >>> from sfumato.metadata.column import Category, Column
    >>> line = Value.of(Column("line", Category("A", "B")))
    >>> counts = Counts((line,), np.array([10.0, 4.0, 0.0]), 1.0, 2.7)
    >>> counts["B"], counts.to_dicts("n")[0]["n"]
    (4 [1.3, 6.7], 10.0)
    """

    axes: tuple[Value, ...]
    values: Floats
    standard_error: float
    half_width: float
    limits: str = ""

    def __getitem__(self, cell: object) -> Estimate:
        """Returns the count of one cell, given by its values: ``counts["A"]``, ``counts["A", 3]``.

        Raises:
            UnknownName: no such cell.
        """
        key = cell if isinstance(cell, tuple) else (cell,)
        if key not in self._places:
            names = ", ".join(value.name for value in self.axes) or "none: counts[()]"
            raise UnknownName(f"No cell {shown(cell)}.", allowed=f"a value of each of: {names}")
        return self._estimate(float(self.values[self._places[key]]))

    @property
    def value(self) -> float:
        """The count, for a stream with a single cell.

        Raises:
            WrongUse: there are several.
        """
        if len(self.values) != 1:
            raise WrongUse(f"{len(self.values):,} counts.", remedy='counts["A"], or counts.values')
        return float(self.values[0])

    @property
    def cells(self) -> list[tuple[Label, ...]]:
        """The group key of each cell: its values, in the order of ``values``; None stands for
        missing.
        """
        return list(product(*map(_labels, self.axes)))

    def to_dicts(self, name: str = "n") -> list[dict[str, object]]:
        """Returns a dictionary for each cell: its values, the count, its error and its interval."""
        rows = []
        for cell, value in zip(self.cells, self.values.tolist(), strict=True):
            row: dict[str, object] = {}
            for axis, label in zip(self.axes, cell, strict=True):
                row[axis.name] = label
            estimate = self._estimate(value)
            row |= {name: value, f"{name}_error": self.standard_error}
            row |= {f"{name}_low": estimate.low, f"{name}_high": estimate.high}
            rows.append(row)
        return rows

    def to_arrow(self) -> "pyarrow.Table":
        """Returns the rows of ``to_dicts`` as an Arrow table."""
        import pyarrow

        return pyarrow.Table.from_pylist(self.to_dicts())

    def __repr__(self) -> str:
        note = f"\nnote: {self.limits}" if self.limits else ""
        if not self.axes:
            return f"{self._estimate(self.value)!r}{note}"
        body = []
        for cell, value in zip(self.cells[:_SHOWN], self.values.tolist(), strict=False):
            labels = ["missing" if label is None else str(label) for label in cell]
            body.append([*labels, number(value), f"+- {number(self.half_width)}"])
        table = text_table([*(axis.name for axis in self.axes), "n", "interval"], body)
        rest = len(self.values) - len(body)
        more = f"\n{rest:,} more" if rest else ""
        return f"{table}{more}{note}"

    @cached_property
    def _places(self) -> dict[tuple[Label, ...], int]:
        return {cell: place for place, cell in enumerate(self.cells)}

    def _estimate(self, value: float) -> Estimate:
        low, high = value - self.half_width, value + self.half_width
        return Estimate(value, self.standard_error, low, high)


def _labels(axis: Value) -> Iterator[Label]:
    """Yields the values of an axis, then None for missing."""
    kind = axis.type
    assert not isinstance(kind, Text), "a stream has no open axis"
    for code in range(kind.lower_code, kind.upper_code + 1):
        yield kind.decode(code)
    yield None
