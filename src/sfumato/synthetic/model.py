# SPDX-License-Identifier: Apache-2.0
"""A fitted model: rows, answers with intervals, and copies. All of it is free."""

import json
import math
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from sfumato.errors import WrongUse, shown
from sfumato.exact.rational import Number
from sfumato.noise import Integers
from sfumato.noise.entropy import SYSTEM, Entropy
from sfumato.query.cost import Cost
from sfumato.query.task import Stored
from sfumato.synthetic.estimate import Estimator, Fitted
from sfumato.synthetic.fitting import Base, whole_fit
from sfumato.synthetic.infer import Copy, copied, interval
from sfumato.synthetic.quality import quality
from sfumato.synthetic.questions import Results, answered, by_key, keys_of
from sfumato.synthetic.report import Report
from sfumato.synthetic.rows import Dice, sampled
from sfumato.synthetic.schema import Floats
from sfumato.synthetic.task import FitTask, Released

# The most rows of one sample, and the most copies.
MOST_ROWS, MOST_COPIES = 100_000_000, 1000
# How many copies intervals are computed from.
COPIES = 20


class Model:
    """The model of a fit.

    >>> Model.__name__, "fit returns one"
    ('Model', 'fit returns one')

    Attributes:
        task: what was measured.
        stored: the stored measurements, and the id of the charge.
        cost: what they cost.
    """

    def __init__(
        self,
        task: FitTask,
        stored: Stored,
        cost: Cost,
        estimator: Estimator | None = None,
    ) -> None:
        self.task = task
        self.stored = stored
        self.cost = cost
        self._estimator = estimator
        self._copies: list[Copy] = []

    @property
    def charge_id(self) -> str:
        """The id of the charge, for ``load``."""
        return self.stored.charge

    @property
    def rows(self) -> int:
        """The noisy number of rows."""
        return round(self.released.base.total)

    @cached_property
    def released(self) -> Released:
        """The measurements and choices."""
        return Released.of(self.task, self.stored.body)

    @cached_property
    def fitted(self) -> Fitted:
        """The distribution that fits the measurements."""
        return whole_fit(self.released.base, self.released.pairs, self._estimator)

    def sample(self, rows: int | None = None, *, entropy: Entropy = SYSTEM) -> dict[str, pa.Table]:
        """Rows of the declared types by table; as many as the noisy count says, or ``rows``.

        Each table says in its metadata that it is synthetic, and under which charge.

        Raises:
            WrongUse: a number of rows that is not from 0 to 100,000,000.
        """
        count = self.rows if rows is None else rows
        if type(count) is not int or not 0 <= count <= MOST_ROWS:
            raise WrongUse(f"rows={shown(rows)}.", allowed=f"from 0 to {MOST_ROWS:,}")
        return self._sampled(Copy(self.released.base, self.fitted), count, Dice(entropy))

    def samples(self, copies: int = COPIES) -> list[dict[str, pa.Table]]:
        """Samples of copies of the model, which differ as the noise makes models differ.

        Compute your estimate from each one, and ``combine`` them.

        Raises:
            WrongUse: a number of copies that is not from 2 to 1,000.
        """
        if type(copies) is not int or not 2 <= copies <= MOST_COPIES:
            raise WrongUse(f"copies={shown(copies)}.", allowed=f"from 2 to {MOST_COPIES:,}")
        found = []
        for copy in self._copied(copies):
            found.append(self._sampled(copy, round(copy.base.total), Dice()))
        return found

    def query(
        self,
        sql: str,
        confidence: Number = "0.95",
        *,
        copies: int = COPIES,
    ) -> pa.Table:
        """What a SELECT gives on synthetic rows, with an interval for each number; free.

        Beside a number ``n`` there are ``n_low`` and ``n_high``. The interval covers the noise of
        what was measured; it does not cover what was never measured (see the report).

        Raises:
            UnsupportedSql: a statement that no session answers, or on columns that were left out.
        """
        keys = keys_of(sql, self.task.schema.declarations)
        table = answered(sql, self.sample())
        others = [by_key(answered(sql, rows), keys) for rows in self.samples(copies)]
        names, columns = [], []
        numbers = iter(range(table.num_columns - len(keys)))
        groups = list(by_key(table, keys))
        for at, name in enumerate(table.column_names):
            names.append(name)
            columns.append(table.column(at))
            if at in keys:
                continue
            place = next(numbers)
            spread = [_numbers(others, key, place) for key in groups]
            ends = _intervals(table.column(at).to_pylist(), spread, confidence)
            names += [f"{name}_low", f"{name}_high"]
            columns += [pa.array(ends[0], pa.float64()), pa.array(ends[1], pa.float64())]
        return pa.table(columns, names=names)

    def report(self) -> Report:
        """How well rows fit what was measured, an honest check, and what is not kept; free."""
        released = self.released
        cells = _cells_of_rows(released.base, self.fitted, self.rows, Dice())
        told = self.task.told
        return Report(
            released,
            quality(released, cells),
            self.cost,
            self.charge_id,
            told["protected"],
            tuple(told["left_out"]),
        )

    def save(self, folder: str | Path, rows: int | None = None) -> list[Path]:
        """Writes a sample into a folder, a Parquet and a CSV file for each table.

        The guarantee and the charge are in the metadata of the Parquet file, and beside the CSV
        file in ``NAME.csv.json``.
        """
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        written = []
        for name, table in self.sample(rows).items():
            paths = [place / f"{name}.parquet", place / f"{name}.csv", place / f"{name}.csv.json"]
            pyarrow.parquet.write_table(table, paths[0])
            pyarrow.csv.write_csv(table, paths[1])
            paths[2].write_text(json.dumps(self.facts, indent=1) + "\n", encoding="utf-8")
            written += paths
        return written

    @property
    def facts(self) -> dict[str, str]:
        """What every file says of itself."""
        return {
            "synthetic": "true",
            "charge_id": self.charge_id,
            "guarantee": str(self.cost),
            "table": self.task.schema.table,
        }

    def _copied(self, copies: int) -> list[Copy]:
        """So many copies; those that were made before are used again."""
        released = self.released
        while len(self._copies) < copies:
            copy = copied(released.base, released.pairs, self.fitted, self._estimator)
            self._copies.append(copy)
        return self._copies[:copies]

    def _sampled(
        self,
        copy: Copy,
        count: int,
        dice: Dice,
    ) -> dict[str, pa.Table]:
        cells = _cells_of_rows(copy.base, copy.fitted, count, dice)
        table = _table_of(copy.base, cells, dice)
        return {self.task.schema.table: table.replace_schema_metadata(self.facts)}

    def __repr__(self) -> str:
        pairs = len(self.released.pairs)
        return (
            f"Model of {self.task.schema.table!r}: about {self.rows:,} rows, {pairs} pairs of "
            f"columns measured\n{self.cost}\ncharge {self.charge_id[:12]}"
        )


