# SPDX-License-Identifier: Apache-2.0
"""A sensitivity is a positive number in a named norm, of named neighbours."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import InvalidDeclaration, InvalidNumber
from sfumato.privacy import Distance, Norm, Relation

AMOUNTS = st.fractions(min_value=Fraction(1, 10**9), max_value=10**9)
SUMMED = st.sampled_from((Norm.L1, Norm.L2))


def measured(norm, vector):
    """The value of a vector in a norm, as ``Distance`` writes it: L2 squared."""
    if norm is Norm.LINF:
        return max(map(abs, vector))
    return sum(abs(each) if norm is Norm.L1 else each * each for each in vector)


@given(st.sampled_from(Norm), st.fractions(), st.sampled_from(Relation))
@settings(deadline=None)
def test_a_distance_is_kept_where_it_is_positive(norm, value, relation):
    if value > 0:
        distance = Distance(norm, value, relation)
        assert (distance.norm, distance.value, distance.relation) == (norm, value, relation)
    else:
        with pytest.raises(InvalidNumber, match="sensitivity"):
            Distance(norm, value, relation)


def test_the_norms_and_their_names_are_these():
    assert [each.value for each in Norm] == ["L1", "L2", "Linf"]


def test_neighbours_are_told_apart_by_a_unit_more_where_nothing_is_said():
    assert Distance(Norm.L1, Fraction(1)).relation is Relation.ADD_REMOVE


def test_the_same_value_in_another_norm_or_of_other_neighbours_is_another_distance():
    one = Distance(Norm.L1, Fraction(1))
    assert one != Distance(Norm.L2, Fraction(1))
    assert one != Distance(Norm.L1, Fraction(1), Relation.REPLACE_ONE)


def test_a_refused_sensitivity_says_what_is_allowed():
    with pytest.raises(InvalidNumber) as caught:
        Distance(Norm.L2, Fraction(0))
    assert caught.value.allowed == "greater than 0"


@given(st.lists(st.fractions(min_value=-(10**6), max_value=10**6), min_size=1, max_size=8), SUMMED)
@settings(deadline=None)
def test_an_linf_bound_over_its_entries_bounds_every_vector(vector, norm):
    largest = measured(Norm.LINF, vector)
    if largest > 0:
        assert measured(norm, vector) <= Distance(Norm.LINF, largest).over(len(vector), norm).value


@given(AMOUNTS, st.integers(1, 50), SUMMED, st.sampled_from(Relation))
@settings(deadline=None)
def test_an_linf_bound_over_its_entries_is_attained(value, entries, norm, relation):
    bound = Distance(Norm.LINF, value, relation).over(entries, norm)
    assert bound == Distance(norm, measured(norm, [-value] * entries), relation)


@given(AMOUNTS, SUMMED)
@settings(deadline=None)
def test_the_bound_notices_an_entry_too_few(value, norm):
    assert measured(norm, [value] * 4) > Distance(Norm.LINF, value).over(3, norm).value


@pytest.mark.parametrize(
    ("held", "entries", "norm"),
    [
        (Norm.L1, 2, Norm.L2),
        (Norm.L2, 2, Norm.L1),
        (Norm.L1, 1, Norm.L1),
        (Norm.LINF, 2, Norm.LINF),
        (Norm.LINF, 0, Norm.L1),
        (Norm.LINF, -1, Norm.L2),
    ],
)
def test_no_other_bound_is_spread_over_entries(held, entries, norm):
    with pytest.raises(InvalidDeclaration) as caught:
        Distance(held, Fraction(1)).over(entries, norm)
    assert caught.value.allowed == "from Linf to L1 or L2, one entry or more"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), None, True, "wide"], ids=str)
def test_a_sensitivity_is_a_finite_number(value):
    with pytest.raises(InvalidNumber):
        Distance(Norm.L1, value)


def test_a_float_is_its_shortest_decimal():
    assert Distance(Norm.L1, 0.1).value == Fraction(1, 10)
