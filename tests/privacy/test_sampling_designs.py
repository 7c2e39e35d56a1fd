# SPDX-License-Identifier: Apache-2.0
"""A design of a sample says how often a unit is in it, and for which neighbours."""

import dataclasses
import math
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import InvalidNumber
from sfumato.privacy import FixedSample, PoissonSample, Relation, WithReplacementSample

NO_COUNTS = (0, -1, True, 1.0, "1", None)
DESIGNS = [PoissonSample(Fraction(1, 2)), FixedSample(1, 2), WithReplacementSample(3, 2)]


@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: type(design).__name__)
def test_a_design_is_a_value_that_cannot_be_changed(design):
    assert design == dataclasses.replace(design)
    assert hash(design) == hash(dataclasses.replace(design))
    for field in dataclasses.fields(design):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(design, field.name, None)


@pytest.mark.parametrize("count", NO_COUNTS)
@pytest.mark.parametrize("kind", [FixedSample, WithReplacementSample])
def test_a_size_and_a_population_are_positive_integers(kind, count):
    for make in (lambda: kind(count, 10), lambda: kind(1, count)):
        with pytest.raises(InvalidNumber) as caught:
            make()
        assert caught.value.allowed == "an integer >= 1"


@given(st.fractions(max_value=0))
@settings(deadline=None)
def test_a_rate_is_positive(number):
    with pytest.raises(InvalidNumber):
        PoissonSample(number)


@given(st.fractions(min_value=Fraction(1, 10**9), max_value=2))
@settings(deadline=None)
def test_a_poisson_rate_is_at_most_one(rate):
    if rate > 1:
        with pytest.raises(InvalidNumber):
            PoissonSample(rate)
    else:
        design = PoissonSample(rate)
        assert (design.rate, design.relation) == (rate, Relation.ADD_REMOVE)


@given(st.integers(1, 100), st.integers(1, 100))
@settings(deadline=None)
def test_a_fixed_sample_is_at_most_the_population(size, population):
    if size > population:
        with pytest.raises(InvalidNumber):
            FixedSample(size, population)
    else:
        design = FixedSample(size, population)
        assert (design.rate, design.relation) == (Fraction(size, population), Relation.REPLACE_ONE)


def test_a_given_unit_is_in_a_fixed_sample_as_often_as_its_rate_says():
    # every subset of 2 out of 5, listed: unit 0 is in 4 of the 10
    subsets = [(one, other) for one in range(5) for other in range(one)]
    share = Fraction(sum(0 in each for each in subsets), len(subsets))
    assert FixedSample(2, 5).rate == share == Fraction(2, 5)


def test_draws_with_replacement_may_repeat_and_their_rate_counts_the_repeats():
    # every sequence of 3 draws out of 2, listed: unit 0 is drawn 12 times in 8 sequences
    draws = list(product(range(2), repeat=3))
    design = WithReplacementSample(3, 2)
    assert (
        design.rate == Fraction(sum(each.count(0) for each in draws), len(draws)) == Fraction(3, 2)
    )
    assert design.relation is Relation.REPLACE_ONE
    assert math.isclose(float(WithReplacementSample(1, 3).rate), 1 / 3)
