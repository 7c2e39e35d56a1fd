# SPDX-License-Identifier: Apache-2.0
"""Which axes and cliques there are: what is refused, and that nothing is read for it."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.errors import MissingDeclaration, UnknownName, WrongUse
from sfumato.metadata.column import Column
from sfumato.plan import cube as module
from sfumato.plan.cube import MAX_CELLS, MAX_CLIQUES, MAX_VALUES, Cube, axis
from sfumato.plan.relation import PerUnit, Scan
from sfumato.plan.value import GroupKey, Value
from sfumato.privacy.distance import Distance, Norm
from tests.contracts import cubes

SEX, AGE = Column("sex", sf.Category("Female", "Male")), Column("age", sf.Integer(17, 90))
PEOPLE = Scan("people", columns=(SEX, AGE))
TWO = Cube(PEOPLE, (axis(Value.of(SEX)), axis(Value.of(AGE))))


def column(name, size):
    return axis(Value.of(Column(name, sf.Integer(1, size))))


def test_an_axis_has_a_cell_for_each_code_and_one_for_missing():
    assert TWO.names == ("sex", "age")
    assert TWO.shape((0, 1)) == (3, 75)
    assert TWO.places([("age", "sex"), ["sex"], ()]) == ((1, 0), (0,), ())
    assert axis(Value.of(AGE)) == GroupKey(Value.of(AGE), tuple(range(17, 91)), missing=True)


def test_an_open_axis_is_refused_with_what_to_declare():
    with pytest.raises(MissingDeclaration, match=r"'note'(.|\n)*sf\.Category"):
        axis(Value.of(Column("note", sf.Text())))
    with pytest.raises(WrongUse, match="1,048,577 values"):
        column("fine", MAX_VALUES + 1)
    assert column("fine", MAX_VALUES).size == MAX_VALUES + 1


@pytest.mark.parametrize(
    "key",
    [
        GroupKey(Value.of(AGE), tuple(range(17, 91))),
        GroupKey(Value.of(AGE), (17, 90), missing=True),
        GroupKey(Value.of(AGE), tuple(range(18, 91)), missing=True),
        GroupKey(Value.of(AGE), tuple(range(18, 92)), missing=True),
        GroupKey(Value.of(AGE), (), missing=True),
        GroupKey(Value.of(AGE), None, missing=True),
        GroupKey(Value.of(Column("note", sf.Text())), None, missing=True),
    ],
)
def test_a_key_that_is_not_total_is_no_axis(key):
    with pytest.raises(ValueError, match="a cell for each code"):
        Cube(PEOPLE, (key,))


def test_axes_are_there_each_once():
    for axes in ((), (TWO.axes[0], TWO.axes[1], TWO.axes[0])):
        with pytest.raises(WrongUse, match="at least one, each once"):
            Cube(PEOPLE, axes)


@pytest.mark.parametrize(
    ("cliques", "error", "said"),
    [
        ([], WrongUse, "0 cliques"),
        ([("sex",)] * 100_000, WrongUse, "100,000 cliques"),
        ([("sex", "height")], UnknownName, r"'height'(.|\n)*sex, age"),
        ([("sex",), ("sex", "age", "sex")], WrongUse, "sex, age, sex has an axis twice"),
        (["sex"], WrongUse, r"The clique 'sex'(.|\n)*names of axes"),
        ([("sex", 1)], UnknownName, "no axis 1"),
        ([{"sex"}], WrongUse, "a value of type set"),
    ],
)
def test_a_clique_that_cannot_be_asked_for_is_refused(cliques, error, said):
    with pytest.raises(error, match=said):
        TWO.places(cliques)


def test_cells_are_limited_before_anything_is_read():
    cube = Cube(PEOPLE, tuple(column(f"c{place}", 999) for place in range(4)))
    assert cube.places([("c0", "c1")]) == ((0, 1),)
    with pytest.raises(
        WrongUse, match=r"1,000,000,000,000 cells in all; the largest is by c0, c1, c2, c3"
    ):
        cube.places([("c0", "c1", "c2", "c3")])
    many = MAX_CELLS // 10**6
    assert len(cube.places([("c0", "c1")] * many)) == many
    with pytest.raises(WrongUse, match="Ask for fewer"):
        cube.places([("c0", "c1")] * (many + 1))
    assert len(cube.places([()] * MAX_CLIQUES)) == MAX_CLIQUES


@given(st.lists(st.integers(2, 40), min_size=1, max_size=4))
def test_a_marginal_has_a_cell_for_each_combination(sizes):
    cube = Cube(PEOPLE, tuple(column(f"c{place}", size) for place, size in enumerate(sizes)))
    (places,) = cube.places([cube.names[::-1]])
    assert cube.shape(places) == tuple(size + 1 for size in reversed(sizes))
    assert all(one > other for one, other in pairwise(places))


def test_a_bounded_cube_cannot_be_built_wrong():
    good = replace(cubes.bounded(PEOPLE, Value.of(SEX)), unit="who", refinement=4)
    assert good.is_weighed
    assert not replace(good, cube=replace(good.cube, relation=PerUnit(PEOPLE, (), ()))).is_weighed
    assert not replace(good, unit=None, refinement=1).is_weighed
    other = Distance(Norm.LINF, Fraction(1))
    for wrong in (
        {"most": 0},
        {"refinement": 0},
        {"refinement": module.MAX_WEIGHT + 1},
        {"unit": None},
        {"l1": other},
        {"l2": good.l1},
        {"apart": good.l2},
    ):
        with pytest.raises(ValueError, match=r"weighs|norm"):
            replace(good, **wrong)
