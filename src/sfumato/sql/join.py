# SPDX-License-Identifier: Apache-2.0
"""JOIN: on the unit with a table of one row a unit, or to a public table."""

from dataclasses import dataclass, replace
from fractions import Fraction

from sqlglot import exp

from sfumato.errors import UnsupportedSql
from sfumato.metadata.column import Category, Column, Text
from sfumato.plan.relation import PublicJoin, Relation, Scan, Semi, UnitJoin
from sfumato.plan.scalar import Field, Scalar
from sfumato.sql.functions import FUNCTIONS
from sfumato.sql.lattice import times
from sfumato.sql.names import Context, Scope, Source
from sfumato.sql.reject import refuse, require_only
from sfumato.sql.row_expressions import Rows
from sfumato.sql.tables import From
from sfumato.sql.typed import Day, Label, Number, Person, Truth, Typed, Words, read, recoded
from sfumato.sql.where import conjuncts, passing

_OFF_UNIT = (
    "is not on the unit: it lets one person meet all others",
    "Join private tables on {unit}, a.{unit} = b.{unit}, and other facts through a public table.",
)
_MANY_ROWS = (
    "has several rows a unit on both sides, so a person's rows multiply",
    (
        "Bring one side to one row a unit first: JOIN (SELECT {unit}, COUNT(*) AS n FROM ... GROUP BY {unit}) AS one "
        "ON one.{unit} = a.{unit}, or take one row by ROW_NUMBER() OVER (PARTITION BY {unit} ORDER BY ...) = 1."
    ),
)


@dataclass(frozen=True, slots=True)
class _On:
    """The parts of the unit that are made equal, the pairs of other expressions, and what is left."""

    parts: frozenset[int]
    pairs: tuple[tuple[exp.Expr, exp.Expr], ...]
    rest: tuple[exp.Expr, ...]


def joined(context: Context, left: From, right: From, node: exp.Join) -> From:
    """The rows of a join."""
    require_only(node, "this", "on", "using", "side", "kind", "method")
    side, kind, method = (str(node.args.get(each) or "") for each in ("side", "kind", "method"))
    known = side in ("", "LEFT", "RIGHT") and kind in ("", "INNER", "OUTER", "SEMI", "ANTI")
    if method or not known or not (node.args.get("on") or node.args.get("using")):
        name = method or (side if side == "FULL" else kind if kind == "CROSS" else "")
        raise refuse(
            f"A {name} join" if name else "A join without a condition",
            ("makes rows that are nobody's", "Use JOIN ... ON a.unit = b.unit, or LEFT JOIN."),
        )
    if side == "RIGHT":
        left, right = right, left
    on = _on(context, left, right, node)
    if kind in ("SEMI", "ANTI"):
        return _semi(context, left, right, on, negated=kind == "ANTI")
    outer = side in ("LEFT", "RIGHT")
    if left.public or right.public:
        return _with_public(context, left, right, on, outer=outer)
    return _with_private(context, left, right, on, outer=outer)


def _with_private(context: Context, left: From, right: From, on: _On, *, outer: bool) -> From:
    _require_unit(context, left, right, on)
    other = right.single(context)
    if other is None and not outer:
        other = left.single(context)
        left, right = right, left
    if other is None:
        raise refuse("A join", _filled(_MANY_ROWS, context, left))
    if outer:
        other, on = _tested_before(context, right, other, on)
    right = (
        replace(right, sources=tuple(_absent(each) for each in right.sources)) if outer else right
    )
    merged = _merged(left, right, UnitJoin(left.relation, other, outer))
    return _tested_after(context, merged, on)


def _with_public(context: Context, left: From, right: From, on: _On, *, outer: bool) -> From:
    if left.public and not outer:
        left, right = right, left
        on = replace(on, pairs=tuple((other, one) for one, other in on.pairs))
    if left.public:
        raise UnsupportedSql(
            "A join that starts from public tables.",
            remedy="Start from the private table: FROM private JOIN public ON ...; a row of a public table alone is nobody's.",
        )
    if not isinstance(right.relation, Scan):
        raise UnsupportedSql(
            "A join to a sub-query of a public table.",
            remedy="Join the public table itself, and test its columns in WHERE.",
        )
    if len(on.pairs) != 1 or (outer and on.rest):
        raise UnsupportedSql(
            "A join to a public table on something else than one equality.",
            allowed="ON expression = public.column",
            remedy="Give the public table one key column; put other tests into WHERE.",
        )
    mine, theirs = on.pairs[0]
    column = _public_key(right.scope(context), theirs)
    value = Rows(left.scope(context), FUNCTIONS).value(mine)
    relation = PublicJoin(left.relation, right.relation, _as_key(value, column), column, outer)
    return _tested_after(context, _merged(left, right, relation), on)


def _semi(context: Context, left: From, right: From, on: _On, *, negated: bool) -> From:
    _require_unit(context, left, right, on)
    if on.pairs or on.rest:
        raise UnsupportedSql(
            "A SEMI or ANTI join on more than the unit.", remedy="WHERE EXISTS (SELECT 1 FROM ...)"
        )
    return left.over(Semi(left.relation, right.relation, negated))


