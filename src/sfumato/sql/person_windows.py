# SPDX-License-Identifier: Apache-2.0
"""Windows over all rows of one person: SUM(x) OVER (PARTITION BY unit), FIRST_VALUE, LAST_VALUE.

Each is one value of the person, which is joined to each of his rows by nodes of the plan that
exist: the aggregate of a sub-query per person, or the first row in an order. The windows that look
from row to row are in ``ranked``.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from sfumato.errors import UnsupportedSql
from sfumato.plan.relation import PerUnit, Relation, Sort, UnitJoin
from sfumato.plan.scalar import IsNull
from sfumato.sql.first_rows import row_of
from sfumato.sql.functions import FUNCTIONS
from sfumato.sql.names import Context
from sfumato.sql.per_unit import Summaries
from sfumato.sql.ranked import sort_key, window
from sfumato.sql.reject import require_only
from sfumato.sql.row_expressions import Rows
from sfumato.sql.tables import From
from sfumato.sql.typed import Truth, Typed

_AGGREGATES = (exp.Count, exp.CountIf, exp.Sum, exp.Avg, exp.Min, exp.Max)


def with_windows(
    context: Context, rows: From, parts: Sequence[exp.Expr], again: Callable[[], From]
) -> tuple[From, dict[int, Typed]]:
    """Adds the window functions (within a unit) of a sub-query's SELECT and QUALIFY to its rows.

    Returns the rows, and the value of each window by the identity of its node. ``again`` gives the
    rows once more, under new names of columns.
    """
    done: dict[int, Typed] = {}
    for part in parts:
        for node in part.find_all(exp.Window):
            own = _of_all_rows(context, rows, node, again)
            if own is None:
                relation, value = window(context, rows, node)
                rows = rows.over(relation)
            else:
                rows, value = rows.over(UnitJoin(rows.relation, own.relation)), own.value
            done[id(node)] = value
    return rows, done


@dataclass(frozen=True, slots=True)
class _OfPerson:
    """A relation with one row a unit, and the value that is read of it."""

    relation: Relation
    value: Typed


def _of_all_rows(
    context: Context, rows: From, node: exp.Window, again: Callable[[], From]
) -> _OfPerson | None:
    """Returns the value of a window that is the same in all rows of a unit; None for others."""
    partition = node.args.get("partition_by") or []
    scope = rows.scope(context)
    if not scope.is_unit(partition) or any(scope.part(key) is None for key in partition):
        return None
    call = node.this
    aggregate = call.this if isinstance(call, exp.Filter) else call
    if isinstance(aggregate, _AGGREGATES) and not node.args.get("order"):
        require_only(node, "this", "partition_by", "over")
        source = again()
        summaries = Summaries(context, source, Rows(source.scope(context), FUNCTIONS))
        value = summaries.summary(call)
        return _OfPerson(PerUnit(source.relation, (), tuple(summaries.columns)), value)
    if isinstance(call, exp.FirstValue | exp.LastValue) and node.args.get("order"):
        require_only(node, "this", "partition_by", "over", "order", "spec")
        return _end(context, node, again())
    return None


def _end(context: Context, node: exp.Window, source: From) -> _OfPerson:
    """Returns FIRST_VALUE or LAST_VALUE of all rows of a unit in an order."""
    is_last = isinstance(node.this, exp.LastValue)
    require_only(node.this, "this")
    _require_frame(node, is_last=is_last)
    expressions = Rows(source.scope(context), FUNCTIONS)
    order: list[Sort] = []
    for key in node.args["order"].expressions:
        sort = sort_key(expressions, key)
        if is_last:
            # NULLs are last in both directions
            order.append(Sort(Truth(IsNull(sort.expression)).codes, descending=True))
            sort = Sort(sort.expression, not sort.descending)
        order.append(sort)
    value = expressions.value(node.this.this)
    return _OfPerson(row_of(context, source, tuple(order), value), value)


def _require_frame(node: exp.Window, *, is_last: bool) -> None:
    """Refuses a frame that does not begin with the first row, or end with the last one."""
    frame = node.args.get("spec")
    given = frame.args if frame is not None else {"start": "UNBOUNDED", "end": "CURRENT ROW"}
    if given.get("exclude") or given["end" if is_last else "start"] != "UNBOUNDED":
        raise UnsupportedSql(
            "FIRST_VALUE or LAST_VALUE of a part of a unit's rows.",
            allowed="FIRST_VALUE from the first row, LAST_VALUE to the last one",
            remedy="LAST_VALUE(x) OVER (PARTITION BY unit ORDER BY day "
            "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING); "
            "without a frame it is the row itself.",
        )
