# SPDX-License-Identifier: Apache-2.0
"""Hypothesis strategies for declared tables, rows, neighbouring datasets and plans.

Sizes are small, and values are edge cases of the declaration (bounds, missing, NULL, invalid
strings), where a wrong sensitivity shows first. A row is a mapping, as in the reference engine.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from hypothesis import strategies as st

from sfumato.errors import unknown
from sfumato.metadata.column import (
    Array,
    Boolean,
    Category,
    Column,
    ColumnType,
    Date,
    Integer,
    Real,
    Text,
)
from sfumato.metadata.dataset import Dataset
from sfumato.metadata.date_format import in_format
from sfumato.metadata.table import Table
from sfumato.metadata.timestamp import Timestamp
from sfumato.plan.aggregate import (
    SMALL,
    Aggregate,
    CodeQuantiles,
    CountDistinct,
    CountRows,
    CountUnits,
    CountValues,
    Mean,
    Quantiles,
    Sum,
    Variance,
)
from sfumato.plan.owner import owner_of
from sfumato.plan.relation import Filter, Scan
from sfumato.plan.relation import Relation as Rows
from sfumato.plan.scalar import (
    And,
    Compare,
    Comparison,
    Constant,
    Field,
    IsNull,
    Member,
    Not,
    Or,
    Scalar,
)
from sfumato.plan.stages import Raw
from sfumato.plan.value import GroupKey, Value
from sfumato.privacy.unit import Relation, Unit

Row: TypeAlias = Mapping[str, object]
Data: TypeAlias = tuple[Row, ...]

TABLE = "people"
UNIT = "person"

# Bounds with all combinations of signs: the sensitivity of a sum is the larger absolute value.
_BOUNDS = st.sampled_from([(0, 1), (0, 3), (-3, 2), (-2, 5), (-4, -1), (2, 7), (-1, 1)])
_NONSENSE = (
    "",
    "abc",
    "N",
    "1e400",
    "+-1",
    "nan",
    "2019-02-30",
    "\uff11\uff12",
    "infinity",
    " 1 ",
    "o'clock",
    '"',
    "空",
)


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Two neighbouring datasets: they differ in one unit."""

    one: Data
    other: Data


@st.composite
def column_types(draw: st.DrawFn) -> ColumnType:
    """Generates a declared column type of any kind."""
    missing = draw(st.sampled_from([None, "N", ("", "-1")]))
    low, high = draw(_BOUNDS)
    kinds: list[ColumnType] = [
        Integer(low, high, missing=missing),
        Real(low, high, step="0.5", missing=missing),
        Real(low, high, missing=missing),
        Date("1969-12-30", "1970-01-02", missing=missing),
        Timestamp(
            "2020-10-24 23:59:58",
            "2020-10-25 02:00:01",
            zone="Europe/London",
            step=900,
            missing=missing,
        ),
        Date("1969-12-30", "1970-01-02", format="%d/%m/%Y", missing=missing),
        Timestamp("2020-03-29", "2020-03-29", step=900, format="%m/%d/%Y %H:%M", missing=missing),
        Category("a", "o'clock", "空", missing=missing),
        Boolean(missing=missing if missing == "N" else None),
        Text(missing=missing),
    ]
    return draw(st.sampled_from(kinds))


def values(kind: ColumnType) -> st.SearchStrategy[str | None]:
    """Generates strings for a column: valid, at and beyond the bounds, missing, or invalid."""
    match kind:
        case Integer() | Real():
            halves = st.integers(2 * kind.lower_code - 3, 2 * kind.upper_code + 3)
            edges = st.sampled_from([kind.lower_code, kind.upper_code])
            codes = st.one_of(edges, halves.map(lambda n: n / 2))
            declared = codes.map(lambda code: repr(float(code * kind.step)))
        case Date():
            days = st.integers(kind.lower_code - 1, kind.upper_code + 1)
            written = kind.format or "%Y-%m-%d"
            declared = days.map(lambda code: in_format(kind.decode(code), written))
        case Timestamp():
            moments = st.integers(kind.lower_code - 2, kind.upper_code + 2)
            declared = moments.map(lambda code: _moment(kind, code))
        case Category() | Boolean():
            declared = st.sampled_from([text for text, _ in kind.texts()])
        case Text() | Array():
            declared = st.sampled_from(["a", "b", "N"])
        case _:
            raise unknown(kind)
    # declared values far more often than not
    return st.one_of(declared, declared, declared, st.sampled_from(_NONSENSE), st.none())


def _moment(kind: Timestamp, code: int) -> str:
    """A moment in its declared format, with its offset from UTC, or as local time without one."""
    moment = kind.decode(code)
    if kind.format is not None:
        return moment.strftime(kind.format)
    return str(moment if code % 2 else moment.replace(tzinfo=None))


_LIMIT = st.one_of(st.none(), st.integers(1, 3))


@st.composite
def units(draw: st.DrawFn) -> Unit:
    """Generates a unit with limits that suffice to bound a linear aggregate by any keys."""
    total = draw(_LIMIT)
    rows = draw(st.integers(1, 3) if total is None else _LIMIT)
    groups = draw(st.integers(1, 3) if total is None else _LIMIT)
    return Unit(UNIT, rows, groups, total)


@st.composite
def tables(draw: st.DrawFn, *, unit: bool | None = None) -> Table:
    """Generates a declared table of one to three columns; ``unit`` False: each row is one unit."""
    kinds = draw(st.lists(column_types(), min_size=1, max_size=3))
    owned = draw(st.booleans()) if unit is None else unit
    columns = {f"c{index}": kind for index, kind in enumerate(kinds)}
    owner = draw(units()) if owned else None
    return Table("nowhere.parquet", unit=owner, columns=columns)


