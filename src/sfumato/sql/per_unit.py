# SPDX-License-Identifier: Apache-2.0
"""Lowers sub-queries with one row a unit: GROUP BY the unit, or SELECT DISTINCT the unit."""

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from sqlglot import exp

from sfumato.errors import UnsupportedSql
from sfumato.metadata.coded import MAX_CODE
from sfumato.metadata.column import Column, ColumnType, Integer, Text
from sfumato.plan.relation import (
    MAX_UNDER,
    UNLIMITED,
    Computed,
    PerUnit,
    Relation,
    Summary,
    UnitJoin,
)
from sfumato.plan.scalar import Scalar
from sfumato.plan.value import Value
from sfumato.sql.calls import calls, keys_of_all, placed, same_nodes
from sfumato.sql.conditions import conjuncts, passing
from sfumato.sql.first_rows import first_row, is_of_first
from sfumato.sql.functions import FUNCTIONS
from sfumato.sql.labels import alphabetical
from sfumato.sql.lattice import finest_step
from sfumato.sql.literal import literal
from sfumato.sql.names import Context, Scope, Source
from sfumato.sql.reject import CORRELATED, called, refuse, reject, require_few, require_only
from sfumato.sql.row_expressions import Rows, as_number, counted, kept
from sfumato.sql.tables import From
from sfumato.sql.typed import (
    Label,
    Null,
    Number,
    Person,
    Truth,
    Typed,
    Words,
    computed,
    number,
    number_type,
    value_of,
)

_NOTHING = Null()
_NESTED = (
    "A sub-query that aggregates over units",
    (
        "is an answer of its own",
        (
            "GROUP BY {unit} inside, aggregate outside; "
            "or ask the inner query first, and compute on its noisy answer."
        ),
    ),
)


def per_unit(
    context: Context,
    source: From,
    select: exp.Select,
    name: str,
    again: Callable[[], From],
) -> From:
    """Returns the relation of a sub-query that groups by the unit, or by the unit and other keys.

    ``again`` lowers the source again, under new names of columns.

    Raises:
        UnsupportedSql: the sub-query does not group by the unit.
    """
    scope = source.scope(context)
    grouped = _group_nodes(select, scope)
    _require_unit(scope, grouped, is_correlated=name.startswith("correlated"))
    rows = Rows(scope, FUNCTIONS)
    keys = _computed_keys(context, scope, rows, grouped)
    done: dict[int, Typed] = {}
    for node, place in same_nodes(select, [key.node for key in keys]):
        done[id(node)] = keys[place].column_value
    summaries = Summaries(context, source, rows)
    done |= _aggregate_values(summaries, select)
    key_columns = tuple((key.column, key.value) for key in keys)
    relation: Relation = PerUnit(source.relation, key_columns, tuple(summaries.columns))
    for node in filter(is_of_first, calls([*select.expressions, select.args.get("having")])):
        if keys:
            raise _by_other_keys(node)
        row = first_row(context, again(), node)
        relation = UnitJoin(relation, row.relation, outer=True)
        done[id(node)] = row.value
    inner = _KeyNames(scope, rows, keys)
    outer = Rows(inner, FUNCTIONS, done)
    named, shown, parts = items(select.expressions, scope, outer)
    for column, typed in named.items():
        if isinstance(typed, Person):
            # the unit is known by this name, and its own column cannot be read any more
            named[column] = Person(column, None)
    inner.alias(named)
    sources = (Source(name, named, shown, parts, f"The sub-query {name!r}"),)
    limit = source.limit if keys else 1
    rows_of_units = source.over(passing(relation, _having_tests(select, outer)))
    return replace(
        rows_of_units,
        sources=sources,
        limit=limit,
        once=False,
        public=False,
    )


def _by_other_keys(node: exp.Expr) -> UnsupportedSql:
    return refuse(
        f"{called(node)} of the rows of one unit and other keys",
        ("is not computed", "GROUP BY the unit alone; or WHERE the key has one value."),
    )


def _having_tests(select: exp.Select, rows: Rows) -> list[Scalar]:
    """Returns the tests of HAVING."""
    having = select.args.get("having")
    if having is None:
        return []
    return [rows.test(test) for test in conjuncts(having.this)]


def _require_unit(scope: Scope, grouped: Sequence[exp.Expr], *, is_correlated: bool) -> None:
    """Refuses a sub-query that does not group by the unit."""
    if scope.is_unit(grouped):
        return
    if is_correlated:
        raise refuse("A sub-query that reads the row outside (a correlated one)", CORRELATED)
    what, (why, instead) = _NESTED
    named = instead.replace("{unit}", scope.unit_name())
    raise refuse(what, (why, named))


