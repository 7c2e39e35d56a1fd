# SPDX-License-Identifier: Apache-2.0
"""Lowers JOIN: by the unit with one row a unit, along a declared link, or with a public table."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from sqlglot import exp

from sfumato.errors import UnsupportedSql
from sfumato.metadata.column import Category, Column, Text
from sfumato.plan.relation import KeyJoin, PublicJoin, Relation, Scan, Semi, UnitJoin
from sfumato.plan.scalar import Field, Scalar
from sfumato.sql.conditions import conjuncts, passing
from sfumato.sql.functions import FUNCTIONS
from sfumato.sql.lattice import times
from sfumato.sql.linked import Linked, linked
from sfumato.sql.names import Context, Scope, Source
from sfumato.sql.person_rows import Again, left_joined, matched, narrowed, present, sources_of_both
from sfumato.sql.reject import refuse, require_only
from sfumato.sql.row_expressions import Rows
from sfumato.sql.tables import From
from sfumato.sql.typed import (
    Day,
    Instant,
    Label,
    Number,
    Person,
    Truth,
    Typed,
    Words,
    read,
    recoded,
)

_OFF_UNIT = (
    "is not on the unit: it lets one person meet all others",
    "Join private tables on {unit}, a.{unit} = b.{unit}, and other facts through a public table.",
)
_MANY_ROWS = (
    "has several rows a unit on both sides, so a person's rows multiply",
    (
        "Bring one side to one row a unit first: "
        "JOIN (SELECT {unit}, COUNT(*) AS n FROM ... GROUP BY {unit}) AS one "
        "ON one.{unit} = a.{unit}, or take one row by "
        "ROW_NUMBER() OVER (PARTITION BY {unit} ORDER BY ...) = 1."
    ),
)


@dataclass(frozen=True, slots=True)
class _On:
    """A join condition: the unit columns and the other pairs that it equates, and the other tests.

    The first of each pair is an expression of the left table.
    """

    parts: frozenset[int]
    pairs: tuple[tuple[exp.Expr, exp.Expr], ...]
    rest: tuple[exp.Expr, ...]


def joined(
    context: Context,
    left: From,
    right: From,
    node: exp.Join,
    again: Again,
) -> From:
    """Returns the relation of a SQL join, with the columns of both sides.

    ``again`` translates either side once more under new column names, for plans that read it twice.

    Raises:
        UnsupportedSql: a join that multiplies the rows of a unit, or is not on the unit.
    """
    side, kind = _require_known(node)
    if side == "RIGHT":
        left, right, again = right, left, again.swapped()
    using = node.args.get("using")
    tests = _using_tests(using) if using else conjuncts(node.args["on"])
    found = linked(left, right, tests)
    if found is not None and kind not in ("SEMI", "ANTI"):
        return _with_parent(context, found, keeps=left if side in ("LEFT", "RIGHT") else None)
    on = _join_condition(context, left, right, tests, using=bool(using))
    if kind in ("SEMI", "ANTI"):
        return _semi_join(context, left, right, on, negated=kind == "ANTI")
    outer = side in ("LEFT", "RIGHT")
    if left.public or right.public:
        return _with_public(context, left, right, on, outer=outer)
    return _with_private(context, left, right, on, again, outer=outer)


def _require_known(node: exp.Join) -> tuple[str, str]:
    """Returns the side and the kind of a join; refuses FULL, CROSS and the like."""
    require_only(node, "this", "on", "using", "side", "kind", "method")
    side = str(node.args.get("side") or "")
    kind = str(node.args.get("kind") or "")
    name = str(node.args.get("method") or "")
    has_condition = bool(node.args.get("on") or node.args.get("using"))
    known = side in ("", "LEFT", "RIGHT") and kind in ("", "INNER", "OUTER", "SEMI", "ANTI")
    if known and has_condition and not name:
        return side, kind
    if name == "NATURAL":
        raise refuse(
            "A NATURAL join",
            (
                "joins on all columns that both tables have, also those that are not declared",
                "Use JOIN ... USING (unit).",
            ),
        )
    if not name and side == "FULL":
        name = side
    elif not name and kind == "CROSS":
        name = kind
    raise refuse(
        f"A {name} join" if name else "A join without a condition",
        ("makes rows that are nobody's", "Use JOIN ... ON a.unit = b.unit, or LEFT JOIN."),
    )


def _with_private(
    context: Context,
    left: From,
    right: From,
    on: _On,
    again: Again,
    *,
    outer: bool,
) -> From:
    """Returns a join of two private tables, of which one has at most one row a unit."""
    _require_unit(context, left, right, on)
    other = right.single(context)
    if other is None and not outer:
        other = left.single(context)
        left, right = right, left
    if other is None and not outer:
        # tests above the join may leave one row a unit on one side of it
        tests = (*again.tests, *on.rest)
        sides = [(left, right), (right, left)]
        for many, fewer in sides:
            few = narrowed(context, fewer, many, tests)
            other = few.single(context)
            if other is not None:
                left, right = many, few
                break
    if other is None and outer:
        paired = [exp.EQ(this=one.copy(), expression=more.copy()) for one, more in on.pairs]
        merged = left_joined(context, left, right, [*paired, *on.rest], again)
        if merged is not None:
            return merged
    if other is None:
        raise refuse("A join", _fill_reason(_MANY_ROWS, context, left))
    if outer:
        rest, other = _tested_before(context, right, other, on)
        right, other = present(context, right, other, again)
        right = matched(context, left, right, rest)
        right = replace(right, sources=tuple(_nullable_source(source) for source in right.sources))
        return _merge_sources(left, right, UnitJoin(left.relation, other, outer))
    merged = _merge_sources(left, right, UnitJoin(left.relation, other, outer))
    return _tested_after(context, merged, on)


def _with_parent(context: Context, linked: Linked, *, keeps: From | None) -> From:
    """Returns the rows of a table, each with the row through which its unit is found.

    ``keeps`` is the side whose rows an outer join keeps.
    """
    child, parent = linked.child, linked.parent
    on = _join_condition(context, child, parent, linked.rest)
    outer = keeps is child
    if keeps is parent or (outer and (on.pairs or on.rest)):
        usual = f"{child.table} LEFT JOIN {parent.table}"
        raise UnsupportedSql(
            f"An outer join of {child.table!r} and {parent.table!r} that keeps the rows of "
            f"{parent.table!r}, or compares more than {linked.link.name!r}.",
            allowed=f"{usual} ON {child.table}.{linked.link.name} = {parent.table}.{linked.link.key}",
            remedy="Put other tests into WHERE; count rows without a match by EXISTS.",
        )
    assert isinstance(parent.relation, Scan), "the table that tells the units is read as declared"
    scan, value = parent.relation, linked.link.value
    key = _declared_key(scan, linked.link.key)
    if isinstance(value, Words) and isinstance(value.expression, Field):
        # a column that is not declared is read for the join alone
        context.units_read[value.expression.column.name] = value.expression.column
    if outer:
        parent = replace(
            parent, sources=tuple(_nullable_source(source) for source in parent.sources)
        )
    relation = KeyJoin(child.relation, scan, _as_key(value, key), key, outer)
    return _tested_after(context, _merge_sources(child, parent, relation), on)


def _declared_key(scan: Scan, name: str) -> Column:
    """Returns the key of a table as it is declared, or as a string."""
    declared = {column.name: column for column in scan.columns}
    shown = scan.prefix + name
    return declared.get(shown, Column(shown, Text()))


def _with_public(
    context: Context,
    left: From,
    right: From,
    on: _On,
    *,
    outer: bool,
) -> From:
    """Returns a join with a public table, by one of its columns."""
    if left.public and not outer:
        left, right = right, left
        swapped = tuple((other, one) for one, other in on.pairs)
        on = replace(on, pairs=swapped)
    if left.public:
        raise UnsupportedSql(
            "A join that starts from public tables.",
            remedy="Start from the private table: FROM private JOIN public ON ...; "
            "a row of a public table alone is nobody's.",
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
    return _tested_after(context, _merge_sources(left, right, relation), on)


def _semi_join(
    context: Context,
    left: From,
    right: From,
    on: _On,
    *,
    negated: bool,
) -> From:
    """Returns a SEMI or ANTI join on the unit."""
    _require_unit(context, left, right, on)
    if on.pairs or on.rest:
        raise UnsupportedSql(
            "A SEMI or ANTI join on more than the unit.", remedy="WHERE EXISTS (SELECT 1 FROM ...)"
        )
    return left.over(Semi(left.relation, right.relation, negated))


def _join_condition(
    context: Context,
    left: From,
    right: From,
    tests: Iterable[exp.Expr],
    *,
    using: bool = False,
) -> _On:
    """Returns the condition of a join, by its parts."""
    mine = left.scope(context)
    theirs = right.scope(context)
    parts: set[int] = set()
    pairs: list[tuple[exp.Expr, exp.Expr]] = []
    rest: list[exp.Expr] = []
    for test in tests:
        pair = _sides_of(mine, theirs, test, using=using)
        part = None if pair is None else mine.part(pair[0])
        if pair is None:
            rest.append(test)
        elif part is not None and part == theirs.part(pair[1]):
            parts.add(part)
        elif part is None and mine.width == 1 and _are_units(mine, theirs, pair):
            # the unit of an outer join before this one: that of the row, or NULL
            parts.add(0)
            rest.append(pair[0].is_(exp.null()).not_())
        else:
            pairs.append(pair)
    return _On(frozenset(parts), tuple(pairs), tuple(rest))


def _are_units(mine: Scope, theirs: Scope, pair: tuple[exp.Expr, exp.Expr]) -> bool:
    """Whether a pair is the unit of a row of the left side, which may be NULL, and of the right."""
    one, other = pair
    if theirs.part(other) is None or not isinstance(one, exp.Column):
        return False
    return isinstance(mine.column(one), Person)


def _using_tests(using: Sequence[exp.Expr]) -> list[exp.Expr]:
    """Returns the tests of JOIN ... USING (columns)."""
    tests: list[exp.Expr] = []
    for name in using:
        column = exp.column(name.copy() if isinstance(name, exp.Identifier) else name.name)
        tests.append(exp.EQ(this=column, expression=column.copy()))
    return tests


def _sides_of(
    mine: Scope,
    theirs: Scope,
    test: exp.Expr,
    *,
    using: bool,
) -> tuple[exp.Expr, exp.Expr] | None:
    """Returns the two sides of an equality, the left table's first; None if a side is of both."""
    if not isinstance(test, exp.EQ):
        return None
    first = test.this
    second = test.expression
    for side, other_side in ((first, second), (second, first)):
        if not mine.owns(side) or not theirs.owns(other_side):
            continue
        if side.find(exp.Column) is None or other_side.find(exp.Column) is None:
            continue
        if using or not (mine.owns(other_side) or theirs.owns(side)):
            return side, other_side
    return None


