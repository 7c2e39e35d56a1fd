# SPDX-License-Identifier: Apache-2.0
"""Prints the expressions of the SQL tree as Spark SQL. Proof: spark_expression.proof.md.

``spark_printer`` calls it for each SELECT. A node of an unlisted class, or an operand of an
unlisted type, raises TypeError. Every expression has a type, so there is no implicit cast: HUGEINT
is DECIMAL(38,0), ``//`` truncates exactly, and nothing that may raise at run time is written.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from sfumato.engines import sql_tree as sql
from sfumato.engines.spark_function import CALLS, FUNCTIONS
from sfumato.engines.spark_kind import (
    NUMBERS,
    TRUTHS,
    WHOLE,
    Kind,
    Rules,
    Typed,
    Writer,
    alike,
    common,
    identifier,
    literal,
    required,
    widened,
)

Columns: TypeAlias = Mapping[str, Kind]

# Only SQL up to this length is written twice, so the output is linear in the size of the input.
_SHORT_TEXT = 500
# The types that Spark has, too.
_NAMED = {
    sql.SqlType.INTEGER: Kind.INTEGER,
    sql.SqlType.BIGINT: Kind.BIGINT,
    sql.SqlType.HUGEINT: Kind.HUGEINT,
    sql.SqlType.DOUBLE: Kind.DOUBLE,
    sql.SqlType.VARCHAR: Kind.VARCHAR,
    sql.SqlType.BOOLEAN: Kind.BOOLEAN,
    sql.SqlType.DATE: Kind.DATE,
    sql.SqlType.TIMESTAMP: Kind.TIMESTAMP,
    sql.SqlType.TIMESTAMPTZ: Kind.INSTANT,
}
# The types from which each type may be cast: these casts agree on both engines for every value.
_CASTS = {
    Kind.INTEGER: {Kind.BIGINT},
    Kind.BIGINT: {Kind.NULL, *WHOLE},
    Kind.HUGEINT: {*WHOLE},
    Kind.DOUBLE: {Kind.NULL, *NUMBERS, Kind.DECIMAL, Kind.BOOLEAN, Kind.VARCHAR},
    Kind.VARCHAR: {
        Kind.NULL,
        *WHOLE,
        Kind.DECIMAL,
        Kind.VARCHAR,
        Kind.BOOLEAN,
        Kind.DATE,
        Kind.TIMESTAMP,
    },
    Kind.BOOLEAN: {Kind.NULL},
    Kind.DATE: {Kind.NULL, Kind.VARCHAR, Kind.DATE, Kind.TIMESTAMP, Kind.INSTANT},
    Kind.TIMESTAMP: {Kind.NULL, Kind.TIMESTAMP},
    Kind.INSTANT: {Kind.INSTANT},
}
_ARITHMETIC = ("+", "-", "*", "%")
_COMPARISONS = {
    "=": "=",
    "<>": "<>",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
    "IS NOT DISTINCT FROM": "<=>",
}


@dataclass(frozen=True, slots=True)
class Scope:
    """A printer of SQL expressions as Spark SQL, which knows the types of the columns in its FROM
    clause.
    """

    relations: Mapping[str, Columns]
    narrow: bool
    _written: dict[int, Typed] = field(
        default_factory=dict,
        repr=False,
        compare=False,
    )

    def __call__(self, node: sql.Expression) -> Typed:
        """Prints an expression.

        Guarantees:
            what is not listed has no meaning on spark

        Raises:
            TypeError: a node or a type that is not listed.
        """
        if id(node) not in self._written:
            # operands first: an expression may be deeper than Python's stack
            for part in reversed([*sql.inside(node)]):
                if id(part) not in self._written and type(part) in _RULES:
                    self._written[id(part)] = self._write(part)
            if id(node) not in self._written:
                self._written[id(node)] = self._write(node)
        return self._written[id(node)]

    def _write(self, node: sql.Expression) -> Typed:
        rule = _RULES.get(type(node))
        if rule is None:
            raise TypeError(f"{type(node).__name__} has no meaning on Spark")
        return rule(node, self)

    def column(self, relation: str, name: str) -> Kind:
        """Returns the Spark type of a column; raises TypeError unless exactly one relation in scope
        has it.
        """
        inside = [self.relations.get(relation, {})] if relation else self.relations.values()
        kinds = [columns[name] for columns in inside if name in columns]
        if len(kinds) != 1:
            raise TypeError(f"{len(kinds)} columns of one name")
        return kinds[0]


# --- leaves and casts ----------------------------------------------------------------------


def _constant(node: sql.Constant, _: Writer) -> Typed:
    match node.value:
        case None:
            return Typed("NULL", Kind.NULL)
        case bool():
            return Typed("TRUE" if node.value else "FALSE", Kind.BOOLEAN)
        case str():
            return Typed(literal(node.value), Kind.VARCHAR)
        case _ if node.value < 0:
            value = _magnitude(-node.value)
            return Typed(f"(-{value.sql})", value.kind)
        case _:
            return _magnitude(node.value)


def _magnitude(value: int | float) -> Typed:
    """Prints a number that is not negative."""
    if isinstance(value, float):
        return Typed(f"CAST({literal(repr(value))} AS DOUBLE)", Kind.DOUBLE)
    if value < 2**63:
        return Typed(f"{value}L", Kind.BIGINT)
    return Typed(f"{value}BD", Kind.HUGEINT)


def _day(node: sql.Day, _: Writer) -> Typed:
    return Typed(f"CAST({literal(node.value)} AS DATE)", Kind.DATE)


def _column(node: sql.Column, write: Writer) -> Typed:
    relation = f"{identifier(node.table)}." if node.table else ""
    return Typed(f"{relation}{identifier(node.name)}", write.column(node.table, node.name))


def _paren(node: sql.Paren, write: Writer) -> Typed:
    return write(node.value)


def _cast(node: sql.Cast | sql.Typed, write: Writer) -> Typed:
    """Prints a cast that cannot fail."""
    kind = _NAMED.get(node.type)
    value = write(node.value)
    if kind is None or value.kind not in _CASTS[kind]:
        raise _no_cast(node, value)
    if value.kind is kind:
        return value
    if value.kind is Kind.VARCHAR and not isinstance(node.value, sql.Constant):
        raise TypeError("a cast that may fail")
    return Typed(f"CAST({value.sql} AS {kind.value})", kind)


def _try_cast(node: sql.TryCast, write: Writer) -> Typed:
    kind = _NAMED.get(node.type)
    value = write(node.value)
    is_exact = value.kind is Kind.DOUBLE and _is_floor(node.value)
    is_known = is_exact and kind in (Kind.BIGINT, Kind.HUGEINT)
    if kind is None or not (is_known or value.kind in _CASTS[kind]):
        raise _no_cast(node, value)
    if value.kind is kind:
        return value
    return Typed(f"try_cast({value.sql} AS {kind.value})", kind)


def _no_cast(node: sql.Cast | sql.Typed | sql.TryCast, value: Typed) -> TypeError:
    return TypeError(f"a cast of {value.kind.name} to {node.type.value}")


def _is_floor(node: sql.Expression) -> bool:
    """Whether a double is known to have no fraction.

    A cast of any other double to an integer rounds on DuckDB and truncates on Spark.
    """
    return isinstance(node, sql.Call) and node.name == "floor"


def _round_half_even(node: sql.RoundHalfEven, write: Writer) -> Typed:
    """Prints the addition that leaves no fraction, and the cast that is exact then."""
    value = required(write(node.value), Kind.DOUBLE)
    rounder = "CAST('6755399441055744.0' AS DOUBLE)"
    return Typed(f"try_cast((({value} + {rounder}) - {rounder}) AS BIGINT)", Kind.BIGINT)


# --- arithmetic ----------------------------------------------------------------------------


def _binary(node: sql.Binary, write: Writer) -> Typed:
    if node.sign in _ARITHMETIC:
        return _arithmetic(node, write)
    if node.sign in _COMPARISONS:
        (left, right), _ = alike((node.left, node.right), write)
        return Typed(f"({left} {_COMPARISONS[node.sign]} {right})", Kind.BOOLEAN)
    rule = _OPERATORS.get(node.sign)
    if rule is None:
        raise TypeError(f"{node.sign} has no meaning on Spark")
    return rule(node, write)


def _arithmetic(node: sql.Binary, write: Writer) -> Typed:
    left = write(node.left)
    right = write(node.right)
    kind = common((left.kind, right.kind, Kind.BIGINT))
    if kind is Kind.DOUBLE and node.sign == "%":
        raise TypeError("a remainder of doubles")
    return Typed(f"({widened(left, kind)} {node.sign} {widened(right, kind)})", kind)


def _bits(node: sql.Binary, write: Writer) -> Typed:
    left = required(write(node.left), Kind.BIGINT)
    right = required(write(node.right), Kind.BIGINT)
    return Typed(f"({left} & {right})", Kind.BIGINT)


def _shifted(node: sql.Binary, write: Writer) -> Typed:
    """Prints a shift by less than 64 bits; it is arithmetic on both engines."""
    places = node.right.value if isinstance(node.right, sql.Constant) else None
    if not isinstance(places, int) or not 0 <= places < 64:
        raise TypeError("a shift by no constant")
    value = required(write(node.left), Kind.BIGINT)
    return Typed(f"shiftright({value}, {places})", Kind.BIGINT)


def _divide(node: sql.Binary, write: Writer) -> Typed:
    left = required(write(node.left), Kind.DOUBLE)
    right = required(write(node.right), Kind.DOUBLE)
    return Typed(f"({left} / {right})", Kind.DOUBLE)


def _truncated(node: sql.Binary, write: Writer) -> Typed:
    """Prints ``//``; of decimals, the remainder is subtracted first, so division is exact."""
    (left, right), kind = alike((node.left, node.right), write)
    if kind is Kind.BIGINT:
        return Typed(f"({left} div {right})", kind)
    required(Typed("", kind), Kind.HUGEINT)
    if len(left) <= _SHORT_TEXT:
        return Typed(f"CAST(({left} - {left} % {right}) / {right} AS {kind.value})", kind)
    quotient = f"CAST((a - a % {right}) / {right} AS {kind.value})"
    return Typed(f"get(transform(array({left}), a -> {quotient}), 0)", kind)


