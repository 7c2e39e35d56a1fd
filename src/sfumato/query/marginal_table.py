# SPDX-License-Identifier: Apache-2.0
"""The answer to a question for marginals: tables of noisy counts with their error."""

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
from sfumato.query.plot import Bar, Figure, bar_chart
from sfumato.query.render import number, text_table
from sfumato.query.task import Stored

if TYPE_CHECKING:
    import pyarrow

# So many cells of so many marginals are printed, and so many bars are drawn.
_SHOWN, _TABLES, _BARS = 20, 50, 200
_COLUMNS = ("marginal", "n", "n_low", "n_high")


@dataclass(frozen=True, slots=True, eq=False)
class MarginalTable:
    """One noisy marginal: ``counts`` by the cells of its ``axes``, the last of each for missing values.

    All cells have the same error.
    """

    axes: tuple[GroupKey, ...]
    counts: "np.ndarray[Any, np.dtype[np.float64]]"
    mechanism: AdditiveMechanism
    refinement: int
    # how the columns of the counts are called in Arrow: another name where an axis has the usual one
    columns: tuple[str, str, str] = ("n", "n_low", "n_high")

    @property
    def clique(self) -> tuple[str, ...]:
        """The names of the axes."""
        return tuple(key.value.name for key in self.axes)

    def error(self, confidence: Number = "0.95") -> float:
        """h: each count is within h of the bounded one at least so often."""
        return _half_width(self.mechanism, confidence) / self.refinement

    def to_arrow(self) -> "pyarrow.Table":
        """A row for each cell: its values (null: missing), the count, and the ends of its 95% interval."""
        import pyarrow

        flat, reach = self.counts.ravel(), self.error()
        places = np.unravel_index(np.arange(flat.size), self.counts.shape) if self.axes else ()
        columns = {
            key.value.name: pyarrow.array(_labels(key)).take(pyarrow.array(place))
            for key, place in zip(self.axes, places, strict=True)
        }
        ends = zip(self.columns, (flat, flat - reach, flat + reach), strict=True)
        return pyarrow.table({**columns, **{name: pyarrow.array(each) for name, each in ends}})

    def __repr__(self) -> str:
        count, head = self.columns[0], self.to_arrow().slice(0, _SHOWN).to_pylist()
        body = [[*(_text(row[name]) for name in self.clique), _count(row[count])] for row in head]
        more = (
            f"\n... {self.counts.size - _SHOWN:,} more cells" if self.counts.size > _SHOWN else ""
        )
        table = text_table([*self.clique, count], body)
        return f"{table}{more}\n{count}: +-{number(self.error())} in 95% of answers, in each cell"

    def plot(self) -> Figure:
        """A bar for each cell with its 95% interval.

        Raises:
            WrongUse: more than 200 cells.
        """
        if self.counts.size > _BARS:
            raise WrongUse(
                f"{self.counts.size:,} bars.",
                allowed=f"at most {_BARS} cells",
                remedy="Take to_arrow().",
            )
        *names, counts, lows, highs = (column.to_pylist() for column in self.to_arrow().columns)
        series = names.pop() if len(names) > 1 else ["n"] * len(counts)
        bars = [
            Bar(", ".join(map(_text, label)), _text(one), *values)
            for *label, one, values in zip(
                *names, series, zip(counts, lows, highs, strict=True), strict=True
            )
        ]
        return bar_chart(" by ".join(["n", ", ".join(self.clique)]), "n", bars)


