# SPDX-License-Identifier: Apache-2.0
"""Made-up rows of declared tables: values at the edges of what is declared, and beyond them."""

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from sfumato.errors import InvalidDeclaration
from sfumato.metadata.column import Array, Boolean, Category, ColumnType, Date, Integer, Real, Text
from sfumato.metadata.dataset import Dataset
from sfumato.metadata.table import Table
from sfumato.metadata.timestamp import Timestamp
from sfumato.privacy.unit import Unit

Rows: TypeAlias = dict[str, list[Any]]

_EPOCH = datetime.date(1970, 1, 1)
_UNITS = 5
_FULL = 12
_TEXTS = ("x", "X", "\u00e9", "e\u0301", "x ", "\uff58", "two words")
SHAPES = ("full", "extreme", "spread", "broken")
# The id of the unit that enters or is replaced.
_ENTERING = "entering"


@dataclass(frozen=True, slots=True)
class World:
    """A generator of made-up rows for all tables of a dataset, from their declarations, to audit a
    system with.

    Raises:
        InvalidDeclaration: the tables have units that are not made up here: reached by way of
            another table, or of edges; or columns of arrays.
    """

    dataset: Dataset
    seed: int

    def __post_init__(self) -> None:
        for name, table in self.dataset.tables.items():
            unit = table.unit
            if unit is not None and (not isinstance(unit, Unit) or unit.via or unit.unordered):
                raise InvalidDeclaration(
                    f"The unit of {name} is not made up here.", allowed="a unit of own columns"
                )
            for column, kind in table.columns.items():
                _require_made_up(f"{name}.{column}", kind)

    def rows(self, count: int) -> dict[str, pa.Table]:
        """Returns ``count`` made-up rows of every table, of a few units."""
        generator = np.random.default_rng(self.seed)
        made = {}
        for name, table in self.dataset.tables.items():
            rows = _empty(table)
            for number in range(count):
                spelled = f"{'pP'[number % 2]}{generator.integers(_UNITS)}"
                _add(rows, table, spelled, generator)
            made[name] = frame_of(rows, table)
        return made

    def with_unit(self, made: Mapping[str, pa.Table], shape: str, seed: int) -> dict[str, pa.Table]:
        """Returns the made-up tables with the rows of one more unit: a neighbouring dataset.
        ``shape`` says what its rows are like.
        """
        generator = np.random.default_rng(seed)
        units = [
            (name, _unit_name(table))
            for name, table in self.dataset.tables.items()
            if not table.public
        ]
        _, chosen = units[int(generator.integers(len(units)))]
        grown = dict(made)
        for name, unit in units:
            if unit != chosen or (chosen is None and grown[name] is not made[name]):
                continue
            table = self.dataset.tables[name]
            rows = _empty(table)
            for _ in range(1 if unit is None else _FULL):
                _add(rows, table, _ENTERING, generator, shape)
            if shape == "full":
                rows = {column: [values[0]] * len(values) for column, values in rows.items()}
            grown[name] = pa.concat_tables([made[name], frame_of(rows, table)])
            if unit is None:
                break
        return grown

    def tables(self, sources: Mapping[str, object]) -> dict[str, Table]:
        """Returns the declared tables with other sources of rows."""
        return {
            name: with_source(table, sources[name]) for name, table in self.dataset.tables.items()
        }


def with_source(table: Table, source: object, /, **options: Any) -> Table:
    """Returns a declared table that reads another source, without the options of its own source."""
    plain = dict.fromkeys(
        ("table", "delimiter", "encoding", "decimal", "thousands", "sheet", "header_row")
    )
    return replace(table, source=source, **{**plain, **options})


def key_columns(table: Table) -> tuple[str, ...]:
    """Returns the unit's id columns whose type is not declared; they are filled with strings."""
    if not isinstance(table.unit, Unit):
        return ()
    return tuple(column for column in table.unit.columns if column not in table.columns)


def frame_of(rows: Rows, table: Table) -> pa.Table:
    """Returns rows as an Arrow table, each column in the plain type of what it is declared as."""
    types = {column: pa.string() for column in key_columns(table)}
    types |= {column: _arrow_type(kind) for column, kind in table.columns.items()}
    return pa.table({name: pa.array(rows[name], kind) for name, kind in types.items()})


