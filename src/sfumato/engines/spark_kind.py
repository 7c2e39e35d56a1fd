# SPDX-License-Identifier: Apache-2.0
"""The types of the SQL tree on Spark, and how identifiers and strings are written there.

``spark_expression`` and ``spark_function`` share it.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from fractions import Fraction
from typing import Any, NamedTuple, Protocol, TypeAlias

from sfumato.engines.sql_tree import Expression
from sfumato.metadata.column import Boolean, Category, Date, Integer, Real, Text
from sfumato.metadata.timestamp import Timestamp


class Kind(Enum):
    """The types of expressions in Spark SQL; the value of each is its name in Spark."""

    NULL = "VOID"
    INTEGER = "INT"
    BIGINT = "BIGINT"
    HUGEINT = "DECIMAL(38,0)"
    DOUBLE = "DOUBLE"
    DECIMAL = "DECIMAL"
    VARCHAR = "STRING"
    BOOLEAN = "BOOLEAN"
    DATE = "DATE"
    TIMESTAMP = "TIMESTAMP_NTZ"
    INSTANT = "TIMESTAMP_LTZ"
    LIST = "ARRAY<BIGINT>"


WHOLE = (Kind.INTEGER, Kind.BIGINT, Kind.HUGEINT)
# From the narrowest to the widest.
NUMBERS = (*WHOLE, Kind.DOUBLE)
TRUTHS = (Kind.BOOLEAN, Kind.NULL)


class Typed(NamedTuple):
    """The text of an expression in Spark SQL, and the type of its value."""

    sql: str
    kind: Kind


class Writer(Protocol):
    """The interface of a function that prints an expression as Spark SQL, given the columns of a
    FROM clause.

    ``narrow``: no sum, except a sum of products, exceeds 64 bits.
    """

    @property
    def narrow(self) -> bool: ...

    def __call__(self, node: Expression) -> Typed: ...

    def column(self, relation: str, name: str) -> Kind:
        """Returns the type of a column; raises TypeError unless exactly one relation has it."""
        ...


# What prints the nodes of each class.
Rules: TypeAlias = Mapping[type[Expression], Callable[[Any, Writer], Typed]]


def identifier(name: str) -> str:
    """Returns a name as a quoted Spark SQL identifier.

    >>> identifier("c_e.a`b")
    '`c_e.a``b`'
    """
    return "`" + name.replace("`", "``") + "`"


def literal(value: str) -> str:
    r"""Returns a string literal: on Spark a backslash escapes, and ``${...}`` would be replaced.

    >>> print(literal("it's ${a}\\"))
    'it\'s \u0024{a}\\'
    """
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return "'" + "".join(map(_escaped, escaped)) + "'"


def _escaped(letter: str) -> str:
    """Escapes control characters and the dollar sign."""
    if letter < " " or letter in "$\x7f":
        return f"\\u{ord(letter):04x}"
    return letter


def widened(value: Typed, kind: Kind) -> str:
    """Returns the Spark SQL of an expression, cast to a wider type unless it has that type
    already.
    """
    if value.kind is kind:
        return value.sql
    return f"CAST({value.sql} AS {kind.value})"


def common(kinds: Iterable[Kind]) -> Kind:
    """Returns the widest of the given Spark types, to which values of all of them can be cast.

    Raises:
        TypeError: there is none.
    """
    known = {*kinds} - {Kind.NULL}
    if len(known) <= 1:
        if known:
            return known.pop()
        return Kind.NULL
    if not known <= {*NUMBERS}:
        raise TypeError("values of several types")
    return max(known, key=NUMBERS.index)


def alike(nodes: Iterable[Expression], write: Writer) -> tuple[list[str], Kind]:
    """Prints expressions as Spark SQL, cast to their common type; returns their texts and that
    type.
    """
    values = [write(node) for node in nodes]
    kind = common(value.kind for value in values)
    return [widened(value, kind) for value in values], kind


def required(value: Typed, *kinds: Kind) -> str:
    """Returns the Spark SQL of an expression, after checking that its type is one of ``kinds``.

    Raises:
        TypeError: it has another type.
    """
    if value.kind not in kinds:
        allowed = ", ".join(kind.name for kind in kinds)
        raise TypeError(f"{value.kind.name} where {allowed} stands")
    return value.sql


def largest_code(node: object) -> int:
    """Returns the largest absolute value of a code that a column type in a plan allows."""
    match node:
        case tuple():
            return max(map(largest_code, node), default=0)
        case Integer() | Real() | Date() | Timestamp() | Category() | Boolean():
            return max(abs(node.lower_code), abs(node.upper_code))
        case _ if is_dataclass(node) and not isinstance(node, type):
            return largest_code(tuple(getattr(node, field.name) for field in fields(node)))
        case Text() | int() | str() | Fraction() | Enum() | None:
            return 0
    raise TypeError(f"{type(node).__name__} is not known here")
