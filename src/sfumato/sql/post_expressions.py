# SPDX-License-Identifier: Apache-2.0
"""Expressions over released numbers: exact fractions, no lattice, no cost."""

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
from sfumato.sql import compare, dates
from sfumato.sql.functions import FLOATING, WHOLE
from sfumato.sql.literal import answered, literal, whole
from sfumato.sql.reject import NOISY, refuse_node, reject, require_only
from sfumato.sql.row_expressions import COMPARISONS
from sfumato.sql.typed import Day, Label, Null, Number, Truth, Typed, Words, known, text, truth_of

_OPERATIONS: dict[type[exp.Expr], Operation] = {
    exp.Add: Operation.ADD,
    exp.Sub: Operation.SUBTRACT,
    exp.Mul: Operation.MULTIPLY,
    exp.Div: Operation.DIVIDE,
}
_ONE = Fraction(1)
_ZERO = Constant(Fraction(0))


class Finished:
    """Lowers expressions whose leaves are released; ``leaf`` knows those."""

    def __init__(self, leaf: Callable[[exp.Expr], Typed | None]) -> None:
        self._leaf = leaf

    def value(self, node: exp.Expr) -> Typed:
        """What an expression is worth."""
        found = self._leaf(node)
        if found is not None:
            return found
        match node:
            case exp.Paren():
                return self.value(node.this)
            case exp.Null():
                return Null()
            case exp.Literal() | exp.Boolean():
                return _constant(node)
            case exp.Subquery() if (answer := answered(node)) is not None:
                return self.value(answer)
            case exp.Cast() if node.to.is_type("date"):
                constant = literal(node.this)
                return dates.literal_day(constant if isinstance(constant, str) else "")
            case exp.Case():
                return self._case(node)
            case exp.If():
                return self._chosen(
                    [self.test(node.this)], [node.args["true"]], node.args.get("false")
                )
            case (
                exp.Not() | exp.And() | exp.Or() | exp.Is() | exp.In() | exp.Between() | exp.Like()
            ):
                return Truth(self.test(node))
            case _ if type(node) in COMPARISONS:
                return Truth(self._compare(COMPARISONS[type(node)], node.this, node.expression))
            case _:
                return Number(self._computed(node), _ONE)

    def test(self, node: exp.Expr) -> Scalar:
        """The test that an expression is."""
        match node:
            case exp.Paren():
                return self.test(node.this)
            case exp.Not():
                return Not(self.test(node.this))
            case exp.And():
                return And(tuple(self.test(each) for each in node.flatten()))
            case exp.Or():
                return Or(tuple(self.test(each) for each in node.flatten()))
            case exp.Is():
                return self._is(node)
            case exp.In():
                require_only(node, "this", "expressions")
                return self._in(node)
            case exp.Between():
                require_only(node, "this", "low", "high")
                low, high = node.args["low"], node.args["high"]
                return And(
                    (
                        self._compare(Comparison.GE, node.this, low),
                        self._compare(Comparison.LE, node.this, high),
                    )
                )
            case exp.Like():
                return self._like(node)
        typed = self.value(node)
        if not isinstance(typed, Truth):
            raise UnsupportedSql(
                "A number or a text alone is not a test.", remedy="Compare it: COUNT(*) > 100."
            )
        return typed.test

    def truth(self, codes: Scalar) -> Truth:
        """A key that is true or false."""
        return truth_of(codes)

    def number(self, node: exp.Expr) -> Scalar:
        """An expression that must be a number."""
        typed = self.value(node)
        if not isinstance(typed, Number):
            raise UnsupportedSql(
                "A key or a text where a number is needed.", allowed="aggregates and numbers"
            )
        return typed.expression

    def _computed(self, node: exp.Expr) -> Scalar:
        """Arithmetic and rounding."""
        match node:
            case _ if type(node) in _OPERATIONS:
                return Arithmetic(
                    _OPERATIONS[type(node)], self.number(node.this), self.number(node.expression)
                )
            case exp.Neg():
                return _negated(self.number(node.this))
            case exp.Abs():
                operand = self.number(node.this)
                return Extreme(greatest=True, operands=(operand, _negated(operand)))
            case exp.Floor() | exp.Ceil() | exp.Round() | exp.Cast() | exp.TryCast():
                return self._rounding(node)
            case exp.Least() | exp.Greatest():
                numbers = tuple(self.number(each) for each in (node.this, *node.expressions))
                return Extreme(isinstance(node, exp.Greatest), numbers)
            case exp.Coalesce():
                return Coalesce(tuple(self.number(each) for each in (node.this, *node.expressions)))
            case exp.Nullif():
                one, other = self.number(node.this), self.number(node.expression)
                return Case(((Compare(Comparison.EQ, one, other), Constant(None)),), one)
            case exp.Func() | exp.Binary() if not isinstance(
                node, exp.SubqueryPredicate | exp.Anonymous
            ):
                raise refuse_node(node, NOISY)
            case _:
                raise reject(node)

    def _rounding(self, node: exp.Expr) -> Scalar:
        """FLOOR, CEIL, ROUND, and CAST, which rounds too."""
        operand = self.number(node.this)
        match node:
            case exp.Floor() | exp.Ceil():
                require_only(node, "this")
                up = isinstance(node, exp.Ceil)
                return (
                    _negated(FloorDivide(_negated(operand), 1)) if up else FloorDivide(operand, 1)
                )
            case exp.Round():
                require_only(node, "this", "decimals")
                places = node.args.get("decimals")
                return _rounded(
                    operand, 0 if places is None else whole(places, "ROUND to digits", -30, 30)
                )
        kind = node.args["to"].sql(dialect="duckdb").lower()
        if kind in FLOATING:
            return operand
        if kind in WHOLE:
            return _rounded(operand, 0)
        raise UnsupportedSql(
            f"A CAST to {kind.upper()[:20]}.",
            allowed="INTEGER, BIGINT, DOUBLE",
            remedy="ROUND(..., 2)",
        )

    def _compare(self, op: Comparison, left: exp.Expr, right: exp.Expr) -> Scalar:
        return _compared(op, self.value(left), self.value(right))

    def _is(self, node: exp.Is) -> Scalar:
        if isinstance(node.expression, exp.Null):
            operand = self.value(node.this)
            return compare.is_null(operand)
        if isinstance(node.expression, exp.Boolean):
            test = self.test(node.this)
            return And((Not(IsNull(test)), test if node.expression.this else Not(test)))
        raise reject(node)

    def _in(self, node: exp.In) -> Scalar:
        operand = self.value(node.this)
        values = [self.value(each) for each in node.expressions]
        if isinstance(operand, Number | Day) and values:
            tests = tuple(_compared(Comparison.EQ, operand, each) for each in values)
            return tests[0] if len(tests) == 1 else Or(tests)
        return compare.member(operand, values)

    def _like(self, node: exp.Like) -> Scalar:
        operand, pattern = self.value(node.this), literal(node.expression)
        if not isinstance(operand, Words) or not isinstance(pattern, str):
            raise UnsupportedSql(
                "LIKE on something else than a Text key.", remedy="Put it into WHERE."
            )
        found = Like(operand.expression, pattern)
        return Not(found) if node.args.get("negate") else found

    def _case(self, node: exp.Case) -> Typed:
        require_only(node, "this", "ifs", "default")
        branches = node.args["ifs"]
        if node.this is None:
            tests = [self.test(each.this) for each in branches]
        else:
            tests = [self._compare(Comparison.EQ, node.this, each.this) for each in branches]
        return self._chosen(
            tests, [each.args["true"] for each in branches], node.args.get("default")
        )

    def _chosen(
        self, tests: Sequence[Scalar], results: Sequence[exp.Expr], default: exp.Expr | None
    ) -> Typed:
        values = [self.value(each) for each in results] + [
            Null() if default is None else self.value(default)
        ]
        kinds = {_kind(each) for each in values if not isinstance(each, Null)}
        if len(kinds) != 1 or None in kinds:
            raise UnsupportedSql(
                "A CASE over the noisy answer whose results are not all numbers, or all constant texts.",
                remedy="Let every branch give a number, or every branch a constant text.",
            )
        scalars = [_result(each) for each in values]
        chosen = Case(tuple(zip(tests, scalars[:-1], strict=True)), scalars[-1])
        return Number(chosen, _ONE) if kinds == {Number} else Words(chosen)


