# SPDX-License-Identifier: Apache-2.0
"""Tests on columns, as tests on codes.

Every comparison becomes one of integers (or of text, for a Text column), so that it means
the same on every engine: a constant is taken to the lattice here, exactly.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import cast

from sqlglot import exp

from sfumato.errors import UnknownName, UnsupportedSql
from sfumato.metadata.column import Boolean, Category, Column, Date, Integer, Real, Text, date_code
from sfumato.plan.scalar import (
    And,
    Arithmetic,
    Compare,
    Comparison,
    Constant,
    IsNull,
    Member,
    Not,
    Operation,
    Or,
    Scalar,
    compares,
)
from sfumato.sql.literal import Literal, literal
from sfumato.sql.reject import reject, require_only

COMPARISONS: dict[type[exp.Expr], Comparison] = {
    exp.EQ: Comparison.EQ,
    exp.NEQ: Comparison.NE,
    exp.LT: Comparison.LT,
    exp.LTE: Comparison.LE,
    exp.GT: Comparison.GT,
    exp.GTE: Comparison.GE,
}
_MIRRORED = {
    Comparison.LT: Comparison.GT,
    Comparison.LE: Comparison.GE,
    Comparison.GT: Comparison.LT,
    Comparison.GE: Comparison.LE,
}


def connective(node: exp.Expr, inner: Callable[[exp.Expr], Scalar]) -> Scalar | None:
    """AND, OR, NOT, brackets and TRUE/FALSE over ``inner``; None for anything else."""
    match node:
        case exp.Paren():
            return inner(node.this)
        case exp.Not():
            return Not(inner(node.this))
        case exp.And():
            return And(tuple(inner(each) for each in node.flatten()))
        case exp.Or():
            return Or(tuple(inner(each) for each in node.flatten()))
        case exp.Boolean():
            return Constant(bool(node.this))
        case _:
            return None


class Predicates:
    """Lowers tests; ``resolve`` names a column's declaration, ``leaf`` where its code is read."""

    def __init__(self, resolve: Callable[[exp.Column], Column], leaf: Callable[[Column], Scalar]) -> None:
        self._resolve = resolve
        self._leaf = leaf

    def lower(self, node: exp.Expr) -> Scalar:
        """The test that a node writes."""
        found = connective(node, self.lower)
        if found is not None:
            return found
        match node:
            case exp.Column():
                return self._truth(node)
            case exp.Is():
                return self._is(node)
            case exp.In():
                return self._in(node)
            case exp.Between():
                require_only(node, "this", "low", "high")
                low, high = node.args["low"], node.args["high"]
                return And(
                    (self._compare(Comparison.GE, node.this, low), self._compare(Comparison.LE, node.this, high))
                )
            case _ if type(node) in COMPARISONS:
                return self._compare(COMPARISONS[type(node)], node.this, node.expression)
            case _:
                raise reject(node)

    def _truth(self, node: exp.Column) -> Scalar:
        column = self._resolve(node)
        if not isinstance(column.type, Boolean):
            raise UnsupportedSql(
                f"Column {column.name!r} alone is not a test.",
                remedy=f"Compare it: {column.name} = ..., or IS NOT NULL.",
            )
        return Member(self._leaf(column), (1,))

    def _is(self, node: exp.Is) -> Scalar:
        if not isinstance(node.this, exp.Column):
            raise reject(node.this)
        if isinstance(node.expression, exp.Null):
            return IsNull(self._leaf(self._resolve(node.this)))
        if isinstance(node.expression, exp.Boolean):
            test = self._compare(Comparison.EQ, node.this, node.expression)
            return And((Not(IsNull(self._leaf(self._resolve(node.this)))), test))
        raise reject(node)

    def _in(self, node: exp.In) -> Scalar:
        require_only(node, "this", "expressions")
        if not isinstance(node.this, exp.Column):
            raise reject(node.this)
        column = self._resolve(node.this)
        leaf = self._leaf(column)
        tests = [_against(leaf, column, Comparison.EQ, _constant(each)) for each in node.expressions]
        # one sorted set: the same question however its values are ordered
        return Member(leaf, _sorted([each for each in tests if isinstance(each, Member)]))

    def _compare(self, op: Comparison, left: exp.Expr, right: exp.Expr) -> Scalar:
        first, second = _unwrap(left), _unwrap(right)
        if isinstance(first, exp.Column) and isinstance(second, exp.Column):
            return self._columns(op, self._resolve(first), self._resolve(second))
        if isinstance(first, exp.Column):
            column = self._resolve(first)
            return _against(self._leaf(column), column, op, _constant(second))
        if isinstance(second, exp.Column):
            column = self._resolve(second)
            return _against(self._leaf(column), column, _MIRRORED.get(op, op), _constant(first))
        one, other = _constant(first), _constant(second)
        if type(one) is not type(other):
            raise UnsupportedSql("A comparison of constants of two kinds.", remedy="Leave it out.")
        return Constant(compares(op, one, other))

    def _columns(self, op: Comparison, one: Column, other: Column) -> Scalar:
        """Codes of two columns on one lattice; its step divides both steps."""
        if isinstance(one.type, Integer | Real) and isinstance(other.type, Integer | Real):
            step = Fraction(
                math.gcd(
                    one.type.step.numerator * other.type.step.denominator,
                    other.type.step.numerator * one.type.step.denominator,
                ),
                one.type.step.denominator * other.type.step.denominator,
            )
            scales = int(one.type.step / step), int(other.type.step / step)
            if max(_magnitude(one.type) * scales[0], _magnitude(other.type) * scales[1]) < 2**62:
                return Compare(op, _times(self._leaf(one), scales[0]), _times(self._leaf(other), scales[1]))
        elif isinstance(one.type, Date) and isinstance(other.type, Date):
            return Compare(op, self._leaf(one), self._leaf(other))
        raise UnsupportedSql(
            f"A comparison of {one.name!r} with {other.name!r}.",
            allowed="two numbers whose steps are alike, or two dates",
            remedy="Compare a column with a constant.",
        )


