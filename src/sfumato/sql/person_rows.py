# SPDX-License-Identifier: Apache-2.0
"""Forms of SQL that read two tables of one person, lowered to nodes of the plan that exist.

A LEFT JOIN of one row a unit to many; EXISTS and IN whose tests read both rows; tests above a join
that leave one row a unit on one side of it. ``join`` and ``where`` use it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from sfumato.errors import UnsupportedSql
from sfumato.metadata.column import Column, Integer
from sfumato.plan.relation import (
    Computed,
    Filter,
    PerUnit,
    Relation,
    Semi,
    Summary,
    Union,
    UnitJoin,
)
from sfumato.plan.scalar import Case, Coalesce, Constant, Field, Member, Not, Scalar
from sfumato.sql.calls import calls
from sfumato.sql.conditions import conjunction, passing
from sfumato.sql.functions import FUNCTIONS
from sfumato.sql.names import Context, Scope, Source
from sfumato.sql.row_expressions import Rows, kept
from sfumato.sql.tables import From
from sfumato.sql.typed import Null, Numbers, Person, Truth, Typed, computed, value_of


@dataclass(frozen=True, slots=True)
class Again:
    """Callbacks that translate the sides of a join once more, under new column names.

    A plan reads a table twice as two scans. ``tests`` are those of WHERE; ``read`` has the names of
    the columns that the statement reads, None: all of them; ``shown`` has the tables and names of
    the columns that it reads elsewhere than in this join.
    """

    left: Callable[[], From]
    right: Callable[[], From]
    tests: Sequence[exp.Expr] = ()
    read: set[str] | None = None
    shown: frozenset[tuple[str, str]] = frozenset()

    def swapped(self) -> "Again":
        """Returns the callbacks for the join with its sides exchanged."""
        return replace(self, left=self.right, right=self.left)


def names_read(select: exp.Select) -> set[str] | None:
    """Returns the lower-case names of all columns that a SELECT reads; None if it has a ``*``."""
    stars = [item for item in select.expressions if item.find(exp.Star)]
    if any(not calls([item]) for item in stars):
        return None
    return {column.name.lower() for column in select.find_all(exp.Column)}


def shown_columns(select: exp.Select, join: exp.Join) -> frozenset[tuple[str, str]]:
    """Returns the tables and names, in lower case, of the columns that a SELECT reads by a table's
    name, elsewhere than in one of its joins; sub-queries are not searched.
    """

    def is_other(node: exp.Expr) -> bool:
        return node is join or (isinstance(node, exp.Query) and node is not select)

    columns = [node for node in select.walk(prune=is_other) if isinstance(node, exp.Column)]
    return frozenset((column.table.lower(), column.name.lower()) for column in columns)


def present(context: Context, right: From, other: Relation, again: Again) -> tuple[From, Relation]:
    """Returns the other side of an outer join with a mark of its rows, if the statement reads it.

    That side has one row a unit, of a sub-query that groups by it. Its unit then is NULL where no
    row was joined (``b.unit IS NULL``): as is the mark, which counts rows, at least one.
    """
    (source, *more) = right.sources
    wanted = {(source.name.lower(), name) for name in source.parts} & again.shown
    if more or not wanted:
        return right, other
    mark = Column(context.name("left_join.rows"), Integer(1, 2))
    marked = _with_rows(other, mark)
    if marked is None:
        return right, other
    units = {name: Person(name, None, absent=True, mark=Field(mark)) for name in source.parts}
    source = replace(source, columns={**source.columns, **units})
    return replace(right, sources=(source,)), marked


def matched(context: Context, left: From, right: From, tests: Sequence[exp.Expr]) -> From:
    """Returns the other side of an outer join, of one row a unit, after the tests of both sides.

    All its columns are NULL where the tests, which read both sides, are not TRUE: as where there is
    no row.
    """
    if not tests:
        return right
    expressions = Rows(both_sides(context, left, right), FUNCTIONS)
    test = conjunction([expressions.test(node) for node in tests])
    sources = []
    for source in right.sources:
        named: dict[str, Typed] = {}
        for name, typed in source.columns.items():
            if isinstance(typed, Person):
                mark = None if typed.mark is None else Case(((test, typed.mark),), Constant(None))
                named[name] = Person(typed.name, None, absent=True, mark=mark)
            elif isinstance(typed, Null):
                named[name] = typed
            elif not isinstance(typed, Numbers):
                named[name] = kept(typed, test)
        sources.append(replace(source, columns=named, table=None, link=None))
    return replace(right, sources=tuple(sources))


def _with_rows(relation: Relation, mark: Column) -> Relation | None:
    """Returns a relation with one row a unit and the number of rows it is made of, cut at 2.

    None if it is not made by grouping.
    """
    if isinstance(relation, PerUnit) and not relation.keys:
        return replace(relation, columns=(*relation.columns, Computed(mark, Summary.COUNT)))
    if isinstance(relation, Filter | UnitJoin | Semi):
        source = _with_rows(relation.source, mark)
        return None if source is None else replace(relation, source=source)
    return None


def narrowed(
    context: Context,
    rows: From,
    other: From,
    tests: Sequence[exp.Expr],
) -> From:
    """Returns one side of a join, filtered by the tests that read columns of this side alone."""
    mine, theirs = rows.scope(context), other.scope(context)
    own = []
    for test in tests:
        columns = list(test.find_all(exp.Column))
        is_own = all(mine.owns(column) and not theirs.owns(column) for column in columns)
        if columns and is_own and test.find(exp.Query) is None:
            own.append(test)
    expressions = Rows(mine, FUNCTIONS)
    return rows.over(passing(rows.relation, [expressions.test(test) for test in own]))


def left_joined(
    context: Context,
    left: From,
    right: From,
    tests: Sequence[exp.Expr],
    again: Again,
) -> From | None:
    """Returns the relation of ``one LEFT JOIN many`` on the unit: ``one`` has a row per unit.

    None if the left side may have several rows per unit.

    Each row of the left side meets the union of two relations: the rows of the right side that
    pass the tests, with a mark; and NULLs for the units of the left side that have no such row.
    """
    unit_rows = left.single(context)
    if unit_rows is None:
        return None
    wanted = again.read
    sources_of_both(left, right)
    matches = _matching(context, again, tests)
    without = again.left()
    units = without.single(context)
    assert units is not None, "the same side as before"
    anti = Semi(units, _matching(context, again, tests).relation, negated=True)
    mark = Column(context.name("left_join.mark"), Integer(0, 1))
    columns = [mark]
    codes: list[Scalar] = [Constant(1)]
    sources = []
    for source in matches.sources:
        named: dict[str, Typed] = {}
        for name, typed in source.columns.items():
            if isinstance(typed, Person):
                named[name] = Person(typed.name, None, absent=True, mark=Field(mark))
            elif isinstance(typed, Null):
                named[name] = typed
            elif not isinstance(typed, Numbers) and (wanted is None or name in wanted):
                value = value_of(typed, name)
                column = Column(context.name(f"left_join.{name}"), value.type)
                columns.append(column)
                codes.append(value.expression)
                named[name] = computed(column, typed)
        sources.append(replace(source, columns=named, parts={}, table=None, link=None))
    nulls = (Constant(None),) * len(columns)
    union = Union((matches.relation, anti), (tuple(codes), nulls), tuple(columns), exclusive=True)
    joint = left.over(UnitJoin(union, unit_rows))
    limit = None if matches.limit is None else max(matches.limit, 1)
    return replace(joint, sources=(*left.sources, *sources), limit=limit, once=False)


def _matching(context: Context, again: Again, tests: Sequence[exp.Expr]) -> From:
    """Returns the rows of the right side of a join that pass its tests."""
    right = again.right()
    scope = right.scope(context)
    relation: Relation = right.relation
    if not all(scope.owns(test) for test in tests):
        left = again.left()
        one = left.single(context)
        assert one is not None, "the same side as before"
        relation = UnitJoin(relation, one)
        scope = both_sides(context, left, right)
    rows = Rows(scope, FUNCTIONS)
    return right.over(passing(relation, [rows.test(test) for test in tests]))


def both_sides(context: Context, left: From, right: From) -> Scope:
    """Returns the names of two tables that meet on the unit."""
    return Scope(context, sources_of_both(left, right), left.width)


def sources_of_both(left: From, right: From) -> tuple[Source, ...]:
    """Returns the sources of column names of both sides of a join; refuses two tables of one
    name.
    """
    sources = (*left.sources, *right.sources)
    names = [source.name.lower() for source in sources]
    for name in names:
        if names.count(name) > 1:
            raise UnsupportedSql(
                f"Two tables under the name {name!r}.",
                remedy="Give each another alias: FROM t AS a JOIN t AS b",
            )
    return sources


def related(
    context: Context,
    rows: From,
    inner: From,
    tests: Sequence[exp.Expr],
    outside: Callable[[], From],
    *,
    negated: bool,
) -> Callable[[Relation], Relation] | None:
    """Returns a function that filters a relation by EXISTS (or NOT EXISTS) of a row in ``inner``.

    That row has the same unit and passes tests that read both rows.

    The function takes a relation with the columns of ``rows``; ``negated``: it keeps the rows
    without such a row. None if both sides may have several rows a unit.
    """
    unit_rows = inner.single(context)
    if unit_rows is not None:
        expressions = Rows(both_sides(context, rows, inner), FUNCTIONS)
        lowered = [expressions.test(test) for test in tests]
        if negated:
            none = _is_not_true(lowered)
            return lambda relation: Filter(UnitJoin(relation, unit_rows, outer=True), none)
        return lambda relation: passing(UnitJoin(relation, unit_rows), lowered)
    other = outside()
    units = other.single(context)
    if units is None:
        return None
    expressions = Rows(both_sides(context, other, inner), FUNCTIONS)
    lowered = [expressions.test(test) for test in tests]
    matches = passing(UnitJoin(inner.relation, units), lowered)
    return lambda relation: Semi(relation, matches, negated)


def _is_not_true(tests: Sequence[Scalar]) -> Scalar:
    """Returns the test that not all of some tests are TRUE."""
    codes = Truth(conjunction(tests)).codes
    return Not(Member(Coalesce((codes, Constant(0))), (1,)))
