# SPDX-License-Identifier: Apache-2.0
"""The fitted model that users get: draws rows, answers SQL with intervals, writes files; none of it
costs budget.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from sfumato.errors import UnknownName, WrongUse, shown
from sfumato.exact.rational import Number
from sfumato.metadata.dataset import Dataset
from sfumato.metadata.table import Table
from sfumato.noise.entropy import SYSTEM, Entropy
from sfumato.query.cost import Cost
from sfumato.query.task import Stored
from sfumato.synthetic.beside import compare, require_public
from sfumato.synthetic.drawing import Drawing
from sfumato.synthetic.estimate import Estimator, Fitted
from sfumato.synthetic.export import Part, copy_postgres, write_duckdb, write_files
from sfumato.synthetic.fitting import whole_fit
from sfumato.synthetic.infer import copied, interval
from sfumato.synthetic.quality import quality
from sfumato.synthetic.questions import Results, answered, by_key, columns_read, keys_of
from sfumato.synthetic.report import Report
from sfumato.synthetic.rows import Dice
from sfumato.synthetic.sampler import Sampler, TableSampler
from sfumato.synthetic.schema import Floats
from sfumato.synthetic.task import FitTask, Released, is_stopped

if TYPE_CHECKING:
    import pandas

# The most rows of one sample, and the most copies.
MOST_ROWS, MOST_COPIES = 100_000_000, 1000
# How many copies intervals are computed from.
COPIES = 20


class Model(ABC):
    """A fitted model of one table or several: draws synthetic rows, and answers questions about
    them.

    Attributes:
        stored: the stored measurements, and the id of the charge.
        cost: what they cost.
    """

    def __init__(
        self,
        stored: Stored,
        cost: Cost,
    ) -> None:
        self.stored = stored
        self.cost = cost
        self._copies: list[Sampler] = []

    @property
    @abstractmethod
    def declarations(self) -> Dataset:
        """The tables with the columns that synthetic rows have, for SQL on them."""

    @property
    @abstractmethod
    def sampler(self) -> Sampler:
        """The distribution from which rows are drawn."""

    def copied(self) -> Sampler:
        """Returns a sampler like the model's own, from data that the model itself generated.

        Synthetic rows are measured and fitted again with fresh noise, as a parametric bootstrap; no
        private data is read.
        """
        return self._new_copies(1)[0]

    @abstractmethod
    def _new_copies(self, count: int) -> Sequence[Sampler]:
        """Returns ``count`` copies with independent noise; fitting them together takes less time."""

    @abstractmethod
    def report(self) -> Report:
        """Returns the report: fit to the measurements, honest check, and what is not preserved;
        costs no budget.
        """

    def report_beside(
        self,
        tables: Mapping[str, Table],
    ) -> Report:
        """Returns the report with an exact comparison to tables that are declared public
        (``compare``).

        ``tables`` maps the names of synthetic tables to public tables.

        Raises:
            UnknownName: a name of no synthetic table.
            WrongUse, InvalidSource: as ``compare``; above all, a table that is not public.
        """
        known = self.declarations.tables
        for name in tables:
            if name not in known:
                raise UnknownName(f"No synthetic table {shown(name)}.", allowed=", ".join(known))
        require_public(tables)
        rows = self.sample()
        compared = [compare(name, rows[name], public) for name, public in tables.items()]
        return replace(self.report(), compared=tuple(compared))

    @property
    def charge_id(self) -> str:
        """The id of the charge, for ``load``."""
        return self.stored.charge

    @property
    def rows(self) -> int:
        """The noisy number of rows; of several tables, of the first."""
        return self.sampler.rows

    def sample(
        self,
        rows: int | None = None,
        *,
        entropy: Entropy = SYSTEM,
    ) -> dict[str, pa.Table]:
        """Draws rows of the declared types, by table: the noisy number of rows, or ``rows``.

        Of several tables, ``rows`` is the number of rows of the first. The metadata of each table
        states that it is synthetic, and its charge.

        Raises:
            WrongUse: a number of rows that is not from 0 to 100,000,000.
        """
        return self._sampled(self.sampler, self._count(rows), Dice(entropy))

    def samples(
        self,
        copies: int = COPIES,
    ) -> list[dict[str, pa.Table]]:
        """Draws a sample from each of several copies of the model, which differ by fresh simulated
        noise.

        Compute your estimate from each sample, and ``combine`` the estimates.

        Raises:
            WrongUse: a number of copies that is not from 2 to 1,000.
        """
        found = []
        for copy in self._copied(_require_copies(copies)):
            found.append(self._sampled(copy, copy.rows, Dice()))
        return found

    def query(
        self,
        sql: str,
        confidence: Number = "0.95",
        *,
        copies: int = COPIES,
    ) -> pa.Table:
        """Answers a SELECT from synthetic rows, with an interval for each number; costs no budget.

        A numeric column ``n`` is followed by ``n_low`` and ``n_high``. The interval covers the
        noise of the measurements, not what was never measured (see the report).

        Raises:
            UnsupportedSql: a statement that no session answers, or on columns that were left out.
        """
        keys = keys_of(sql, self.declarations)
        columns = columns_read(sql, self.declarations)
        answers = answered(sql, self._drawn(columns, copies))
        table = next(answers)
        groups = list(by_key(table, keys))
        copy_results = [by_key(each, keys) for each in answers]
        names, values = [], []
        numbers = iter(range(table.num_columns - len(keys)))
        for at, name in enumerate(table.column_names):
            names.append(name)
            values.append(table.column(at))
            if at in keys:
                continue
            place = next(numbers)
            spread = [_numbers(copy_results, key, place) for key in groups]
            ends = _intervals(table.column(at).to_pylist(), spread, confidence)
            names += [f"{name}_low", f"{name}_high"]
            values += [pa.array(ends[0], pa.float64()), pa.array(ends[1], pa.float64())]
        return pa.table(values, names=names)

    def save(
        self,
        folder: str | Path,
        rows: int | None = None,
        *,
        csv: bool = True,
        excel: bool = False,
    ) -> list[Path]:
        """Writes a sample into a folder: a Parquet file per table, and with ``csv`` a CSV file
        (``excel``: as Excel opens it, with a byte order mark).

        The guarantee and the charge are in the metadata of the Parquet file, and for CSV in
        ``NAME.csv.json``. For one table, memory does not grow with the number of rows.

        Raises:
            WrongUse: a file of such a name is there and is not marked as synthetic.
        """
        return write_files(self._parts(rows), Path(folder), self.facts, csv=csv, excel=excel)

    def to_pandas(
        self,
        rows: int | None = None,
    ) -> "dict[str, pandas.DataFrame]":
        """Returns a sample as data frames, by table; ``attrs`` of each state what it is.

        A column of whole numbers or Booleans that can be missing has pandas' nullable type.

        Raises:
            WrongUse: pandas is not installed, or as ``sample``.
        """
        if find_spec("pandas") is None:
            raise WrongUse("pandas is not installed.", remedy="pip install pandas")
        pandas = import_module("pandas")
        nullable = {pa.int64(): pandas.Int64Dtype(), pa.bool_(): pandas.BooleanDtype()}
        frames = {}
        for name, table in self.sample(rows).items():
            frame = table.to_pandas()
            for column in table.column_names:
                if table[column].null_count:
                    frame[column] = table[column].to_pandas(types_mapper=nullable.get)
            frame.attrs |= {**self.facts, "table": name}
            frames[name] = frame
        return frames

    def to_duckdb(
        self,
        path: str | Path,
        rows: int | None = None,
    ) -> None:
        """Writes a sample into a DuckDB file; a comment on each table states what it is.

        Raises:
            WrongUse: no DuckDB file, or one with tables of these names; or as ``sample``.
        """
        write_duckdb(self._parts(rows), Path(path), self.facts)

    def to_postgres(
        self,
        address: str,
        rows: int | None = None,
    ) -> None:
        """Writes a sample into new tables of a PostgreSQL server, by COPY, in one transaction.

        A comment on each table states what it is. Needs ``sfumato[postgres]``.

        Raises:
            WrongUse: no address, or the server has tables of these names; or as ``sample``.
            Failed: the server is not reached or refuses.
        """
        copy_postgres(self._parts(rows), address, self.facts)

    @property
    def facts(self) -> dict[str, str]:
        """The metadata in every file: that the rows are synthetic, the guarantee, and the charge."""
        return {
            "synthetic": "true",
            "charge_id": self.charge_id,
            "guarantee": str(self.cost),
        }

    @property
    def _early(self) -> str:
        """A remark on a fit that was ended with fewer pairs than were paid for."""
        return ", ended early by Ctrl-C" if is_stopped(self.stored.body) else ""

    def _count(
        self,
        rows: int | None,
    ) -> int:
        """Returns the number of rows of a sample; raises WrongUse if it is too large."""
        return require_rows(self.rows if rows is None else rows)

    def _parts(
        self,
        rows: int | None,
    ) -> Iterator[Part]:
        """Yields a sample part by part."""
        return self.sampler.parts(self._count(rows), Dice())

    def _copied(
        self,
        copies: int,
    ) -> list[Sampler]:
        """Returns this many copies; earlier copies are used again."""
        if len(self._copies) < copies:
            self._copies += self._new_copies(copies - len(self._copies))
        return self._copies[:copies]

    def _drawn(
        self,
        columns: Mapping[str, Collection[str]],
        copies: int,
    ) -> Iterator[dict[str, pa.Table]]:
        """Yields rows of the model, then of each copy, with the columns that a statement reads.

        Copies are made when they are first needed, so none is made if the model gives no answer.
        """
        yield self.sampler.some_columns(require_rows(self.rows), Dice(), columns)
        for copy in self._copied(_require_copies(copies)):
            yield copy.some_columns(require_rows(copy.rows), Dice(), columns)

    def _sampled(
        self,
        sampler: Sampler,
        count: int,
        dice: Dice,
    ) -> dict[str, pa.Table]:
        found = {}
        for name, table in sampler.tables(count, dice).items():
            found[name] = table.replace_schema_metadata({**self.facts, "table": name})
        return found


class TableModel(Model):
    """The model of a single table.

    Attributes:
        task: what was measured.
    """

    def __init__(
        self,
        task: FitTask,
        stored: Stored,
        cost: Cost,
        estimator: Estimator | None = None,
    ) -> None:
        super().__init__(stored, cost)
        self.task = task
        self._estimator = estimator

    @property
    def declarations(self) -> Dataset:
        """The data set with the table and the columns that were synthesised."""
        return self.released.base.schema.declarations

    @cached_property
    def released(self) -> Released:
        """The noisy measurements and the marginals selected."""
        return Released.of(self.task, self.stored.body)

    @cached_property
    def fitted(self) -> Fitted:
        """The distribution fitted to the measurements."""
        return whole_fit(self.released.base, self.released.pairs, self._estimator)

    @cached_property
    def sampler(self) -> TableSampler:
        """The sampler of the table."""
        return TableSampler(self.released.base, self.fitted)

    def _new_copies(self, count: int) -> list[TableSampler]:
        """Returns ``count`` samplers, each measured and fitted again with fresh noise."""
        base, pairs = self.released.base, self.released.pairs
        copies = copied(base, pairs, self.fitted, count=count, estimator=self._estimator)
        return [TableSampler(copy.base, copy.fitted) for copy in copies]

    def report(self) -> Report:
        """Returns the report: fit to the measurements, honest check, and what is not preserved;
        costs no budget.
        """
        released = self.released
        cells = Drawing(released.base, self.fitted).cells(self.rows, Dice())
        arguments = self.task.told
        return Report(
            released,
            quality(released, cells),
            self.cost,
            self.charge_id,
            arguments["protected"],
            tuple(arguments["left_out"]),
        )

    def __repr__(self) -> str:
        pairs = len(self.released.pairs)
        return (
            f"Model of {self.task.schema.table!r}: about {self.rows:,} rows, {pairs} pairs of "
            f"columns measured{self._early}\n{self.cost}\ncharge {self.charge_id[:12]}"
        )


def _require_copies(copies: object) -> int:
    """Returns the number of copies; raises WrongUse unless it is from 2 to 1,000."""
    if type(copies) is not int or not 2 <= copies <= MOST_COPIES:
        raise WrongUse(f"copies={shown(copies)}.", allowed=f"from 2 to {MOST_COPIES:,}")
    return copies


def require_rows(rows: object) -> int:
    """Returns a valid number of rows of a sample.

    Raises:
        WrongUse: no whole number from 0 to 100,000,000.

    >>> require_rows(5)
    5
    """
    if type(rows) is not int or not 0 <= rows <= MOST_ROWS:
        raise WrongUse(f"rows={shown(rows)}.", allowed=f"from 0 to {MOST_ROWS:,}")
    return rows


def _numbers(
    copy_results: Sequence[Results],
    key: tuple[object, ...],
    place: int,
) -> Floats:
    """Returns each copy's value of one number of a group; NaN if the copy has no such group."""
    found = []
    for other in copy_results:
        value = other[key][place] if key in other else None
        found.append(math.nan if value is None or isinstance(value, str) else float(value))
    return np.array(found)


def _intervals(
    values: Sequence[float | None],
    spread: Sequence[Floats],
    confidence: Number,
) -> tuple[list[float | None], list[float | None]]:
    """Returns the lower and upper ends for the values of a column; None for what is no number."""
    lows: list[float | None] = []
    highs: list[float | None] = []
    for value, others in zip(values, spread, strict=True):
        low = high = None
        if isinstance(value, int | float | Decimal):
            low, high = interval(float(value), others, confidence)
        lows.append(low)
        highs.append(high)
    return lows, highs
