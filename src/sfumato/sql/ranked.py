# SPDX-License-Identifier: Apache-2.0
"""Lowers the window functions that read the rows of one unit: row numbers, ranks, LAG and LEAD."""

from collections.abc import Sequence

from sqlglot import exp

from sfumato.errors import UnsupportedSql
from sfumato.metadata.column import Column, Integer, Text
from sfumato.plan.relation import UNLIMITED, Ranked, Sort, Windowed, WindowFunction
from sfumato.plan.scalar import (
    Case,
    Coalesce,
    Constant,
    Extreme,
    Field,
    IsNull,
    Member,
    Scalar,
)
from sfumato.plan.value import Value
from sfumato.sql.functions import FUNCTIONS
from sfumato.sql.labels import alphabetical
from sfumato.sql.literal import whole
from sfumato.sql.names import Context, Scope
from sfumato.sql.reject import refuse, reject, require_only
from sfumato.sql.row_expressions import Rows, unified
from sfumato.sql.tables import From, fields
from sfumato.sql.typed import (
    Label,
    Null,
    Typed,
    code_of,
    computed,
    read,
    value_of,
)

_ACROSS = "reaches across units, so one person changes the values of others"
_OF_ONE = "within one unit is not computed"
_INSTEAD = (
    "ROW_NUMBER, RANK, DENSE_RANK, LAG, LEAD and FIRST_VALUE OVER (PARTITION BY {unit} ORDER BY "
    "...), COUNT, SUM, AVG, MIN and MAX OVER (PARTITION BY {unit}), in a sub-query; or aggregate "
    "with GROUP BY, and rank or accumulate the noisy answer."
)
_FUNCTIONS = {
    exp.RowNumber: WindowFunction.ROW_NUMBER,
    exp.Rank: WindowFunction.RANK,
    exp.DenseRank: WindowFunction.DENSE_RANK,
    exp.Lag: WindowFunction.LAG,
    exp.Lead: WindowFunction.LEAD,
}
_FARTHEST = 1_000


def with_aliases(test: exp.Expr, items: Sequence[exp.Expr], scope: Scope) -> exp.Expr:
    """Returns the test of QUALIFY with the columns of SELECT in place of their names.

    A column of the rows goes before one of SELECT, as in DuckDB.
    """
    named = {item.alias.lower(): item.this for item in items if isinstance(item, exp.Alias)}

    def put(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column) or node.table:
            return node
        item = named.get(node.name.lower())
        return node if item is None or scope.owns(node) else exp.Paren(this=item.copy())

    return test.copy().transform(put)


def _refused(node: exp.Expr, scope: Scope, *, is_within: bool) -> UnsupportedSql:
    """Returns the refusal of a window that is not computed within one unit."""
    name = "window"
    if isinstance(node.this, exp.Func):
        name = type(node.this).sql_name()
    reason = _OF_ONE if is_within else _ACROSS
    instead = _INSTEAD.replace("{unit}", scope.unit_name())
    return refuse(f"A window function ({name} OVER)", (reason, instead))


def window(context: Context, rows: From, node: exp.Window) -> tuple[Ranked | Windowed, Typed]:
    """Returns the relation with the column of a window, and the value of the column."""
    scope = rows.scope(context)
    partition = node.args.get("partition_by") or []
    is_within = scope.is_unit(partition)
    function = _FUNCTIONS.get(type(node.this))
    if function is None or not is_within:
        raise _refused(node, scope, is_within=is_within)
    require_only(node, "this", "partition_by", "order", "over")
    expressions = Rows(scope, FUNCTIONS)
    keys = [key for key in partition if scope.part(key) is None]
    by = tuple(code_of(expressions.value(key)) for key in keys)
    order = node.args.get("order")
    sorts = tuple(sort_key(expressions, key) for key in (order.expressions if order else []))
    ties = fields(rows.relation)
    if isinstance(node.this, exp.Lag | exp.Lead):
        return _looked_up(context, rows, expressions, node.this, (function, by, sorts, ties))
    if not sorts and function is not WindowFunction.ROW_NUMBER:
        raise UnsupportedSql(
            "A rank without an order.", remedy="RANK() OVER (PARTITION BY ... ORDER BY column)"
        )
    if function is WindowFunction.ROW_NUMBER and not by:
        number = Column(context.name(f"{rows.table}.row_number"), Integer(1, UNLIMITED))
        return Ranked(rows.relation, sorts, ties, number), read(number)
    # beyond the declared rows of a unit all numbers are one more than these
    most = UNLIMITED if rows.limit is None else rows.limit + 1
    column = Column(context.name(f"{rows.table}.{function.value}"), Integer(1, most))
    return Windowed(rows.relation, function, by, sorts, ties, column), read(column)