@dataclass(frozen=True, slots=True)
class _Key:
    """A key of the sub-query besides the unit.

    ``typed`` is its value below the grouping, ``value`` the same for the plan; ``column`` is its
    column above the grouping, and ``column_value`` what that column reads.
    """

    node: exp.Expr
    typed: Typed
    column: Column
    value: Value
    column_value: Typed


def _computed_keys(
    context: Context,
    scope: Scope,
    rows: Rows,
    grouped: Sequence[exp.Expr],
) -> list[_Key]:
    """Returns the keys that are not columns of the unit, each with a new column."""
    keyed = [node for node in grouped if scope.part(node) is None]
    keys = []
    values = [rows.value(node) for node in keyed]
    for node, typed in zip(keyed, values, strict=True):
        value = value_of(typed, node.sql(dialect="duckdb"))
        column = Column(context.name("per_unit.key"), value.type)
        keys.append(_Key(node, typed, column, value, computed(column, typed)))
    return keys


def _aggregate_values(summaries: "Summaries", select: exp.Select) -> dict[int, Typed]:
    """Returns the value of each aggregate of the sub-query, by the identity of its node.

    SUM(x) / COUNT(x) has one value as a whole, a mean.
    """
    done: dict[int, Typed] = {}
    asked = calls([*select.expressions, select.args.get("having")])
    require_few(len(asked), "aggregates")
    seen = {id(node) for node in asked}
    for node in asked:
        if is_of_first(node):
            continue
        quotient = _quotient_of(node, seen)
        mean = None
        if quotient is not None:
            mean = summaries.quotient(quotient)
        if mean is None:
            done[id(node)] = summaries.summary(node)
        else:
            done[id(quotient)] = mean
    return done


def items(
    nodes: Sequence[exp.Expr], scope: Scope, rows: Rows
) -> tuple[dict[str, Typed], tuple[str, ...], dict[str, int]]:
    """Returns a per-unit sub-query's columns, their names as written, and the columns of the unit.

    The last maps each column that identifies the unit to its position among those that do.
    """
    named: dict[str, Typed] = {}
    shown: list[str] = []
    parts: dict[str, int] = {}
    for node in nodes:
        inner = node.this if isinstance(node, exp.Alias) else node
        part = scope.part(inner)
        typed: Typed | None = None
        if part is None:
            typed = rows.value(inner)
        elif scope.width == 1 and isinstance(inner, exp.Column):
            typed = scope.column(inner)
        is_named = isinstance(node, exp.Alias | exp.Column)
        alias = node.alias_or_name if is_named else inner.sql(dialect="duckdb")
        if alias.lower() in named or alias.lower() in parts:
            raise UnsupportedSql(
                f"A sub-query with two columns {alias!r}.", remedy="Give each its own name with AS."
            )
        if part is not None:
            parts[alias.lower()] = part
        if typed is not None:
            named[alias.lower()] = typed
        shown.append(alias)
    return named, tuple(shown), parts


