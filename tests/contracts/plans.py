# SPDX-License-Identifier: Apache-2.0
"""Hypothesis strategies for questions over several tables: expressions, relations, aggregates,
plans.

They are over the tables of ``world``, whose rows come from ``world.data``.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from hypothesis import strategies as st

import sfumato as sf
from sfumato.errors import UnsupportedSql
from sfumato.metadata.column import Column, Integer, Text
from sfumato.plan.aggregate import (
    Aggregate,
    CodeQuantiles,
    CountDistinct,
    CountRows,
    CountUnits,
    CountValues,
    Mean,
    Quantiles,
    Sum,
    Variance,
)
from sfumato.plan.owner import owner_of
from sfumato.plan.relation import (
    Computed,
    Filter,
    KeyJoin,
    PerUnit,
    PublicJoin,
    Ranked,
    Relation,
    Scan,
    Semi,
    Sort,
    Summary,
    Union,
    UnitJoin,
    Windowed,
    WindowFunction,
    first,
    is_single,
    scans,
)
from sfumato.plan.scalar import (
    And,
    Arithmetic,
    Case,
    ChangeCase,
    Coalesce,
    Compare,
    Comparison,
    Constant,
    DatePart,
    DateTrunc,
    Extreme,
    Field,
    FloorDivide,
    IsNull,
    Like,
    Lookup,
    Member,
    Not,
    Operation,
    Or,
    Part,
    Quotient,
    Scalar,
    Substring,
    Trim,
)
from sfumato.plan.scope import provided
from sfumato.plan.stages import Bounded, Limits, Raw, Tracked
from sfumato.plan.stages import Part as BoundedPart
from sfumato.plan.value import GroupKey, Value
from sfumato.plan.value_range import span
from sfumato.privacy.distance import Distance, Norm
from tests.contracts.world import DATASET, KINDS, OWNED, TABLES, data, rows, scan

# the world that the strategies are over, with them
__all__ = [
    "KINDS",
    "OWNED",
    "TABLES",
    "aggregates",
    "bounded",
    "codes",
    "data",
    "keys",
    "questions",
    "relations",
    "rows",
    "scan",
    "texts",
    "truths",
    "values",
]

# --- expressions ---------------------------------------------------------------------------


def codes(columns: tuple[Column, ...], depth: int = 3) -> st.SearchStrategy[Scalar]:
    """An expression that has a code, within what engines can compute."""
    fields = [Field(column) for column in columns if not isinstance(column.type, Text)]
    leaves = st.one_of(
        st.sampled_from(fields) if fields else st.nothing(),
        st.builds(Constant, st.one_of(st.integers(-3, 5), st.none())),
    )
    if depth == 0:
        return leaves
    return st.one_of(leaves, _node(columns, depth - 1).filter(_fits))


def _fits(expression: Scalar) -> bool:
    try:
        span(expression)
    except UnsupportedSql:
        return False
    return True


@st.composite
def _node(draw: st.DrawFn, columns: tuple[Column, ...], depth: int) -> Scalar:
    inner = codes(columns, depth)
    some = st.lists(inner, min_size=1, max_size=3).map(tuple)
    operations = st.sampled_from([Operation.ADD, Operation.SUBTRACT, Operation.MULTIPLY])
    branches = st.lists(st.tuples(truths(columns, depth), inner), min_size=1, max_size=2).map(tuple)
    table = st.lists(st.one_of(st.integers(-5, 5), st.none()), max_size=5).map(tuple)
    dates = [Field(column) for column in columns if isinstance(column.type, sf.Date)]
    days = st.one_of(st.sampled_from(dates), inner) if dates else inner
    return draw(
        st.one_of(
            st.builds(Arithmetic, operations, inner, inner),
            st.builds(Case, branches, inner),
            st.builds(Extreme, st.booleans(), some),
            st.builds(Coalesce, some),
            st.builds(FloorDivide, inner, st.sampled_from([1, 2, 3, 7, 2**62])),
            st.builds(Quotient, inner, inner),
            st.builds(Lookup, inner, st.integers(-4, 3), table),
            st.builds(DatePart, st.sampled_from(Part), days),
            st.builds(DateTrunc, st.sampled_from(Part), days),
        )
    )


def texts(columns: tuple[Column, ...]) -> st.SearchStrategy[Scalar]:
    """An expression that is a text."""
    fields = [Field(column) for column in columns if isinstance(column.type, Text)]
    leaves = st.one_of(
        st.sampled_from(fields) if fields else st.nothing(),
        st.builds(Constant, st.sampled_from(["a", "", "o'c", None])),
    )
    return st.one_of(
        leaves,
        st.builds(ChangeCase, leaves, st.booleans()),
        st.builds(Substring, leaves, st.integers(1, 3), st.integers(0, 2)),
        st.builds(Trim, leaves, st.booleans(), st.just(True)),
        st.tuples(leaves, st.just(Constant("a"))).map(Coalesce),
    )


@st.composite
def truths(draw: st.DrawFn, columns: tuple[Column, ...], depth: int = 2) -> Scalar:
    """A test."""
    code, text = codes(columns, max(depth - 1, 0)), texts(columns)
    comparison = st.sampled_from(Comparison)
    patterns = st.text(st.sampled_from(["a", "%", "_", "\\", "空", "'"]), max_size=4)
    numbers = st.lists(st.integers(-4, 5), max_size=4, unique=True).map(
        lambda found: tuple(sorted(found))
    )
    words = st.lists(st.sampled_from(["", "a", "a|b", "空b"]), max_size=3, unique=True).map(
        lambda found: tuple(sorted(found))
    )
    leaves = st.one_of(
        st.builds(Compare, comparison, code, code),
        st.builds(Compare, comparison, text, text),
        st.builds(Member, code, numbers),
        st.builds(Member, text, words),
        st.builds(Like, text, patterns),
        st.builds(IsNull, st.one_of(code, text)),
    )
    if depth == 0:
        return draw(leaves)
    inner = truths(columns, depth - 1)
    some = st.lists(inner, min_size=1, max_size=3).map(tuple)
    return draw(
        st.one_of(
            leaves,
            st.builds(Not, inner),
            st.builds(And, some),
            st.builds(Or, some),
            st.builds(Compare, comparison, inner, inner),
            st.builds(Coalesce, st.tuples(inner, st.builds(Constant, st.booleans()))),
            st.builds(IsNull, inner),
        )
    )


@st.composite
def values(
    draw: st.DrawFn, columns: tuple[Column, ...], *, text: bool = True, widest: int = 2**40
) -> Value:
    """A value with a type that holds its codes."""
    if text and draw(st.integers(0, 4)) == 0:
        return Value("v", Text(), draw(texts(columns)))
    expression = draw(codes(columns))
    found = span(expression)
    if found is not None and max(abs(found[0]), abs(found[1])) > widest:
        edges = draw(st.sampled_from([(0, 9), (-4, 3), (-9, -2)]))
        expression = Extreme(
            True, (Extreme(False, (expression, Constant(edges[1]))), Constant(edges[0]))
        )
        found = span(expression)
    low, high = found or (0, 0)
    spare = draw(st.integers(0, 2))
    return Value("v", Integer(low - spare, high + (spare or 1)), expression)


# --- relations -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _World:
    """Which tables a relation may read, and names that nothing else has."""

    tables: tuple[str, ...]
    names: Iterator[int]

    @property
    def owned(self) -> bool:
        return owner_of(DATASET, self.tables[0]) is not None


@st.composite
def relations(draw: st.DrawFn, tables: tuple[str, ...] = OWNED, depth: int = 3) -> Relation:
    """A relation over tables of one unit (or over tables whose rows are units)."""
    return _relation(draw, _World(tables, itertools.count()), depth)


def _relation(draw: st.DrawFn, world: _World, depth: int) -> Relation:
    makers = [_scanned, _filtered, _publicly_joined]
    if world.owned:
        makers += [_joined, _joined_by_key, _semi, _summarised, _ranked, _first, _windowed, _united]
    maker = draw(st.sampled_from(makers)) if depth else _scanned
    return maker(draw, world, depth - 1)


def _name(world: _World) -> str:
    return f"T{next(world.names)}."


def _scanned(draw: st.DrawFn, world: _World, depth: int) -> Relation:
    return scan(draw(st.sampled_from(world.tables)), _name(world))


def _filtered(draw: st.DrawFn, world: _World, depth: int) -> Relation:
    source = _relation(draw, world, depth)
    return Filter(source, draw(truths(provided(source))))


def _publicly_joined(draw: st.DrawFn, world: _World, depth: int) -> Relation:
    source, drugs = _relation(draw, world, depth), scan("drugs", _name(world))
    right = draw(st.sampled_from(drugs.columns))
    left = draw(
        texts(provided(source)) if isinstance(right.type, Text) else codes(provided(source), 2)
    )
    kept = draw(st.lists(st.sampled_from(drugs.columns), unique=True).map(tuple))
    cut = Scan(drugs.table, drugs.prefix, kept, None)
    return PublicJoin(source, cut, left, right, draw(st.booleans()))


def _joined_by_key(draw: st.DrawFn, world: _World, depth: int) -> Relation:
    source = _relation(draw, world, depth)
    other = scan(draw(st.sampled_from(world.tables)), _name(world))
    right = draw(st.sampled_from(other.columns))
    left = draw(
        texts(provided(source)) if isinstance(right.type, Text) else codes(provided(source), 2)
    )
    kept = draw(st.lists(st.sampled_from(other.columns), unique=True).map(tuple))
    return KeyJoin(source, replace(other, columns=kept), left, right, draw(st.booleans()))


def _joined(draw: st.DrawFn, world: _World, depth: int) -> Relation:
    other = _relation(draw, world, depth)
    if not is_single(other):
        other = (
            PerUnit(other, (), _computed(draw, world, other))
            if draw(st.booleans())
            else _ranked_first(draw, world, other)
        )
    return UnitJoin(_relation(draw, world, depth), other, draw(st.booleans()))


def _semi(draw: st.DrawFn, world: _World, depth: int) -> Relation:
    return Semi(_relation(draw, world, depth), _relation(draw, world, depth), draw(st.booleans()))


def _summarised(draw: st.DrawFn, world: _World, depth: int) -> Relation:
    source = _relation(draw, world, depth)
    found = draw(st.lists(values(provided(source)), max_size=2))
    keys = tuple((Column(f"{_name(world)}key", each.type), each) for each in found)
    return PerUnit(source, keys, _computed(draw, world, source))


def _computed(draw: st.DrawFn, world: _World, source: Relation) -> tuple[Computed, ...]:
    found = []
    for summary in draw(st.lists(st.sampled_from(Summary), max_size=3)):
        counts = summary in (Summary.COUNT_VALUES, Summary.COUNT_DISTINCT)
        value = None if summary is Summary.COUNT else draw(values(provided(source), text=counts))
        low = draw(st.integers(-3, 1))
        column = Column(
            f"{_name(world)}{summary.value}", Integer(low, low + draw(st.integers(1, 5)))
        )
        found.append(Computed(column, summary, value))
    return tuple(found)


def _order(draw: st.DrawFn, source: Relation) -> tuple[Sort, ...]:
    each = st.builds(
        Sort, st.one_of(codes(provided(source), 1), texts(provided(source))), st.booleans()
    )
    return tuple(draw(st.lists(each, max_size=2)))


def _ties(source: Relation) -> tuple[Scalar, ...]:
    return tuple(Field(column) for column in provided(source))


def _ranked(draw: st.DrawFn, world: _World, depth: int) -> Relation:
    source = _relation(draw, world, depth)
    rank = Column(f"{_name(world)}rank", Integer(draw(st.integers(0, 1)), draw(st.integers(2, 4))))
    return Ranked(source, _order(draw, source), _ties(source), rank)


def _windowed(draw: st.DrawFn, world: _World, depth: int) -> Relation:
    source = _relation(draw, world, depth)
    columns = provided(source)
    by = tuple(draw(st.lists(st.one_of(codes(columns, 1), texts(columns)), max_size=1)))
    function = draw(st.sampled_from(WindowFunction))
    order, ties, name = _order(draw, source), _ties(source), f"{_name(world)}window"
    if function not in (WindowFunction.LAG, WindowFunction.LEAD):
        number = Column(name, Integer(0, draw(st.integers(2, 4))))
        return Windowed(source, function, by, order, ties, number)
    value = draw(values(columns))
    column, offset = Column(name, value.type), draw(st.integers(1, 2))
    return Windowed(source, function, by, order, ties, column, value, offset)


def _first(draw: st.DrawFn, world: _World, depth: int) -> Relation:
    return _ranked_first(draw, world, _relation(draw, world, depth))


def _ranked_first(draw: st.DrawFn, world: _World, source: Relation) -> Relation:
    return first(source, _order(draw, source), _ties(source), f"{_name(world)}rank")


def _united(draw: st.DrawFn, world: _World, depth: int) -> Relation:
    sources = tuple(_relation(draw, world, depth) for _ in range(draw(st.integers(1, 2))))
    read = [
        [draw(values(provided(source))) for source in sources]
        for _ in range(draw(st.integers(0, 3)))
    ]
    kept = [each for each in read if len({isinstance(value.type, Text) for value in each}) == 1]
    columns = tuple(Column(f"{_name(world)}u", _hull(each)) for each in kept)
    expressions = tuple(
        tuple(each[index].expression for each in kept) for index in range(len(sources))
    )
    return Union(sources, expressions, columns)


def _hull(found: list[Value]) -> Text | Integer:
    kinds = [value.type for value in found]
    if any(isinstance(kind, Text) for kind in kinds):
        return Text()
    return Integer(min(kind.lower_code for kind in kinds), max(kind.upper_code for kind in kinds))


# --- questions -----------------------------------------------------------------------------


@st.composite
def keys(draw: st.DrawFn, columns: tuple[Column, ...], *, open_keys: bool) -> GroupKey:
    """A key of a few declared codes, or one whose groups are not public."""
    missing = draw(st.booleans())
    if open_keys:
        return GroupKey(draw(values(columns)), None, missing)
    value = draw(values(columns, text=False, widest=8))
    every = range(value.type.lower_code, value.type.upper_code + 1)
    if draw(st.booleans()):
        return GroupKey(value, tuple(every), missing)
    some = draw(st.lists(st.sampled_from(every), unique=True, min_size=0 if missing else 1))
    return GroupKey(value, tuple(sorted(some)), missing)


@st.composite
def aggregates(draw: st.DrawFn, columns: tuple[Column, ...]) -> Aggregate:
    """An aggregate of any kind."""
    number = values(columns, text=False)
    return draw(
        st.one_of(
            st.just(CountRows()),
            st.just(CountUnits()),
            st.builds(CountValues, values(columns)),
            st.builds(CountDistinct, values(columns)),
            st.builds(Sum, number),
            st.builds(Mean, number),
            st.builds(Variance, number),
            st.builds(
                Quantiles, values(columns, text=False, widest=50), st.just((Fraction(1, 2),))
            ),
            st.builds(
                CodeQuantiles,
                values(columns, text=False, widest=50),
                st.just((Fraction(1, 2),)),
                leaf=st.integers(1, 9),
                ends=st.booleans(),
            ),
        )
    )


@st.composite
def questions(draw: st.DrawFn, tables: tuple[str, ...] | None = None, depth: int = 3) -> Raw:
    """Aggregates of a relation by at most two keys."""
    chosen = tables or draw(st.sampled_from([OWNED, OWNED, ("days",), ("rows",)]))
    relation = draw(relations(chosen, depth))
    columns = provided(relation)
    found = [
        draw(keys(columns, open_keys=draw(st.booleans()))) for _ in range(draw(st.integers(0, 2)))
    ]
    wanted = draw(st.lists(aggregates(columns), min_size=1, max_size=3, unique=True))
    return Raw(relation, tuple(found), tuple(wanted))


@st.composite
def bounded(draw: st.DrawFn, raw: Raw) -> Bounded:
    """The question under any limits: what engines compute does not depend on what is proved of
    it.
    """
    owned = not any(each.owner is None for each in scans(raw.relation))
    few = st.integers(1, 3)
    none = st.none()
    limits = (
        Limits(draw(few | none), draw(few | none), draw(st.integers(1, 4) | none))
        if owned
        else Limits(None, None, None)
    )
    norm = draw(st.sampled_from([Norm.L1, Norm.L2]))
    fine = draw(st.sampled_from([1, 6, 2**20])) if owned else 1
    parts = tuple(BoundedPart(each, Distance(norm, Fraction(1)), 1) for each in raw.aggregates)
    return Bounded(Tracked(raw, "who" if owned else None, limits, None), norm, fine, parts)
