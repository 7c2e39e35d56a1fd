# SPDX-License-Identifier: Apache-2.0
"""Lowers aggregate calls, and merges those that can share one release (RULES 15).

``lower`` uses it: each call becomes an ``Ask``, and ``shared`` returns the releases to measure.
"""

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
    Sum,
    Variance,
    quantiles,
)
from sfumato.plan.relation import (
    UNLIMITED,
    PerUnit,
    Ranked,
    Relation,
    Summary,
    Windowed,
    below,
)
from sfumato.plan.scalar import And, Estimate, Field, Scalar, leaves
from sfumato.plan.statistic import Statistic
from sfumato.plan.units_where import CountUnitsWhere
from sfumato.plan.value import Value
from sfumato.sql.literal import literal
from sfumato.sql.names import Scope
from sfumato.sql.reject import called, refuse, reject, require_only
from sfumato.sql.row_expressions import Rows, as_number, counted, kept
from sfumato.sql.texts import bounds_needed
from sfumato.sql.typed import (
    Day,
    Instant,
    Label,
    Null,
    Number,
    Person,
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
_MOMENTS: Mapping[type[exp.Expr], Statistic] = {
    exp.Sum: Statistic.SUM,
    exp.Avg: Statistic.MEAN,
    **_SPREAD,
}
_QUANTILE = (exp.Quantile, exp.PercentileCont, exp.PercentileDisc, exp.ApproxQuantile)
_QUANTILES = (*_QUANTILE, exp.Median, exp.WithinGroup, exp.Min, exp.Max)
_FINEST = 10**6
# The quantiles that answer MIN and MAX.
LOWEST, HIGHEST = Fraction(1, 200), Fraction(199, 200)


@dataclass(frozen=True, slots=True)
class Moment:
    """A count, sum, mean, variance or deviation of a column expression that a SELECT requests."""

    value: Value
    statistic: Statistic


@dataclass(frozen=True, slots=True)
class Level:
    """A quantile of a column expression that a SELECT requests; ``level`` is from 0 to 1."""

    value: Value
    level: Fraction


Ask: TypeAlias = Moment | Level | Aggregate


class Aggregates:
    """Translates the aggregate calls of a SELECT into requests for noisy statistics."""

    def __init__(
        self,
        scope: Scope,
        rows: Rows,
        relation: Relation,
    ) -> None:
        self._scope = scope
        self._rows = rows
        self._unlimited_columns = frozenset(_unlimited_columns(relation))

    def ask(self, node: exp.Expr) -> Ask:
        """Returns the request of an aggregate call: which statistic of which column expression.

        Raises:
            UnsupportedSql: an aggregate that is not allowed, or of a value that it does not take.
            MissingDeclaration: a value without declared bounds.
        """
        test = None
        if isinstance(node, exp.Filter):
            test = self._rows.test(node.expression.this)
            node = node.this
        if isinstance(node, exp.IgnoreNulls):
            node = node.this
        if isinstance(node, exp.Count):
            return self._count(node, test)
        if isinstance(node, exp.CountIf):
            both = _conjunction(self._rows.test(node.this), test)
            passing = counted(number(1), both)
            return Moment(value_of(passing, _sql(node)), Statistic.COUNT)
        if isinstance(node, exp.ApproxDistinct):
            require_only(node, "this")
            return self._distinct([node.this], test)
        if isinstance(node, _QUANTILES):
            return self._quantile(node, test)
        statistic = _MOMENTS.get(type(node))
        if statistic is None:
            raise reject(node)
        require_only(node, "this")
        return Moment(self._number(node, test), statistic)

    def _count(self, node: exp.Count, test: Scalar | None) -> Ask:
        """Lowers a COUNT: of rows, of values, of distinct values or of units."""
        require_only(node, "this", "big_int")
        inner = node.this
        if isinstance(inner, exp.Distinct):
            return self._distinct(inner.expressions, test)
        if inner is not None:
            (inner,), test = self._with_condition([inner], test)
        counts_rows = inner is None or isinstance(inner, exp.Star) or literal(inner) is not None
        if not counts_rows and self._scope.part(inner) is None:
            operand = counted(self._rows.countable(inner), test)
            return Moment(value_of(operand, _column_name(inner)), Statistic.COUNT)
        if test is None:
            return CountRows()
        passing = kept(number(1), test)
        return Moment(value_of(passing, _sql(node)), Statistic.COUNT)

    def _distinct(self, nodes: Sequence[exp.Expr], test: Scalar | None) -> Ask:
        """Returns what COUNT(DISTINCT ...) asks for: units, or the values of one expression."""
        if len(nodes) == 1 and isinstance(nodes[0], exp.Tuple):
            nodes = nodes[0].expressions
        nodes, test = self._with_condition(nodes, test)
        if self._scope.is_unit(nodes) and len(nodes) == self._scope.width:
            if test is not None:
                return CountUnitsWhere(value_of(kept(number(1), test), _sql(nodes[0])))
            return CountUnits()
        if len(nodes) != 1:
            raise UnsupportedSql(
                "COUNT(DISTINCT ...) of several columns.", remedy="Ask one column at a time."
            )
        typed = self._rows.value(nodes[0])
        if isinstance(typed, Person) and typed.absent:
            # the unit of the other side of an outer join: the units with such a row
            present = counted(self._rows.countable(nodes[0]), test)
            return CountUnitsWhere(value_of(present, _column_name(nodes[0])))
        return CountDistinct(value_of(kept(typed, test), _column_name(nodes[0])))

    def _with_condition(
        self, nodes: Sequence[exp.Expr], test: Scalar | None
    ) -> tuple[Sequence[exp.Expr], Scalar | None]:
        """Returns the unit and the test of CASE WHEN test THEN unit END; other nodes as they are."""
        if len(nodes) != 1:
            return nodes, test
        node = nodes[0].unnest()
        if not isinstance(node, exp.Case | exp.If):
            return nodes, test
        branches = node.args["ifs"] if isinstance(node, exp.Case) else [node]
        others = [node.args.get("default") or node.args.get("false") or exp.null()]
        if isinstance(node, exp.Case) and node.this is not None:
            others.append(node.this)
        chosen = branches[0].args["true"]
        is_null = all(isinstance(other, exp.Null) for other in others)
        if not is_null or len(branches) != 1 or not self._is_unit(chosen):
            return nodes, test
        return [chosen], _conjunction(self._rows.test(branches[0].this), test)

    def _is_unit(self, node: exp.Expr) -> bool:
        """Whether a node is the unit of the row, or that of the other side of an outer join."""
        if self._scope.is_unit([node]):
            return True
        typed = self._rows.value(node) if isinstance(node, exp.Column) else None
        return isinstance(typed, Person) and typed.absent

    def _number(self, node: exp.Expr, test: Scalar | None) -> Value:
        """Returns the operand of an aggregate of numbers."""
        inner = node.this
        if isinstance(inner, exp.Distinct):
            raise refuse(
                f"{called(node)}(DISTINCT ...)", ("is not answered", f"{called(node)}(column)")
            )
        typed = self._rows.value(inner)
        if isinstance(typed, Words):
            raise bounds_needed(f"{called(node)}({_column_name(inner)})", typed)
        if not isinstance(typed, Number | Truth):
            code_of(typed)
            raise UnsupportedSql(
                f"{called(node)} of {_column_name(inner)!r}, which is {_describe_value(typed)}.",
                allowed="a number or a Boolean (its AVG is a share)",
                remedy=_countable(typed, _column_name(inner)),
            )
        if isinstance(typed, Truth) and test is None:
            return value_of(typed, _column_name(inner))
        value = value_of(kept(as_number(typed, inner), test), _column_name(inner))
        self._require_limited(value, node, inner)
        return value

    def _quantile(self, node: exp.Expr, test: Scalar | None) -> Level:
        """Returns the quantile that MEDIAN, QUANTILE_CONT, MIN, MAX and the like ask for."""
        operand, level = _quantile_operand(node)
        typed = self._rows.value(operand)
        if isinstance(typed, Words):
            raise bounds_needed(f"{_aggregate_name(node)} of {_column_name(operand)}", typed)
        if not isinstance(typed, Number | Day):
            code_of(typed)
            raise UnsupportedSql(
                f"{_aggregate_name(node)} of {_column_name(operand)!r}, which is {_describe_value(typed)}.",
                allowed="a number or a date",
                remedy=_countable(typed, _column_name(operand)),
            )
        if level in (0, 1):
            extreme, at = ("MAX", "above") if level else ("MIN", "below")
            self._scope.note(
                f"{extreme}({_column_name(operand)}) is the value that 0.5% lie {at}, found privately: "
                "the extreme itself is one person's."
            )
            level = HIGHEST if level else LOWEST
        value = value_of(kept(typed, test), _column_name(operand))
        self._require_limited(value, node, operand)
        return Level(value, level)

    def _require_limited(
        self,
        value: Value,
        node: exp.Expr,
        operand: exp.Expr,
    ) -> None:
        """Refuses a value whose range depends on a number of rows without a declared limit."""
        if (
            not self._unlimited_columns
            or isinstance(value.type, Text)
            or value.type.size < UNLIMITED
        ):
            return
        for leaf in leaves(value.expression):
            if isinstance(leaf, Field) and leaf.column.name in self._unlimited_columns:
                name = _aggregate_name(node)
                raise MissingDeclaration(
                    f"{name} of {_column_name(operand)} has no bound: "
                    "no limit of the rows of a unit is declared.",
                    allowed="max_rows_total=, or max_rows= with max_groups=, in sf.Unit(...)",
                    remedy=f"Or cut it in the question: {name}(LEAST({_column_name(operand)}, 100)).",
                )


def shared(asks: Iterable[Ask]) -> tuple[tuple[Aggregate, ...], dict[Ask, Estimate]]:
    """Returns the fewest noisy releases that answer all requests, and each request's estimate.

    An estimate refers to the release that answers the request.

    The release of a variance also answers the mean, sum and count of the same value; that of a mean
    its sum and count. All quantiles of a value share one release.
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
                if _is_for(release, statistic):
                    statistic = Statistic.VALUE
                estimates[ask] = Estimate(_release_place(places, release), statistic)
            case Level(value, level):
                every = tuple(sorted(levels[value]))
                index = _release_place(places, quantiles(value, every))
                estimates[ask] = Estimate(index, place=every.index(level))
            case _:
                estimates[ask] = Estimate(_release_place(places, ask))
    return tuple(places), estimates


def _release(value: Value, statistic: Statistic, others: set[Statistic]) -> Aggregate:
    """Returns the release that answers a statistic, and the others of the same value."""
    if others & set(_SPREAD.values()):
        return Variance(value)
    if Statistic.MEAN in others:
        return Mean(value)
    if statistic is Statistic.COUNT:
        return CountValues(value)
    return Sum(value)


def _is_for(release: Aggregate, statistic: Statistic) -> bool:
    """Whether a statistic is the main value of a release."""
    main: Mapping[type[Aggregate], Statistic] = {
        CountValues: Statistic.COUNT,
        Sum: Statistic.SUM,
        Mean: Statistic.MEAN,
    }
    return main.get(type(release)) is statistic


def _release_place(places: dict[Aggregate, int], release: Aggregate) -> int:
    """Returns the position of a release in the list of releases; a new one is appended."""
    return places.setdefault(release, len(places))


def _quantile_operand(node: exp.Expr) -> tuple[exp.Expr, Fraction]:
    """Returns the operand of a quantile, and its level from 0 (MIN) to 1 (MAX)."""
    match node:
        case exp.Median():
            require_only(node, "this")
            return node.this, Fraction(1, 2)
        case exp.Min() | exp.Max():
            require_only(node, "this")
            return node.this, Fraction(isinstance(node, exp.Max))
        case exp.WithinGroup():
            order = node.expression
            has_one_key = isinstance(order, exp.Order) and len(order.expressions) == 1
            if not has_one_key or not isinstance(node.this, _QUANTILE):
                raise reject(node.this)
            key = order.expressions[0]
            level = _level(node.this.this)
            if key.args.get("desc"):
                level = 1 - level
            return key.this, level
        case _:
            require_only(node, "this", "quantile", "expression")
            quantile = node.args.get("quantile") or node.args.get("expression")
            return node.this, _level(quantile)


def _level(node: exp.Expr | None) -> Fraction:
    """Returns the level of a quantile."""
    value = literal(node)
    if not isinstance(value, Fraction) or not 0 <= value <= 1 or value.denominator > _FINEST:
        raise UnsupportedSql(
            "A quantile that is not one constant from 0 to 1, a multiple of a millionth.",
            remedy="QUANTILE_CONT(column, 0.5)",
        )
    return value


def _countable(typed: Typed, name: str) -> str:
    """Returns what to do with a value that is no number."""
    if isinstance(typed, Instant):
        return f"Take its date, CAST({name} AS DATE), or its seconds, EXTRACT(EPOCH FROM {name})."
    return f"GROUP BY {name} to count its values."


def _describe_value(typed: Typed) -> str:
    """Returns what a value is, for messages."""
    if not isinstance(typed, Null) and isinstance(leaf := code_of(typed), Field):
        return f"declared as {leaf.column.type!r}"
    return {Day: "a date", Instant: "a timestamp", Label: "a text", Truth: "a test"}.get(
        type(typed), "no number"
    )


def _unlimited_columns(relation: Relation) -> Iterable[str]:
    """Yields the computed columns whose range depends on a number of rows without a limit."""
    if isinstance(relation, PerUnit):
        for computed in relation.columns:
            kind = computed.column.type
            if computed.summary in (Summary.MEAN, Summary.MINIMUM, Summary.MAXIMUM):
                continue
            if not isinstance(kind, Text) and kind.size >= UNLIMITED:
                yield computed.column.name
    if isinstance(relation, Ranked | Windowed):
        kind = relation.column.type
        if not isinstance(kind, Text) and kind.size >= UNLIMITED:
            yield relation.column.name
    for source in below(relation):
        yield from _unlimited_columns(source)


def _conjunction(test: Scalar, other: Scalar | None) -> Scalar:
    """Returns the conjunction of a test and an optional one."""
    if other is None:
        return test
    return And((test, other))


def _aggregate_name(node: exp.Expr) -> str:
    """Returns the name of an aggregate, for messages."""
    if isinstance(node, exp.WithinGroup):
        return "A quantile"
    return called(node)


def _column_name(node: exp.Expr) -> str:
    """Returns the name of a column, or an expression as SQL text."""
    if isinstance(node, exp.Column):
        return node.name
    return _sql(node)


def _sql(node: exp.Expr) -> str:
    """Returns an expression as SQL text."""
    return node.sql(dialect="duckdb")
