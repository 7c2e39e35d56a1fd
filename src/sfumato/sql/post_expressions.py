# SPDX-License-Identifier: Apache-2.0
"""Lowers expressions over released numbers and keys: exact fractions, without lattices.

``output`` uses it for SELECT, HAVING and ORDER BY.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction

from sqlglot import exp

from sfumato.errors import UnsupportedSql
from sfumato.plan.scalar import (
    And,
    Arithmetic,
    Case,
    Coalesce,
    Compare,
    Comparison,
    Constant,
    Extreme,
    FloorDivide,
    IsNull,
    Like,
    Not,
    Operation,
    Or,
    Scalar,
)
from sfumato.sql import compare, dates, timestamps
from sfumato.sql.functions import FLOATING, WHOLE, decimal_places
from sfumato.sql.literal import answered, literal, whole
from sfumato.sql.reject import NOISY, refuse_node, reject, require_only
from sfumato.sql.row_expressions import COMPARISONS
from sfumato.sql.typed import (
    Day,
    Instant,
    Label,
    Null,
    Number,
    Truth,
    Typed,
    Words,
    known,
    text,
    truth_of,
)

_OPERATIONS: dict[type[exp.Expr], Operation] = {
    exp.Add: Operation.ADD,
    exp.Sub: Operation.SUBTRACT,
    exp.Mul: Operation.MULTIPLY,
    exp.Div: Operation.DIVIDE,
}
_TESTS = (exp.Not, exp.And, exp.Or, exp.Is, exp.In, exp.Between, exp.Like)
_ONE = Fraction(1)
_TIMES = ("timestamp", "timestampntz", "timestamptz")
_ZERO = Constant(Fraction(0))


class Finished:
    """Translates SQL expressions over noisy estimates and group keys (post-processing).

    ``leaf`` returns the value of a node that is a released number or a key; None for other nodes.
    """

    def __init__(self, leaf: Callable[[exp.Expr], Typed | None]) -> None:
        self._leaf = leaf

    def value(self, node: exp.Expr) -> Typed:
        """Returns the typed value of a SQL expression over noisy estimates and group keys."""
        leaf = self._leaf(node)
        if leaf is not None:
            return leaf
        comparison = COMPARISONS.get(type(node))
        if comparison is not None:
            return Truth(self._compare(comparison, node.this, node.expression))
        if isinstance(node, _TESTS):
            return Truth(self.test(node))
        match node:
            case exp.Paren():
                return self.value(node.this)
            case exp.Null():
                return Null()
            case exp.Literal() | exp.Boolean():
                return _constant(node)
            case exp.Subquery() if (answer := answered(node)) is not None:
                return self.value(answer)
            case exp.Cast() if node.to.is_type("date", *_TIMES):
                return _moment(node)
            case exp.Cast() if node.to.is_type("text", "varchar"):
                return self._worded(node)
            case exp.Case():
                return self._case(node)
            case exp.If():
                test = self.test(node.this)
                return self._choose_branch([test], [node.args["true"]], node.args.get("false"))
            case _:
                return Number(self._lower_operator(node), _ONE)

    def _worded(self, node: exp.Cast) -> Typed:
        """Returns CAST(key AS VARCHAR): an answer shows texts and dates as texts already."""
        typed = self.value(node.this)
        if not isinstance(typed, Label | Words | Day):
            raise UnsupportedSql(
                "A CAST of a noisy number to VARCHAR.", remedy="Leave the CAST out."
            )
        return typed

    def test(self, node: exp.Expr) -> Scalar:
        """Returns a SQL expression that must be Boolean, as a condition.

        Raises:
            UnsupportedSql: it is not a Boolean.
        """
        match node:
            case exp.Paren():
                return self.test(node.this)
            case exp.Not():
                return Not(self.test(node.this))
            case exp.And():
                return And(tuple(self.test(operand) for operand in node.flatten()))
            case exp.Or():
                return Or(tuple(self.test(operand) for operand in node.flatten()))
            case exp.Is():
                return self._is(node)
            case exp.In():
                require_only(node, "this", "expressions")
                return self._in(node)
            case exp.Between():
                require_only(node, "this", "low", "high")
                is_above = self._compare(Comparison.GE, node.this, node.args["low"])
                is_below = self._compare(Comparison.LE, node.this, node.args["high"])
                return And((is_above, is_below))
            case exp.Like():
                return self._like(node)
        typed = self.value(node)
        if not isinstance(typed, Truth):
            raise UnsupportedSql(
                "A number or a text alone is not a test.", remedy="Compare it: COUNT(*) > 100."
            )
        return typed.test

    def truth(self, codes: Scalar) -> Truth:
        """Returns the Boolean SQL value with these codes (1, 0 or NULL)."""
        return truth_of(codes)

    def number(self, node: exp.Expr) -> Scalar:
        """Returns the value of a SQL expression that must be a number."""
        typed = self.value(node)
        if not isinstance(typed, Number):
            raise UnsupportedSql(
                "A key or a text where a number is needed.", allowed="aggregates and numbers"
            )
        return typed.expression

    def _lower_operator(self, node: exp.Expr) -> Scalar:
        """Returns the scalar of an operator or a function of numbers."""
        operation = _OPERATIONS.get(type(node))
        if operation is not None:
            return Arithmetic(operation, self.number(node.this), self.number(node.expression))
        match node:
            case exp.Neg():
                return _negate(self.number(node.this))
            case exp.Abs():
                operand = self.number(node.this)
                return Extreme(greatest=True, operands=(operand, _negate(operand)))
            case exp.Floor() | exp.Ceil() | exp.Round() | exp.Cast() | exp.TryCast():
                return self._rounding(node)
            case exp.Least() | exp.Greatest():
                return Extreme(isinstance(node, exp.Greatest), self._numbers(node))
            case exp.Coalesce():
                return Coalesce(self._numbers(node))
            case exp.Nullif():
                return self._nullif(node)
            case exp.SubqueryPredicate() | exp.Anonymous():
                raise reject(node)
            case exp.Func() | exp.Binary():
                raise refuse_node(node, NOISY)
            case _:
                raise reject(node)

    def _nullif(self, node: exp.Nullif) -> Scalar:
        """Returns the scalar of NULLIF."""
        one = self.number(node.this)
        other = self.number(node.expression)
        is_equal = Compare(Comparison.EQ, one, other)
        return Case(((is_equal, Constant(None)),), one)

    def _numbers(self, node: exp.Expr) -> tuple[Scalar, ...]:
        """Returns the arguments of a function of one or more numbers."""
        return tuple(self.number(operand) for operand in (node.this, *node.expressions))

    def _rounding(self, node: exp.Expr) -> Scalar:
        """Returns the scalar of FLOOR, CEIL, ROUND or CAST, which rounds to an integer."""
        operand = self.number(node.this)
        match node:
            case exp.Floor():
                require_only(node, "this")
                return FloorDivide(operand, 1)
            case exp.Ceil():
                require_only(node, "this")
                return _negate(FloorDivide(_negate(operand), 1))
            case exp.Round():
                require_only(node, "this", "decimals")
                places = node.args.get("decimals")
                if places is None:
                    return rounded(operand, _ONE)
                digits = whole(places, "ROUND to digits", -30, 30)
                return rounded(operand, Fraction(10) ** -digits)
        places = decimal_places(node.args["to"])
        if places is not None:
            return rounded(operand, Fraction(10) ** -places)
        kind = node.args["to"].sql(dialect="duckdb").lower()
        if kind in FLOATING:
            return operand
        if kind in WHOLE:
            return rounded(operand, _ONE)
        raise UnsupportedSql(
            f"A CAST to {kind.upper()[:20]}.",
            allowed="INTEGER, BIGINT, DOUBLE",
            remedy="ROUND(..., 2)",
        )

    def _compare(
        self,
        op: Comparison,
        left: exp.Expr,
        right: exp.Expr,
    ) -> Scalar:
        """Returns the comparison of two expressions."""
        return _compare_values(op, self.value(left), self.value(right))

    def _is(self, node: exp.Is) -> Scalar:
        """Returns the test IS NULL, IS TRUE or IS FALSE."""
        if isinstance(node.expression, exp.Null):
            return compare.is_null(self.value(node.this))
        if isinstance(node.expression, exp.Boolean):
            test = self.test(node.this)
            is_known = Not(IsNull(test))
            return And((is_known, test if node.expression.this else Not(test)))
        raise reject(node)

    def _in(self, node: exp.In) -> Scalar:
        """Returns the test ``value IN (list)``."""
        operand = self.value(node.this)
        values = [self.value(item) for item in node.expressions]
        if isinstance(operand, Number | Day | Instant) and values:
            tests = tuple(_compare_values(Comparison.EQ, operand, value) for value in values)
            if len(tests) == 1:
                return tests[0]
            return Or(tests)
        return compare.member(operand, values)

    def _like(self, node: exp.Like) -> Scalar:
        """Returns the test LIKE of a Text key."""
        operand = self.value(node.this)
        pattern = literal(node.expression)
        if not isinstance(operand, Words) or not isinstance(pattern, str):
            raise UnsupportedSql(
                "LIKE on something else than a Text key.", remedy="Put it into WHERE."
            )
        test = Like(operand.expression, pattern)
        if node.args.get("negate"):
            return Not(test)
        return test

    def _case(self, node: exp.Case) -> Typed:
        """Returns the value of CASE, with or without an operand."""
        require_only(node, "this", "ifs", "default")
        branches = node.args["ifs"]
        if node.this is None:
            tests = [self.test(branch.this) for branch in branches]
        else:
            tests = [self._compare(Comparison.EQ, node.this, branch.this) for branch in branches]
        results = [branch.args["true"] for branch in branches]
        return self._choose_branch(tests, results, node.args.get("default"))

    def _choose_branch(
        self,
        tests: Sequence[Scalar],
        results: Sequence[exp.Expr],
        default: exp.Expr | None,
    ) -> Typed:
        """Returns the value of the first branch whose test is TRUE, else the default."""
        values = [self.value(result) for result in results]
        values.append(Null() if default is None else self.value(default))
        kinds = {_kind_of(value) for value in values if not isinstance(value, Null)}
        if len(kinds) != 1 or None in kinds:
            raise UnsupportedSql(
                "A CASE over the noisy answer whose results are not all numbers, "
                "or all constant texts.",
                remedy="Let every branch give a number, or every branch a constant text.",
            )
        scalars = [_branch_result(value) for value in values]
        branches = zip(tests, scalars[:-1], strict=True)
        chosen = Case(tuple(branches), scalars[-1])
        if kinds == {Number}:
            return Number(chosen, _ONE)
        return Words(chosen)


def _compare_values(op: Comparison, left: Typed, right: Typed) -> Scalar:
    """Returns the comparison of released values; numbers and dates need no lattice."""
    moments = timestamps.instants([left, right])
    if moments is not None:
        _, (first, second) = timestamps.aligned(moments)
        return Compare(op, first, second)
    if isinstance(left, Day) or isinstance(right, Day):
        one = dates.as_day(left)
        other = dates.as_day(right)
        if one is not None and other is not None:
            return Compare(op, one.expression, other.expression)
    if isinstance(left, Number) and isinstance(right, Number):
        return Compare(op, left.expression, right.expression)
    return compare.compare(op, left, right)


def _moment(node: exp.Cast) -> Typed:
    """Returns the constant of DATE '...' or TIMESTAMP '...'."""
    constant = literal(node.this)
    text = constant if isinstance(constant, str) else ""
    if node.to.is_type("date"):
        return dates.literal_day(text)
    return timestamps.written(text)


def _constant(node: exp.Expr) -> Typed:
    """Returns the value of a literal."""
    value = literal(node)
    if isinstance(value, bool):
        return Truth(Constant(value))
    if isinstance(value, str):
        return text(value)
    return Number(Constant(value), _ONE)


def _kind_of(typed: Typed) -> type | None:
    """Returns Number, or Words for strings that are constants of the statement; else None."""
    if isinstance(typed, Number):
        return Number
    if isinstance(typed, Label) and isinstance(known(typed), str):
        return Words
    if isinstance(typed, Words) and isinstance(typed.expression, Case):
        return Words
    return None


def _branch_result(typed: Typed) -> Scalar:
    """Returns the scalar of a branch of CASE."""
    match typed:
        case Label():
            return Constant(known(typed))
        case Number() | Words():
            return typed.expression
        case _:
            return Constant(None)


def _negate(operand: Scalar) -> Scalar:
    """Returns minus a number."""
    if isinstance(operand, Constant) and isinstance(operand.value, Fraction):
        return Constant(-operand.value)
    return Arithmetic(Operation.SUBTRACT, _ZERO, operand)


def rounded(operand: Scalar, size: Fraction) -> Scalar:
    """Returns the nearest multiple of ``size``; halves are rounded away from zero."""
    step = Constant(size)

    def up(number: Scalar) -> Scalar:
        multiples = Arithmetic(Operation.DIVIDE, number, step)
        shifted = Arithmetic(Operation.ADD, multiples, Constant(Fraction(1, 2)))
        return Arithmetic(Operation.MULTIPLY, FloorDivide(shifted, 1), step)

    down = _negate(up(_negate(operand)))
    is_positive = Compare(Comparison.GE, operand, _ZERO)
    return Case(((is_positive, up(operand)),), down)