def _compared(op: Comparison, left: Typed, right: Typed) -> Scalar:
    """A comparison of released values: of numbers and dates as they are."""
    if isinstance(left, Day) or isinstance(right, Day):
        one, other = dates.as_day(left), dates.as_day(right)
        if one is not None and other is not None:
            return Compare(op, one.expression, other.expression)
    if isinstance(left, Number) and isinstance(right, Number):
        return Compare(op, left.expression, right.expression)
    return compare.compare(op, left, right)


def _constant(node: exp.Expr) -> Typed:
    value = literal(node)
    if isinstance(value, bool):
        return Truth(Constant(value))
    return text(value) if isinstance(value, str) else Number(Constant(value), _ONE)


def _kind(typed: Typed) -> type | None:
    """Numbers, or texts that are written here."""
    if isinstance(typed, Number):
        return Number
    written = isinstance(typed, Label) and isinstance(known(typed), str)
    return (
        Words
        if written or (isinstance(typed, Words) and isinstance(typed.expression, Case))
        else None
    )


def _result(typed: Typed) -> Scalar:
    match typed:
        case Label():
            return Constant(known(typed))
        case Number() | Words():
            return typed.expression
        case _:
            return Constant(None)


def _negated(operand: Scalar) -> Scalar:
    if isinstance(operand, Constant) and isinstance(operand.value, Fraction):
        return Constant(-operand.value)
    return Arithmetic(Operation.SUBTRACT, _ZERO, operand)


def _rounded(operand: Scalar, places: int) -> Scalar:
    """The nearest multiple of 10^-places, half away from zero."""
    unit = Constant(Fraction(10) ** -places)

    def up(number: Scalar) -> Scalar:
        scaled = Arithmetic(
            Operation.ADD, Arithmetic(Operation.DIVIDE, number, unit), Constant(Fraction(1, 2))
        )
        return Arithmetic(Operation.MULTIPLY, FloorDivide(scaled, 1), unit)

    down = _negated(up(_negated(operand)))
    return Case(((Compare(Comparison.GE, operand, _ZERO), up(operand)),), down)
