# SPDX-License-Identifier: Apache-2.0
"""Expressions of the SQL tree: nodes whose value is one cell.

Emitters build them; ``duckdb_printer`` and ``spark_expression`` print them.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias


class SqlType(Enum):
    """A type that a value is cast to; the value is its name in DuckDB."""

    TINYINT = "TINYINT"
    SMALLINT = "SMALLINT"
    INTEGER = "INTEGER"
    BIGINT = "BIGINT"
    HUGEINT = "HUGEINT"
    UTINYINT = "UTINYINT"
    USMALLINT = "USMALLINT"
    DOUBLE = "DOUBLE"
    VARCHAR = "VARCHAR"
    BOOLEAN = "BOOLEAN"
    DATE = "DATE"
    TIMESTAMP = "TIMESTAMP"
    TIMESTAMPTZ = "TIMESTAMPTZ"


class Expression:
    """The base class of nodes of the SQL tree that have a value for each row, or for each group if
    they aggregate.

    Python's operators build the corresponding SQL operators, and an integer operand becomes a
    constant. They add no parentheses: an operand that binds less tightly must be wrapped in
    ``Paren``.

    >>> Column("n") * 3 <= 10
    Binary(sign='<=', left=Binary(sign='*', left=..., right=...), right=Constant(value=10))
    """

    __slots__ = ()

    def __add__(self, other: "Operand") -> "Binary":
        return Binary("+", self, operand(other))

    def __sub__(self, other: "Operand") -> "Binary":
        return Binary("-", self, operand(other))

    def __mul__(self, other: "Operand") -> "Binary":
        return Binary("*", self, operand(other))

    def __truediv__(self, other: "Operand") -> "Binary":
        return Binary("/", self, operand(other))

    def __floordiv__(self, other: "Operand") -> "Binary":
        return Binary("//", self, operand(other))

    def __mod__(self, other: "Operand") -> "Binary":
        return Binary("%", self, operand(other))

    def __and__(self, other: "Operand") -> "Binary":
        return Binary("&", self, operand(other))

    def __rshift__(self, other: "Operand") -> "Binary":
        return Binary(">>", self, operand(other))

    def __lt__(self, other: "Operand") -> "Binary":
        return Binary("<", self, operand(other))

    def __le__(self, other: "Operand") -> "Binary":
        return Binary("<=", self, operand(other))

    def __gt__(self, other: "Operand") -> "Binary":
        return Binary(">", self, operand(other))

    def __ge__(self, other: "Operand") -> "Binary":
        return Binary(">=", self, operand(other))

    def equals(self, other: "Operand") -> "Binary":
        """Returns the comparison ``=``; Python's ``==`` compares the nodes themselves."""
        return Binary("=", self, operand(other))

    def same(self, other: "Expression") -> "Binary":
        """Returns the comparison IS NOT DISTINCT FROM, for which NULL equals NULL."""
        return Binary("IS NOT DISTINCT FROM", self, other)

    def named(self, name: "Column | str") -> "As":
        """Returns a SELECT item ``... AS name``."""
        return As(self, Column(name) if isinstance(name, str) else name)

    @property
    def is_null(self) -> "IsNull":
        """Returns the test IS NULL."""
        return IsNull(self)

    @property
    def is_present(self) -> "IsNull":
        """Returns the test IS NOT NULL."""
        return IsNull(self, negated=True)


# --- leaves --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Column(Expression):
    """A column by its name, and by its table if several tables are in scope.

    ``quoted``: the name comes from a declaration and may contain any character; other names are
    chosen by the emitters.
    """

    name: str
    table: str = ""
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class Star(Expression):
    """All columns of a table, or of all tables in scope, except those in ``without``."""

    table: str = ""
    without: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Constant(Expression):
    """An integer, a number with a fraction, a string, TRUE, FALSE or NULL."""

    value: int | float | str | bool | None


@dataclass(frozen=True, slots=True)
class Day(Expression):
    """A date, as YYYY-MM-DD."""

    value: str