def _sorted(members: list[Member]) -> tuple[int, ...] | tuple[str, ...]:
    """The values of several members, once each; they are all codes or all texts."""
    codes = {value for each in members for value in each.values if isinstance(value, int)}
    texts = {value for each in members for value in each.values if isinstance(value, str)}
    return tuple(sorted(codes)) if codes or not texts else tuple(sorted(texts))


def _magnitude(kind: Integer | Real) -> int:
    return max(abs(kind.lower_code), abs(kind.upper_code))


def _unwrap(node: exp.Expr) -> exp.Expr:
    return _unwrap(node.this) if isinstance(node, exp.Paren) else node


def _times(expression: Scalar, scale: int) -> Scalar:
    return expression if scale == 1 else Arithmetic(Operation.MULTIPLY, expression, Constant(scale))


def _constant(node: exp.Expr) -> Literal:
    value = literal(node)
    if value is None:
        raise reject(node)
    return value


def _against(leaf: Scalar, column: Column, op: Comparison, value: Literal) -> Scalar:
    """A column's code against a constant."""
    if op not in (Comparison.EQ, Comparison.NE) and isinstance(column.type, Category | Boolean | Text):
        raise UnsupportedSql(
            f"An order comparison ({op.value}) on {column.name!r}, whose values have no declared order.",
            remedy="Use = , <> or IN (...).",
        )
    match column.type:
        case Category():
            return _equality(leaf, op, _category_code(column, column.type, value))
        case Boolean():
            return _equality(leaf, op, _boolean_code(column, value))
        case Text():
            if not isinstance(value, str):
                raise _kind(column, "a text", value)
            return _equality(leaf, op, value)
        case Date():
            code = date_code(value)
            if code is None:
                raise _kind(column, "a date, DATE '2019-12-31'", value)
            return _ordered(leaf, column.type, op, Fraction(code))
        case Integer() | Real():
            if not isinstance(value, Fraction):
                raise _kind(column, "a number", value)
            exact = value / column.type.step
            # A Real was rounded to the lattice, so its constant is too; whole numbers are exact.
            return _ordered(leaf, column.type, op, Fraction(round(exact)) if isinstance(column.type, Real) else exact)


def _equality(leaf: Scalar, op: Comparison, value: int | str) -> Scalar:
    test = Member(leaf, cast(tuple[int] | tuple[str], (value,)))
    return test if op is Comparison.EQ else Not(test)


def _ordered(leaf: Scalar, kind: Integer | Real | Date, op: Comparison, code: Fraction) -> Scalar:
    """``leaf op code`` in integers; a code beyond the bounds stays just beyond them."""
    code = min(max(code, Fraction(kind.lower_code - 1)), Fraction(kind.upper_code + 1))
    if op in (Comparison.EQ, Comparison.NE):
        test = Member(leaf, (int(code),) if code.denominator == 1 else ())
        return test if op is Comparison.EQ else Not(test)
    whole = math.ceil(code) if op in (Comparison.GE, Comparison.LT) else math.floor(code)
    return Compare(op, leaf, Constant(whole))


def _category_code(column: Column, kind: Category, value: Literal) -> int:
    if isinstance(value, Fraction) and value.denominator == 1:
        value = str(value.numerator)
    for names in (kind.labels, kind.values):
        if value in names:
            return names.index(str(value))
    raise UnknownName(
        f"{column.name!r} has no declared value {value!r}.",
        allowed=", ".join(kind.labels[:40]) + (", ..." if len(kind.labels) > 40 else ""),
    )


def _boolean_code(column: Column, value: Literal) -> int:
    if isinstance(value, bool):
        return int(value)
    raise _kind(column, "TRUE or FALSE", value)


def _kind(column: Column, expected: str, value: Literal) -> UnsupportedSql:
    return UnsupportedSql(
        f"{column.name!r} is compared with {str(value)!r}.", allowed=f"{expected}: it is declared as {column.type!r}"
    )
