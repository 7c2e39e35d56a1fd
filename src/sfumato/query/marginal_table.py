# SPDX-License-Identifier: Apache-2.0
"""The answer to ``Session.marginals``: tables of noisy counts with their error."""

import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from sfumato.errors import UnknownName, WrongUse, shown
from sfumato.exact.rational import Number
from sfumato.mechanisms.additive import AdditiveMechanism
from sfumato.noise import Integers
from sfumato.plan.value import GroupKey
from sfumato.privacy.event import Json
from sfumato.query.marginals import MarginalsTask
from sfumato.query.task import Stored
from sfumato.show.bars import Bar, bar_chart
from sfumato.show.render import number, text_table
from sfumato.show.svg import Figure

if TYPE_CHECKING:
    import pyarrow

# The most cells of a marginal and marginals of an answer that are printed; the most bars drawn.
_SHOWN, _TABLES, _BARS = 20, 50, 200
_COLUMNS = ("marginal", "n", "n_low", "n_high")


@dataclass(frozen=True, slots=True, eq=False)
class MarginalTable:
    """One noisy marginal: an array of ``counts`` with a dimension for each of its ``axes``.

    The last index of each axis is for missing values. All cells have the same error.
    """

    axes: tuple[GroupKey, ...]
    counts: "np.ndarray[Any, np.dtype[np.float64]]"
    mechanism: AdditiveMechanism
    refinement: int
    # the Arrow columns of the counts; they have other names if an axis has one of these
    columns: tuple[str, str, str] = ("n", "n_low", "n_high")

    @property
    def clique(self) -> tuple[str, ...]:
        """The names of the axes."""
        return tuple(key.value.name for key in self.axes)

    def error(self, confidence: Number = "0.95") -> float:
        """The half-width of a cell's interval at a confidence.

        Each noisy count is this close to the bounded count with the given probability.
        """
        return _half_width(self.mechanism, confidence) / self.refinement

    def to_arrow(self) -> "pyarrow.Table":
        """A pyarrow table with a row for each cell: its key values, its count, its 95% interval.

        A missing value is null.
        """
        import pyarrow

        flat = self.counts.ravel()
        error = self.error()
        places: tuple[Integers, ...] = ()
        if self.axes:
            places = np.unravel_index(np.arange(flat.size), self.counts.shape)
        columns = {}
        for key, place in zip(self.axes, places, strict=True):
            labels = pyarrow.array(_labels(key))
            columns[key.value.name] = labels.take(pyarrow.array(place))
        ends = flat, flat - error, flat + error
        for name, numbers in zip(self.columns, ends, strict=True):
            columns[name] = pyarrow.array(numbers)
        return pyarrow.table(columns)

    def __repr__(self) -> str:
        count = self.columns[0]
        body = []
        for row in self.to_arrow().slice(0, _SHOWN).to_pylist():
            values = [_text(row[name]) for name in self.clique]
            body.append([*values, _count(row[count])])
        lines = [text_table([*self.clique, count], body)]
        if self.counts.size > _SHOWN:
            lines.append(f"... {self.counts.size - _SHOWN:,} more cells")
        lines.append(f"{count}: +-{number(self.error())} in 95% of answers, in each cell")
        return "\n".join(lines)

    def plot(self) -> Figure:
        """A bar chart with a bar and its 95% interval for each cell.

        Raises:
            WrongUse: there are more than 200 cells.
        """
        if self.counts.size > _BARS:
            raise WrongUse(
                f"{self.counts.size:,} bars.",
                allowed=f"at most {_BARS} cells",
                remedy="Take to_arrow().",
            )
        columns = self.to_arrow().columns
        *names, counts, lows, highs = [column.to_pylist() for column in columns]
        series = names.pop() if len(names) > 1 else ["n"] * len(counts)
        labels = list(zip(*names, strict=True)) if names else [()] * len(counts)
        cells = zip(labels, series, counts, lows, highs, strict=True)
        bars = []
        for values, colour, count, low, high in cells:
            label = ", ".join(map(_text, values))
            bars.append(Bar(label, _text(colour), count, low, high))
        clique = ", ".join(self.clique)
        return bar_chart(f"n by {clique}", "n", bars)