def _on(context: Context, left: From, right: From, node: exp.Join) -> _On:
    mine, theirs = left.scope(context), right.scope(context)
    parts: set[int] = set()
    pairs: list[tuple[exp.Expr, exp.Expr]] = []
    rest: list[exp.Expr] = []
    if node.args.get("using"):
        columns = [
            exp.column(each.copy() if isinstance(each, exp.Identifier) else each.name)
            for each in node.args["using"]
        ]
        tests: list[exp.Expr] = [exp.EQ(this=each, expression=each.copy()) for each in columns]
    else:
        tests = conjuncts(node.args["on"])
    for test in tests:
        pair = _pair(mine, theirs, test, using=bool(node.args.get("using")))
        part = None if pair is None else mine.part(pair[0])
        if pair is None:
            rest.append(test)
        elif part is not None and part == theirs.part(pair[1]):
            parts.add(part)
        else:
            pairs.append(pair)
    return _On(frozenset(parts), tuple(pairs), tuple(rest))


def _pair(
    mine: Scope, theirs: Scope, test: exp.Expr, *, using: bool
) -> tuple[exp.Expr, exp.Expr] | None:
    """The two sides of an equality, if each is of one table."""
    if not isinstance(test, exp.EQ):
        return None
    for one, other in ((test.this, test.expression), (test.expression, test.this)):
        own = (
            mine.owns(one)
            and theirs.owns(other)
            and one.find(exp.Column)
            and other.find(exp.Column)
        )
        if own and (using or not (mine.owns(other) or theirs.owns(one))):
            return one, other
    return None


def _require_unit(context: Context, left: From, right: From, on: _On) -> None:
    if left.unit is None or left.unit != right.unit:
        raise UnsupportedSql(
            f"A join of {left.table!r} and {right.table!r}, which are not declared to be about the same units.",
            remedy="Declare both with the same unit, sf.Unit(..., name=...), or declare one public=True if it is about nobody.",
        )
    if on.parts < frozenset(range(left.width)):
        raise refuse("A join that", (_OFF_UNIT[0], _filled(_OFF_UNIT, context, left)[1]))


def _tested_before(context: Context, right: From, other: Relation, on: _On) -> tuple[Relation, _On]:
    """Tests of the other side alone come before an outer join."""
    scope = right.scope(context)
    if on.pairs or not all(scope.owns(each) for each in on.rest):
        raise UnsupportedSql(
            "A LEFT JOIN that also compares other columns of both sides.",
            remedy="Use JOIN, or WHERE.",
        )
    rows = Rows(scope, FUNCTIONS)
    return passing(other, [rows.test(each) for each in on.rest]), replace(on, rest=())


def _tested_after(context: Context, merged: From, on: _On) -> From:
    """The other conditions of an inner join."""
    pairs = (
        []
        if any(each.public for each in (merged,)) or isinstance(merged.relation, PublicJoin)
        else on.pairs
    )
    tests: list[exp.Expr] = [
        exp.EQ(this=one.copy(), expression=other.copy()) for one, other in pairs
    ]
    rows = Rows(merged.scope(context), FUNCTIONS)
    return merged.over(passing(merged.relation, [rows.test(each) for each in (*tests, *on.rest)]))


def _merged(left: From, right: From, relation: Relation) -> From:
    names = [each.name.lower() for each in (*left.sources, *right.sources)]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UnsupportedSql(
            f"Two tables under the name {twice!r}.",
            remedy="Give each another alias: FROM t AS a JOIN t AS b",
        )
    return replace(left.over(relation), sources=(*left.sources, *right.sources))


def _absent(source: Source) -> Source:
    """A table that may have no row beside: its unit is not the row's unit any more."""
    columns = {
        name: replace(typed, absent=True) if isinstance(typed, Person) else typed
        for name, typed in source.columns.items()
    }
    return replace(source, columns=columns, parts={})


def _public_key(scope: Scope, node: exp.Expr) -> Column:
    typed = scope.column(node) if isinstance(node, exp.Column) else None
    leaf = getattr(typed, "expression", None) if not isinstance(typed, Truth) else typed.codes
    if not isinstance(leaf, Field):
        raise UnsupportedSql(
            "A join to an expression of a public table.", remedy="Join to one of its columns."
        )
    return leaf.column


def _as_key(value: Typed, column: Column) -> Scalar:
    """The code (or text) of a value, as the public column codes it."""
    match value, read(column):
        case Words(expression), Words():
            return expression
        case Label(), Label(_, labels, stored):
            assert isinstance(column.type, Category), "a label is of a Category"
            return recoded(value, labels if set(value.labels) & set(labels) else stored)
        case Number(expression, step), Number(_, target):
            ratio: Fraction = step / target
            if ratio.denominator == 1:
                return times(expression, int(ratio))
        case Day(expression), Day():
            return expression
        case Truth(), Truth():
            return value.codes
    remedy = f"Declare both alike: here {column.name} is {column.type!r}."
    if isinstance(column.type, Text) != isinstance(value, Words):
        remedy = f"Declare both as sf.Text(), or both as the same sf.Category(...): {column.name} is {column.type!r}."
    raise UnsupportedSql("A join of columns of different types.", remedy=remedy)


def _filled(reason: tuple[str, str], context: Context, left: From) -> tuple[str, str]:
    return reason[0], reason[1].replace("{unit}", left.scope(context).unit_name())
