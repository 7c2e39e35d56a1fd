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
from sfumato.privacy.unit import Node, Unit

Rows: TypeAlias = dict[str, list[Any]]

_EPOCH = datetime.date(1970, 1, 1)
_UNITS = 5
# Units whose ids differ by case alone are in every table.
_NAMES = [f"{letter}{number}" for number in range(_UNITS) for letter in "pP"]
_FULL = 12
# Tables of edges have so many times more rows.
_DENSE = 3
# The longest arrays that are made up.
_LONGEST = 2**14
_TEXTS = ("x", "X", "\u00e9", "e\u0301", "x ", "\uff58", "two words")
SHAPES = ("full", "extreme", "spread", "broken")
# The id of the unit that enters or is replaced.
_ENTERING = "entering"
# Where an edge is the unit: the one that enters, which no other row has.
_ENTERING_EDGES = {shape: ("p0", _NAMES[place]) for place, shape in enumerate(SHAPES, 1)}


@dataclass(frozen=True, slots=True)
class World:
    """A generator of made-up rows for all tables of a dataset, from their declarations, to audit a
    system with.

    Raises:
        InvalidDeclaration: the tables have units that are not made up here: reached by way of
            another table, or nodes with ids of a declared type; or columns of long arrays.
    """

    dataset: Dataset
    seed: int

    def __post_init__(self) -> None:
        for name, table in self.dataset.tables.items():
            unit = table.unit
            ids = unit_columns(table) if has_edges(table) else ()
            if isinstance(unit, Node):
                ids = (*ids, *unit_columns(self.dataset.tables[unit.of]))
            is_reached = isinstance(unit, Unit) and unit.via
            if is_reached or set(ids) & {*table.columns}:
                raise InvalidDeclaration(
                    f"The unit of {name} is not made up here.", allowed="a unit of own columns"
                )
            for column, kind in table.columns.items():
                _require_made_up(f"{name}.{column}", kind)

    def rows(self, count: int) -> dict[str, pa.Table]:
        """Returns ``count`` made-up rows of every table, of a few units; more of edges, so that
        most pairs of nodes share neighbours.
        """
        generator = np.random.default_rng(self.seed)
        made = {}
        for name, table in self.dataset.tables.items():
            rows = _empty(table)
            for number in range(count * _DENSE if has_edges(table) else count):
                spelled = _NAMES[2 * int(generator.integers(_UNITS)) + number % 2]
                _add(rows, table, spelled, generator)
            made[name] = frame_of(rows, table)
        return made

    def with_unit(self, made: Mapping[str, pa.Table], shape: str, seed: int) -> dict[str, pa.Table]:
        """Returns the made-up tables with the rows of one more unit: a neighbouring dataset.
        ``shape`` says what its rows are like.
        """
        generator = np.random.default_rng(seed)
        units = [
            (name, self.dataset.unit_name(name))
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
            if shape == "full" and not isinstance(table.unit, Node):
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


def has_edges(table: Table) -> bool:
    """Whether the rows of a table are edges of a graph (``sf.Edge``, ``sf.Node``)."""
    unit = table.unit
    return isinstance(unit, Node) or (unit is not None and unit.unordered)


def unit_columns(table: Table) -> tuple[str, ...]:
    """Returns the columns with the ids of the unit; of edges, those of both ends."""
    if isinstance(table.unit, Node):
        return table.unit.ends
    return table.unit.columns if isinstance(table.unit, Unit) else ()


def key_columns(table: Table) -> tuple[str, ...]:
    """Returns the unit's id columns whose type is not declared; they are filled with strings."""
    return tuple(column for column in unit_columns(table) if column not in table.columns)


def frame_of(rows: Rows, table: Table) -> pa.Table:
    """Returns rows as an Arrow table, each column in the plain type of what it is declared as."""
    types = {column: pa.string() for column in key_columns(table)}
    types |= {column: _arrow_type(kind) for column, kind in table.columns.items()}
    return pa.table({name: pa.array(rows[name], kind) for name, kind in types.items()})


def _require_made_up(place: str, kind: ColumnType) -> None:
    """Refuses a column whose values are not made up here."""
    if isinstance(kind, Array) and kind.length > _LONGEST:
        raise InvalidDeclaration(
            f"{place} has arrays of {kind.length:,} numbers.", allowed=f"at most {_LONGEST:,}"
        )


def _edge(table: Table, generator: np.random.Generator, shape: str) -> list[str | None]:
    """Draws the two ends of an edge: of the unit that enters, or of others."""
    ends = [_NAMES[int(place)] for place in generator.integers(len(_NAMES), size=2)]
    if not shape:
        # an edge that may enter is no edge before
        is_taken = any(set(ends) == set(pair) for pair in _ENTERING_EDGES.values())
        return _edge(table, generator, shape) if is_taken else [*ends]
    if isinstance(table.unit, Node):
        pair = [_ENTERING, None if shape == "broken" and ends[1] < "a" else ends[0]]
    else:
        pair = [*_ENTERING_EDGES[shape]]
    return pair if generator.random() < 0.5 else pair[::-1]


def _empty(table: Table) -> Rows:
    return {name: [] for name in (*key_columns(table), *table.columns)}


def _add(
    rows: Rows, table: Table, unit: str, generator: np.random.Generator, shape: str = ""
) -> None:
    """Adds one row of a unit."""
    keys = unit_columns(table)
    ends = _edge(table, generator, shape) if has_edges(table) else []
    for name, values in rows.items():
        if ends and name in keys:
            values.append(ends[keys.index(name)])
        elif name not in table.columns:
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
        return _arrays(kind.element, kind.length)
    return [_decode(kind, code) for code in _codes(kind)]


def _arrays(element: Integer | Real, length: int) -> list[list[Any]]:
    """Arrays of one number each: the ends first; then mixed ones, and some that are missing."""
    numbers = [_decode(element, code) for code in _codes(element)]
    mixed = [numbers[place % len(numbers)] for place in range(length)]
    longer, broken = [*mixed, numbers[0]], [None, *mixed[1:]]
    return [*([number] * length for number in numbers), mixed, mixed[::-1], longer, broken]


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
    if isinstance(kind, Array):
        return pa.list_(types[type(kind.element)])
    if isinstance(kind, Boolean) and _is_plain(kind):
        return pa.bool_()
    return types.get(type(kind), pa.string())
