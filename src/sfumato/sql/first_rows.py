# SPDX-License-Identifier: Apache-2.0
"""ARG_MIN, ARG_MAX and FIRST of one person's rows: a value of the first row in an order.

``per_unit`` joins that row to the other aggregates of the person.
"""

from dataclasses import dataclass

from sqlglot import exp

from sfumato.plan.relation import Relation, Sort, first
from sfumato.plan.scalar import Not
from sfumato.sql import compare
from sfumato.sql.conditions import passing
from sfumato.sql.functions import FUNCTIONS
from sfumato.sql.labels import alphabetical
from sfumato.sql.names import Context
from sfumato.sql.ranked import sort_key
from sfumato.sql.reject import require_only
from sfumato.sql.row_expressions import Rows
from sfumato.sql.tables import From, fields
from sfumato.sql.typed import Label, Typed, code_of


@dataclass(frozen=True, slots=True)
class FirstRow:
    """A relation with one row a unit, and the value that is read of it."""

    relation: Relation
    value: Typed


def is_of_first(node: exp.Expr) -> bool:
    """Whether an aggregate call reads the first row in an order (ARG_MIN, say), with or without
    FILTER.
    """
    if isinstance(node, exp.Filter):
        node = node.this
    if isinstance(node, exp.First):
        return isinstance(node.this, exp.Order)
    return isinstance(node, exp.ArgMin | exp.ArgMax)


def first_row(context: Context, rows: From, node: exp.Expr) -> FirstRow:
    """Returns a relation with one row per unit: the one that ARG_MIN, ARG_MAX or FIRST(...) takes.

    As in DuckDB, ARG_MIN and ARG_MAX leave out rows in which one of their values is NULL. Of
    several rows with the least value, the order of all columns that are read decides.
    """
    expressions = Rows(rows.scope(context), FUNCTIONS)
    tests = []
    if isinstance(node, exp.Filter):
        tests.append(expressions.test(node.expression.this))
        node = node.this
    if isinstance(node, exp.First):
        value = expressions.value(node.this.this)
        order = tuple(sort_key(expressions, key) for key in node.this.expressions)
    else:
        require_only(node, "this", "expression")
        value = expressions.value(node.this)
        by = expressions.value(node.expression)
        tests += [Not(compare.is_null(value)), Not(compare.is_null(by))]
        ordered = alphabetical(by) if isinstance(by, Label) else by
        order = (Sort(code_of(ordered), isinstance(node, exp.ArgMax)),)
    filtered = rows.over(passing(rows.relation, tests))
    return FirstRow(row_of(context, filtered, order, value), value)


def row_of(context: Context, rows: From, order: tuple[Sort, ...], value: Typed) -> Relation:
    """Returns the first row of each unit in an order, of which ``value`` is read."""
    # a unit column is no value
    code_of(value)
    name = context.name(f"{rows.table}.first_row")
    return first(rows.relation, order, fields(rows.relation), name)