def _looked_up(
    context: Context,
    rows: From,
    expressions: Rows,
    call: exp.Lag | exp.Lead,
    over: tuple[WindowFunction, tuple[Scalar, ...], tuple[Sort, ...], tuple[Scalar, ...]],
) -> tuple[Windowed, Typed]:
    """Returns LAG or LEAD of a value, which is NULL where there is no such row."""
    require_only(call, "this", "offset", "default")
    function, by, sorts, ties = over
    name = function.name
    if not sorts:
        raise UnsupportedSql(
            f"{name} without an order.", remedy=f"{name}(day) OVER (PARTITION BY ... ORDER BY day)"
        )
    typed = expressions.value(call.this)
    offset = call.args.get("offset")
    places = 1 if offset is None else whole(offset, f"{name}: a number of rows", 1, _FARTHEST)
    value = value_of(typed, call.this.sql(dialect="duckdb"))
    default = call.args.get("default")
    other = Null() if default is None else expressions.value(default)
    if isinstance(other, Null):
        column = Column(context.name(f"{rows.table}.{function.value}"), value.type)
        relation = Windowed(rows.relation, function, by, sorts, ties, column, value, places)
        return relation, computed(column, typed)
    if isinstance(value.type, Text):
        raise UnsupportedSql(
            f"{name} of a Text column with a default.",
            remedy=f"COALESCE({name}(text) OVER (...), 'none'), which also replaces missing texts.",
        )
    kind = Integer(value.type.lower_code - 1, value.type.upper_code)
    column = Column(context.name(f"{rows.table}.{function.value}"), kind)
    marked = _marked(value, kind)
    relation = Windowed(rows.relation, function, by, sorts, ties, column, marked, places)
    looked_up = computed(Column(column.name, value.type), typed)
    return relation, _with_default(Field(column), kind.lower_code, looked_up, other)


def _marked(value: Value, kind: Integer) -> Value:
    """Returns a value that is never NULL: a code below all others stands for it.

    So the NULL of another row differs from that of no row, which a default replaces.
    """
    return Value(value.name, kind, Coalesce((value.expression, Constant(kind.lower_code))))


def _with_default(leaf: Field, mark: int, looked_up: Typed, default: Typed) -> Typed:
    """Returns what a marked column stands for, and ``default`` where it is NULL."""
    within = Extreme(greatest=True, operands=(leaf, Constant(mark + 1)))
    own = Case(((Member(leaf, (mark,)), Constant(None)),), within)
    wrap, _ = unified([looked_up])
    wrap, codes = unified([wrap(own), default])
    return wrap(Case(((IsNull(leaf), codes[1]),), codes[0]))


def sort_key(rows: Rows, node: exp.Expr) -> Sort:
    """Returns a sort key of a window's ORDER BY within a unit."""
    if not isinstance(node, exp.Ordered):
        raise reject(node)
    require_only(node, "this", "desc", "nulls_first")
    if node.args.get("nulls_first"):
        raise UnsupportedSql(
            "NULLS FIRST within a unit.", remedy="NULLs are last; leave it out, or COALESCE them."
        )
    typed = rows.value(node.this)
    if node.this.find(exp.Column) is None:
        raise UnsupportedSql(
            "ORDER BY a constant within a unit.", remedy="ORDER BY a column, or leave it out."
        )
    if isinstance(typed, Label):
        typed = alphabetical(typed)
    return Sort(code_of(typed), bool(node.args.get("desc")))