@dataclass(frozen=True, slots=True, eq=False)
class Marginals:
    """The stored answer to ``Session.marginals``, which is paid once.

    Iterating yields one ``MarginalTable`` for each clique, in the order of the question.
    """

    task: MarginalsTask
    stored: Stored
    notes: tuple[str, ...] = ()

    @property
    def charge_id(self) -> str:
        """The id of the charge that paid for the answer."""
        return self.stored.charge

    @property
    def recalled(self) -> bool:
        """Whether the answer was stored before this call, so that the call cost nothing."""
        return self.stored.recalled

    @property
    def facts(self) -> dict[str, Json]:
        """The stored facts: the cost, the axes, who is protected, what was bounded."""
        line, _, _ = self.stored.body.partition(b"\n")
        return cast(dict[str, Json], json.loads(line))

    def __len__(self) -> int:
        return len(self.task.cliques)

    def __iter__(self) -> Iterator[MarginalTable]:
        plan = self.task.plan
        mechanism = self.task.mechanism
        cube = plan.cube
        columns = self._columns[1:]
        cliques = cube.places(self.task.cliques)
        shapes = self.task.shapes
        _, _, numbers = self.stored.body.partition(b"\n")
        ends = np.cumsum(self.task.cells)
        whole = np.frombuffer(numbers, "<i8")
        values: list[Integers] = np.split(whole, ends[:-1])
        for clique, shape, cells in zip(cliques, shapes, values, strict=True):
            axes = tuple(cube.axes[place] for place in clique)
            counts = (cells / plan.refinement).reshape(shape)
            yield MarginalTable(axes, counts, mechanism, plan.refinement, columns)

    def __getitem__(self, clique: str | Sequence[str]) -> MarginalTable:
        """The marginal of a clique, named as in the question; a single axis may be a string."""
        wanted = (clique,) if isinstance(clique, str) else clique
        for table in self:
            if wanted in (table.clique, list(table.clique)):
                return table
        allowed = ", ".join(map(str, self.task.cliques))
        raise UnknownName(f"No marginal {shown(clique)}.", allowed=allowed)

    @property
    def _columns(self) -> tuple[str, str, str, str]:
        """The names of the columns that are not axes; underscores are added until they are unique."""
        taken = {key.value.name for key in self.task.plan.cube.axes}
        marginal, count, low, high = _COLUMNS
        while not taken.isdisjoint((marginal, count, low, high)):
            marginal, count, low, high = f"{marginal}_", f"{count}_", f"{low}_", f"{high}_"
        return marginal, count, low, high

    def to_arrow(self) -> "pyarrow.Table":
        """All marginals in one pyarrow table with a row for each cell.

        The column ``marginal`` names the axes of the row; the columns of all other axes are null.
        The names of the other columns end in ``_`` if an axis has the same name.
        """
        import pyarrow

        marginal, *counts = self._columns
        tables = []
        for table in self:
            zeros = pyarrow.array(np.zeros(table.counts.size, np.int64))
            names = pyarrow.array([", ".join(table.clique)]).take(zeros)
            tables.append(table.to_arrow().add_column(0, marginal, names))
        whole = pyarrow.concat_tables(tables, promote_options="default")
        axes = [key.value.name for key in self.task.plan.cube.axes]
        return whole.select([marginal, *axes, *counts])

    def to_arrow_bytes(self) -> bytes:
        """The Arrow table as an IPC stream."""
        import pyarrow

        table = self.to_arrow()
        sink = pyarrow.BufferOutputStream()
        with pyarrow.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        return bytes(sink.getvalue().to_pybytes())

    def to_json(self) -> dict[str, Json]:
        """The stored facts, and the axes, counts and error of each marginal."""
        tables: list[Json] = []
        for table in self:
            tables.append(
                {
                    "by": list[Json](table.clique),
                    "counts": table.counts.tolist(),
                    "half_width": table.error(),
                }
            )
        return {**self.facts, "marginals": tables}

    def plot(self) -> Figure:
        """A bar chart of the first marginal."""
        return next(iter(self)).plot()

    def __repr__(self) -> str:
        blocks = [repr(table) for table in itertools.islice(self, _TABLES)]
        if len(self) > _TABLES:
            blocks.append(f"... {len(self) - _TABLES:,} more marginals")
        return "\n\n".join([*blocks, *self.notes])


@lru_cache(maxsize=64)
def _half_width(mechanism: AdditiveMechanism, confidence: Number) -> int:
    """The error of a mechanism, cached since all marginals of an answer have the same one."""
    return mechanism.error(confidence)


def _labels(key: GroupKey) -> list[Any]:
    """The values of an axis in order, and None for a missing value."""
    kind = key.value.type
    decode = getattr(kind, "decode")  # noqa: B009
    return [*(decode(code) for code in key.codes or ()), None]


def _count(value: float) -> str:
    """A count as text: an integer unless some weights are below 1."""
    return number(int(value) if value.is_integer() else value)


def _text(value: object) -> str:
    """A value of an axis as text."""
    if value is None:
        return "missing"
    return str(value)
