# SPDX-License-Identifier: Apache-2.0
"""Relations: trees of operators (scan, filter, join, ...) that keep the rows of units apart.

The rows that a node has of a unit depend only on that unit's rows in the nodes below and on public
tables: lemma 1 of query/stability.proof.md. The contribution of a unit is bounded once, above the
whole tree (RULES 18). Expressions read columns by name (``Field``); a scan adds a prefix to the
column names of its table, so that each name is unique in the tree.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from typing import TypeAlias

from sfumato.errors import unknown
from sfumato.metadata.coded import MAX_CODE
from sfumato.metadata.column import Column, Integer, Text
from sfumato.plan.owner import Owner
from sfumato.plan.scalar import Field, Member, Scalar
from sfumato.plan.value import Value
from sfumato.plan.value_range import confine

# The upper bound of a row count without a declared limit; no table has as many rows.
UNLIMITED = 2**31


@dataclass(frozen=True, slots=True)
class Scan:
    """A read of a declared table, with each value as its integer code; rows of no unit are left
    out.

    ``columns`` are those that are read, named ``prefix`` and the name in the table. ``owner``
    None: each row is its own unit, or the table is public.

    >>> Scan("people", prefix="p.", columns=(Column("p.age", Integer(0, 120)),)).table
    'people'
    """

    table: str
    prefix: str = ""
    columns: tuple[Column, ...] = ()
    owner: Owner | None = None


@dataclass(frozen=True, slots=True)
class Filter:
    """The rows for which ``predicate`` is TRUE (not FALSE, not NULL).

    >>> age = Column("age", Integer(0, 120))
    >>> adults = Filter(Scan("people", columns=(age,)), Member(Field(age), (18, 19)))
    >>> row_by_row(adults).table
    'people'
    """

    source: "Relation"
    predicate: Scalar

    def __post_init__(self) -> None:
        confine(self.predicate)


@dataclass(frozen=True, slots=True)
class PublicJoin:
    """Joins each row to the row of a public table whose column ``right`` equals the value ``left``.

    Of several public rows with one key, the first in the order of the columns read is used, so a
    row is never multiplied. ``outer``: rows without a match are kept, with NULLs.

    >>> area, code = Column("area", Integer(0, 9)), Column("areas.code", Integer(0, 9))
    >>> areas = Scan("areas", prefix="areas.", columns=(code,))
    >>> joined = PublicJoin(Scan("people", columns=(area,)), areas, Field(area), code)
    >>> [scan.table for scan in scans(joined)]
    ['people']
    """

    source: "Relation"
    table: Scan
    left: Scalar
    right: Column
    outer: bool = False

    def __post_init__(self) -> None:
        confine(self.left)


@dataclass(frozen=True, slots=True)
class KeyJoin:
    """Joins each row to a row of the same unit in another private table, by equality of a key.

    The key is ``left`` in the row and the column ``right`` in the table. Of several rows of the
    unit with one key, the first in the order of the columns read is used, so a row is never
    multiplied. ``outer``: rows without a match are kept, with NULLs.

    >>> link, key = Column("link", Integer(0, 9)), Column("visits.id", Integer(0, 9))
    >>> joined = KeyJoin(Scan("drugs", columns=(link,)), Scan("visits"), Field(link), key)
    >>> [scan.table for scan in scans(joined)]
    ['drugs', 'visits']
    """

    source: "Relation"
    table: Scan
    left: Scalar
    right: Column
    outer: bool = False

    def __post_init__(self) -> None:
        confine(self.left)


@dataclass(frozen=True, slots=True)
class UnitJoin:
    """Joins each row to the row of its unit in ``other``, which has at most one row per unit.

    >>> visits, people = Scan("visits"), PerUnit(Scan("people"), (), ())
    >>> [scan.table for scan in scans(UnitJoin(visits, people))]
    ['visits', 'people']
    """

    source: "Relation"
    other: "Relation"
    outer: bool = False

    def __post_init__(self) -> None:
        if not is_single(self.other):
            raise ValueError("a join to several rows of a unit")


@dataclass(frozen=True, slots=True)
class Semi:
    """The rows whose unit has a row in the relation ``units``; if ``negated``, the others.

    >>> row_by_row(Semi(Scan("visits"), Scan("people"), negated=True)).table
    'visits'
    """

    source: "Relation"
    units: "Relation"
    negated: bool = False


class Summary(Enum):
    """An aggregate function over the rows of one unit, as used in ``PerUnit``."""

    COUNT = "count"
    COUNT_VALUES = "count values"
    COUNT_DISTINCT = "count distinct"
    SUM = "sum"
    MEAN = "mean"
    MINIMUM = "min"
    MAXIMUM = "max"


# The largest denominator of ``Computed.finer``.
MAX_UNDER = 2**30


@dataclass(frozen=True, slots=True)
class Computed:
    """A column of ``PerUnit``: a summary of ``value``, clipped to the range of the column's type.

    A mean is rounded to the nearest step of that type, half up; other summaries have the step of
    ``value``.
    """

    column: Column
    summary: Summary
    value: Value | None = None

    def __post_init__(self) -> None:
        counts = self.summary in (Summary.COUNT_VALUES, Summary.COUNT_DISTINCT)
        text = self.value is not None and isinstance(self.value.type, Text)
        needs_value = self.summary is not Summary.COUNT
        if (self.value is not None) != needs_value or (text and not counts):
            raise ValueError(f"{self.summary.value} has no such value")
        if isinstance(self.column.type, Text):
            raise ValueError(f"{self.column.name} is a text")
        if self.summary is Summary.MEAN and not self._is_computable():
            raise ValueError(f"{self.column.name} has steps that 128 bits cannot compute a mean on")

    def _is_computable(self) -> bool:
        """Whether the sum over a unit's rows stays within 2^119 steps of the mean."""
        assert self.value is not None and not isinstance(self.value.type, Text), "only of a mean"
        size = max(abs(self.value.type.lower_code), abs(self.value.type.upper_code))
        return self.finer.denominator <= MAX_UNDER and self.finer * size <= MAX_CODE

    @property
    def finer(self) -> Fraction:
        """The factor by which the lattice step of a mean is finer than that of the value it
        averages.
        """
        assert self.value is not None and not isinstance(self.value.type, Text), "only of a mean"
        assert not isinstance(self.column.type, Text), "a plan computes no text"
        return self.value.type.step / self.column.type.step


