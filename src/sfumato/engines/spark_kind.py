# SPDX-License-Identifier: Apache-2.0
"""The types that emitted SQL has on Spark, and how names and texts are written there."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from fractions import Fraction
from typing import Any, NamedTuple, Protocol, TypeAlias

from sqlglot import exp

from sfumato.metadata.column import Boolean, Category, Date, Integer, Real, Text


class Kind(Enum):
    """The types of the emitted SQL, by their names on Spark."""

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
    LIST = "ARRAY<BIGINT>"


WHOLE = (Kind.INTEGER, Kind.BIGINT, Kind.HUGEINT)
# From the narrowest to the widest.
NUMBERS = (*WHOLE, Kind.DOUBLE)
TRUTHS = (Kind.BOOLEAN, Kind.NULL)


class Typed(NamedTuple):
    """Spark SQL, and the type of its value."""

    sql: str
    kind: Kind


class Writer(Protocol):
    """Writes an expression where it stands; a column is read from what stands in FROM there.

    ``narrow``: no sum of what is not a product leaves 64 bits.
    """

    @property
    def narrow(self) -> bool: ...

    def __call__(self, node: exp.Expr) -> Typed: ...

    def column(self, relation: str, name: str) -> Kind:
        """The type of a column; TypeError if there is none, or more than one."""
        ...


# What writes a node, and the arguments that the node may have.
Rule: TypeAlias = tuple[Callable[[Any, Writer], Typed], str]
Rules: TypeAlias = Mapping[type[exp.Expr], Rule]


def identifier(name: str) -> str:
    """A name.

    >>> identifier("c_e.a`b")
    '`c_e.a``b`'
    """
    return "`" + name.replace("`", "``") + "`"


def literal(value: str) -> str:
    r"""A text: a backslash escapes on Spark, and ``${...}`` would be replaced.

    >>> print(literal("it's ${a}\\"))
    'it\'s \u0024{a}\\'
    """
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return (
        "'"
        + "".join(
            f"\\u{ord(each):04x}" if each < " " or each in "$\x7f" else each for each in escaped
        )
        + "'"
    )


def widened(value: Typed, kind: Kind) -> str:
    """A value as a wider type."""
    return value.sql if value.kind is kind else f"CAST({value.sql} AS {kind.value})"


def common(kinds: Iterable[Kind]) -> Kind:
    """The type that holds them all; of numbers the widest."""
    known = {*kinds} - {Kind.NULL}
    if len(known) <= 1:
        return known.pop() if known else Kind.NULL
    if not known <= {*NUMBERS}:
        raise TypeError("values of several types")
    return max(known, key=NUMBERS.index)


def alike(nodes: Iterable[exp.Expr], write: Writer) -> tuple[list[str], Kind]:
    """Values in the type that holds them all."""
    values = [write(each) for each in nodes]
    kind = common(each.kind for each in values)
    return [widened(each, kind) for each in values], kind


def required(value: Typed, *kinds: Kind) -> str:
    """A value of one of the types."""
    if value.kind not in kinds:
        raise TypeError(f"{value.kind.name} where {', '.join(each.name for each in kinds)} stands")
    return value.sql


def largest_code(node: object) -> int:
    """The largest code of a plan."""
    match node:
        case tuple():
            return max(map(largest_code, node), default=0)
        case Integer() | Real() | Date() | Category() | Boolean():
            return max(abs(node.lower_code), abs(node.upper_code))
        case _ if is_dataclass(node) and not isinstance(node, type):
            return largest_code(tuple(getattr(node, each.name) for each in fields(node)))
        case Text() | int() | str() | Fraction() | Enum() | None:
            return 0
    raise TypeError(f"{type(node).__name__} is not known here")
