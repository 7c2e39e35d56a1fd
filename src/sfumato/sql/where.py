# SPDX-License-Identifier: Apache-2.0
"""WHERE: tests of rows, and tests of units by another table (IN, EXISTS)."""

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from sfumato.errors import UnsupportedSql
from sfumato.plan.relation import Filter, Ranked, Relation, Semi
from sfumato.plan.scalar import And, Field, Member, Scalar
from sfumato.sql.functions import FUNCTIONS
from sfumato.sql.names import Context, Scope
from sfumato.sql.reject import refuse, reject
from sfumato.sql.row_expressions import Rows
from sfumato.sql.tables import From, require_private

_ON_THE_UNIT = "WHERE EXISTS (SELECT 1 FROM other WHERE other.{unit} = this.{unit} AND ...)"


@dataclass(frozen=True, slots=True)
class Inner:
    """How the sub-queries of a WHERE are read: as rows, or (for EXISTS) as FROM before its own WHERE."""

    rows: Callable[[exp.Expr], From]
    source: Callable[[exp.Select], From]


def filtered(context: Context, found: From, node: exp.Expr, inner: Inner) -> From:
    """The rows that pass a WHERE."""
    scope = found.scope(context)
    rows = Rows(scope, FUNCTIONS)
    tests, semis = [], []
    for each in conjuncts(node):
        semi = _semi(context, found, each, inner)
        if semi is None:
            tests.append(rows.test(each))
        else:
            semis.append(semi)
    relation = passing(found.relation, tests)
    for units, negated in semis:
        relation = Semi(relation, units, negated)
    return found.over(relation)


def passing(relation: Relation, tests: list[Scalar]) -> Relation:
    """The rows for which every test is TRUE; ``rank = 1`` stands right above its numbers."""
    if isinstance(relation, Ranked):
        first = Member(Field(relation.column), (1,))
        if first in tests:
            relation = Filter(relation, first)
            tests = [each for each in tests if each != first]
    if not tests:
        return relation
    return Filter(relation, tests[0] if len(tests) == 1 else And(tuple(tests)))


def conjuncts(node: exp.Expr) -> list[exp.Expr]:
    """The tests that must all hold."""
    if isinstance(node, exp.Paren):
        return conjuncts(node.this)
    if isinstance(node, exp.And):
        return [test for each in node.flatten() for test in conjuncts(each)]
    return [node]


def _semi(
    context: Context, found: From, node: exp.Expr, inner: Inner
) -> tuple[Relation, bool] | None:
    """The units that a test asks for, and whether those are left out."""
    negated = False
    while isinstance(node, exp.Not | exp.Paren):
        negated ^= isinstance(node, exp.Not)
        node = node.this
    if isinstance(node, exp.In) and node.args.get("query"):
        units = _listed(context, found, node, inner)
    elif isinstance(node, exp.Exists):
        units = _existing(context, found, node, inner)
    else:
        return None
    require_private(units)
    if units.unit is None or units.unit != found.unit:
        raise UnsupportedSql(
            f"Tables {found.table!r} and {units.table!r} are not about the same units.",
            remedy="Declare both with the same unit: sf.Unit(..., name=...).",
        )
    return units.relation, negated


def _listed(context: Context, found: From, node: exp.In, inner: Inner) -> From:
    units = inner.rows(node.args["query"])
    mine, theirs = found.scope(context), units.scope(context)
    operands = node.this.expressions if isinstance(node.this, exp.Tuple) else [node.this]
    listed = units.sources[0].shown
    parts = [units.sources[0].parts.get(name.lower()) for name in listed]
    if (
        not mine.is_unit(operands)
        or [mine.part(each) for each in operands] != parts
        or len(listed) != theirs.width
    ):
        unit = mine.unit_name()
        raise UnsupportedSql(
            "IN (SELECT ...) of another column than the unit: it lets one person change the rows of others.",
            allowed=f"{unit} IN (SELECT {unit} FROM ...)",
            remedy=f"Ask for units, {unit} IN (SELECT {unit} FROM ...), or JOIN a public table.",
        )
    return units


def _existing(context: Context, found: From, node: exp.Exists, inner: Inner) -> From:
    """EXISTS (SELECT ... WHERE inner.unit = outer.unit AND tests of the inner row)."""
    select = node.this
    if not isinstance(select, exp.Select) or select.args.get("group") or select.args.get("having"):
        raise reject(select)
    source = inner.source(select)
    mine, theirs = found.scope(context), source.scope(context)
    where = select.args.get("where")
    equal, rest = set(), []
    for each in conjuncts(where.this) if where else []:
        part = _equal_part(mine, theirs, each)
        if part is None:
            rest.append(each)
        else:
            equal.add(part)
    if source.width == 0 or not equal >= set(range(source.width)):
        raise refuse(
            "EXISTS that does not look for the same unit",
            ("depends on the rows of everybody", _ON_THE_UNIT.format(unit=mine.unit_name())),
        )
    outside = [each for each in rest if not theirs.owns(each)]
    if outside:
        raise refuse(
            "EXISTS that compares more than the unit with the row outside",
            (
                "needs pairs of rows",
                "Test the inner row against constants; "
                + _ON_THE_UNIT.format(unit=mine.unit_name()),
            ),
        )
    if not rest:
        return source
    return filtered(
        context, source, exp.and_(*rest, copy=False) if len(rest) > 1 else rest[0], inner
    )


def _equal_part(mine: Scope, theirs: Scope, node: exp.Expr) -> int | None:
    """The part of the unit in which a test makes the inner row equal to the row outside."""
    if not isinstance(node, exp.EQ):
        return None
    for inside, outside in ((node.this, node.expression), (node.expression, node.this)):
        # a name without a table means the inner row where it can
        if theirs.owns(inside) and not theirs.owns(outside):
            part = theirs.part(inside)
            if part is not None and part == mine.part(outside):
                return part
    return None
