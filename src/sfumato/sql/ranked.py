# SPDX-License-Identifier: Apache-2.0
"""ROW_NUMBER over the rows of one unit; every other window reaches across units."""

from sqlglot import exp

from sfumato.errors import UnsupportedSql
from sfumato.metadata.column import Column, Integer
from sfumato.plan.relation import UNLIMITED, Ranked, Sort
from sfumato.sql.functions import FUNCTIONS
from sfumato.sql.names import Context
from sfumato.sql.per_unit import alphabetical
from sfumato.sql.reject import refuse, reject, require_only
from sfumato.sql.row_expressions import Rows
from sfumato.sql.tables import From, fields
from sfumato.sql.typed import Label, Typed, code_of, read

_ACROSS = (
    "reaches across units, so one person changes the values of others",
    (
        "Only ROW_NUMBER() OVER (PARTITION BY {unit} ORDER BY ...) in a sub-query; or aggregate with GROUP BY, "
        "and rank or accumulate the noisy answer."
    ),
)


def ranked(context: Context, found: From, select: exp.Select) -> tuple[From, dict[int, Typed]]:
    """The rows with the numbers that a sub-query's windows ask for, and what each window is."""
    done: dict[int, Typed] = {}
    for item in select.expressions:
        for node in item.find_all(exp.Window):
            relation = _numbered(context, found, node)
            done[id(node)] = read(relation.column)
            found = found.over(relation)
    return found, done


def across_units(found: From, context: Context, node: exp.Expr) -> UnsupportedSql:
    """The refusal of a window that is not within one unit."""
    name = type(node.this).sql_name() if isinstance(node.this, exp.Func) else "window"
    why, instead = _ACROSS
    return refuse(
        f"A window function ({name} OVER)",
        (why, instead.replace("{unit}", found.scope(context).unit_name())),
    )


def _numbered(context: Context, found: From, node: exp.Window) -> Ranked:
    scope = found.scope(context)
    partition = node.args.get("partition_by") or []
    if (
        not isinstance(node.this, exp.RowNumber)
        or not scope.is_unit(partition)
        or len(partition) != scope.width
    ):
        raise across_units(found, context, node)
    require_only(node, "this", "partition_by", "order", "over")
    rows = Rows(scope, FUNCTIONS)
    order = node.args.get("order")
    sorts = tuple(_sort(rows, each) for each in order.expressions) if order else ()
    column = Column(context.name(f"{found.table}.row_number"), Integer(1, UNLIMITED))
    return Ranked(found.relation, sorts, fields(found.relation), column)


def _sort(rows: Rows, node: exp.Expr) -> Sort:
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
    typed = alphabetical(typed) if isinstance(typed, Label) else typed
    return Sort(code_of(typed), bool(node.args.get("desc")))