class Summaries:
    """Lowers the aggregates of a per-unit sub-query to columns, each distinct aggregate once."""

    def __init__(
        self,
        context: Context,
        source: From,
        rows: Rows,
    ) -> None:
        self._context = context
        self._limit = UNLIMITED if source.limit is None else source.limit
        self._scope = source.scope(context)
        self._rows = rows
        self.columns: list[Computed] = []

    def summary(self, node: exp.Expr) -> Typed:
        """Returns the value of an aggregate call."""
        if isinstance(node, exp.Filter):
            return self._aggregate_value(node.this, self._rows.test(node.expression.this))
        return self._aggregate_value(node, None)

    def _aggregate_value(self, node: exp.Expr, test: Scalar | None) -> Typed:
        """Returns the value of an aggregate over the rows that pass a test."""
        if isinstance(node, exp.IgnoreNulls):
            node = node.this
        match node:
            case exp.Count():
                return self._count(node, test)
            case exp.CountIf():
                codes = Truth(self._rows.test(node.this)).codes
                return self._sum(Number(codes, Fraction(1)), node, test)
            case exp.Sum():
                require_only(node, "this")
                return self._sum(self._rows.number(node.this), node, test)
            case exp.Avg():
                require_only(node, "this")
                return self._mean(self._rows.number(node.this), node, test)
            case exp.Min() | exp.AnyValue() | exp.LogicalAnd():
                require_only(node, "this")
                return self._extreme(self._rows.value(node.this), node, test, Summary.MINIMUM)
            case exp.Max() | exp.LogicalOr():
                require_only(node, "this")
                return self._extreme(self._rows.value(node.this), node, test, Summary.MAXIMUM)
            case _:
                raise refuse(
                    f"{called(node)} of one unit's rows",
                    (
                        "is not computed in a sub-query",
                        "COUNT, SUM, AVG, MIN, MAX, ANY_VALUE, BOOL_OR, BOOL_AND.",
                    ),
                )

    def _count(self, node: exp.Count, test: Scalar | None) -> Typed:
        """Returns COUNT(*), COUNT(expression) or COUNT(DISTINCT expression)."""
        require_only(node, "this", "big_int")
        inner = node.this
        if isinstance(inner, exp.Distinct):
            return self._count_distinct(node, inner, test)
        counts_rows = isinstance(inner, exp.Star) or literal(inner) is not None
        if counts_rows or self._scope.part(inner) is not None:
            return self._count_rows(node, test)
        operand = counted(self._rows.countable(inner), test)
        value = value_of(operand, inner.sql(dialect="duckdb"))
        return self._summary_column(Summary.COUNT_VALUES, Integer(0, self._limit), value)

    def _count_distinct(
        self,
        node: exp.Count,
        distinct: exp.Distinct,
        test: Scalar | None,
    ) -> Typed:
        """Returns COUNT(DISTINCT expression)."""
        if len(distinct.expressions) != 1:
            raise UnsupportedSql(
                "COUNT(DISTINCT ...) of several columns.", remedy="COUNT(DISTINCT CONCAT(...))"
            )
        inner = distinct.expressions[0]
        if isinstance(inner, exp.Star) or literal(inner) is not None:
            return self._count_rows(node, test)
        operand = kept(self._rows.value(inner), test)
        value = value_of(operand, inner.sql(dialect="duckdb"))
        size = MAX_CODE if isinstance(value.type, Text) else value.type.size
        kind = Integer(0, min(self._limit, size))
        return self._summary_column(Summary.COUNT_DISTINCT, kind, value)

    def _count_rows(self, node: exp.Expr, test: Scalar | None) -> Typed:
        """Returns the number of rows, or of those that pass a test."""
        if test is None:
            kind = Integer(1, max(self._limit, 2))
            return self._summary_column(Summary.COUNT, kind, None)
        value = value_of(kept(number(1), test), node.sql())
        return self._summary_column(Summary.COUNT_VALUES, Integer(0, self._limit), value)

    def _sum(
        self,
        operand: Number,
        node: exp.Expr,
        test: Scalar | None,
    ) -> Number:
        """Returns SUM; its range is that of the value times the limit of rows."""
        value = value_of(kept(operand, test), node.sql(dialect="duckdb"))
        low = value.numeric.lower_code
        high = value.numeric.upper_code
        if low < 0:
            low = max(low * self._limit, -MAX_CODE)
        if high > 0:
            high = min(high * self._limit, MAX_CODE)
        kind = number_type(low, high, value.step)
        total = as_number(self._summary_column(Summary.SUM, kind, value, operand), node)
        cut = operand.cut or value.rounding != operand.rounding
        return replace(total, rounding=value.rounding * self._limit, cut=cut)

    def _mean(
        self,
        operand: Number,
        node: exp.Expr,
        test: Scalar | None,
    ) -> Number:
        """Returns AVG, which has the range of its values and the finest step that codes allow."""
        value = value_of(kept(operand, test), node.sql(dialect="duckdb"))
        low = value.numeric.lower_code * value.step
        high = value.numeric.upper_code * value.step
        step = finest_step(max(abs(low), abs(high)))
        if (value.step / step).denominator > MAX_UNDER:
            halvings = math.floor(math.log2(value.step / step))
            step = value.step / 2 ** max(halvings, 0)
        lower = math.floor(low / step)
        upper = math.ceil(high / step)
        kind = number_type(lower, upper, step)
        mean = as_number(self._summary_column(Summary.MEAN, kind, value), node)
        cut = operand.cut or value.rounding != operand.rounding
        rounding = mean.step / 2 + value.rounding
        return replace(mean, rounding=rounding, nearest=True, cut=cut)

    def quotient(self, node: exp.Div) -> Number | None:
        """Returns SUM(x) / COUNT(x) as a mean; None for any other quotient."""
        above = node.this.unnest()
        below = node.expression.unnest()
        if isinstance(below, exp.Nullif) and literal(below.expression) == 0:
            below = below.this.unnest()
        if not isinstance(above, exp.Sum) or not isinstance(below, exp.Count):
            return None
        if above.this != below.this:
            return None
        require_only(below, "this", "big_int")
        mean = exp.Avg(this=above.this.copy())
        return self._mean(self._rows.number(above.this), mean, None)

    def _extreme(
        self,
        operand: Typed,
        node: exp.Expr,
        test: Scalar | None,
        summary: Summary,
    ) -> Typed:
        """Returns the least or the greatest value."""
        if isinstance(operand, Words | Person | Null):
            raise UnsupportedSql(
                "MIN, MAX or ANY_VALUE of a text without declared values.",
                remedy="Declare the column as sf.Category(...), or COUNT(DISTINCT column).",
            )
        if isinstance(operand, Label):
            operand = alphabetical(operand)
        value = value_of(kept(operand, test), node.sql(dialect="duckdb"))
        return self._summary_column(summary, value.type, value, operand)

    def _summary_column(
        self,
        summary: Summary,
        kind: ColumnType,
        value: Value | None,
        made_of: Typed = _NOTHING,
    ) -> Typed:
        """Returns the column of a summary; the same one for an equal summary."""
        for known in self.columns:
            described = (known.summary, known.value, known.column.type)
            if described == (summary, value, kind):
                return computed(known.column, made_of)
        column = Column(self._context.name(f"per_unit.{summary.value.replace(' ', '_')}"), kind)
        self.columns.append(Computed(column, summary, value))
        return computed(column, made_of)


