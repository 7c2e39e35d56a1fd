# SPDX-License-Identifier: Apache-2.0
"""Comma joins: ``FROM a, b WHERE a.x = b.x`` is the inner join ``a JOIN b ON a.x = b.x``."""

from collections.abc import Collection

from sqlglot import exp


def with_conditions(statement: exp.Select) -> exp.Select:
    """Moves the equalities that link a comma join from WHERE to its ON, in place.

    An equality links it if one side is a column of its table and the other one of a table before
    it, both with the name of their table. Inner joins alone are changed, and no SELECT with a RIGHT
    or FULL join, where it would matter which join comes first.

    >>> from sqlglot import parse_one
    >>> with_conditions(parse_one("SELECT 1 FROM a, b WHERE a.x = b.x AND b.y > 1")).sql()
    'SELECT 1 FROM a JOIN b ON a.x = b.x WHERE b.y > 1'
    """
    for select in list(statement.find_all(exp.Select)):
        joins = select.args.get("joins") or []
        where = select.args.get("where")
        first = select.args.get("from_")
        sides = {str(join.args.get("side") or "") for join in joins}
        if where is not None and first is not None and sides <= {"", "LEFT"}:
            _move_conditions(select, first.this, joins, where)
    return statement


def all_of(tests: Collection[exp.Expr]) -> exp.Expr:
    """Returns the conjunction of some tests; a sub-query, which is no condition, in brackets."""
    conditions = [exp.Paren(this=test) if isinstance(test, exp.Query) else test for test in tests]
    return exp.and_(*conditions, copy=False)


def _move_conditions(
    select: exp.Select,
    first: exp.Expr,
    joins: Collection[exp.Join],
    where: exp.Where,
) -> None:
    """Moves the conditions of one SELECT."""
    tests = list(where.this.flatten()) if isinstance(where.this, exp.And) else [where.this]
    before = {first.alias_or_name.lower()}
    for join in joins:
        name = join.this.alias_or_name.lower()
        if not any(join.args.get(part) for part in ("on", "using", "kind", "side", "method")):
            linking = [test for test in tests if _links_tables(test, name, before)]
            if linking:
                moved = set(map(id, linking))
                tests = [test for test in tests if id(test) not in moved]
                join.set("on", all_of(linking))
        before.add(name)
    select.set("where", exp.Where(this=all_of(tests)) if tests else None)


def _links_tables(test: exp.Expr, name: str, before: Collection[str]) -> bool:
    """Whether a test equates a column of one table with one of a table before it."""
    if not isinstance(test, exp.EQ):
        return False
    if not isinstance(test.left, exp.Column) or not isinstance(test.right, exp.Column):
        return False
    tables = {test.left.table.lower(), test.right.table.lower()}
    return name in tables and len(tables) == 2 and bool((tables - {name}) & set(before))