@dataclass(frozen=True, slots=True)
class PerUnit:
    """GROUP BY unit: one row for each unit, with aggregates of its rows.

    With ``keys``, one row for each combination of a unit and their values. Each key is a column and
    the value from which it is computed.

    >>> is_single(PerUnit(Scan("visits"), (), ())), is_single(Scan("visits"))
    (True, False)
    """

    source: "Relation"
    keys: tuple[tuple[Column, Value], ...]
    columns: tuple[Computed, ...]

    def __post_init__(self) -> None:
        for column, value in self.keys:
            _require_within(column, value.expression)


@dataclass(frozen=True, slots=True)
class Sort:
    """A sort key for the rows of a unit; NULLs come last."""

    expression: Scalar
    descending: bool = False

    def __post_init__(self) -> None:
        confine(self.expression)


@dataclass(frozen=True, slots=True)
class Ranked:
    """Adds ROW_NUMBER() over the rows of each unit, from 1, as ``column``.

    ``ties`` break ties of ``order``; rows that agree in both are equal in every column that the
    question reads. Numbers above the range of ``column`` are clipped to its upper bound.

    >>> ranked = Ranked(Scan("visits"), (), (), Column("rank", Integer(1, 2)))
    >>> is_single(ranked), is_single(Filter(ranked, Member(Field(ranked.column), (1,))))
    (False, True)
    """

    source: "Relation"
    order: tuple[Sort, ...]
    ties: tuple[Scalar, ...]
    column: Column

    def __post_init__(self) -> None:
        kind = self.column.type
        # at an upper end of 1 every row would be the first
        if not isinstance(kind, Integer) or not kind.lower_code <= 1 < kind.upper_code:
            raise ValueError(f"{self.column.name} cannot tell the first row from others")


class WindowFunction(Enum):
    """A SQL window function, computed in ``Windowed`` over the ordered rows of a partition."""

    ROW_NUMBER = "row_number"
    RANK = "rank"
    DENSE_RANK = "dense_rank"
    LAG = "lag"
    LEAD = "lead"


@dataclass(frozen=True, slots=True)
class Windowed:
    """Adds a window function over the rows of each unit that agree in ``by``, as ``column``.

    LAG and LEAD look up ``value`` in the row that is ``offset`` places before or behind; NULL if
    there is none. A number above the range of ``column`` is clipped to its upper bound. ``ties``
    break ties of ``order``, as in ``Ranked``; ranks are those of ``order`` alone.

    >>> day = Column("day", Integer(0, 9))
    >>> days, before = Scan("visits", columns=(day,)), Column("before", Integer(0, 9))
    >>> gaps = Windowed(days, WindowFunction.LAG, (), (), (), before, Value.of(day))
    >>> is_single(gaps), row_by_row(gaps)
    (False, None)
    """

    source: "Relation"
    function: WindowFunction
    by: tuple[Scalar, ...]
    order: tuple[Sort, ...]
    ties: tuple[Scalar, ...]
    column: Column
    value: Value | None = None
    offset: int = 1

    def __post_init__(self) -> None:
        kind = self.column.type
        for key in self.by:
            confine(key)
        if self.offset < 1:
            raise ValueError(f"{self.column.name} is of no other row")
        looks_up = self.function in (WindowFunction.LAG, WindowFunction.LEAD)
        if looks_up != (self.value is not None):
            raise ValueError(f"{self.function.value} has no such value")
        if self.value is not None:
            _require_within(self.column, self.value.expression)
        elif not isinstance(kind, Integer) or not kind.lower_code <= 1 < kind.upper_code:
            raise ValueError(f"{self.column.name} cannot tell the first row from others")

    @property
    def is_rank(self) -> bool:
        """Whether rows that agree in ``order`` have the same number."""
        return self.function in (WindowFunction.RANK, WindowFunction.DENSE_RANK)