class _KeyNames:
    """Resolves names above the grouping: to keys, and in HAVING to aliases of the sub-query."""

    def __init__(
        self,
        scope: Scope,
        rows: Rows,
        keys: Sequence[_Key],
    ) -> None:
        self._scope = scope
        self._rows = rows
        self._computed_keys = keys
        self._aliases: dict[str, Typed] = {}

    def alias(self, named: dict[str, Typed]) -> None:
        """Makes the columns of the sub-query known by their names, for HAVING."""
        self._aliases = named

    def note(self, words: str) -> None:
        """Adds a note to the answer."""
        self._scope.note(words)

    def reads(self, person: Person) -> None:
        """Does nothing: the unit's own column is below the grouping."""

    def answered(self, test: Scalar) -> None:
        """Records that a test contains the answer of a scalar sub-query."""
        self._scope.answered(test)

    def rounded(self, words: str) -> None:
        """Adds a line of bias to the answer: a test reads a rounded number."""
        self._scope.rounded(words)

    def column(self, node: exp.Column) -> Typed:
        """Returns the key that a name refers to.

        Raises:
            UnsupportedSql: it is a column that is not a key.
        """
        if not node.table and node.name.lower() in self._aliases:
            return self._aliases[node.name.lower()]
        typed = self._rows.value(node)
        for key in self._computed_keys:
            if key.typed == typed:
                return key.column_value
        if isinstance(typed, Person):
            return typed
        raise UnsupportedSql(
            f"Column {node.name!r} outside GROUP BY in a sub-query.",
            remedy=f"Say which of the unit's values: MIN({node.name}), MAX({node.name}), "
            "or add it to GROUP BY.",
        )


def _group_nodes(select: exp.Select, scope: Scope) -> list[exp.Expr]:
    """Returns the nodes of GROUP BY, or those of SELECT DISTINCT."""
    group = select.args.get("group")
    if group is None:
        distinct = select.args.get("distinct")
        if distinct is None:
            return []
        require_only(distinct)
        if calls(select.expressions):
            raise reject(distinct)
        columns = select.expressions
        return [node.this if isinstance(node, exp.Alias) else node for node in columns]
    require_only(group, "expressions", "all")
    if group.args.get("all"):
        return keys_of_all(select)
    return [placed(node, select, scope) for node in group.expressions]


def _quotient_of(node: exp.Expr, call_ids: Collection[int]) -> exp.Div | None:
    """Returns the quotient of two aggregates of which this one is the dividend or the divisor."""
    outer = node.parent
    while isinstance(outer, exp.Paren | exp.Nullif):
        outer = outer.parent
    if not isinstance(outer, exp.Div):
        return None
    below = outer.expression.unnest()
    if isinstance(below, exp.Nullif):
        below = below.this.unnest()
    if id(outer.this.unnest()) in call_ids and id(below) in call_ids:
        return outer
    return None