# --- values --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Paren(Expression):
    """An expression in parentheses."""

    value: Expression


@dataclass(frozen=True, slots=True)
class Cast(Expression):
    """A cast that cannot fail."""

    value: Expression
    type: SqlType


@dataclass(frozen=True, slots=True)
class Typed(Expression):
    """A cast that cannot fail, printed as ``1::BIGINT``."""

    value: Expression
    type: SqlType


@dataclass(frozen=True, slots=True)
class TryCast(Expression):
    """A cast that returns NULL where it fails."""

    value: Expression
    type: SqlType


@dataclass(frozen=True, slots=True)
class Binary(Expression):
    """Arithmetic or a comparison; a chain of one operator binds from the left.

    ``sign``: ``+ - * / // % & >> = <> < <= > >=`` or ``IS NOT DISTINCT FROM``. ``//`` truncates.
    """

    sign: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Concat(Expression):
    """The concatenation of strings."""

    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Logic(Expression):
    """The conjunction (``AND``) or disjunction (``OR``) of two or more tests."""

    word: str
    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Not(Expression):
    """The negation of a test."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class IsNull(Expression):
    """The test IS NULL; with ``negated``, IS NOT NULL."""

    value: Expression
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Between(Expression):
    """The test whether a value is in a closed range."""

    value: Expression
    low: Expression
    high: Expression


@dataclass(frozen=True, slots=True)
class In(Expression):
    """The test whether a value is in a list; with ``negated``, whether it is not."""

    value: Expression
    options: tuple[Expression, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Like(Expression):
    """The test whether a string matches a pattern of ``%`` and ``_``."""

    value: Expression
    pattern: str


@dataclass(frozen=True, slots=True)
class Case(Expression):
    """The result of the first branch (test, result) whose test is TRUE, else ``otherwise``."""

    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression | None = None


@dataclass(frozen=True, slots=True)
class Call(Expression):
    """A function call, by the function's name in DuckDB."""

    name: str
    operands: tuple[Expression, ...]


# --- idioms: several words in one dialect, other words in another ----------------------------


@dataclass(frozen=True, slots=True)
class Opaque(Expression):
    """An operand's value, wrapped in TRY so that DuckDB's optimizer does not know its range.

    DuckDB replaces a test that holds for every value in a column's statistics by IS NOT NULL of the
    column, which is wrong where a CASE maps a value to NULL. It has no statistics of a TRY.
    """

    value: Expression


@dataclass(frozen=True, slots=True)
class CodePoints(Expression):
    """A stored string, cast so that it is compared by code points.

    A column of a DuckDB file may have a collation, by which several strings are equal; a cast to
    VARCHAR keeps it.
    """

    value: Expression


@dataclass(frozen=True, slots=True)
class RoundHalfEven(Expression):
    """The nearest BIGINT to a double of magnitude below 2^51; ties are rounded to even.

    An addition of 1.5 * 2^52 gives a double between 2^52 and 2^53, which has no fraction, so the
    addition rounds.
    """

    value: Expression


@dataclass(frozen=True, slots=True)
class HexNumber(Expression):
    """The BIGINT value of ``length`` hexadecimal digits of a string, from position ``start`` on."""

    digits: Expression
    start: int
    length: int


@dataclass(frozen=True, slots=True)
class WholeNumber(Expression):
    """The BIGINT value of a string in canonical integer form; NULL for any other string."""

    text: Expression


@dataclass(frozen=True, slots=True)
class DateOfCode(Expression):
    """The date that is a number of days after 1970-01-01."""

    days: Expression


@dataclass(frozen=True, slots=True)
class NonZero(Expression):
    """The value of an integer, NULL if it is zero; the operand is written once."""

    value: Expression


@dataclass(frozen=True, slots=True)
class ListOf(Expression):
    """A list literal of integers; ``type`` is the type of its elements, if stated."""

    values: tuple[Expression, ...]
    type: SqlType | None = None