@dataclass(frozen=True, slots=True)
class Union:
    """UNION ALL of several relations with the same columns; ``values`` computes them in each
    relation.

    ``exclusive``: a unit has rows of one of them at most, so the default limits of its rows are
    the largest of theirs, not the sum. Nothing else rests on it: limits are enforced.

    >>> year = Column("year", Integer(2000, 2100))
    >>> old, new = Scan("old", columns=(year,)), Scan("new", columns=(year,))
    >>> both = Union((old, new), ((Field(year),), (Field(year),)), (year,))
    >>> [scan.table for scan in scans(both)]
    ['old', 'new']
    """

    sources: tuple["Relation", ...]
    values: tuple[tuple[Scalar, ...], ...]
    columns: tuple[Column, ...]
    exclusive: bool = field(default=False, compare=False)

    def __post_init__(self) -> None:
        if not self.sources or len(self.sources) != len(self.values):
            raise ValueError("a union needs the columns of each of its sources")
        for expressions in self.values:
            for column, expression in zip(self.columns, expressions, strict=True):
                _require_within(column, expression)


Relation: TypeAlias = (
    Scan | Filter | PublicJoin | KeyJoin | UnitJoin | Semi | PerUnit | Ranked | Windowed | Union
)


def _require_within(column: Column, expression: Scalar) -> None:
    """Refuses an expression whose values may lie outside the range of the column."""
    Value(column.name, column.type, expression)


def below(relation: Relation) -> tuple[Relation, ...]:
    """Returns the relations directly below a relation, without public tables."""
    match relation:
        case Scan():
            return ()
        case KeyJoin(source, other) | UnitJoin(source, other):
            return source, other
        case Semi(source, units, _):
            return source, units
        case Union(sources, _, _):
            return sources
        case Filter() | PublicJoin() | PerUnit() | Ranked() | Windowed():
            return (relation.source,)
        case _:
            raise unknown(relation)


def scans(relation: Relation) -> Iterator[Scan]:
    """Yields the scans of private tables in a relation; a table scanned twice comes twice."""
    if isinstance(relation, Scan):
        yield relation
    for source in below(relation):
        yield from scans(source)


def predicates(relation: Relation) -> list[Scalar]:
    """Returns the predicates of all filters in a relation, the lowest filter's first."""
    tests = [test for source in below(relation) for test in predicates(source)]
    if isinstance(relation, Filter):
        tests.append(relation.predicate)
    return tests


def is_single(relation: Relation) -> bool:
    """Returns whether every unit has at most one row in a relation, whatever the data."""
    match relation:
        case PerUnit(_, keys, _):
            return not keys
        case Filter(Ranked(_, _, _, column), Member(Field(tested), (1,))) if tested == column:
            return True
        case Filter() | PublicJoin() | KeyJoin() | UnitJoin() | Semi() | Ranked() | Windowed():
            return is_single(relation.source)
        case Scan() | Union():
            return False
        case _:
            raise unknown(relation)


def row_by_row(relation: Relation) -> Scan | None:
    """Returns the one table of which each row gives at most one row of the relation, by itself
    alone.

    None if there is no such table. A prepared layout (a fixed sample of a unit's rows) can be read
    only for such relations, since nothing may multiply its rows afterwards. A row may still be
    joined to an arbitrary row of its unit in another table, or filtered by whether its unit has
    rows in a relation that is read in the same way.
    """
    match relation:
        case Scan():
            return relation
        case Filter() | PublicJoin():
            return row_by_row(relation.source)
        case UnitJoin(source, other) if _is_any_row(other):
            return row_by_row(source)
        case Semi(source, units) if _is_any_row(units) or row_by_row(units) is not None:
            return row_by_row(source)
        case KeyJoin() | UnitJoin() | Semi() | PerUnit() | Ranked() | Windowed() | Union():
            return None
        case _:
            raise unknown(relation)


def _is_any_row(relation: Relation) -> bool:
    """Whether a relation has one arbitrary row of each unit of a table."""
    match relation:
        case Filter(Ranked(source, (), _, column), Member(Field(tested), (1,))) if tested == column:
            return row_by_row(source) is not None
        case Filter() | PublicJoin():
            return _is_any_row(relation.source)
        case Scan() | KeyJoin() | UnitJoin() | Semi() | PerUnit() | Ranked() | Windowed() | Union():
            return False
        case _:
            raise unknown(relation)


def first(source: Relation, order: tuple[Sort, ...], ties: tuple[Scalar, ...], name: str) -> Filter:
    """Returns a relation with only the first row of each unit, in the given order.

    ``name`` is that of the column of row numbers, ``ties`` break ties of ``order``.
    """
    column = Column(name, Integer(1, 2))
    ranked = Ranked(source, order, ties, column)
    return Filter(ranked, Member(Field(column), (1,)))
