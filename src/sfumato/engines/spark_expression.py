# SPDX-License-Identifier: Apache-2.0
"""Translates expressions of the emitted SQL to Spark SQL. Proof: spark_expression.proof.md.

A node, an argument of a node, a cast or a pattern that is not listed raises TypeError. Every
expression has a type, so there is no implicit cast: HUGEINT is DECIMAL(38,0), ``//`` truncates
exactly, and nothing that may raise at run time is written. The input is SQL that ``emit`` wrote,
never an analyst's.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from sqlglot import exp

from sfumato.engines.spark_function import FUNCTIONS
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
    present,
    required,
    widened,
)
from sfumato.engines.value_codes import WHOLE_PATTERN

Columns: TypeAlias = Mapping[str, Kind]

# Only SQL up to this length is written twice, so the output is linear in the size of the input.
_SHORT_TEXT = 500
# A number of this many hexadecimal digits is below 2^60.
_MOST_DIGITS = 15
_TYPE = exp.DataType.Type
_NAMED = {
    _TYPE.INT: Kind.INTEGER,
    _TYPE.BIGINT: Kind.BIGINT,
    _TYPE.INT128: Kind.HUGEINT,
    _TYPE.DOUBLE: Kind.DOUBLE,
    _TYPE.TEXT: Kind.VARCHAR,
    _TYPE.BOOLEAN: Kind.BOOLEAN,
    _TYPE.DATE: Kind.DATE,
    _TYPE.ARRAY: Kind.LIST,
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
    Kind.DATE: {Kind.NULL, Kind.VARCHAR, Kind.DATE, Kind.TIMESTAMP},
    Kind.LIST: {Kind.LIST},
}
_SIGNS = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Mod: "%",
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
    exp.And: "AND",
    exp.Or: "OR",
    exp.Coalesce: "coalesce",
    exp.Greatest: "greatest",
    exp.Least: "least",
}


@dataclass(frozen=True, slots=True)
class Scope:
    """Translates expressions over the columns of a FROM clause, given by relation and name."""

    relations: Mapping[str, Columns]
    narrow: bool
    _written: dict[int, Typed] = field(
        default_factory=dict,
        repr=False,
        compare=False,
    )

    def __call__(self, node: exp.Expr) -> Typed:
        """Translates an expression.

        Guarantees:
            what is not listed has no meaning on spark

        Raises:
            TypeError: a node, an argument or a type that is not listed.
        """
        if id(node) not in self._written:
            # operands first: an expression may be deeper than Python's stack
            inside = [*node.walk(prune=_is_lambda)]
            for part in reversed(inside):
                if type(part) in _RULES or type(part) in FUNCTIONS:
                    self._written[id(part)] = self._write(part)
            self._written.setdefault(id(node), self._write(node))
        return self._written[id(node)]

    def _write(self, node: exp.Expr) -> Typed:
        rule, arguments = _RULES.get(type(node)) or FUNCTIONS.get(type(node)) or (None, "")
        given = present(node).keys()
        if rule is None or not given <= {*arguments.split()}:
            names = ", ".join(sorted(given))
            raise TypeError(f"{type(node).__name__} with {names} has no meaning on Spark")
        return rule(node, self)

    def column(self, relation: str, name: str) -> Kind:
        """Returns the type of a column; TypeError unless exactly one relation has it."""
        inside = [self.relations.get(relation, {})] if relation else self.relations.values()
        kinds = [columns[name] for columns in inside if name in columns]
        if len(kinds) != 1:
            raise TypeError(f"{len(kinds)} columns of one name")
        return kinds[0]


def _is_lambda(node: exp.Expr) -> bool:
    """Whether only the function around a node can translate it."""
    return isinstance(node, exp.Lambda)


# --- leaves and casts ----------------------------------------------------------------------


def _literal(node: exp.Literal, _: Writer) -> Typed:
    if node.is_string:
        return Typed(literal(node.this), Kind.VARCHAR)
    if not node.this.isdigit():
        return Typed(f"CAST({literal(node.this)} AS DOUBLE)", Kind.DOUBLE)
    if int(node.this) < 2**63:
        return Typed(f"{node.this}L", Kind.BIGINT)
    return Typed(f"{node.this}BD", Kind.HUGEINT)


def _null(_: exp.Null, __: Writer) -> Typed:
    return Typed("NULL", Kind.NULL)


def _boolean(node: exp.Boolean, _: Writer) -> Typed:
    return Typed("TRUE" if node.this else "FALSE", Kind.BOOLEAN)


def _column(node: exp.Column, write: Writer) -> Typed:
    if not isinstance(node.this, exp.Identifier):
        raise TypeError("a star among expressions")
    relation = f"{identifier(node.table)}." if node.table else ""
    return Typed(f"{relation}{identifier(node.name)}", write.column(node.table, node.name))


def _paren(node: exp.Paren, write: Writer) -> Typed:
    return write(node.this)


def _cast(node: exp.Cast, write: Writer) -> Typed:
    """Translates TRY_CAST, or a cast that cannot fail."""
    kind = _NAMED.get(node.to.this)
    value = write(node.this)
    is_tried = isinstance(node, exp.TryCast)
    if kind is Kind.BIGINT and is_tried:
        digits = _hexadecimal(node.this)
        if digits is not None:
            number = f"conv({required(write(digits), Kind.VARCHAR)}, 16, 10)"
            return Typed(f"try_cast({number} AS BIGINT)", kind)
    is_known = is_tried and _is_exact(node, value, kind)
    if kind is None or not (is_known or value.kind in _CASTS[kind]):
        raise _no_cast(node, value)
    if kind is Kind.LIST and not _is_of_bigint(node.to):
        raise _no_cast(node, value)
    if value.kind is kind:
        return value
    if value.kind is Kind.VARCHAR and not is_tried and not isinstance(node.this, exp.Literal):
        raise TypeError("a cast that may fail")
    return Typed(f"{'try_cast' if is_tried else 'CAST'}({value.sql} AS {kind.value})", kind)


def _no_cast(node: exp.Cast, value: Typed) -> TypeError:
    return TypeError(f"a cast of {value.kind.name} to {node.to.sql()}")


def _is_exact(
    node: exp.Cast,
    value: Typed,
    kind: Kind | None,
) -> bool:
    """Whether a cast to an integer agrees on both engines because of what its operand is."""
    if value.kind is Kind.DOUBLE:
        return kind in (Kind.BIGINT, Kind.HUGEINT) and _is_rounded(node.this)
    return value.kind is Kind.VARCHAR and kind is Kind.BIGINT and _is_printed(node)


def _hexadecimal(node: exp.Expr) -> exp.Expr | None:
    """Returns the first digits of an md5 if the expression says that they are hexadecimal."""
    if not isinstance(node, exp.DPipe) or node.this != exp.Literal.string("0x"):
        return None
    digits = node.expression
    if not isinstance(digits, exp.Substring) or int(digits.args["length"].this) > _MOST_DIGITS:
        raise TypeError("a hexadecimal number that may not fit")
    return digits


def _is_of_bigint(kind: exp.DataType) -> bool:
    return [inner.this for inner in kind.expressions] == [_TYPE.BIGINT]


def _is_printed(node: exp.Cast) -> bool:
    """Whether a string is cast only where it is an integer as it is printed.

    The engines differ in which other strings they accept.
    """
    test = node.parent.this if isinstance(node.parent, exp.If) else None
    return (
        isinstance(test, exp.RegexpFullMatch)
        and test.this == node.this
        and test.expression.this == WHOLE_PATTERN
    )


def _is_rounded(node: exp.Expr) -> bool:
    """Whether a double is known to have no fraction.

    A cast of any other double to an integer rounds on DuckDB and truncates on Spark.
    """
    if isinstance(node, exp.Sub):
        added = node.this.unnest()
        return isinstance(added, exp.Add) and added.expression == node.expression
    return isinstance(node, exp.Floor)


# --- arithmetic ----------------------------------------------------------------------------


def _arithmetic(node: exp.Binary, write: Writer) -> Typed:
    left = write(node.this)
    right = write(node.expression)
    if isinstance(node, exp.Add) and left.kind is Kind.DATE and right.kind is Kind.INTEGER:
        return Typed(f"date_add({left.sql}, {right.sql})", Kind.DATE)
    kind = common((left.kind, right.kind, Kind.BIGINT))
    if kind is Kind.DOUBLE and isinstance(node, exp.Mod):
        raise TypeError("a remainder of doubles")
    return Typed(f"({widened(left, kind)} {_SIGNS[type(node)]} {widened(right, kind)})", kind)


def _bits(node: exp.BitwiseAnd, write: Writer) -> Typed:
    left = required(write(node.this), Kind.BIGINT)
    right = required(write(node.expression), Kind.BIGINT)
    return Typed(f"({left} & {right})", Kind.BIGINT)


def _shifted(node: exp.BitwiseRightShift, write: Writer) -> Typed:
    """Translates a shift by less than 64 bits; it is arithmetic on both engines."""
    places = node.expression
    if not (isinstance(places, exp.Literal) and places.this.isdigit() and int(places.this) < 64):
        raise TypeError("a shift by no constant")
    value = required(write(node.this), Kind.BIGINT)
    return Typed(f"shiftright({value}, {int(places.this)})", Kind.BIGINT)


def _negative(node: exp.Neg, write: Writer) -> Typed:
    value = write(node.this)
    return Typed(f"(-{required(value, *NUMBERS)})", value.kind)


def _divide(node: exp.Div, write: Writer) -> Typed:
    left = required(write(node.this), Kind.DOUBLE)
    right = required(write(node.expression), Kind.DOUBLE)
    return Typed(f"({left} / {right})", Kind.DOUBLE)


def _truncated(node: exp.IntDiv, write: Writer) -> Typed:
    """Translates ``//``; of decimals, the remainder is subtracted first, so division is exact."""
    (left, right), kind = alike((node.this, node.expression), write)
    if kind is Kind.BIGINT:
        return Typed(f"({left} div {right})", kind)
    required(Typed("", kind), Kind.HUGEINT)
    if len(left) <= _SHORT_TEXT:
        return Typed(f"CAST(({left} - {left} % {right}) / {right} AS {kind.value})", kind)
    quotient = f"CAST((a - a % {right}) / {right} AS {kind.value})"
    return Typed(f"get(transform(array({left}), a -> {quotient}), 0)", kind)


