# SPDX-License-Identifier: Apache-2.0
"""Lowers WHERE: tests of rows, and tests of units against another table (IN, EXISTS)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from sqlglot import exp

from sfumato.errors import UnsupportedSql
from sfumato.plan.relation import Relation, Semi
from sfumato.sql.comma_join import all_of
from sfumato.sql.conditions import conjuncts, passing
from sfumato.sql.functions import FUNCTIONS
from sfumato.sql.names import Context, Scope
from sfumato.sql.person_rows import related
from sfumato.sql.reject import refuse, reject
from sfumato.sql.row_expressions import Rows
from sfumato.sql.tables import From, require_private

_ON_THE_UNIT = "WHERE EXISTS (SELECT 1 FROM other WHERE other.{unit} = this.{unit} AND ...)"


@dataclass(frozen=True, slots=True)
class Inner:
    """Callbacks that translate the sub-queries of a WHERE clause.

    ``rows`` lowers a whole sub-query, ``source`` only its FROM and JOIN (for EXISTS), and
    ``outside`` the FROM of the statement around it again, under new names of columns.
    """

    rows: Callable[[exp.Expr], From]
    source: Callable[[exp.Select], From]
    outside: Callable[[], From]


# Keeps the rows whose unit has a match.
_Kept: TypeAlias = Callable[[Relation], Relation]


def filtered(
    context: Context,
    rows: From,
    node: exp.Expr,
    inner: Inner,
) -> From:
    """Returns the translated FROM with only the rows that pass a WHERE condition."""
    expressions = Rows(rows.scope(context), FUNCTIONS)
    tests = []
    semis = []
    for conjunct in conjuncts(node):
        semi = _semi_join(context, rows, conjunct, inner)
        if semi is None:
            tests.append(expressions.test(conjunct))
        else:
            semis.append(semi)
    relation = passing(rows.relation, tests)
    for keep in semis:
        relation = keep(relation)
    return rows.over(relation)


def _semi_join(
    context: Context,
    rows: From,
    node: exp.Expr,
    inner: Inner,
) -> _Kept | None:
    """Returns how an IN or EXISTS, or its negation, keeps rows.

    None if the test is not one of units.
    """
    negated = False
    while isinstance(node, exp.Not | exp.Paren):
        negated ^= isinstance(node, exp.Not)
        node = node.this
    if isinstance(node, exp.In) and node.args.get("query"):
        units, tests = _rows_of_in(context, rows, node, inner)
    elif isinstance(node, exp.Exists):
        units, tests = _rows_of_exists(context, rows, node, inner)
    else:
        return None
    require_private(units)
    if units.unit is None or units.unit != rows.unit:
        raise UnsupportedSql(
            f"Tables {rows.table!r} and {units.table!r} are not about the same units.",
            remedy="Declare both with the same unit: sf.Unit(..., name=...).",
        )
    if not tests:
        return lambda relation: Semi(relation, units.relation, negated)
    if isinstance(node, exp.In) and negated:
        raise refuse(
            "NOT IN of the unit and other columns",
            ("is not TRUE of rows with a NULL in them", "NOT EXISTS (SELECT 1 FROM ... WHERE ...)"),
        )
    keep = related(context, rows, units, tests, inner.outside, negated=negated)
    if keep is None:
        instead = _ON_THE_UNIT.format(unit=rows.scope(context).unit_name())
        raise refuse(
            "EXISTS or IN that compares more than the unit, of several rows a unit on both sides,",
            ("needs pairs of rows", f"Test the inner row against constants; {instead}"),
        )
    return keep


def _rows_of_in(
    context: Context,
    rows: From,
    node: exp.In,
    inner: Inner,
) -> tuple[From, list[exp.Expr]]:
    """Returns the rows of unit IN (SELECT unit FROM ...), and tests of other columns beside it."""
    units = inner.rows(node.args["query"])
    mine = rows.scope(context)
    theirs = units.scope(context)
    operands = node.this.expressions if isinstance(node.this, exp.Tuple) else [node.this]
    listed = units.sources[0].shown
    parts = [units.sources[0].parts.get(name.lower()) for name in listed]
    own_parts = [mine.part(operand) for operand in operands]
    is_same = mine.is_unit(operands) and own_parts == parts
    if not is_same or len(listed) < theirs.width:
        unit = mine.unit_name()
        raise UnsupportedSql(
            "IN (SELECT ...) of another column than the unit: "
            "it lets one person change the rows of others.",
            allowed=f"{unit} IN (SELECT {unit} FROM ...)",
            remedy=f"Ask for units, {unit} IN (SELECT {unit} FROM ...), or JOIN a public table.",
        )
    (source,) = units.sources
    tests: list[exp.Expr] = []
    for operand, name, part in zip(operands, listed, parts, strict=True):
        if part is None:
            other = exp.column(name, table=source.name, quoted=True)
            tests.append(exp.EQ(this=operand.copy(), expression=other))
    return units, tests


def _rows_of_exists(
    context: Context,
    rows: From,
    node: exp.Exists,
    inner: Inner,
) -> tuple[From, list[exp.Expr]]:
    """Returns the rows of EXISTS (SELECT ... WHERE inner.unit = outer.unit AND tests).

    Also returns those of the tests that read both rows.
    """
    select = node.this
    if not isinstance(select, exp.Select):
        raise reject(select)
    if select.args.get("group") or select.args.get("having"):
        raise reject(select)
    source = inner.source(select)
    mine = rows.scope(context)
    theirs = source.scope(context)
    where = select.args.get("where")
    tests = conjuncts(where.this) if where else []
    equal = set()
    rest = []
    for test in tests:
        part = _equal_part(mine, theirs, test)
        if part is None:
            rest.append(test)
        else:
            equal.add(part)
    if source.width == 0 or not equal >= set(range(source.width)):
        raise refuse(
            "EXISTS that does not look for the same unit",
            ("depends on the rows of everybody", _ON_THE_UNIT.format(unit=mine.unit_name())),
        )
    both = [test for test in rest if not theirs.owns(test)]
    rest = [test for test in rest if theirs.owns(test)]
    if not rest:
        return source, both
    condition = all_of(rest)
    return filtered(context, source, condition, inner), both


def _equal_part(mine: Scope, theirs: Scope, node: exp.Expr) -> int | None:
    """Returns which unit column a test ``inner.column = outer.column`` equates; None for others."""
    if not isinstance(node, exp.EQ):
        return None
    left = node.this
    right = node.expression
    for inside, outside in ((left, right), (right, left)):
        # an unqualified name refers to the inner row if that has such a column
        if theirs.owns(inside) and not theirs.owns(outside):
            part = theirs.part(inside)
            if part is not None and part == mine.part(outside):
                return part
    return None
