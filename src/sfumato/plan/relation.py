# SPDX-License-Identifier: Apache-2.0
"""Where rows come from: trees in which every node leaves each unit's rows its own.

Each node's rows of a unit are a function of that unit's rows of the nodes below and of
public tables, of nothing else: lemma 1 of query/stability.proof.md. What a unit contributes
is bounded once, above the whole tree (RULES 18). Names of columns are those of ``Field``;
a scan prefixes the names of its table, so that each is unique in the tree.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import TypeAlias

from sfumato.errors import unknown
from sfumato.metadata.column import MAX_CODE, Column, Integer, Text
from sfumato.plan.owner import Owner
from sfumato.plan.scalar import Field, Member, Scalar
from sfumato.plan.value import Value
from sfumato.plan.value_range import confine

# The upper bound of a count of rows without a declared limit: no table has as many rows.
UNLIMITED = 2**31


@dataclass(frozen=True, slots=True)
class Scan:
    """The rows of a declared table that have an owner, each value as its code.

    ``columns``: those that are read, by their names in the tree: the name in the table
    after ``prefix``. ``owner`` None: each row is its own unit, or the table is public.
    """

    table: str
    prefix: str = ""
    columns: tuple[Column, ...] = ()
    owner: Owner | None = None


@dataclass(frozen=True, slots=True)
class Filter:
    """The rows for which ``predicate`` is TRUE (not FALSE, not NULL)."""

    source: "Relation"
    predicate: Scalar

    def __post_init__(self) -> None:
        confine(self.predicate)


@dataclass(frozen=True, slots=True)
class PublicJoin:
    """Each row with the row of a public table that has its key, if there is one.

    Of several public rows with one key the first in the order of the columns read is taken, so a row
    is never multiplied. ``outer``: rows without a match stay, with NULLs; else they go.
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
    """Each row with the one row of its unit in ``other``, which has at most one row a unit."""

    source: "Relation"
    other: "Relation"
    outer: bool = False

    def __post_init__(self) -> None:
        if not is_single(self.other):
            raise ValueError("a join to several rows of a unit")


@dataclass(frozen=True, slots=True)
class Semi:
    """The rows whose unit has a row in ``units``; ``negated``: has none."""

    source: "Relation"
    units: "Relation"
    negated: bool = False


class Summary(Enum):
    """What is computed of the rows of one unit."""

    COUNT = "count"
    COUNT_VALUES = "count values"
    COUNT_DISTINCT = "count distinct"
    SUM = "sum"
    MEAN = "mean"
    MINIMUM = "min"
    MAXIMUM = "max"


# The largest denominator of the number of steps of a mean in one of its value.
MAX_UNDER = 2**30


@dataclass(frozen=True, slots=True)
class Computed:
    """A column of ``PerUnit``: a summary of ``value``, cut to the range of the column's type.

    A mean is rounded to the nearest step of that type, half up; the others keep the steps of the value.
    """

    column: Column
    summary: Summary
    value: Value | None = None

    def __post_init__(self) -> None:
        counts = self.summary in (Summary.COUNT_VALUES, Summary.COUNT_DISTINCT)
        text = self.value is not None and isinstance(self.value.type, Text)
        if (self.value is None) != (self.summary is Summary.COUNT) or (text and not counts):
            raise ValueError(f"{self.summary.value} has no such value")
        if isinstance(self.column.type, Text):
            raise ValueError(f"{self.column.name} is a text")
        if self.summary is Summary.MEAN and not self._is_computable():
            raise ValueError(f"{self.column.name} has steps that 128 bits cannot compute a mean on")

    def _is_computable(self) -> bool:
        """Whether the sum of a unit's rows keeps within 2^119 on the steps of the mean."""
        assert self.value is not None and not isinstance(self.value.type, Text), "asked of a mean"
        size = max(abs(self.value.type.lower_code), abs(self.value.type.upper_code))
        return self.finer.denominator <= MAX_UNDER and self.finer * size <= MAX_CODE

    @property
    def finer(self) -> Fraction:
        """How many codes of a mean are one code of its value."""
        assert self.value is not None and not isinstance(self.value.type, Text), "asked of a mean"
        assert not isinstance(self.column.type, Text), "a plan computes no text"
        return self.value.type.step / self.column.type.step


