# SPDX-License-Identifier: Apache-2.0
"""Made-up rows of a declared table, to try a question on: from the declarations alone, and free.

They are not noisy and not synthetic: every value is drawn evenly from those that are declared.
"""

import datetime
import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from sfumato.errors import UnknownName, WrongUse, shown
from sfumato.metadata.column import Array, Boolean, Category, ColumnType, Date, Integer, Text
from sfumato.metadata.dataset import Dataset
from sfumato.metadata.timestamp import Timestamp
from sfumato.privacy.unit import Node, Unit

MOST_CELLS = 1_000_000
_MISSING_SHARE = 0.05


def dummy_rows(dataset: Dataset, table: str, rows: int, seed: int) -> pa.Table:
    """Returns made-up rows of a table, from its declarations alone; the same seed gives the same
    rows.

    Ids that are no declared columns are texts; those of tables that are joined have the same
    values. Where missing values are declared, some are.

    Raises:
        UnknownName: there is no such table.
        WrongUse: ``rows`` or ``seed`` is no whole number from 0, or there are too many values.
    """
    if not isinstance(table, str) or table not in dataset.tables:
        raise UnknownName(f"No table {shown(table)}.", allowed=", ".join(dataset.tables))
    for name, number in (("rows", rows), ("seed", seed)):
        if type(number) is not int or not 0 <= number < 2**63:
            raise WrongUse(f"{name}={shown(number)}.", allowed="a whole number from 0")
    columns = dataset.tables[table].columns
    ids = [name for name in _id_columns(dataset, table) if name not in columns]
    width = len(ids) + sum(
        kind.length if isinstance(kind, Array) else 1 for kind in columns.values()
    )
    if rows * width > MOST_CELLS:
        raise WrongUse(
            f"{rows:,} made-up rows.", allowed=f"at most {MOST_CELLS // max(width, 1):,} here"
        )
    generator = random.Random(seed)  # noqa: S311 - no secret and no noise: declared values
    made = {}
    joined = _joined_columns(dataset, table)
    for name in ids:
        values = list(range(1, rows + 1))
        if name not in joined:
            values = [generator.randint(1, rows) for _ in values]
        made[name] = pa.array(map(str, values), pa.string())
    for name, kind in columns.items():
        draw, arrow = _maker(kind, generator)
        made[name] = pa.array([draw() for _ in range(rows)], arrow)
    return pa.table(made)


def _id_columns(dataset: Dataset, table: str) -> list[str]:
    """The columns that name units: the table's own, and those by which others refer to it."""
    unit = dataset.tables[table].unit
    names: list[str] = []
    if isinstance(unit, Unit):
        names += unit.columns
    elif isinstance(unit, Node):
        names += unit.ends
    return list(dict.fromkeys([*names, *_joined_columns(dataset, table)]))


def _joined_columns(dataset: Dataset, table: str) -> list[str]:
    """The columns by which other tables refer to a row of this one."""
    units = [other.unit for other in dataset.tables.values()]
    links = [unit for unit in units if isinstance(unit, Unit) and unit.target is not None]
    return [unit.key for unit in links if unit.target and unit.target[0] == table and unit.key]


def _maker(
    kind: ColumnType, generator: random.Random
) -> tuple[Callable[[], Any], pa.DataType | None]:
    """What draws a value of a column, and its Arrow type."""
    draw, arrow = _declared(kind, generator)
    if kind.missing is None:
        return draw, arrow
    return lambda: None if generator.random() < _MISSING_SHARE else draw(), arrow


def _declared(kind: ColumnType, generator: random.Random) -> tuple[Callable[[], Any], pa.DataType]:
    if isinstance(kind, Text):
        return lambda: f"text {generator.randint(1, 9)}", pa.string()
    if isinstance(kind, Category):
        return lambda: generator.choice(kind.values), pa.string()
    if isinstance(kind, Boolean):
        if not kind.has_spellings:
            return lambda: generator.random() < 0.5, pa.bool_()
        return lambda: generator.choice((kind.true[0], kind.false[0])), pa.string()

    def value() -> Any:
        return kind.decode(generator.randint(kind.lower_code, kind.upper_code))

    if isinstance(kind, Array):
        number = pa.int64() if isinstance(kind.element, Integer) else pa.float64()
        return lambda: [value() for _ in range(kind.length)], pa.list_(number)
    if isinstance(kind, Date | Timestamp):
        return _moments(kind, value)
    return value, pa.int64() if isinstance(kind, Integer) else pa.float64()


def _moments(
    kind: Date | Timestamp, value: Callable[[], Any]
) -> tuple[Callable[[], Any], pa.DataType]:
    """What draws a date or a time: a text in its format, if the data has texts."""
    if kind.format is not None:
        written: str = kind.format
        return lambda: value().strftime(written), pa.string()
    if isinstance(kind, Date):
        return value, pa.date32()

    def local() -> datetime.datetime:
        moment: datetime.datetime = value()
        return moment.astimezone(datetime.UTC)

    return local, pa.timestamp("us", tz=kind.zone)
