# SPDX-License-Identifier: Apache-2.0
"""Sub-queries with one row for each unit: GROUP BY the unit, or SELECT DISTINCT the unit."""

import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from sfumato.errors import UnsupportedSql
from sfumato.metadata.column import MAX_CODE, Column, ColumnType, Integer, Text
from sfumato.plan.relation import MAX_UNDER, UNLIMITED, Computed, PerUnit, Summary
from sfumato.plan.scalar import Lookup, Scalar
from sfumato.plan.value import Value
from sfumato.sql.calls import calls, placed, same_nodes
from sfumato.sql.functions import FUNCTIONS
from sfumato.sql.lattice import finest_step
from sfumato.sql.literal import literal
from sfumato.sql.names import Context, Scope, Source
from sfumato.sql.reject import called, refuse, reject, require_few, require_only
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
from sfumato.sql.where import conjuncts, passing

_NOTHING = Null()
_NESTED = (
    "A sub-query that aggregates over units",
    (
        "is an answer of its own",
        "GROUP BY {unit} inside, aggregate outside; or ask the inner query first, and compute on its noisy answer.",
    ),
)


def per_unit(context: Context, found: From, select: exp.Select, name: str) -> From:
    """The rows of a sub-query that aggregates, or removes repeats, within each unit."""
    scope = found.scope(context)
    grouped = _grouped(select, scope)
    if not scope.is_unit(grouped):
        why, instead = _NESTED[1]
        raise refuse(_NESTED[0], (why, instead.replace("{unit}", scope.unit_name())))
    rows = Rows(scope, FUNCTIONS)
    keys = [(node, rows.value(node)) for node in grouped if scope.part(node) is None]
    columns = [_key_column(context, node, typed) for node, typed in keys]
    reads = [computed(column, typed) for (column, _), (_, typed) in zip(columns, keys, strict=True)]
    done: dict[int, Typed] = {}
    for each in same_nodes(select, [node for node, _ in keys]):
        done[id(each[0])] = reads[each[1]]
    summaries = Summaries(context, found, rows)
    asked = calls([*select.expressions, select.args.get("having")])
    require_few(len(asked), "aggregates")
    seen = {id(node) for node in asked}
    for node in asked:
        quotient = _quotient_of(node, seen)
        mean = None if quotient is None else summaries.quotient(quotient)
        if mean is None:
            done[id(node)] = summaries.summary(node)
        elif quotient is not None:
            done[id(quotient)] = mean
    relation = PerUnit(found.relation, tuple(columns), tuple(summaries.columns))
    inner = _KeyNames(
        scope, rows, [(typed, key) for (_, typed), key in zip(keys, reads, strict=True)]
    )
    outer = Rows(inner, FUNCTIONS, done)
    named, shown, parts = items(select.expressions, scope, outer)
    named = {
        each: Person(each, None) if isinstance(typed, Person) else typed
        for each, typed in named.items()
    }
    inner.alias(named)
    having = select.args.get("having")
    tests = [] if having is None else [outer.test(each) for each in conjuncts(having.this)]
    source = Source(name, named, shown, parts, f"The sub-query {name!r}")
    limit = found.limit if keys else 1
    return replace(
        found.over(passing(relation, tests)),
        sources=(source,),
        limit=limit,
        once=False,
        public=False,
    )


