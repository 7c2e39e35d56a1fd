# SPDX-License-Identifier: Apache-2.0
"""Correlated sub-queries that give one number of a person, as joins to a sub-query per unit.

``(SELECT COUNT(*) FROM visits v WHERE v.unit = p.unit)`` becomes ``COALESCE(c.value, 0)`` of
``LEFT JOIN (SELECT v.unit, COUNT(*) AS value FROM visits v GROUP BY v.unit) AS c ON c.unit =
p.unit``. Whether it is the unit that is compared is decided where the join is lowered.
"""

from collections.abc import Collection

from sqlglot import exp

from sfumato.sql.calls import calls
from sfumato.sql.comma_join import all_of
from sfumato.sql.conditions import conjuncts

# What else a SELECT of one number may have.
_CLAUSES = ("expressions", "from_", "joins", "where", "with_")
# Parents under which a sub-query means rows.
_ROWS = (exp.From, exp.Join, exp.In, exp.Exists, exp.SetOperation, exp.Subquery, exp.CTE)


def with_joins(statement: exp.Select) -> exp.Select:
    """Replaces the correlated sub-queries of a statement by joins, in place.

    >>> from sqlglot import parse_one
    >>> text = "SELECT AVG((SELECT SUM(x) FROM t WHERE t.id = p.id)) FROM p"
    >>> with_joins(parse_one(text)).sql()[:35]
    'SELECT AVG(correlated.value) FROM p'
    """
    subqueries = list(statement.find_all(exp.Subquery))
    if not subqueries:
        return statement
    taken = {table.alias_or_name.lower() for table in statement.find_all(exp.Table, exp.Subquery)}
    for node in reversed(subqueries):
        outside = node.find_ancestor(exp.Select, exp.Join)
        # the joins of a condition of a join would come too late
        if isinstance(outside, exp.Select) and not isinstance(node.parent, _ROWS):
            _join_number(node, outside, taken)
    return statement


def _join_number(node: exp.Subquery, outside: exp.Select, taken: set[str]) -> None:
    """Replaces one sub-query, if it is correlated and has a form that a join has too."""
    inner = node.this
    if not isinstance(inner, exp.Select) or len(inner.expressions) != 1:
        return
    if any(value and name not in _CLAUSES for name, value in inner.args.items()):
        return
    own = _names(inner)
    around = _names(outside)
    where = inner.args.get("where")
    tests = conjuncts(where.this) if where is not None else []
    links = [link for link in (_link(test, own, around) for test in tests) if link is not None]
    rest = [test for test in tests if _link(test, own, around) is None]
    number = inner.expressions[0].unalias()
    if not links or any(_reads_outside(part, own) for part in (number, *rest)):
        return
    name = next(name for name in _candidates() if name not in taken)
    value = _value(number, exp.column("value", table=name))
    if value is None:
        return
    taken.add(name)
    keys = [key for key, _ in links]
    query = inner.copy()
    query.set("expressions", [*(key.copy() for key in keys), exp.alias_(number.copy(), "value")])
    query.set("where", exp.Where(this=all_of([test.copy() for test in rest])) if rest else None)
    query.set("group", exp.Group(expressions=[key.copy() for key in keys]))
    equal = [
        exp.EQ(this=exp.column(key.name, table=name), expression=other.copy())
        for key, other in links
    ]
    table = exp.Subquery(this=query, alias=exp.TableAlias(this=exp.to_identifier(name)))
    outside.append("joins", exp.Join(this=table, side="LEFT", on=exp.and_(*equal)))
    node.replace(value)


def _candidates() -> list[str]:
    return ["correlated", *(f"correlated{count}" for count in range(2, 300))]


def _names(select: exp.Select) -> set[str]:
    """Returns the names of the tables of FROM and JOIN, in lower case."""
    clause = select.args.get("from_")
    tables = [clause.this] if clause is not None else []
    tables += [join.this for join in select.args.get("joins") or []]
    return {table.alias_or_name.lower() for table in tables}


def _link(
    test: exp.Expr, own: Collection[str], around: Collection[str]
) -> tuple[exp.Column, exp.Column] | None:
    """Returns the two columns of a test ``inner.column = outer.column``; None for other tests."""
    if not isinstance(test, exp.EQ):
        return None
    for inside, other in ((test.this, test.expression), (test.expression, test.this)):
        if not isinstance(inside, exp.Column) or not isinstance(other, exp.Column):
            return None
        is_inside = inside.table.lower() in own or not inside.table
        if is_inside and other.table.lower() in around and other.table.lower() not in own:
            return inside, other
    return None


def _reads_outside(node: exp.Expr, own: Collection[str]) -> bool:
    """Whether an expression reads a column of a table that the sub-query does not have."""
    inner = {table.alias_or_name.lower() for table in node.find_all(exp.Table, exp.Subquery)}
    tables = {column.table.lower() for column in node.find_all(exp.Column)}
    return not tables <= {"", *own, *inner}


def _value(number: exp.Expr, joined: exp.Column) -> exp.Expr | None:
    """Returns the number of a sub-query from the joined column, which is NULL without rows.

    None if it cannot be computed from it.
    """
    if isinstance(number, exp.Count | exp.CountIf):
        return exp.Coalesce(this=joined, expressions=[exp.Literal.number(0)])
    if not calls([number]) or number.find(exp.Count, exp.CountIf, exp.Coalesce, exp.Case, exp.If):
        return None
    return joined
