# SPDX-License-Identifier: Apache-2.0
"""Trees of rows: what is below, what is single, and what cannot be built wrong."""

from fractions import Fraction

import pytest

import sfumato as sf
from sfumato.errors import UnsupportedSql
from sfumato.metadata.column import Column
from sfumato.plan import relation as trees
from sfumato.plan.relation import (
    Computed,
    Filter,
    KeyJoin,
    PerUnit,
    PublicJoin,
    Ranked,
    Scan,
    Semi,
    Sort,
    Summary,
    Union,
    UnitJoin,
    Windowed,
    WindowFunction,
    below,
    first,
    is_single,
    predicates,
    row_by_row,
    scans,
)
from sfumato.plan.scalar import Arithmetic, Constant, Field, Member, Operation
from sfumato.plan.value import Value
from tests.plan.expressions import NAME, X, Y

VISITS, PEOPLE = Scan("visits", columns=(X, NAME)), Scan("people", columns=(Y,))
DRUGS = Scan("drugs", "d.", columns=(Column("d.key", X.type),))
RANK = Column("rank", sf.Integer(1, 9))
ONE = PerUnit(VISITS, (), (Computed(Column("n", sf.Integer(0, 9)), Summary.COUNT),))
JOINED = PublicJoin(VISITS, DRUGS, Field(X), Column("d.key", X.type))
BY_KEY = KeyJoin(VISITS, PEOPLE, Field(X), Column("key", X.type))
RANKED = Ranked(VISITS, (Sort(Field(X)),), (), RANK)
WIDE = Field(Column("wide", sf.Integer(0, 2**40)))
HUGE = Arithmetic(Operation.MULTIPLY, WIDE, WIDE)
EVERY = {
    "scan": (VISITS, ()),
    "filter": (Filter(VISITS, Constant(True)), (VISITS,)),
    "public join": (JOINED, (VISITS,)),
    "key join": (BY_KEY, (VISITS, PEOPLE)),
    "unit join": (UnitJoin(VISITS, ONE), (VISITS, ONE)),
    "semi": (Semi(VISITS, PEOPLE), (VISITS, PEOPLE)),
    "per unit": (ONE, (VISITS,)),
    "ranked": (RANKED, (VISITS,)),
    "union": (
        Union((VISITS, PEOPLE), ((Field(X),), (Field(Y),)), (Column("u", X.type),)),
        (VISITS, PEOPLE),
    ),
}


@pytest.mark.parametrize("name", EVERY)
def test_below_are_the_rows_that_belong_to_units(name):
    relation, expected = EVERY[name]
    assert below(relation) == expected


def test_every_private_table_is_found_with_repeats_and_no_public_one():
    tree = Semi(UnitJoin(JOINED, ONE), PEOPLE)
    assert [scan.table for scan in scans(tree)] == ["visits", "visits", "people"]


def test_every_test_is_found_lowest_first():
    inner = Filter(PEOPLE, Constant(False))
    tree = Filter(Semi(Filter(VISITS, Constant(True)), inner), Constant(None))
    assert predicates(tree) == [Constant(True), Constant(False), Constant(None)]


def member(column, codes):
    return Member(Field(column), codes)


def test_a_unit_has_one_row_where_a_node_makes_it_so():
    assert is_single(ONE)
    assert is_single(first(VISITS, (Sort(Field(X)),), (), "r"))
    for above in (
        Filter(ONE, Constant(True)),
        PublicJoin(ONE, DRUGS, Constant(1), Column("d.key", X.type)),
        KeyJoin(ONE, PEOPLE, Constant(1), Column("key", X.type)),
        UnitJoin(ONE, ONE),
        Semi(ONE, VISITS),
        Ranked(ONE, (), (), RANK),
    ):
        assert is_single(above)


@pytest.mark.parametrize(
    "relation",
    [
        VISITS,
        Filter(VISITS, Constant(True)),
        JOINED,
        BY_KEY,
        UnitJoin(VISITS, ONE),
        Semi(VISITS, ONE),
        PerUnit(VISITS, ((X, Value.of(X)),), ()),
        RANKED,
        Filter(RANKED, member(RANK, (2,))),
        Filter(RANKED, member(RANK, (1, 2))),
        Filter(RANKED, member(X, (1,))),
        Union((ONE, ONE), ((), ()), ()),
    ],
)
def test_else_it_may_have_several(relation):
    assert not is_single(relation)
    with pytest.raises(ValueError, match="several rows"):
        UnitJoin(VISITS, relation)


ANY, IN_ORDER = first(VISITS, (), (), "r"), first(VISITS, (Sort(Field(X)),), (), "r")


@pytest.mark.parametrize(
    "above", [lambda source, units: UnitJoin(source, first(units, (), (), "r")), Semi]
)
def test_what_takes_each_row_at_most_once_is_read_row_by_row(above):
    for units in (PEOPLE, Filter(PEOPLE, Constant(True)), Semi(PEOPLE, ANY), UnitJoin(PEOPLE, ANY)):
        assert row_by_row(above(VISITS, units)) == VISITS
        assert (
            row_by_row(Filter(above(Filter(VISITS, Constant(None)), units), Constant(True)))
            == VISITS
        )
    for units in (
        ONE,
        RANKED,
        IN_ORDER,
        Semi(PEOPLE, ONE),
        UnitJoin(PEOPLE, IN_ORDER),
        Union((PEOPLE,), ((),), ()),
    ):
        assert row_by_row(above(VISITS, units)) is None
        assert row_by_row(above(units, PEOPLE)) is None


