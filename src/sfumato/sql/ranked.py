# SPDX-License-Identifier: Apache-2.0
"""Lowers ROW_NUMBER within a unit, the only window function that does not read across units."""

from sqlglot import exp

from sfumato.errors import UnsupportedSql
from sfumato.metadata.column import Column, Integer
from sfumato.plan.relation import UNLIMITED, Ranked, Sort
from sfumato.sql.functions import FUNCTIONS
from sfumato.sql.labels import alphabetical
from sfumato.sql.names import Context, Scope
from sfumato.sql.reject import refuse, reject, require_only
from sfumato.sql.row_expressions import Rows
from sfumato.sql.tables import From, fields
from sfumato.sql.typed import Label, Typed, code_of, read

_ACROSS = "reaches across units, so one person changes the values of others"
_OF_ONE = "within one unit is not computed"
_INSTEAD = (
    "Only ROW_NUMBER() OVER (PARTITION BY {unit} ORDER BY ...) in a sub-query; "
    "or aggregate with GROUP BY, and rank or accumulate the noisy answer."
)


def ranked(context: Context, rows: From, select: exp.Select) -> tuple[From, dict[int, Typed]]:
    """Adds a column of row numbers for each window of a sub-query.

    Returns the rows, and the value of each window by the identity of its node.
    """
    done: dict[int, Typed] = {}
    for item in select.expressions:
        for node in item.find_all(exp.Window):
            relation = _number_rows(context, rows, node)
            done[id(node)] = read(relation.column)
            rows = rows.over(relation)
    return rows, done


def _refused(node: exp.Expr, scope: Scope, *, is_within: bool) -> UnsupportedSql:
    """Returns the refusal of a window that is no row number of the rows of one unit."""
    name = "window"
    if isinstance(node.this, exp.Func):
        name = type(node.this).sql_name()
    reason = _OF_ONE if is_within else _ACROSS
    instead = _INSTEAD.replace("{unit}", scope.unit_name())
    return refuse(f"A window function ({name} OVER)", (reason, instead))


def _number_rows(context: Context, rows: From, node: exp.Window) -> Ranked:
    """Returns the relation with the row numbers of a window."""
    scope = rows.scope(context)
    partition = node.args.get("partition_by") or []
    is_within = scope.is_unit(partition)
    is_by_unit = is_within and len(partition) == scope.width
    if not isinstance(node.this, exp.RowNumber) or not is_by_unit:
        raise _refused(node, scope, is_within=is_within)
    require_only(node, "this", "partition_by", "order", "over")
    expressions = Rows(scope, FUNCTIONS)
    order = node.args.get("order")
    keys = order.expressions if order else []
    sorts = tuple(sort_key(expressions, key) for key in keys)
    column = Column(context.name(f"{rows.table}.row_number"), Integer(1, UNLIMITED))
    return Ranked(rows.relation, sorts, fields(rows.relation), column)


def sort_key(rows: Rows, node: exp.Expr) -> Sort:
    """Returns a sort key of a window."""
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