def datasets(tables: st.SearchStrategy[Table]) -> st.SearchStrategy[Dataset]:
    """Generates a dataset of one table, under either neighbour relation."""
    return st.builds(
        lambda table, relation: Dataset("data", {TABLE: table}, relation),
        tables,
        st.sampled_from(Relation),
    )


def rows(table: Table, *, unit: str | None = None) -> st.SearchStrategy[Row]:
    """Generates a row of the given unit; None is a row whose unit is NULL."""
    cells: dict[str, st.SearchStrategy[object]] = {
        name: values(kind) for name, kind in table.columns.items()
    }
    if isinstance(table.unit, Unit):
        cells[table.unit.column] = st.just(unit)
    return st.fixed_dictionaries(cells)


@st.composite
def data(draw: st.DrawFn, table: Table, *, max_rows: int = 8) -> Data:
    """Generates rows of a few units and of none (NULL), possibly more than the limits allow."""
    if table.unit is None:
        return tuple(draw(st.lists(rows(table), max_size=max_rows)))
    names = st.sampled_from(["u1", "u2", "1", None])
    owners = draw(st.lists(names, max_size=max_rows))
    return tuple(draw(rows(table, unit=owner)) for owner in owners)


@st.composite
def neighbours(draw: st.DrawFn, table: Table, relation: Relation) -> Neighbours:
    """Generates two neighbours: one has one unit more, or one unit is replaced.

    Rows whose unit is NULL belong to nobody, and neighbours may differ in any of them.
    """
    base = draw(data(table, max_rows=4))
    one = draw(_person(table, "v"))
    other = draw(_person(table, draw(st.sampled_from(["v", "w"]))))
    if relation is Relation.ADD_REMOVE:
        return Neighbours(base, base + one)
    return Neighbours(base + one, base + other)


@st.composite
def _person(draw: st.DrawFn, table: Table, name: str) -> Data:
    """Generates the rows of one unit; if the unit is a column, also a row whose unit is NULL."""
    if table.unit is None:
        return (draw(rows(table)),)
    own = draw(st.lists(rows(table, unit=name), min_size=1, max_size=7))
    of_nobody = draw(st.lists(rows(table), max_size=1))
    return (*own, *of_nobody)


def aggregates(table: Table) -> st.SearchStrategy[Aggregate]:
    """Generates an aggregate that the columns of the table allow."""
    columns = [Column(name, kind) for name, kind in table.columns.items()]
    possible: list[Aggregate] = [CountRows()]
    if table.unit is not None:
        possible.append(CountUnits())
    for value in map(Value.of, columns):
        possible += [CountValues(value), CountDistinct(value)]
    for name, kind in table.columns.items():
        if isinstance(kind, Integer | Real | Boolean):
            value = Value.of(Column(name, kind))
            quantiles = CodeQuantiles if kind.size > SMALL else Quantiles
            possible += [Sum(value), Mean(value), Variance(value)]
            possible.append(quantiles(value, (Fraction(1, 2),)))
    return st.sampled_from(possible)


def predicates(table: Table) -> st.SearchStrategy[Scalar]:
    """Generates a condition on codes, with a few levels of AND, OR and NOT."""
    leaves = st.one_of(*(_tests(Column(name, kind)) for name, kind in table.columns.items()))
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.builds(Not, inner),
            st.builds(And, st.tuples(inner, inner)),
            st.builds(Or, st.tuples(inner, inner)),
        ),
        max_leaves=3,
    )


def _tests(column: Column) -> st.SearchStrategy[Scalar]:
    field, kind = Field(column), column.type
    null = st.just(IsNull(field))
    if isinstance(kind, Text):
        return st.one_of(null, st.just(Member(field, ("N", "a"))), st.just(Member(field, ())))
    codes = st.integers(kind.lower_code - 1, kind.upper_code + 1)
    members = st.sets(codes, max_size=3).map(lambda chosen: Member(field, tuple(sorted(chosen))))
    if isinstance(kind, Category | Boolean):
        return st.one_of(null, members)
    compares = st.builds(
        lambda op, code: Compare(op, field, Constant(code)), st.sampled_from(Comparison), codes
    )
    return st.one_of(null, members, compares)


@st.composite
def plans(draw: st.DrawFn, table: Table) -> Raw:
    """Generates a plan: one to three aggregates, at most two group keys, perhaps a filter.

    Keys are strings or have few values.
    """
    read = tuple(Column(name, kind) for name, kind in table.columns.items())
    possible = [column for column in read if _few(column.type)]
    columns: Sequence[Column] = []
    if possible:
        columns = draw(st.lists(st.sampled_from(possible), max_size=2, unique=True))
    wanted = draw(st.lists(aggregates(table), min_size=1, max_size=3, unique=True))
    source: Rows = Scan(TABLE, "", read, owner_of(Dataset("d", {TABLE: table}), TABLE))
    if draw(st.booleans()):
        source = Filter(source, draw(predicates(table)))
    return Raw(source, tuple(map(_key, columns)), tuple(wanted))


def _key(column: Column) -> GroupKey:
    kind = column.type
    if isinstance(kind, Text):
        return GroupKey(Value.of(column), None)
    return GroupKey(
        Value.of(column),
        tuple(range(kind.lower_code, kind.upper_code + 1)),
        kind.missing is not None,
    )


def _few(kind: ColumnType) -> bool:
    return isinstance(kind, Text) or kind.size <= 16