def _cells_of_rows(
    base: Base,
    model: Fitted,
    count: int,
    dice: Dice,
) -> Integers:
    """The cells of so many rows of a model; rests are divided as the single columns say."""
    blocks = sampled(model, count, dice)
    found = np.empty_like(blocks)
    for place, merging in enumerate(base.merges):
        found[:, place] = merging.expanded(blocks[:, place], base.weights(place), dice)
    return found


def _table_of(base: Base, cells: Integers, dice: Dice) -> pa.Table:
    """The values of rows, given their cells."""
    columns = {}
    for place, axis in enumerate(base.schema.axes):
        spread = dice.uniform(len(cells))
        codes = axis.codes(cells[:, place], spread, base.weights(place))
        columns[axis.name] = axis.values(codes)
    return pa.table(columns)


def _numbers(others: Sequence[Results], key: tuple[object, ...], place: int) -> Floats:
    """What each copy gives for one number of a group; NaN where it has none."""
    found = []
    for other in others:
        value = other[key][place] if key in other else None
        found.append(math.nan if value is None or isinstance(value, str) else float(value))
    return np.array(found)


def _intervals(
    values: Sequence[float | None],
    spread: Sequence[Floats],
    confidence: Number,
) -> tuple[list[float | None], list[float | None]]:
    """The lower and the upper ends for the values of one column; None for what is no number."""
    lows: list[float | None] = []
    highs: list[float | None] = []
    for value, others in zip(values, spread, strict=True):
        low = high = None
        if isinstance(value, int | float):
            low, high = interval(float(value), others, confidence)
        lows.append(low)
        highs.append(high)
    return lows, highs
