# SPDX-License-Identifier: Apache-2.0
"""Hypothesis strategies: declared tables, rows, neighbours and questions as plans.

Sizes are small and values sit on the edges of what is declared (bounds, missing, NULL,
nonsense), for that is where a bound breaks first. A row is a mapping, as the reference
engine takes it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from hypothesis import strategies as st

from sfumato.errors import unknown
from sfumato.metadata.column import Boolean, Category, Column, ColumnType, Date, Integer, Real, Text
from sfumato.metadata.dataset import Dataset
from sfumato.metadata.table import Table
from sfumato.plan.aggregate import (
    Aggregate,
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

# Bounds of every sign: the sensitivity of a sum is the larger of their sizes.
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
    """Two datasets that one unit tells apart."""

    one: Data
    other: Data


@st.composite
def column_types(draw: st.DrawFn) -> ColumnType:
    """A declared type of any kind."""
    missing = draw(st.sampled_from([None, "N", ("", "-1")]))
    low, high = draw(_BOUNDS)
    kinds: list[ColumnType] = [
        Integer(low, high, missing=missing),
        Real(low, high, step="0.5", missing=missing),
        Real(low, high, missing=missing),
        Date("1969-12-30", "1970-01-02", missing=missing),
        Category("a", "o'clock", "空", missing=missing),
        Boolean(missing=missing if missing == "N" else None),
        Text(missing=missing),
    ]
    return draw(st.sampled_from(kinds))


def values(kind: ColumnType) -> st.SearchStrategy[str | None]:
    """Texts that a column of this type can meet: declared, on and beyond the bounds, missing, nonsense."""
    match kind:
        case Integer() | Real():
            halves = st.integers(2 * kind.lower_code - 3, 2 * kind.upper_code + 3)
            edges = st.sampled_from([kind.lower_code, kind.upper_code])
            declared = st.one_of(edges, halves.map(lambda n: n / 2)).map(
                lambda code: repr(float(code * kind.step))
            )
        case Date():
            days = st.integers(kind.lower_code - 1, kind.upper_code + 1)
            declared = days.map(lambda code: kind.decode(code).isoformat())
        case Category() | Boolean():
            declared = st.sampled_from([text for text, _ in kind.texts()])
        case Text():
            declared = st.sampled_from(["a", "b", "N"])
        case _:
            raise unknown(kind)
    # declared values far more often than not
    return st.one_of(declared, declared, declared, st.sampled_from(_NONSENSE), st.none())


_LIMIT = st.one_of(st.none(), st.integers(1, 3))


@st.composite
def units(draw: st.DrawFn) -> Unit:
    """A unit column with limits that a linear aggregate by any keys can be bounded with."""
    total = draw(_LIMIT)
    rows = draw(st.integers(1, 3) if total is None else _LIMIT)
    groups = draw(st.integers(1, 3) if total is None else _LIMIT)
    return Unit(UNIT, rows, groups, total)


@st.composite
def tables(draw: st.DrawFn, *, unit: bool | None = None) -> Table:
    """A declared table of one to three columns; ``unit`` False: each row is one person."""
    kinds = draw(st.lists(column_types(), min_size=1, max_size=3))
    owned = draw(st.booleans()) if unit is None else unit
    columns = {f"c{index}": kind for index, kind in enumerate(kinds)}
    return Table("nowhere.parquet", unit=draw(units()) if owned else None, columns=columns)


def datasets(tables: st.SearchStrategy[Table]) -> st.SearchStrategy[Dataset]:
    """A dataset of one table, under either neighbour relation."""
    return st.builds(
        lambda table, relation: Dataset("data", {TABLE: table}, relation),
        tables,
        st.sampled_from(Relation),
    )


def rows(table: Table, *, unit: str | None = None) -> st.SearchStrategy[Row]:
    """A row of a table, of the given unit (or of nobody: its unit is NULL)."""
    cells: dict[str, st.SearchStrategy[object]] = {
        name: values(kind) for name, kind in table.columns.items()
    }
    if table.unit is not None:
        cells[table.unit.column] = st.just(unit)
    return st.fixed_dictionaries(cells)


@st.composite
def data(draw: st.DrawFn, table: Table, *, max_rows: int = 8) -> Data:
    """The rows of a few units (and of nobody), more of each than the limits allow."""
    if table.unit is None:
        return tuple(draw(st.lists(rows(table), max_size=max_rows)))
    owners = draw(st.lists(st.sampled_from(["u1", "u2", "1", None]), max_size=max_rows))
    return tuple(draw(rows(table, unit=owner)) for owner in owners)


@st.composite
def neighbours(draw: st.DrawFn, table: Table, relation: Relation) -> Neighbours:
    """A dataset and one with a unit more, or with one unit replaced by another.

    Rows whose unit is NULL belong to nobody: neighbours may differ in any of them.
    """
    base = draw(data(table, max_rows=4))
    one, other = draw(_person(table, "v")), draw(_person(table, draw(st.sampled_from(["v", "w"]))))
    if relation is Relation.ADD_REMOVE:
        return Neighbours(base, base + one)
    return Neighbours(base + one, base + other)


@st.composite
def _person(draw: st.DrawFn, table: Table, name: str) -> Data:
    """One unit's rows; where units have a column, also rows of nobody."""
    if table.unit is None:
        return (draw(rows(table)),)
    own = draw(st.lists(rows(table, unit=name), min_size=1, max_size=7))
    return tuple(own) + tuple(draw(st.lists(rows(table), max_size=1)))


def aggregates(table: Table) -> st.SearchStrategy[Aggregate]:
    """An aggregate that the table's columns allow."""
    columns = [Column(name, kind) for name, kind in table.columns.items()]
    numbers = [column for column in columns if isinstance(column.type, Integer | Real | Boolean)]
    values, summed = [Value.of(each) for each in columns], [Value.of(each) for each in numbers]
    found: list[Aggregate] = [CountRows(), *map(CountValues, values), *map(CountDistinct, values)]
    found += [*map(Sum, summed), *map(Mean, summed), *map(Variance, summed)]
    found += [Quantiles(each, (Fraction(1, 2),)) for each in summed]
    return st.sampled_from(found if table.unit is None else [*found, CountUnits()])


def predicates(table: Table) -> st.SearchStrategy[Scalar]:
    """A test on codes, nested a little."""
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
    members = st.lists(codes, max_size=3).map(
        lambda found: Member(field, tuple(sorted(set(found))))
    )
    if isinstance(kind, Category | Boolean):
        return st.one_of(null, members)
    compares = st.builds(
        lambda op, code: Compare(op, field, Constant(code)), st.sampled_from(Comparison), codes
    )
    return st.one_of(null, members, compares)


@st.composite
def plans(draw: st.DrawFn, table: Table) -> Raw:
    """A question to a table: a few aggregates, by at most two keys of few values or of texts, filtered or not."""
    possible = [Column(name, kind) for name, kind in table.columns.items() if _few(kind)]
    columns: Sequence[Column] = (
        draw(st.lists(st.sampled_from(possible), max_size=2, unique=True)) if possible else []
    )
    wanted = draw(st.lists(aggregates(table), min_size=1, max_size=3, unique=True))
    read = tuple(Column(name, kind) for name, kind in table.columns.items())
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
