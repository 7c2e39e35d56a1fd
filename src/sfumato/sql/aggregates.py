# SPDX-License-Identifier: Apache-2.0
"""The aggregates that are allowed, and which of them share one release (RULES 15)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from sqlglot import exp

from sfumato.errors import MissingDeclaration, UnsupportedSql
from sfumato.metadata.column import Text
from sfumato.plan.aggregate import (
    Aggregate,
    CountDistinct,
    CountRows,
    CountUnits,
    CountValues,
    Mean,
    Quantiles,
    Sum,
    Variance,
)
from sfumato.plan.relation import UNLIMITED, PerUnit, Ranked, Relation, Summary, below
from sfumato.plan.scalar import And, Estimate, Field, Scalar, leaves
from sfumato.plan.statistic import Statistic
from sfumato.plan.value import Value
from sfumato.sql.literal import literal
from sfumato.sql.names import Scope
from sfumato.sql.reject import called, refuse, reject, require_only
from sfumato.sql.row_expressions import Rows, as_number, bounds_needed, counted, kept
from sfumato.sql.typed import (
    Day,
    Label,
    Null,
    Number,
    Truth,
    Typed,
    Words,
    code_of,
    number,
    value_of,
)

_SPREAD: Mapping[type[exp.Expr], Statistic] = {
    exp.Variance: Statistic.VARIANCE_OF_SAMPLE,
    exp.VariancePop: Statistic.VARIANCE,
    exp.Stddev: Statistic.DEVIATION_OF_SAMPLE,
    exp.StddevSamp: Statistic.DEVIATION_OF_SAMPLE,
    exp.StddevPop: Statistic.DEVIATION,
}
_QUANTILE = (exp.Quantile, exp.PercentileCont, exp.PercentileDisc, exp.ApproxQuantile)
_FINEST = 10**6
# What MIN and MAX are answered by.
LOWEST, HIGHEST = Fraction(1, 200), Fraction(199, 200)


@dataclass(frozen=True, slots=True)
class Moment:
    """A statistic of a value that may share a release with others of it."""

    value: Value
    statistic: Statistic


@dataclass(frozen=True, slots=True)
class Level:
    """A quantile of a value."""

    value: Value
    level: Fraction


Ask: TypeAlias = Moment | Level | Aggregate


class Aggregates:
    """Lowers the aggregate calls of one SELECT."""

    def __init__(self, scope: Scope, rows: Rows, relation: Relation) -> None:
        self._scope = scope
        self._rows = rows
        self._unlimited = frozenset(_unlimited(relation))

    def ask(self, node: exp.Expr) -> Ask:
        """What a call asks for."""
        test = None
        if isinstance(node, exp.Filter):
            test = self._rows.test(node.expression.this)
            node = node.this
        if isinstance(node, exp.IgnoreNulls):
            node = node.this
        match node:
            case exp.Count():
                return self._count(node, test)
            case exp.CountIf():
                return Moment(
                    value_of(
                        counted(number(1), _and(self._rows.test(node.this), test)), _sql(node)
                    ),
                    Statistic.COUNT,
                )
            case exp.ApproxDistinct():
                require_only(node, "this")
                return self._distinct([node.this], test)
            case exp.Sum() | exp.Avg():
                require_only(node, "this")
                statistic = Statistic.SUM if isinstance(node, exp.Sum) else Statistic.MEAN
                return Moment(self._number(node, test), statistic)
            case exp.Median() | exp.WithinGroup() | exp.Min() | exp.Max():
                return self._quantile(node, test)
            case _ if isinstance(node, _QUANTILE):
                return self._quantile(node, test)
            case _ if type(node) in _SPREAD:
                require_only(node, "this")
                return Moment(self._number(node, test), _SPREAD[type(node)])
            case _:
                raise reject(node)

    def _count(self, node: exp.Count, test: Scalar | None) -> Ask:
        require_only(node, "this", "big_int")
        inner = node.this
        if isinstance(inner, exp.Distinct):
            return self._distinct(inner.expressions, test)
        every = inner is None or isinstance(inner, exp.Star) or literal(inner) is not None
        if every or self._scope.part(inner) is not None:
            return (
                CountRows()
                if test is None
                else Moment(value_of(kept(number(1), test), _sql(node)), Statistic.COUNT)
            )
        return Moment(
            value_of(counted(self._rows.countable(inner), test), _name(inner)), Statistic.COUNT
        )

    def _distinct(self, nodes: Sequence[exp.Expr], test: Scalar | None) -> Ask:
        if len(nodes) == 1 and isinstance(nodes[0], exp.Tuple):
            nodes = nodes[0].expressions
        if self._scope.is_unit(nodes) and len(nodes) == self._scope.width:
            if test is not None:
                raise refuse(
                    "COUNT(DISTINCT unit) with FILTER",
                    ("is a question of its own", "Put the condition into WHERE."),
                )
            return CountUnits()
        if len(nodes) != 1:
            raise UnsupportedSql(
                "COUNT(DISTINCT ...) of several columns.", remedy="Ask one column at a time."
            )
        typed = self._rows.value(nodes[0])
        if isinstance(typed, Words) and test is not None:
            raise refuse(
                "COUNT(DISTINCT text) with FILTER",
                ("is not answered", "Put the condition into WHERE."),
            )
        return CountDistinct(value_of(kept(typed, test), _name(nodes[0])))

    def _number(self, node: exp.Expr, test: Scalar | None) -> Value:
        inner = node.this
        if isinstance(inner, exp.Distinct):
            raise refuse(
                f"{called(node)}(DISTINCT ...)", ("is not answered", f"{called(node)}(column)")
            )
        typed = self._rows.value(inner)
        if isinstance(typed, Words):
            raise bounds_needed(f"{called(node)}({_name(inner)})", typed)
        if not isinstance(typed, Number | Truth):
            code_of(typed)
            raise UnsupportedSql(
                f"{called(node)} of {_name(inner)!r}, which is {_described(typed)}.",
                allowed="a number or a Boolean (its AVG is a share)",
                remedy=f"GROUP BY {_name(inner)} to count its values.",
            )
        if isinstance(typed, Truth) and test is None:
            return value_of(typed, _name(inner))
        return self._limited(
            value_of(kept(as_number(typed, inner), test), _name(inner)), node, inner
        )

    def _quantile(self, node: exp.Expr, test: Scalar | None) -> Level:
        operand, level = _operand(node)
        typed = self._rows.value(operand)
        if isinstance(typed, Words):
            raise bounds_needed(f"{_called(node)} of {_name(operand)}", typed)
        if not isinstance(typed, Number | Day):
            code_of(typed)
            raise UnsupportedSql(
                f"{_called(node)} of {_name(operand)!r}, which is {_described(typed)}.",
                allowed="a number or a date",
                remedy=f"GROUP BY {_name(operand)} to count its values.",
            )
        if level in (0, 1):
            extreme, at = ("MAX", "above") if level else ("MIN", "below")
            self._scope.note(
                f"{extreme}({_name(operand)}) is the value that 0.5% lie {at}, found privately: "
                "the extreme itself is one person's."
            )
            level = HIGHEST if level else LOWEST
        return Level(
            self._limited(value_of(kept(typed, test), _name(operand)), node, operand), level
        )

    def _limited(self, value: Value, node: exp.Expr, operand: exp.Expr) -> Value:
        """Refuses a range that rests on a number of rows that nobody limited."""
        if not self._unlimited or isinstance(value.type, Text) or value.type.size < UNLIMITED:
            return value
        if any(
            isinstance(leaf, Field) and leaf.column.name in self._unlimited
            for leaf in leaves(value.expression)
        ):
            name = _called(node)
            raise MissingDeclaration(
                f"{name} of {_name(operand)} has no bound: no limit of the rows of a unit is declared.",
                allowed="max_rows_total=, or max_rows= with max_groups=, in sf.Unit(...)",
                remedy=f"Or cut it in the question: {name}(LEAST({_name(operand)}, 100)).",
            )
        return value


def shared(asks: Iterable[Ask]) -> tuple[tuple[Aggregate, ...], dict[Ask, Estimate]]:
    """The releases that answer every ask, and how each is read from them.

    Of one value a variance answers its mean, sum and count too, a mean its sum and count;
    every quantile of it comes from one set of leaves.
    """
    wanted = list(dict.fromkeys(asks))
    statistics: dict[Value, set[Statistic]] = {}
    levels: dict[Value, set[Fraction]] = {}
    for ask in wanted:
        if isinstance(ask, Moment):
            statistics.setdefault(ask.value, set()).add(ask.statistic)
        elif isinstance(ask, Level):
            levels.setdefault(ask.value, set()).add(ask.level)
    places: dict[Aggregate, int] = {}
    estimates: dict[Ask, Estimate] = {}
    for ask in wanted:
        match ask:
            case Moment(value, statistic):
                release = _release(value, statistic, statistics[value])
                read = Statistic.VALUE if _is_alone(release, statistic) else statistic
                estimates[ask] = Estimate(_place(places, release), read)
            case Level(value, level):
                every = tuple(sorted(levels[value]))
                estimates[ask] = Estimate(
                    _place(places, Quantiles(value, every)), place=every.index(level)
                )
            case _:
                estimates[ask] = Estimate(_place(places, ask))
    return tuple(places), estimates


def _release(value: Value, statistic: Statistic, others: set[Statistic]) -> Aggregate:
    if others & set(_SPREAD.values()):
        return Variance(value)
    if Statistic.MEAN in others:
        return Mean(value)
    return CountValues(value) if statistic is Statistic.COUNT else Sum(value)


def _is_alone(release: Aggregate, statistic: Statistic) -> bool:
    """Whether the statistic is what the release is for."""
    meant = {CountValues: Statistic.COUNT, Sum: Statistic.SUM, Mean: Statistic.MEAN}
    return meant.get(type(release)) is statistic


def _place(places: dict[Aggregate, int], release: Aggregate) -> int:
    return places.setdefault(release, len(places))


def _operand(node: exp.Expr) -> tuple[exp.Expr, Fraction]:
    """What a quantile is of, and which one: from 0, MIN, to 1, MAX."""
    match node:
        case exp.Median():
            require_only(node, "this")
            return node.this, Fraction(1, 2)
        case exp.Min() | exp.Max():
            require_only(node, "this")
            return node.this, Fraction(isinstance(node, exp.Max))
        case exp.WithinGroup():
            order = node.expression
            if (
                not isinstance(order, exp.Order)
                or len(order.expressions) != 1
                or not isinstance(node.this, _QUANTILE)
            ):
                raise reject(node.this)
            key = order.expressions[0]
            level = _level(node.this.this)
            return key.this, 1 - level if key.args.get("desc") else level
        case _:
            require_only(node, "this", "quantile", "expression")
            return node.this, _level(node.args.get("quantile") or node.args.get("expression"))


def _level(node: exp.Expr | None) -> Fraction:
    value = literal(node)
    if not isinstance(value, Fraction) or not 0 <= value <= 1 or value.denominator > _FINEST:
        raise UnsupportedSql(
            "A quantile that is not one constant from 0 to 1, a multiple of a millionth.",
            remedy="QUANTILE_CONT(column, 0.5)",
        )
    return value


def _described(typed: Typed) -> str:
    if not isinstance(typed, Null) and isinstance(leaf := code_of(typed), Field):
        return f"declared as {leaf.column.type!r}"
    return {Day: "a date", Label: "a text", Truth: "a test"}.get(type(typed), "no number")


def _unlimited(relation: Relation) -> Iterable[str]:
    """The computed columns whose range is only that of any number of rows."""
    if isinstance(relation, PerUnit):
        for each in relation.columns:
            of_rows = each.summary not in (Summary.MEAN, Summary.MINIMUM, Summary.MAXIMUM)
            if (
                of_rows
                and not isinstance(each.column.type, Text)
                and each.column.type.size >= UNLIMITED
            ):
                yield each.column.name
    if isinstance(relation, Ranked):
        yield relation.column.name
    for source in below(relation):
        yield from _unlimited(source)


def _and(test: Scalar, other: Scalar | None) -> Scalar:
    return test if other is None else And((test, other))


def _called(node: exp.Expr) -> str:
    return "A quantile" if isinstance(node, exp.WithinGroup) else called(node)


def _name(node: exp.Expr) -> str:
    return node.name if isinstance(node, exp.Column) else _sql(node)


def _sql(node: exp.Expr) -> str:
    return node.sql(dialect="duckdb")