def _floor(node: exp.Floor, write: Writer) -> Typed:
    return Typed(f"CAST(floor({required(write(node.this), Kind.DOUBLE)}) AS DOUBLE)", Kind.DOUBLE)


def _root(node: exp.Sqrt, write: Writer) -> Typed:
    return Typed(f"sqrt({required(write(node.this), Kind.DOUBLE)})", Kind.DOUBLE)


# --- tests and choices ---------------------------------------------------------------------


def _compare(node: exp.Binary, write: Writer) -> Typed:
    (left, right), _ = alike((node.this, node.expression), write)
    return Typed(f"({left} {_SIGNS[type(node)]} {right})", Kind.BOOLEAN)


def _between(node: exp.Between, write: Writer) -> Typed:
    operands = node.this, node.args["low"], node.args["high"]
    (value, low, high), _ = alike(operands, write)
    return Typed(f"({value} BETWEEN {low} AND {high})", Kind.BOOLEAN)


def _member(node: exp.In, write: Writer) -> Typed:
    (value, *values), _ = alike((node.this, *node.expressions), write)
    return Typed(f"({value} IN ({', '.join(values)}))", Kind.BOOLEAN)


def _is_null(node: exp.Is, write: Writer) -> Typed:
    if not isinstance(node.expression, exp.Null):
        raise TypeError("IS without NULL")
    return Typed(f"({write(node.this).sql} IS NULL)", Kind.BOOLEAN)


