# SPDX-License-Identifier: Apache-2.0
"""Forms of columns: their shapes, their places, and the codes of cells."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

from sfumato.sql.outer_forms import (
    Computed,
    FixedNumber,
    Kind,
    Leaf,
    as_chosen,
    cell_of,
    code_of,
    in_scope,
    merged,
    quoted,
    shape,
    with_places,
)

TWO = FixedNumber(Fraction(2))
CELL = Leaf(Kind.CELL, ("a",))
SUM = Leaf(Kind.SUM, tuple("bcdef"))
BOTH = Computed("*", (CELL, Computed("+", (SUM, TWO))))


@given(st.integers(0, 15), st.integers(0, 2**12 - 1), st.integers(0, 2**32 - 1))
def test_a_code_tells_its_cell(answer, column, row):
    assert cell_of(code_of(answer, column) + row) == (answer, column, row)


def test_hidden_columns_get_their_places():
    places = {name: place for place, name in enumerate("abcdef", 3)}
    found = with_places(BOTH, places)
    assert found == Computed(
        "*", (Leaf(Kind.CELL, (3,)), Computed("+", (Leaf(Kind.SUM, (4, 5, 6, 7, 8)), TWO)))
    )
    assert with_places(None, places) is None


def test_hidden_columns_are_those_of_a_table():
    leaf = in_scope(BOTH, "t").parts[0]
    assert leaf.hidden == (exp.column(quoted("a"), table=quoted("t")),)


def test_every_leaf_with_noise_is_chosen():
    found = as_chosen(Computed("*", (CELL, Leaf(Kind.PUBLIC, ("p",)))))
    assert [leaf.chosen for leaf in found.parts] == [True, False]
    assert as_chosen(None) is None and as_chosen(TWO) == TWO


def test_only_forms_of_one_shape_are_merged():
    other = Computed("*", (as_chosen(CELL), Computed("+", (SUM, TWO))))
    assert shape(BOTH) == shape(other)
    assert merged(BOTH, other).parts[0].chosen
    assert merged(BOTH, None) is None
    different = [CELL, SUM, TWO, None, Computed("-", BOTH.parts), FixedNumber(Fraction(3))]
    assert len({shape(form) for form in different}) == len(different)


@pytest.mark.parametrize("form", [CELL, SUM, TWO, BOTH])
def test_a_form_merged_with_itself_is_itself(form):
    assert merged(form, form) == form