def _require_unit(
    context: Context,
    left: From,
    right: From,
    on: _On,
) -> None:
    """Refuses a join of different units, or one that is not on the whole unit."""
    if left.unit is None or left.unit != right.unit:
        raise UnsupportedSql(
            f"A join of {left.table!r} and {right.table!r}, "
            "which are not declared to be about the same units.",
            remedy="Declare both with the same unit, sf.Unit(..., name=...), "
            "or declare one public=True if it is about nobody.",
        )
    if on.parts < frozenset(range(left.width)):
        raise refuse("A join that", _fill_reason(_OFF_UNIT, context, left))


def _tested_before(
    context: Context,
    right: From,
    other: Relation,
    on: _On,
) -> tuple[list[exp.Expr], Relation]:
    """Applies those tests of an outer join that read the other side alone to that side.

    Returns the other tests, and that side.
    """
    scope = right.scope(context)
    rows = Rows(scope, FUNCTIONS)
    own = [test for test in on.rest if scope.owns(test)]
    rest = [test for test in on.rest if not scope.owns(test)]
    rest += [exp.EQ(this=one.copy(), expression=more.copy()) for one, more in on.pairs]
    return rest, passing(other, [rows.test(test) for test in own])


def _tested_after(context: Context, merged: From, on: _On) -> From:
    """Applies the remaining tests of a join to its rows."""
    tests: list[exp.Expr] = []
    # the pair of a join with a public table is the join itself
    if not merged.public and not isinstance(merged.relation, PublicJoin):
        for one, other in on.pairs:
            equality = exp.EQ(this=one.copy(), expression=other.copy())
            tests.append(equality)
    tests += on.rest
    rows = Rows(merged.scope(context), FUNCTIONS)
    lowered = [rows.test(test) for test in tests]
    return merged.over(passing(merged.relation, lowered))