_OPERATORS = {"/": _divide, "//": _truncated, "&": _bits, ">>": _shifted}


# --- tests and choices ---------------------------------------------------------------------


def _between(node: sql.Between, write: Writer) -> Typed:
    (value, low, high), _ = alike((node.value, node.low, node.high), write)
    return Typed(f"({value} BETWEEN {low} AND {high})", Kind.BOOLEAN)


def _member(node: sql.In, write: Writer) -> Typed:
    (value, *values), _ = alike((node.value, *node.options), write)
    return _negated(f"({value} IN ({', '.join(values)}))", negated=node.negated)


def _is_null(node: sql.IsNull, write: Writer) -> Typed:
    return _negated(f"({write(node.value).sql} IS NULL)", negated=node.negated)


def _negated(test: str, *, negated: bool) -> Typed:
    return Typed(f"(NOT {test})" if negated else test, Kind.BOOLEAN)


def _connect(node: sql.Logic, write: Writer) -> Typed:
    sides = [required(write(side), *TRUTHS) for side in node.operands]
    return Typed(f"({f' {node.word} '.join(sides)})", Kind.BOOLEAN)


def _not(node: sql.Not, write: Writer) -> Typed:
    return Typed(f"(NOT {required(write(node.operand), *TRUTHS)})", Kind.BOOLEAN)


def _case(node: sql.Case, write: Writer) -> Typed:
    results = [result for _, result in node.branches]
    results.append(node.otherwise or sql.NULL)
    (*values, otherwise), kind = alike(results, write)
    written = []
    for (test, _), value in zip(node.branches, values, strict=True):
        written.append(f"WHEN {required(write(test), *TRUTHS)} THEN {value}")
    return Typed(f"(CASE {' '.join(written)} ELSE {otherwise} END)", kind)


def _call(node: sql.Call, write: Writer) -> Typed:
    rule = CALLS.get(node.name)
    if rule is None:
        raise TypeError(f"{node.name} has no meaning on Spark")
    return rule(node, write)


_RULES: Rules = {
    sql.Constant: _constant,
    sql.Day: _day,
    sql.Column: _column,
    sql.Paren: _paren,
    sql.Cast: _cast,
    sql.Typed: _cast,
    sql.TryCast: _try_cast,
    sql.RoundHalfEven: _round_half_even,
    sql.Binary: _binary,
    sql.Between: _between,
    sql.In: _member,
    sql.IsNull: _is_null,
    sql.Logic: _connect,
    sql.Not: _not,
    sql.Case: _case,
    sql.Call: _call,
    **FUNCTIONS,
}
