# SPDX-License-Identifier: Apache-2.0
"""Typed values of row expressions: an integer code, and the meaning of the code.

Lowering gives every expression one of these types; the plan stores only the code. A constant has
one of the same types, on the lattice of its own digits.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeAlias

from sfumato.errors import InvalidDeclaration, InvalidNumber, UnsupportedSql, unknown
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
from sfumato.metadata.timestamp import Timestamp
from sfumato.plan.evaluate import LAST_DAY, day
from sfumato.plan.scalar import Case, Constant, Field, Lookup, Member, Not, Scalar, children
from sfumato.plan.value import NEGLIGIBLE, Value, is_of_range
from sfumato.plan.value_range import span
from sfumato.sql.lattice import fitted, moved


@dataclass(frozen=True, slots=True)
class Number:
    """A numeric SQL value of a row: an integer code times ``step``.

    ``rounding`` bounds the error of computing it on lattices. ``ratio`` is the exact quotient that
    it was rounded from, if known. ``nearest``: values were rounded to a lattice derived from the
    range (RULES 12), not to a declared one. ``cut``: digits beyond 62 bits were dropped, so the
    relative error may be large.
    """

    expression: Scalar
    step: Fraction
    rounding: Fraction = Fraction(0)
    ratio: "Ratio | None" = None
    nearest: bool = False
    cut: bool = False

    @property
    def is_precise(self) -> bool:
        """Whether rounding changes it by at most a millionth of its range."""
        if not self.rounding:
            return True
        ends = span(self.expression)
        if ends is None:
            return True
        size = (ends[1] - ends[0]) * self.step
        return not self.cut and self.rounding * NEGLIGIBLE <= size


@dataclass(frozen=True, slots=True)
class Ratio:
    """The exact quotient of two SQL numbers; NULL where ``below`` is zero."""

    above: Number
    below: Number


@dataclass(frozen=True, slots=True)
class Day:
    """A SQL date of a row; its integer code is the number of days since 1970-01-01."""

    expression: Scalar


@dataclass(frozen=True, slots=True)
class Instant:
    """A SQL timestamp of a row; its integer code counts ``step`` seconds since 1970 in UTC.

    The zone "": local time that is in no zone, in seconds since 1970 of its own clock.
    """

    expression: Scalar
    step: int
    zone: str


@dataclass(frozen=True, slots=True)
class Interval:
    """A constant SQL INTERVAL of days, months and seconds."""

    days: int
    months: int
    seconds: int = 0


@dataclass(frozen=True, slots=True)
class Label:
    """A SQL string with declared values; its integer code is its position in ``labels``.

    ``stored``: the same values as they are written in the data.
    """

    expression: Scalar
    labels: tuple[str, ...]
    stored: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Truth:
    """A SQL Boolean of a row: its condition, and its code expression (1 or 0) if it has one
    already.
    """

    test: Scalar
    known_codes: Scalar | None = None

    @property
    def codes(self) -> Scalar:
        """The integer code expression: 1 where true, 0 where false, NULL where neither."""
        if self.known_codes is not None:
            return self.known_codes
        is_true = (self.test, Constant(1))
        is_false = (Not(self.test), Constant(0))
        return Case((is_true, is_false), Constant(None))


@dataclass(frozen=True, slots=True)
class Words:
    """A SQL string of a Text column, whose values are not declared."""

    expression: Scalar


@dataclass(frozen=True, slots=True)
class Numbers:
    """A column of lists of numbers (sf.Array), which only tasks on rows can read, not SQL
    functions.
    """

    expression: Field


@dataclass(frozen=True, slots=True)
class Person:
    """A SQL reference to a column that identifies the privacy unit of the row.

    ``reading`` is the value that tests read; None where they cannot. ``absent``: it is NULL where
    an outer join found no row; ``mark``, if there is one, is NULL there too.
    """

    name: str
    reading: "Typed | None"
    absent: bool = False
    mark: Scalar | None = None


@dataclass(frozen=True, slots=True)
class Null:
    """The SQL constant NULL."""


Typed: TypeAlias = (
    Number | Day | Instant | Interval | Label | Truth | Words | Numbers | Person | Null
)

# Only sub-queries that each use the one below twice make an expression this large.
_LARGEST_TREE = 20_000
# Functions of an expression recurse a few calls a level; this leaves stack for the caller.
_DEEPEST_TREE = 120
_LARGEST_NUMBER = 10**300


def number(value: Fraction | int) -> Number:
    """Returns a constant as a SQL number."""
    exact = Fraction(value)
    return Number(Constant(exact.numerator), Fraction(1, exact.denominator))


def text(value: str) -> Label:
    """Returns a constant string as a SQL value."""
    return Label(Constant(0), (value,))


def truth_of(codes: Scalar) -> Truth:
    """Returns the SQL Boolean with a code expression of 1, 0 and NULL."""
    return Truth(Member(codes, (1,)), codes)


def known(typed: Typed) -> Fraction | str | bool | None:
    """Returns the Python value of a constant SQL value (a date as an ISO string).

    None if the value is not constant, or is NULL.
    """
    match typed:
        case Number(Constant(int(code)), step):
            return code * step
        case Day(Constant(int(code))):
            return day(code).isoformat()
        case Label(Constant(int(code)), labels):
            return labels[code]
        case Truth(Constant(bool(value))):
            return value
        case _:
            return None


def read(column: Column) -> Typed:
    """Returns the SQL value of a declared column, typed by its declaration."""
    leaf = Field(column)
    match column.type:
        case Integer() | Real():
            return Number(leaf, column.type.step, nearest=is_of_range(column.type))
        case Date():
            return Day(leaf)
        case Timestamp():
            return Instant(leaf, int(column.type.step), column.type.zone)
        case Category():
            return Label(leaf, column.type.labels, column.type.values)
        case Boolean():
            return truth_of(leaf)
        case Text():
            return Words(leaf)
        case Array():
            return Numbers(leaf)
        case _:
            raise unknown(column.type)


def computed(column: Column, made_of: Typed) -> Typed:
    """Returns the SQL value of a computed column, with the rounding error of its source
    ``made_of``.
    """
    typed = read(column)
    if isinstance(typed, Number) and isinstance(made_of, Number):
        return replace(typed, rounding=made_of.rounding, nearest=made_of.nearest, cut=made_of.cut)
    return typed


def value_of(typed: Typed, name: str) -> Value:
    """Returns a SQL value as the plan's ``Value``, for aggregates and group keys.

    Its type spans the range that the expression can have.
    """
    scalar = code_of(typed)
    if isinstance(scalar, Field) and typed == read(scalar.column):
        # a column of a sub-query or of one of several tables has a made-up name with a dot
        column = scalar.column
        return Value(name if "." in column.name else column.name, column.type, scalar)
    match typed:
        case Number():
            coarse, step = fitted(scalar, typed.step)
            kind = number_type(*_code_range(coarse), step)
            return Value(name, kind, coarse, typed.rounding + moved(typed.step, step))
        case Day():
            return Value(name, _day_type(scalar), scalar)
        case Instant():
            return Value(name, _instant_type(typed), scalar)
        case Label(_, labels):
            return Value(name, category(labels), scalar)
        case Truth():
            return Value(name, Boolean(), scalar)
        case Words():
            return Value(name, Text(), scalar)
        case Numbers() | Person() | Interval() | Null():
            raise TypeError(f"{type(typed).__name__} has no code")
        case _:
            raise unknown(typed)


def code_of(typed: Typed) -> Scalar:
    """Returns the integer code expression of a SQL value; the string itself for a Text column.

    Raises:
        UnsupportedSql: a column that identifies the unit or has lists, an interval, or a literal
            NULL.
    """
    match typed:
        case Truth():
            return typed.codes
        case Number() | Day() | Instant() | Label() | Words():
            return typed.expression
        case Numbers(Field(column)):
            raise UnsupportedSql(
                f"{column.name} is an sf.Array, of which SQL computes nothing.",
                allowed="the column itself, among the rows of a model or of a task of your own",
                remedy="Leave it out, or fit a model to it (sfumato.learning).",
            )
        case Person():
            raise _names_persons(typed)
        case Interval():
            raise UnsupportedSql(
                "An INTERVAL that is not added to a date.", remedy="day + INTERVAL 7 DAY"
            )
        case Null():
            raise UnsupportedSql(
                "NULL where a value is needed.", remedy="Write IS NULL, or leave it out."
            )


def _names_persons(person: Person) -> UnsupportedSql:
    """Returns the refusal to compute with a unit column, with counts to use instead."""
    name = person.name
    if not person.absent:
        return UnsupportedSql(
            f"{name} names single persons, and nothing may be computed from it.",
            allowed=f"COUNT({name}), COUNT(DISTINCT {name}), and tests of {name} against constants",
            remedy="Leave it out, or group by a column that many persons share; "
            "rows that pass a test: COUNT_IF(test); persons with such a row: "
            f"COUNT(DISTINCT {name}), with the test in WHERE.",
        )
    if person.mark is not None:
        remedy = (
            f"COUNT({name}), and {name} IS NULL; persons: COUNT(DISTINCT ...) of the first table's "
            f"unit, WHERE {name} IS NOT NULL."
        )
    elif person.reading is None:
        remedy = (
            "Let the sub-query select COUNT(*) AS n, and write COUNT(n) or n IS NOT NULL instead; "
            "persons: COUNT(DISTINCT ...) of the first table's unit, WHERE n IS NOT NULL."
        )
    else:
        remedy = (
            "Persons: COUNT(DISTINCT ...) of the first table's unit, "
            f"WHERE {name} of this one IS NOT NULL."
        )
    return UnsupportedSql(
        f"{name} is NULL where the outer join finds no row, and names single persons.",
        remedy=remedy,
    )


def category(labels: Sequence[str]) -> Category:
    """Returns the Category type of computed strings."""
    if "" in labels:
        raise UnsupportedSql(
            "A key or value of texts of which one is empty.",
            remedy="Give it a name: CASE WHEN ... THEN 'none' ELSE ... END.",
        )
    return Category(list(labels))


def alike(column: ColumnType, other: Label) -> Scalar | None:
    """Returns the code of the string ``other`` in a Category column; None for another type."""
    if not isinstance(column, Category):
        return None
    return recoded(other, column.labels)


def recoded(typed: Label, labels: tuple[str, ...]) -> Scalar:
    """Returns the integer code of a string in another list of labels; NULL if it is not listed."""
    if typed.labels == labels:
        return typed.expression
    places = {label: place for place, label in enumerate(labels)}
    table = tuple(places.get(label) for label in typed.labels)
    if isinstance(typed.expression, Constant):
        return Constant(table[0])
    if table == tuple(range(len(table))):
        return typed.expression
    return Lookup(typed.expression, 0, table)


def require_small(typed: Typed) -> None:
    """Refuses a SQL value whose expression is too large or too deep, sub-queries included."""
    if isinstance(typed, Interval | Person | Null):
        return
    level = [typed.test if isinstance(typed, Truth) else typed.expression]
    count = depth = 0
    while level:
        count, depth = count + len(level), depth + 1
        if count > _LARGEST_TREE or depth > _DEEPEST_TREE:
            raise UnsupportedSql(
                f"An expression of more than {_LARGEST_TREE:,} parts, or of more than "
                f"{_DEEPEST_TREE} inside one another, sub-queries included.",
                remedy="Ask less at once.",
            )
        level = [child for expression in level for child in children(expression)]


def number_type(low: int, high: int, step: Fraction) -> Integer | Real:
    """Returns the column type of numbers from ``low * step`` to ``high * step``.

    Raises:
        UnsupportedSql: they are too large, or their steps too small, for a float.
    """
    if low == high:
        low, high = min(low, 0), max(high, 0) or int(low == 0)
    try:
        if max(-low, high) * step < _LARGEST_NUMBER:
            if step == 1:
                return Integer(low, high)
            return Real(low * step, high * step, step=step)
    except (InvalidDeclaration, InvalidNumber):
        pass
    raise UnsupportedSql(
        "An expression whose values, or the steps between them, are too large or too small "
        "for a float.",
        remedy="Scale the columns in their declarations, or the expression: amount / 1000.",
    )


def _day_type(scalar: Scalar) -> Date:
    low, high = _code_range(scalar)
    if low == high:
        if high < LAST_DAY:
            high += 1
        else:
            low -= 1
    return Date(day(low), day(high))


def _instant_type(moment: Instant) -> Timestamp:
    low, high = _code_range(moment.expression)
    return Timestamp.of_codes(low, max(high, low + 1), step=moment.step, zone=moment.zone)


def _code_range(scalar: Scalar) -> tuple[int, int]:
    """Returns the least and the greatest code of an expression."""
    ends = span(scalar)
    if ends is None:
        raise UnsupportedSql("An expression that is always NULL.", remedy="Leave it out.")
    return ends