def _merge_sources(left: From, right: From, relation: Relation) -> From:
    """Returns a relation under the names of two tables."""
    sources = sources_of_both(left, right)
    return replace(left.over(relation), sources=sources)


def _nullable_source(source: Source) -> Source:
    """Returns the other side of an outer join, whose unit columns may be NULL.

    They no longer identify the unit of the row.
    """
    columns: dict[str, Typed] = {}
    for name, typed in source.columns.items():
        columns[name] = replace(typed, absent=True) if isinstance(typed, Person) else typed
    return replace(source, columns=columns, parts={})


def _public_key(scope: Scope, node: exp.Expr) -> Column:
    """Returns the column of a public table that a join matches."""
    typed = scope.column(node) if isinstance(node, exp.Column) else None
    leaf = getattr(typed, "expression", None) if not isinstance(typed, Truth) else typed.codes
    if not isinstance(leaf, Field):
        raise UnsupportedSql(
            "A join to an expression of a public table.", remedy="Join to one of its columns."
        )
    return leaf.column


def _as_key(value: Typed, column: Column) -> Scalar:
    """Returns the code (or string) of a value in the type of a public column."""
    match value, read(column):
        case Words(expression), Words():
            return expression
        case Label(), Label(_, labels, stored):
            assert isinstance(column.type, Category), "a label is of a Category"
            is_shown = bool(set(value.labels) & set(labels))
            return recoded(value, labels if is_shown else stored)
        case Number(expression, step), Number(_, target):
            ratio: Fraction = step / target
            if ratio.denominator == 1:
                return times(expression, int(ratio))
        case Day(expression), Day():
            return expression
        case Instant(expression, step, zone), Instant(_, target, other) if zone == other:
            if step % target == 0:
                return times(expression, step // target)
        case Truth(), Truth():
            return value.codes
    remedy = f"Declare both alike: here {column.name} is {column.type!r}."
    if isinstance(column.type, Text) != isinstance(value, Words):
        remedy = (
            "Declare both as sf.Text(), or both as the same sf.Category(...): "
            f"{column.name} is {column.type!r}."
        )
    raise UnsupportedSql("A join of columns of different types.", remedy=remedy)


def _fill_reason(reason: tuple[str, str], context: Context, left: From) -> tuple[str, str]:
    """Returns a reason with the name of the unit in it."""
    why, instead = reason
    unit = left.scope(context).unit_name()
    return why, instead.replace("{unit}", unit)