def items(
    nodes: Sequence[exp.Expr], scope: Scope, rows: Rows
) -> tuple[dict[str, Typed], tuple[str, ...], dict[str, int]]:
    """The columns of a sub-query, their names as written, and those that name the unit."""
    named: dict[str, Typed] = {}
    shown: list[str] = []
    parts: dict[str, int] = {}
    for node in nodes:
        inner = node.this if isinstance(node, exp.Alias) else node
        part = scope.part(inner)
        if part is not None and scope.width == 1 and isinstance(inner, exp.Column):
            typed: Typed | None = scope.column(inner)
        else:
            typed = rows.value(inner) if part is None else None
        alias = (
            node.alias_or_name
            if isinstance(node, exp.Alias | exp.Column)
            else inner.sql(dialect="duckdb")
        )
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
    """The aggregates of one unit's rows, each once, as columns."""

    def __init__(self, context: Context, found: From, rows: Rows) -> None:
        self._context = context
        self._limit = UNLIMITED if found.limit is None else found.limit
        self._scope = found.scope(context)
        self._rows = rows
        self.columns: list[Computed] = []

    def summary(self, node: exp.Expr) -> Typed:
        """What an aggregate call gives for each unit."""
        if isinstance(node, exp.Filter):
            return self._of(node.this, self._rows.test(node.expression.this))
        return self._of(node, None)

    def _of(self, node: exp.Expr, test: Scalar | None) -> Typed:
        if isinstance(node, exp.IgnoreNulls):
            node = node.this
        match node:
            case exp.Count():
                return self._count(node, test)
            case exp.CountIf():
                return self._sum(
                    Number(Truth(self._rows.test(node.this)).codes, Fraction(1)), node, test
                )
            case exp.Sum() | exp.Avg():
                require_only(node, "this")
                operand = as_number(self._rows.value(node.this), node.this)
                return (
                    self._sum(operand, node, test)
                    if isinstance(node, exp.Sum)
                    else self._mean(operand, node, test)
                )
            case exp.Min() | exp.Max() | exp.AnyValue() | exp.LogicalOr() | exp.LogicalAnd():
                require_only(node, "this")
                least = isinstance(node, exp.Min | exp.AnyValue | exp.LogicalAnd)
                return self._end(
                    self._rows.value(node.this),
                    node,
                    test,
                    Summary.MINIMUM if least else Summary.MAXIMUM,
                )
            case _:
                raise refuse(
                    f"{called(node)} of one unit's rows",
                    (
                        "is not computed in a sub-query",
                        "COUNT, SUM, AVG, MIN, MAX, ANY_VALUE, BOOL_OR, BOOL_AND.",
                    ),
                )

    def _count(self, node: exp.Count, test: Scalar | None) -> Typed:
        require_only(node, "this", "big_int")
        inner = node.this
        distinct = isinstance(inner, exp.Distinct)
        if distinct and len(inner.expressions) != 1:
            raise UnsupportedSql(
                "COUNT(DISTINCT ...) of several columns.", remedy="COUNT(DISTINCT CONCAT(...))"
            )
        inner = inner.expressions[0] if distinct else inner
        if (
            isinstance(inner, exp.Star)
            or literal(inner) is not None
            or (self._scope.part(inner) is not None and not distinct)
        ):
            if test is None:
                return self._column(Summary.COUNT, Integer(1, max(self._limit, 2)), None)
            value = value_of(kept(number(1), test), node.sql())
            return self._column(Summary.COUNT_VALUES, Integer(0, self._limit), value)
        operand = self._rows.value(inner) if distinct else self._rows.countable(inner)
        value = value_of(
            kept(operand, test) if distinct else counted(operand, test), inner.sql(dialect="duckdb")
        )
        size = MAX_CODE if isinstance(value.type, Text) else value.type.size
        kind = Integer(0, min(self._limit, size) if distinct else self._limit)
        return self._column(
            Summary.COUNT_DISTINCT if distinct else Summary.COUNT_VALUES, kind, value
        )

    def _sum(self, operand: Number, node: exp.Expr, test: Scalar | None) -> Number:
        value = value_of(kept(operand, test), node.sql(dialect="duckdb"))
        kind = value.numeric
        low, high = kind.lower_code, kind.upper_code
        low, high = low * (self._limit if low < 0 else 1), high * (self._limit if high > 0 else 1)
        low, high = max(low, -MAX_CODE), min(high, MAX_CODE)
        found = as_number(
            self._column(Summary.SUM, number_type(low, high, kind.step), value, operand), node
        )
        cut = operand.cut or value.rounding != operand.rounding
        return replace(found, rounding=value.rounding * self._limit, cut=cut)

    def _mean(self, operand: Number, node: exp.Expr, test: Scalar | None) -> Number:
        """A mean lies where its values do, on steps as fine as codes allow."""
        value = value_of(kept(operand, test), node.sql(dialect="duckdb"))
        ends = value.numeric.lower_code * value.step, value.numeric.upper_code * value.step
        step = finest_step(max(map(abs, ends)))
        if (value.step / step).denominator > MAX_UNDER:
            step = value.step / 2 ** max(math.floor(math.log2(value.step / step)), 0)
        codes = math.floor(ends[0] / step), math.ceil(ends[1] / step)
        typed = as_number(self._column(Summary.MEAN, number_type(*codes, step), value), node)
        cut = operand.cut or value.rounding != operand.rounding
        return replace(typed, rounding=typed.step / 2 + value.rounding, nearest=True, cut=cut)

    def quotient(self, node: exp.Div) -> Number | None:
        """SUM(x) / COUNT(x), which is a mean; None where it is none."""
        above, below = node.this.unnest(), node.expression.unnest()
        if isinstance(below, exp.Nullif) and literal(below.expression) == 0:
            below = below.this.unnest()
        if isinstance(above, exp.Sum) and isinstance(below, exp.Count) and above.this == below.this:
            require_only(below, "this", "big_int")
            return self._mean(
                as_number(self._rows.value(above.this), above.this),
                exp.Avg(this=above.this.copy()),
                None,
            )
        return None

    def _end(self, operand: Typed, node: exp.Expr, test: Scalar | None, summary: Summary) -> Typed:
        if isinstance(operand, Words | Person | Null):
            raise UnsupportedSql(
                "MIN, MAX or ANY_VALUE of a text without declared values.",
                remedy="Declare the column as sf.Category(...), or COUNT(DISTINCT column).",
            )
        operand = alphabetical(operand) if isinstance(operand, Label) else operand
        value = value_of(kept(operand, test), node.sql(dialect="duckdb"))
        return self._column(summary, value.type, value, operand)

    def _column(
        self, summary: Summary, kind: ColumnType, value: Value | None, made_of: Typed = _NOTHING
    ) -> Typed:
        for each in self.columns:
            if (each.summary, each.value, each.column.type) == (summary, value, kind):
                return computed(each.column, made_of)
        column = Column(self._context.name(f"per_unit.{summary.value.replace(' ', '_')}"), kind)
        self.columns.append(Computed(column, summary, value))
        return computed(column, made_of)