@dataclass(frozen=True, slots=True, eq=False)
class Marginals:
    """Noisy marginals, stored and paid once; iterates over ``MarginalTable`` in the order in which they were asked."""

    task: MarginalsTask
    stored: Stored
    notes: tuple[str, ...] = ()

    @property
    def charge_id(self) -> str:
        """The charge that paid."""
        return self.stored.charge

    @property
    def recalled(self) -> bool:
        """Whether it was there before."""
        return self.stored.recalled

    @property
    def facts(self) -> dict[str, Json]:
        """What is stored beside the numbers: cost, axes, who is protected, what was bounded."""
        return cast(dict[str, Json], json.loads(self.stored.body.partition(b"\n")[0]))

    def __len__(self) -> int:
        return len(self.task.cliques)

    def __iter__(self) -> Iterator[MarginalTable]:
        values: Integers = np.frombuffer(self.stored.body.partition(b"\n")[2], "<i8")
        ends = np.cumsum(self.task.cells)
        cube, fine, mechanism = self.task.plan.cube, self.task.plan.refinement, self.task.mechanism
        for clique, shape, cells in zip(
            cube.places(self.task.cliques),
            self.task.shapes,
            np.split(values, ends[:-1]),
            strict=True,
        ):
            axes = tuple(cube.axes[place] for place in clique)
            counts = (cells / fine).reshape(shape)
            yield MarginalTable(axes, counts, mechanism, fine, self._columns[1:])

    def __getitem__(self, clique: str | Sequence[str]) -> MarginalTable:
        """The marginal by these axes, named as they were asked for; one axis may be named alone."""
        wanted = (clique,) if isinstance(clique, str) else clique
        found = next((each for each in self if wanted in (each.clique, list(each.clique))), None)
        if found is None:
            raise UnknownName(
                f"No marginal {shown(clique)}.", allowed=", ".join(map(str, self.task.cliques))
            )
        return found

    @property
    def _columns(self) -> tuple[str, str, str, str]:
        """What the columns are called that are no axes."""
        taken = {key.value.name for key in self.task.plan.cube.axes}
        ends = ("_" * size for size in itertools.count())
        end = next(each for each in ends if taken.isdisjoint(f"{name}{each}" for name in _COLUMNS))
        marginal, count, low, high = (f"{name}{end}" for name in _COLUMNS)
        return marginal, count, low, high

    def to_arrow(self) -> "pyarrow.Table":
        """All marginals in one table, a row for each cell: ``marginal`` says by what; other axes are null.

        Columns of the counts whose names an axis has end in ``_``.
        """
        import pyarrow

        parts, (marginal, *counts) = [], self._columns
        for each in self:
            names = pyarrow.array([", ".join(each.clique)]).take(
                pyarrow.array(np.zeros(each.counts.size, np.int64))
            )
            parts.append(each.to_arrow().add_column(0, marginal, names))
        whole = pyarrow.concat_tables(parts, promote_options="default")
        return whole.select(
            [marginal, *(key.value.name for key in self.task.plan.cube.axes), *counts]
        )

    def to_arrow_bytes(self) -> bytes:
        """The Arrow table as an IPC stream."""
        import pyarrow

        table, sink = self.to_arrow(), pyarrow.BufferOutputStream()
        with pyarrow.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        return bytes(sink.getvalue().to_pybytes())

    def to_json(self) -> dict[str, Json]:
        """What is stored beside the numbers, and of each marginal its axes, counts and error."""
        tables: list[Json] = [
            {
                "by": list[Json](each.clique),
                "counts": each.counts.tolist(),
                "half_width": each.error(),
            }
            for each in self
        ]
        return {**self.facts, "marginals": tables}

    def plot(self) -> Figure:
        """The first marginal."""
        return next(iter(self)).plot()

    def __repr__(self) -> str:
        more = [f"... {len(self) - _TABLES:,} more marginals"] if len(self) > _TABLES else []
        return "\n\n".join([*map(repr, itertools.islice(self, _TABLES)), *more, *self.notes])


# all marginals of an answer have the same noise
@lru_cache(maxsize=64)
def _half_width(mechanism: AdditiveMechanism, confidence: Number) -> int:
    return mechanism.error(confidence)


def _labels(key: GroupKey) -> list[Any]:
    """The values of an axis; missing is None."""
    kind = key.value.type
    decode = getattr(kind, "decode")  # noqa: B009
    return [*(decode(code) for code in key.codes or ()), None]


def _count(value: float) -> str:
    """A number of rows; whole unless weights are below one."""
    return number(int(value) if value.is_integer() else value)


def _text(value: object) -> str:
    return "missing" if value is None else str(value)