@dataclass(frozen=True, slots=True)
class Element(Expression):
    """The list element at an index, counted from 1; NULL if there is none."""

    list: Expression
    index: Expression


@dataclass(frozen=True, slots=True)
class Each(Expression):
    """The list comprehension ``[value for name in list]``."""

    list: Expression
    name: str
    value: Expression


@dataclass(frozen=True, slots=True)
class FirstOf(Expression):
    """The least, or the greatest, of several integers; NULL if one of them is NULL."""

    values: tuple[Expression, ...]
    greatest: bool


# --- aggregates and windows ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Aggregate(Expression):
    """An aggregate or window function, by its name in DuckDB.

    ``where``: only rows that pass this test are aggregated. ``distinct``: equal values count once.
    """

    name: str
    operands: tuple[Expression, ...] = ()
    where: Expression | None = None
    distinct: bool = False


@dataclass(frozen=True, slots=True)
class Ordered(Expression):
    """An item of ORDER BY; without ``direction`` ascending, without ``nulls`` NULL is last."""

    value: Expression
    direction: str = ""
    nulls: str = ""


@dataclass(frozen=True, slots=True)
class Window(Expression):
    """An aggregate over the rows of a partition, or up to a row in the order of its partition."""

    function: Aggregate
    partition: tuple[Expression, ...]
    order: tuple[Expression, ...] = ()


# --- items and helpers ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class As(Expression):
    """An item of SELECT with a name."""

    value: Expression
    name: Column


Operand: TypeAlias = Expression | int

NULL = Constant(None)
TRUE = Constant(value=True)
FALSE = Constant(value=False)


def columns(names: Iterable[str], table: str = "") -> tuple[Column, ...]:
    """Returns column references for names that sfumato chose, so that they need no quotes.

    >>> columns(["unit", "k0"])
    (Column(name='unit', table='', quoted=False), Column(name='k0', table='', quoted=False))
    """
    return tuple(Column(name, table) for name in names)


def number(value: int) -> Typed:
    """Returns an integer constant of type BIGINT."""
    return Typed(Constant(value), SqlType.BIGINT)


def operand(value: Operand) -> Expression:
    """Returns an expression unchanged, and an integer as a constant expression."""
    if isinstance(value, Expression):
        return value
    return Constant(value)


def call(name: str, *operands: Operand) -> Call:
    """Returns a call of a function.

    >>> call("least", Column("n"), 3)
    Call(name='least', operands=(Column(...), Constant(value=3)))
    """
    return Call(name, tuple(map(operand, operands)))


def aggregate(name: str, *operands: Expression) -> Aggregate:
    """Returns a call of an aggregate function; without operands it is that of rows: ``count(*)``."""
    return Aggregate(name, operands or (Star(),))


def conjunction(tests: Iterable[Expression]) -> Expression | None:
    """Joins conditions with AND; returns a single condition unchanged, and None for no condition."""
    return _joined("AND", tuple(tests))


def disjunction(tests: Iterable[Expression]) -> Expression | None:
    """Joins conditions with OR; returns a single condition unchanged, and None for no condition."""
    return _joined("OR", tuple(tests))


def _joined(word: str, operands: tuple[Expression, ...]) -> Expression | None:
    if len(operands) > 1:
        return Logic(word, operands)
    if operands:
        return operands[0]
    return None


def inside(node: Expression) -> Iterator[Expression]:
    """Yields an expression and all expressions below it, parents before their operands."""
    waiting = [node]
    while waiting:
        part = waiting.pop()
        yield part
        names: tuple[str, ...] = part.__slots__
        for name in names:
            waiting += _expressions(getattr(part, name))


def _expressions(value: object) -> list[Expression]:
    """Returns the expressions in a field of a node."""
    if isinstance(value, Expression):
        return [value]
    if not isinstance(value, tuple):
        return []
    operands = []
    for part in value:
        operands += _expressions(part)
    return operands