def _connect(node: exp.Connector, write: Writer) -> Typed:
    sides = [required(write(side), *TRUTHS) for side in node.flatten()]
    sign = f" {_SIGNS[type(node)]} "
    return Typed(f"({sign.join(sides)})", Kind.BOOLEAN)


def _not(node: exp.Not, write: Writer) -> Typed:
    return Typed(f"(NOT {required(write(node.this), *TRUTHS)})", Kind.BOOLEAN)


def _case(node: exp.Case, write: Writer) -> Typed:
    branches = node.args["ifs"]
    results = [branch.args["true"] for branch in branches]
    results.append(node.args.get("default") or exp.Null())
    (*values, otherwise), kind = alike(results, write)
    written = []
    for branch, value in zip(branches, values, strict=True):
        test = required(write(branch.this), *TRUTHS)
        written.append(f"WHEN {test} THEN {value}")
    return Typed(f"(CASE {' '.join(written)} ELSE {otherwise} END)", kind)


def _chosen(node: exp.Func, write: Writer) -> Typed:
    """Translates COALESCE, and GREATEST and LEAST, which skip NULL on both engines."""
    values, kind = alike((node.this, *node.expressions), write)
    if len(values) == 1:
        return Typed(values[0], kind)
    return Typed(f"{_SIGNS[type(node)]}({', '.join(values)})", kind)


def _null_if(node: exp.Nullif, write: Writer) -> Typed:
    (value, other), kind = alike((node.this, node.expression), write)
    return Typed(f"nullif({value}, {other})", kind)


_RULES: Rules = {
    exp.Literal: (_literal, "this is_string"),
    exp.Null: (_null, ""),
    exp.Boolean: (_boolean, "this"),
    exp.Column: (_column, "this table"),
    exp.Paren: (_paren, "this"),
    exp.Cast: (_cast, "this to"),
    exp.TryCast: (_cast, "this to safe"),
    exp.Neg: (_negative, "this"),
    exp.Div: (_divide, "this expression"),
    exp.IntDiv: (_truncated, "this expression"),
    exp.BitwiseAnd: (_bits, "this expression"),
    exp.BitwiseRightShift: (_shifted, "this expression"),
    exp.Floor: (_floor, "this"),
    exp.Sqrt: (_root, "this"),
    exp.Between: (_between, "this low high"),
    exp.In: (_member, "this expressions"),
    exp.Is: (_is_null, "this expression"),
    exp.Not: (_not, "this"),
    exp.Case: (_case, "ifs default"),
    exp.Coalesce: (_chosen, "this expressions"),
    exp.Nullif: (_null_if, "this expression"),
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul, exp.Mod), (_arithmetic, "this expression")),
    **dict.fromkeys(
        (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ),
        (_compare, "this expression"),
    ),
    **dict.fromkeys((exp.And, exp.Or), (_connect, "this expression")),
    **dict.fromkeys((exp.Greatest, exp.Least), (_chosen, "this expressions ignore_nulls")),
}
