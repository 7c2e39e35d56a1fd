# SPDX-License-Identifier: Apache-2.0
"""What an expression of a row is: its code, and what the code means.

Lowering gives every expression one of these kinds; the plan keeps the code alone. A
constant is of the same kinds, on the lattice that its own digits make.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeAlias

from sfumato.errors import InvalidDeclaration, InvalidNumber, UnsupportedSql, unknown
from sfumato.metadata.column import (
    Boolean,
    Category,
    Column,
    ColumnType,
    Date,
    Integer,
    Real,
    Text,
)
from sfumato.plan.evaluate import LAST_DAY, day
from sfumato.plan.scalar import Case, Constant, Field, Lookup, Member, Not, Scalar, children
from sfumato.plan.value import NEGLIGIBLE, Value, is_of_range
from sfumato.plan.value_range import span
from sfumato.sql.lattice import fitted, moved


@dataclass(frozen=True, slots=True)
class Number:
    """A number: its code times ``step``.

    ``rounding``: by how much computing it on lattices may have moved it. ``ratio``: what it is
    the quotient of, where that is known; its own code is rounded. ``nearest``: what was read is the
    nearest point of a lattice that nobody declared (RULES 12), not the number that was in the data.
    ``cut``: digits were dropped because 62 bits do not hold them, so that it may differ by much
    more than a part of what it usually is.
    """

    expression: Scalar
    step: Fraction
    rounding: Fraction = Fraction(0)
    ratio: "Ratio | None" = None
    nearest: bool = False
    cut: bool = False

    @property
    def is_precise(self) -> bool:
        """Whether rounding moves it by no more than a millionth of its range."""
        found = span(self.expression) if self.rounding else None
        if found is None:
            return True
        return not self.cut and self.rounding * NEGLIGIBLE <= (found[1] - found[0]) * self.step


@dataclass(frozen=True, slots=True)
class Ratio:
    """A quotient, exact where its parts are; NULL where ``below`` is zero."""

    above: Number
    below: Number


@dataclass(frozen=True, slots=True)
class Day:
    """A day: its code counts from 1970-01-01."""

    expression: Scalar


@dataclass(frozen=True, slots=True)
class Interval:
    """A length of time, for days; always a constant."""

    days: int
    months: int


@dataclass(frozen=True, slots=True)
class Label:
    """One of declared texts: its code is the place in ``labels``; ``stored``: what the data calls them."""

    expression: Scalar
    labels: tuple[str, ...]
    stored: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Truth:
    """True or false; ``codes`` is the same as 1 or 0, where it has been computed."""

    test: Scalar
    known_codes: Scalar | None = None

    @property
    def codes(self) -> Scalar:
        """1 where true, 0 where false, NULL where neither."""
        if self.known_codes is not None:
            return self.known_codes
        return Case(((self.test, Constant(1)), (Not(self.test), Constant(0))), Constant(None))


@dataclass(frozen=True, slots=True)
class Words:
    """A text whose values nobody declared."""

    expression: Scalar


@dataclass(frozen=True, slots=True)
class Person:
    """What names the unit of the row; ``reading``: how tests see it, None where they cannot.

    ``absent``: of a table that an outer join may find no row of.
    """

    name: str
    reading: "Typed | None"
    absent: bool = False


@dataclass(frozen=True, slots=True)
class Null:
    """The constant NULL."""


Typed: TypeAlias = Number | Day | Interval | Label | Truth | Words | Person | Null

# A tree this large is a loop of sub-queries that each use the one below twice.
_LARGEST_TREE = 20_000
# What reads a tree recurses a few calls a level; this leaves the caller room.
_DEEPEST_TREE = 120
_LARGEST_NUMBER = 10**300


def number(value: Fraction | int) -> Number:
    """A constant number, on its own lattice."""
    exact = Fraction(value)
    return Number(Constant(exact.numerator), Fraction(1, exact.denominator))


def text(value: str) -> Label:
    """A constant text."""
    return Label(Constant(0), (value,))


def truth_of(codes: Scalar) -> Truth:
    """A truth whose codes are known."""
    return Truth(Member(codes, (1,)), codes)


def known(typed: Typed) -> Fraction | str | bool | None:
    """The constant that an expression is, None if it is none (or NULL); days are ISO texts."""
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
    """The value of a declared column."""
    leaf = Field(column)
    match column.type:
        case Integer() | Real():
            return Number(leaf, column.type.step, nearest=is_of_range(column.type))
        case Date():
            return Day(leaf)
        case Category():
            return Label(leaf, column.type.labels, column.type.values)
        case Boolean():
            return truth_of(leaf)
        case Text():
            return Words(leaf)
        case _:
            raise unknown(column.type)


def computed(column: Column, made_of: Typed) -> Typed:
    """The value of a computed column, rounded as what it is made of."""
    typed = read(column)
    if isinstance(typed, Number) and isinstance(made_of, Number):
        return replace(typed, rounding=made_of.rounding, nearest=made_of.nearest, cut=made_of.cut)
    return typed


def value_of(typed: Typed, name: str) -> Value:
    """The value that an aggregate or a key reads, with the type of its range."""
    scalar = code_of(typed)
    if isinstance(scalar, Field) and typed == read(scalar.column):
        # a column of a sub-query, or of one of several tables, is known by the name that the question gives it
        return Value(
            name if "." in scalar.column.name else scalar.column.name, scalar.column.type, scalar
        )
    match typed:
        case Number():
            coarse, step = fitted(scalar, typed.step)
            rounding = typed.rounding + moved(typed.step, step)
            return Value(name, number_type(*_range(coarse), step), coarse, rounding)
        case Day():
            return Value(name, _day_type(scalar), scalar)
        case Label(_, labels):
            return Value(name, category(labels), scalar)
        case Truth():
            return Value(name, Boolean(), scalar)
        case Words():
            return Value(name, Text(), scalar)
        case Person() | Interval() | Null():
            raise TypeError(f"{type(typed).__name__} has no code")
        case _:
            raise unknown(typed)


def code_of(typed: Typed) -> Scalar:
    """The code of a value (the text of a Text column)."""
    match typed:
        case Truth():
            return typed.codes
        case Number() | Day() | Label() | Words():
            return typed.expression
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
    """The refusal of a unit where a value is needed, with what counts the same rows."""
    name = person.name
    if not person.absent:
        return UnsupportedSql(
            f"{name} names single persons, and nothing may be computed from it.",
            allowed=f"COUNT({name}), COUNT(DISTINCT {name}), and tests of {name} against constants",
            remedy="Leave it out, or group by a column that many persons share; rows that pass a test: COUNT_IF(test).",
        )
    if person.reading is None:
        remedy = (
            "Let the sub-query select COUNT(*) AS n, and write COUNT(n) or n IS NOT NULL instead; "
            "persons: COUNT(DISTINCT ...) of the first table's unit, WHERE n IS NOT NULL."
        )
    else:
        remedy = f"Persons: COUNT(DISTINCT ...) of the first table's unit, WHERE {name} of this one IS NOT NULL."
    return UnsupportedSql(
        f"{name} is NULL where the outer join finds no row, and names single persons.",
        remedy=remedy,
    )


def category(labels: Sequence[str]) -> Category:
    """The type of computed texts."""
    if "" in labels:
        raise UnsupportedSql(
            "A key or value of texts of which one is empty.",
            remedy="Give it a name: CASE WHEN ... THEN 'none' ELSE ... END.",
        )
    return Category(list(labels))


def alike(column: ColumnType, other: Label) -> Scalar | None:
    """The code that ``other`` has among the values of a Category; None if none of them can be it."""
    if not isinstance(column, Category):
        return None
    return recoded(other, column.labels)


def recoded(typed: Label, labels: tuple[str, ...]) -> Scalar:
    """The code of a label among other labels; NULL where it is none of them."""
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
    """Refuses an expression that sub-queries have multiplied."""
    if isinstance(typed, Interval | Person | Null):
        return
    level = [typed.test if isinstance(typed, Truth) else typed.expression]
    count = depth = 0
    while level:
        count, depth = count + len(level), depth + 1
        if count > _LARGEST_TREE or depth > _DEEPEST_TREE:
            raise UnsupportedSql(
                f"An expression of more than {_LARGEST_TREE:,} parts, or of more than {_DEEPEST_TREE} inside one another, "
                "sub-queries included.",
                remedy="Ask less at once.",
            )
        level = [inner for each in level for inner in children(each)]


def number_type(low: int, high: int, step: Fraction) -> Integer | Real:
    """The type of computed numbers."""
    if low == high:
        low, high = min(low, 0), max(high, 0) or int(low == 0)
    try:
        if max(-low, high) * step < _LARGEST_NUMBER:
            return Integer(low, high) if step == 1 else Real(low * step, high * step, step=step)
    except (InvalidDeclaration, InvalidNumber):
        pass
    raise UnsupportedSql(
        "An expression whose values, or the steps between them, are too large or too small for a float.",
        remedy="Scale the columns in their declarations, or the expression: amount / 1000.",
    )


def _day_type(scalar: Scalar) -> Date:
    low, high = _range(scalar)
    if low == high:
        low, high = (low, high + 1) if high < LAST_DAY else (low - 1, high)
    return Date(day(low), day(high))


def _range(scalar: Scalar) -> tuple[int, int]:
    found = span(scalar)
    if found is None:
        raise UnsupportedSql("An expression that is always NULL.", remedy="Leave it out.")
    return found