def test_units_are_looked_up_in_any_row():
    for units, found in ((ANY, VISITS), (Filter(ANY, Constant(True)), VISITS), (IN_ORDER, None)):
        assert (
            row_by_row(Semi(VISITS, units))
            == row_by_row(Semi(VISITS, units, negated=True))
            == found
        )


def test_the_first_row_is_the_one_numbered_one():
    found = first(VISITS, (Sort(Field(X), descending=True),), (Field(NAME),), "r")
    assert isinstance(found.source, Ranked)
    assert found.source.order == (Sort(Field(X), descending=True),)
    assert found.source.ties == (Field(NAME),)
    assert found.predicate == member(found.source.column, (1,))


@pytest.mark.parametrize("kind", [sf.Integer(0, 1), sf.Integer(2, 9), sf.Real(1, 9, step=1)])
def test_a_number_that_does_not_tell_the_first_row_apart_is_refused(kind):
    # cut to an upper end of 1 every row would be the first
    with pytest.raises(ValueError, match="cannot tell the first row"):
        Ranked(VISITS, (), (), Column("rank", kind))


@pytest.mark.parametrize(
    ("function", "column", "value", "offset"),
    [
        (WindowFunction.LAG, X, None, 1),
        (WindowFunction.RANK, RANK, Value.of(X), 1),
        (WindowFunction.LAG, Column("narrow", sf.Integer(0, 1)), Value.of(X), 1),
        (WindowFunction.LEAD, X, Value.of(X), 0),
        (WindowFunction.LAG, Column("t", sf.Text()), Value.of(X), 1),
        (WindowFunction.RANK, Column("t", sf.Text()), None, 1),
        (WindowFunction.DENSE_RANK, Column("rank", sf.Integer(0, 1)), None, 1),
    ],
)
def test_a_window_has_a_column_that_holds_what_it_computes(function, column, value, offset):
    with pytest.raises(
        ValueError, match=r"no other row|no such value|may leave|is no text|tell the first row"
    ):
        Windowed(VISITS, function, (), (), (), column, value, offset)


def test_a_number_one_of_a_part_of_a_units_rows_is_not_one_row():
    numbered = Windowed(VISITS, WindowFunction.ROW_NUMBER, (Field(X),), (), (), RANK)
    assert not is_single(Filter(numbered, member(RANK, (1,))))
    assert row_by_row(numbered) is None


def test_columns_hold_what_they_are_computed_from():
    narrow = Column("narrow", sf.Integer(0, 1))
    with pytest.raises(ValueError, match="narrow may leave"):
        PerUnit(VISITS, ((narrow, Value.of(X)),), ())
    with pytest.raises(ValueError, match="narrow may leave"):
        Union((VISITS,), ((Field(X),),), (narrow,))


@pytest.mark.parametrize(
    ("sources", "values", "columns"),
    [((), (), ()), ((VISITS,), (), ()), ((VISITS,), ((Field(X),),), ())],
)
def test_a_union_gives_each_column_of_each_source(sources, values, columns):
    with pytest.raises(ValueError, match=r"union|zip"):
        Union(sources, values, columns)


@pytest.mark.parametrize(
    ("summary", "value"),
    [
        (Summary.COUNT, Value.of(X)),
        (Summary.SUM, None),
        (Summary.SUM, Value.of(NAME)),
        (Summary.MINIMUM, Value.of(NAME)),
        (Summary.COUNT_VALUES, None),
    ],
)
def test_a_summary_has_the_value_that_it_needs(summary, value):
    with pytest.raises(ValueError, match="has no such value"):
        Computed(Column("n", sf.Integer(0, 9)), summary, value)


@pytest.mark.parametrize("summary", [Summary.COUNT_VALUES, Summary.COUNT_DISTINCT])
def test_texts_can_be_counted_and_the_count_is_no_text(summary):
    assert Computed(Column("n", sf.Integer(0, 9)), summary, Value.of(NAME)).value == Value.of(NAME)
    with pytest.raises(ValueError, match="n is a text"):
        Computed(Column("n", sf.Text()), summary, Value.of(NAME))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Filter(VISITS, Member(HUGE, (1,))),
        lambda: PublicJoin(VISITS, DRUGS, HUGE, Column("d.key", X.type)),
        lambda: KeyJoin(VISITS, PEOPLE, HUGE, Column("key", X.type)),
        lambda: Sort(HUGE),
        lambda: Union((VISITS,), ((HUGE,),), (X,)),
    ],
)
def test_no_node_reads_what_an_engine_cannot_compute(make, monkeypatch):
    with pytest.raises(UnsupportedSql, match="62 bits"):
        make()
    monkeypatch.setattr(trees, "confine", lambda expression: None)
    monkeypatch.setattr(trees, "_require_within", lambda column, expression: None)
    make()


@pytest.mark.parametrize(
    ("value", "step"),
    [
        (sf.Integer(0, 2**52), Fraction(1, 2)),
        (sf.Integer(0, 8), Fraction(1, 2**50)),
        (sf.Real(0, 8, step=1), Fraction(2**31, 3)),
    ],
)
def test_steps_on_which_a_mean_cannot_be_computed_are_refused(value, step):
    fine = Column("m", sf.Real(0, 10**11, step=step) if step > 1 else sf.Real(0, 1, step=step))
    with pytest.raises(ValueError, match="cannot compute a mean"):
        Computed(fine, Summary.MEAN, Value.of(Column("x", value)))