@dataclass(frozen=True, slots=True)
class PerUnit:
    """One row for each unit that has rows, or for each of its combinations of ``keys``.

    Each key is a column with the value it is computed from.
    """

    source: "Relation"
    keys: tuple[tuple[Column, Value], ...]
    columns: tuple[Computed, ...]

    def __post_init__(self) -> None:
        for column, value in self.keys:
            _require_within(column, value.expression)


@dataclass(frozen=True, slots=True)
class Sort:
    """A sort key of rows; NULL last."""

    expression: Scalar
    descending: bool = False

    def __post_init__(self) -> None:
        confine(self.expression)


@dataclass(frozen=True, slots=True)
class Ranked:
    """The rows with their number, from 1, among the rows of their unit in an order.

    Rows that the order does not tell apart are told apart by ``ties``; rows that agree there
    too are alike in all that the question reads. Numbers beyond the range of ``column`` are its end.
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


@dataclass(frozen=True, slots=True)
class Union:
    """The rows of several relations one after the other, each read as the same columns."""

    sources: tuple["Relation", ...]
    values: tuple[tuple[Scalar, ...], ...]
    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        if not self.sources or len(self.sources) != len(self.values):
            raise ValueError("a union needs the columns of each of its sources")
        for each in self.values:
            for column, expression in zip(self.columns, each, strict=True):
                _require_within(column, expression)


Relation: TypeAlias = Scan | Filter | PublicJoin | UnitJoin | Semi | PerUnit | Ranked | Union


def _require_within(column: Column, expression: Scalar) -> None:
    """A column that takes its values from an expression has all of them in its range."""
    Value(column.name, column.type, expression)


def below(relation: Relation) -> tuple[Relation, ...]:
    """The relations directly below one whose rows belong to units."""
    match relation:
        case Scan():
            return ()
        case UnitJoin(source, other, _):
            return source, other
        case Semi(source, units, _):
            return source, units
        case Union(sources, _, _):
            return sources
        case Filter() | PublicJoin() | PerUnit() | Ranked():
            return (relation.source,)
        case _:
            raise unknown(relation)


def scans(relation: Relation) -> Iterator[Scan]:
    """The private tables that a relation reads, with repeats."""
    if isinstance(relation, Scan):
        yield relation
    for each in below(relation):
        yield from scans(each)


def predicates(relation: Relation) -> list[Scalar]:
    """Every test of a relation, lowest first."""
    found = [test for each in below(relation) for test in predicates(each)]
    return [*found, relation.predicate] if isinstance(relation, Filter) else found


def is_single(relation: Relation) -> bool:
    """Whether a unit has at most one row by construction."""
    match relation:
        case PerUnit(_, keys, _):
            return not keys
        case Filter(Ranked(_, _, _, column), Member(Field(tested), (1,))) if tested == column:
            return True
        case Filter() | PublicJoin() | UnitJoin() | Semi() | Ranked():
            return is_single(relation.source)
        case Scan() | Union():
            return False
        case _:
            raise unknown(relation)


def row_by_row(relation: Relation) -> Scan | None:
    """The table of which each row gives at most one, whatever other rows there are; None: no such table.

    It may be joined to a row of its unit in another table, if any row of the unit would do, and
    chosen by whether its unit has a row among others that are read so.
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
        case UnitJoin() | Semi() | PerUnit() | Ranked() | Union():
            return None
        case _:
            raise unknown(relation)


def _is_any_row(relation: Relation) -> bool:
    """Whether a relation has one row of each unit of a table, and does not say which."""
    match relation:
        case Filter(Ranked(source, (), _, column), Member(Field(tested), (1,))) if tested == column:
            return row_by_row(source) is not None
        case Filter() | PublicJoin():
            return _is_any_row(relation.source)
        case Scan() | UnitJoin() | Semi() | PerUnit() | Ranked() | Union():
            return False
        case _:
            raise unknown(relation)


def first(source: Relation, order: tuple[Sort, ...], ties: tuple[Scalar, ...], name: str) -> Filter:
    """The first row of each unit in an order."""
    column = Column(name, Integer(1, 2))
    return Filter(Ranked(source, order, ties, column), Member(Field(column), (1,)))