def _require_made_up(place: str, kind: ColumnType) -> None:
    """Refuses a column whose values are not made up here."""
    if isinstance(kind, Array):
        raise InvalidDeclaration(
            f"{place} is a {type(kind).__name__} that is not made up here.",
            allowed="numbers, categories, truth values, texts, dates and times",
        )


def _unit_name(table: Table) -> str | None:
    return table.unit.name if isinstance(table.unit, Unit) else None


def _empty(table: Table) -> Rows:
    return {name: [] for name in (*key_columns(table), *table.columns)}


def _add(
    rows: Rows, table: Table, unit: str, generator: np.random.Generator, shape: str = ""
) -> None:
    """Adds one row of a unit."""
    keys = table.unit.columns if isinstance(table.unit, Unit) else ()
    for name, values in rows.items():
        if name not in table.columns:
            values.append(unit)
        elif name in keys and shape:
            # an id that is a declared column: one value that no other unit has, if there is one
            values.append(_values(table.columns[name])[-1])
        else:
            values.append(_draw(table.columns[name], generator, shape))


def _draw(kind: ColumnType, generator: np.random.Generator, shape: str) -> Any:
    """Draws a value: declared, beyond what is declared, or missing."""
    if shape == "broken" and generator.random() < 0.7:
        return None
    values = _values(kind)
    if shape in ("full", "extreme"):
        # declared values, so that the unit counts
        return values[int(generator.integers(2))]
    if not shape and generator.random() < 0.1:
        return None
    return values[int(generator.integers(len(values)))]


def _values(kind: ColumnType) -> Sequence[Any]:
    """Values of a column; the first two are the ends of what is declared."""
    if isinstance(kind, Text):
        return _TEXTS
    if isinstance(kind, Category):
        spelled = [form for value in kind.values for form in _spellings(value)]
        return [kind.values[0], kind.values[-1], *kind.values, *spelled, "not declared"]
    if isinstance(kind, Boolean):
        return [True, False] if _is_plain(kind) else [*kind.true, *kind.false, "not declared"]
    if isinstance(kind, Array):
        raise InvalidDeclaration("An array is not made up here.", allowed="a column of values")
    return [_decode(kind, code) for code in _codes(kind)]


def _decode(kind: Integer | Real | Date | Timestamp, code: int) -> Any:
    """The value of a code, also of one beyond what is declared."""
    if isinstance(kind, Integer):
        return code
    if isinstance(kind, Real):
        return float(code * kind.step)
    if isinstance(kind, Date):
        moment = _EPOCH + datetime.timedelta(code)
    else:
        # a time without an offset, as the column of a file has it
        start = datetime.datetime.combine(_EPOCH, datetime.time())
        moment = start + datetime.timedelta(0, int(code * kind.step))
    return moment if kind.format is None else moment.strftime(kind.format)


def _codes(kind: Any) -> Iterator[int]:
    """Codes at both ends, beyond them, between them."""
    low, high = kind.lower_code, kind.upper_code
    yield from (low, high, low - 1, high + 1, (low + high) // 2, low + 1, high)
    yield from np.linspace(low, high, 9).astype(int).tolist()


def _spellings(value: str) -> Iterator[str]:
    """Other texts that a collation could call equal: case, accent, width, a space at the end."""
    forms = (
        value.upper(),
        value.lower(),
        f"{value} ",
        f"{value}\u0301",
        "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in value),
    )
    yield from (form for form in forms if form != value)


def _is_plain(kind: Boolean) -> bool:
    return "true" in kind.true and "false" in kind.false


def _arrow_type(kind: ColumnType) -> pa.DataType:
    types = {Integer: pa.int64(), Real: pa.float64(), Date: pa.date32()}
    if isinstance(kind, Date | Timestamp) and kind.format is not None:
        return pa.string()
    if isinstance(kind, Timestamp):
        return pa.timestamp("us")
    if isinstance(kind, Boolean) and _is_plain(kind):
        return pa.bool_()
    return types.get(type(kind), pa.string())
