# SPDX-License-Identifier: Apache-2.0
"""A text to a question: what is computed of the rows, and what is made of the released numbers."""

from dataclasses import dataclass
from fractions import Fraction

from sqlglot import exp

from sfumato.errors import MissingDeclaration, UnsupportedSql
from sfumato.metadata.column import Column, Text
from sfumato.metadata.dataset import Dataset
from sfumato.plan.output import Item, Output
from sfumato.plan.relation import Filter, Relation, Scan
from sfumato.plan.scalar import Field
from sfumato.plan.status import Raw
from sfumato.sql.literal import literal
from sfumato.sql.names import Scope, scope_of
from sfumato.sql.output import Outputs
from sfumato.sql.parse import parse
from sfumato.sql.predicate import Predicates
from sfumato.sql.reject import RAW_ROWS, refuse, require_only


@dataclass(frozen=True, slots=True)
class Question:
    """A statement, understood. ``text`` is what the analyst wrote."""

    text: str
    table: str
    raw: Raw
    output: Output


def understand(text: str, dataset: Dataset) -> Question:
    """The question that a text asks of a dataset.

    Guarantees:
        what is not allowed is refused

    Raises:
        SqlSyntaxError, UnsupportedSql, UnknownName, MissingDeclaration.
    """
    select = parse(text)
    require_only(select, "expressions", "from_", "where", "group", "having", "order", "limit", "offset")
    scope = scope_of(select, dataset)
    keys = _keys(select, scope)
    outputs = Outputs(scope, keys)
    items = _unique(tuple(outputs.item(node) for node in select.expressions))
    outputs.name(items)
    having = outputs.test(select.args["having"].this) if select.args.get("having") else None
    order = select.args.get("order")
    if order is not None:
        require_only(order, "expressions")
    orders = tuple(outputs.order(node, items) for node in order.expressions) if order else ()
    if not outputs.aggregates:
        raise refuse("A SELECT without an aggregate", RAW_ROWS)
    output = Output(items, having, orders, _count(select, "limit"), _count(select, "offset") or 0)
    return Question(text, scope.name, Raw(_relation(select, scope), keys, tuple(outputs.aggregates)), output)


def _relation(select: exp.Select, scope: Scope) -> Relation:
    where = select.args.get("where")
    scan = Scan(scope.name)
    return Filter(scan, Predicates(scope.column, Field).lower(where.this)) if where else scan


def _keys(select: exp.Select, scope: Scope) -> tuple[Column, ...]:
    group = select.args.get("group")
    if group is None:
        return ()
    require_only(group, "expressions")
    keys = [_key(_placed(node, select, scope), scope) for node in group.expressions]
    return tuple(dict.fromkeys(keys))


def _placed(node: exp.Expr, select: exp.Select, scope: Scope) -> exp.Expr:
    """What GROUP BY 1, or GROUP BY alias, stands for."""
    place = literal(node)
    if place is not None:
        if not isinstance(place, Fraction) or place not in range(1, len(select.expressions) + 1):
            raise UnsupportedSql(f"GROUP BY {place}.", allowed=f"a column of SELECT, 1 to {len(select.expressions)}")
        node = select.expressions[int(place) - 1]
    elif isinstance(node, exp.Column) and not node.table and scope.table.column(node.name) is None:
        aliased = [
            each.this
            for each in select.expressions
            if isinstance(each, exp.Alias) and each.alias.lower() == node.name.lower()
        ]
        node = aliased[0] if aliased and isinstance(aliased[0], exp.Column) else node
    return node.this if isinstance(node, exp.Alias) else node


def _key(node: exp.Expr, scope: Scope) -> Column:
    if scope.is_unit(node):
        raise refuse(
            "GROUP BY the unit",
            ("makes every group one person", "Group by a column with declared values, or leave GROUP BY out."),
        )
    if not isinstance(node, exp.Column):
        raise UnsupportedSql(
            "GROUP BY an expression is not answered by this version.",
            remedy="Group by a column; prepare computed keys in the data and declare their values.",
        )
    column = scope.column(node)
    if isinstance(column.type, Text):
        raise MissingDeclaration(
            f"GROUP BY {column.name} needs its values declared: which ones occur is itself private.",
            allowed="sf.Category(...), sf.Boolean(), sf.Integer(lower, upper), sf.Date(lower, upper)",
            remedy=f"Declare columns={{{column.name!r}: sf.Category('value', ...)}} with values that are public.",
        )
    return column


def _unique(items: tuple[Item, ...]) -> tuple[Item, ...]:
    """Column names that differ, so that every cell of the answer has one name."""
    taken = {item.name for item in items}
    seen: set[str] = set()
    renamed = []
    for item in items:
        name, count = item.name, 1
        while name in seen or (count > 1 and name in taken):
            count += 1
            name = f"{item.name}_{count}"
        seen.add(name)
        renamed.append(Item(name, item.expression))
    return tuple(renamed)


def _count(select: exp.Select, name: str) -> int | None:
    clause = select.args.get(name)
    if clause is None:
        return None
    require_only(clause, "expression")
    value = literal(clause.expression)
    if not isinstance(value, Fraction) or value.denominator != 1 or not 0 <= value <= 10**9:
        raise UnsupportedSql(f"{name.upper()} that is not a whole number.", remedy=f"{name.upper()} 10")
    return int(value)