def alphabetical(label: Label) -> Label:
    """The same text, coded in the order of the alphabet."""
    ordered = tuple(sorted(label.labels))
    if ordered == label.labels:
        return label
    return Label(
        Lookup(label.expression, 0, tuple(ordered.index(each) for each in label.labels)), ordered
    )


class _KeyNames:
    """After the grouping a name means a key, or an alias of the sub-query."""

    def __init__(self, scope: Scope, rows: Rows, keys: Sequence[tuple[Typed, Typed]]) -> None:
        self._scope = scope
        self._rows = rows
        self._keys = keys
        self._aliases: dict[str, Typed] = {}

    def alias(self, named: dict[str, Typed]) -> None:
        """Lets HAVING call the columns of the sub-query by their names."""
        self._aliases = named

    def note(self, words: str) -> None:
        """Tells the reader of the answer something."""
        self._scope.note(words)

    def reads(self, person: Person) -> None:
        """The unit's own column is below the grouping, and not seen from here."""

    def answered(self, test: Scalar) -> None:
        """Notes that the answer of a sub-query stands in a test."""
        self._scope.answered(test)

    def rounded(self, words: str) -> None:
        """Tells the reader of the answer that a test is of a rounded number."""
        self._scope.rounded(words)

    def column(self, node: exp.Column) -> Typed:
        """The key that a name means."""
        if not node.table and node.name.lower() in self._aliases:
            return self._aliases[node.name.lower()]
        typed = self._rows.value(node)
        found = next((key for computed, key in self._keys if computed == typed), None)
        if found is None and not isinstance(typed, Person):
            raise UnsupportedSql(
                f"Column {node.name!r} outside GROUP BY in a sub-query.",
                remedy=f"Say which of the unit's values: MIN({node.name}), MAX({node.name}), or add it to GROUP BY.",
            )
        return typed if found is None else found


def _grouped(select: exp.Select, scope: Scope) -> list[exp.Expr]:
    """What the sub-query has one row for."""
    group = select.args.get("group")
    if group is None:
        distinct = select.args.get("distinct")
        if distinct is None:
            return []
        require_only(distinct)
        if calls(select.expressions):
            raise reject(distinct)
        return [each.this if isinstance(each, exp.Alias) else each for each in select.expressions]
    require_only(group, "expressions")
    return [placed(each, select, scope) for each in group.expressions]


def _quotient_of(node: exp.Expr, asked: Collection[int]) -> exp.Div | None:
    """The quotient of which an aggregate is the dividend or the divisor, the other one being an aggregate too."""
    outer = node.parent
    while isinstance(outer, exp.Paren | exp.Nullif):
        outer = outer.parent
    if not isinstance(outer, exp.Div):
        return None
    below = outer.expression.unnest()
    below = below.this.unnest() if isinstance(below, exp.Nullif) else below
    return outer if {id(outer.this.unnest()), id(below)} <= set(asked) else None


def _key_column(context: Context, node: exp.Expr, typed: Typed) -> tuple[Column, Value]:
    value = value_of(typed, node.sql(dialect="duckdb"))
    return Column(context.name("per_unit.key"), value.type), value
