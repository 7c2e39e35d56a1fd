# SPDX-License-Identifier: Apache-2.0
"""An event cannot be built wrong: counts, rates and norms are what they say."""

import dataclasses
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import InvalidDeclaration, InvalidNumber
from sfumato.noise import DiscreteLaplace
from sfumato.privacy import (
    AdditiveNoise,
    Composed,
    Distance,
    FixedSample,
    NoisyMax,
    Norm,
    PoissonSample,
    RandomizedResponse,
    Relation,
    Repeated,
    Rule,
    Sampled,
    Selection,
    SparseVector,
    Thresholded,
)

NOISE = DiscreteLaplace(2)
SCORES = Distance(Norm.LINF, Fraction(1))
LAPLACE = AdditiveNoise(NOISE, Distance(Norm.L1, Fraction(1)))
NO_COUNTS = (0, -1, True, 1.0, "1", None)
EVERY_KIND = [
    LAPLACE,
    Selection(Rule.EXPONENTIAL, Fraction(1), SCORES),
    NoisyMax(NOISE, SCORES),
    SparseVector(NOISE, NOISE, SCORES, 1),
    RandomizedResponse(Fraction(1), 2),
    Thresholded(LAPLACE, 10, 1),
    PoissonSample(Fraction(1, 2)),
    FixedSample(1, 2),
    Sampled(FixedSample(1, 2), LAPLACE),
    Composed((LAPLACE,)),
    Repeated(LAPLACE, 2),
]


@pytest.mark.parametrize("event", EVERY_KIND, ids=lambda event: type(event).__name__)
def test_an_event_is_a_value_that_cannot_be_changed(event):
    assert event == dataclasses.replace(event)
    assert hash(event) == hash(dataclasses.replace(event))
    for field in dataclasses.fields(event):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(event, field.name, None)


def test_what_is_not_said_is_the_weaker_claim():
    assert not EVERY_KIND[1].monotone
    assert (EVERY_KIND[2].monotone, EVERY_KIND[2].gap) == (False, False)
    assert (EVERY_KIND[3].monotone, EVERY_KIND[3].gap) == (False, False)
    assert LAPLACE.cells is None


@pytest.mark.parametrize("norm", (Norm.L1, Norm.L2))
@pytest.mark.parametrize(
    "make",
    [
        lambda distance: Selection(Rule.PERMUTE_AND_FLIP, Fraction(1), distance),
        lambda distance: NoisyMax(NOISE, distance),
        lambda distance: SparseVector(NOISE, NOISE, distance, 1),
    ],
    ids=["selection", "noisy max", "sparse vector"],
)
def test_scores_are_bounded_each(make, norm):
    with pytest.raises(InvalidDeclaration) as caught:
        make(Distance(norm, Fraction(1)))
    assert "Norm.LINF" in caught.value.allowed


@pytest.mark.parametrize("count", NO_COUNTS)
@pytest.mark.parametrize(
    "make",
    [
        lambda count: SparseVector(NOISE, NOISE, SCORES, count),
        lambda count: Thresholded(LAPLACE, 10, count),
        lambda count: FixedSample(count, 10),
        lambda count: FixedSample(1, count),
        lambda count: Repeated(LAPLACE, count),
    ],
    ids=["positives", "keys", "size", "population", "times"],
)
def test_a_count_is_a_positive_integer(make, count):
    with pytest.raises(InvalidNumber) as caught:
        make(count)
    assert caught.value.allowed == "an integer >= 1"


@given(st.fractions(max_value=0))
@settings(deadline=None)
def test_a_rate_and_an_epsilon_are_positive(number):
    for make in (
        lambda: Selection(Rule.EXPONENTIAL, number, SCORES),
        lambda: RandomizedResponse(number, 2),
        lambda: PoissonSample(number),
    ):
        with pytest.raises(InvalidNumber):
            make()


@pytest.mark.parametrize("categories", [1, 0, -3, True, 2.5, "3", None])
def test_a_response_has_two_categories_or_more(categories):
    with pytest.raises(InvalidDeclaration) as caught:
        RandomizedResponse(Fraction(1), categories)
    assert caught.value.allowed == "2 or more"


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


@pytest.mark.parametrize("cells", [0, -1, True, 1.0, "1"])
def test_cells_are_a_positive_integer_where_they_are_said(cells):
    with pytest.raises(InvalidNumber):
        AdditiveNoise(NOISE, SCORES, cells)


def test_a_threshold_is_on_noisy_counts():
    with pytest.raises(InvalidDeclaration) as caught:
        Thresholded(Composed((LAPLACE,)), 10, 1)
    assert caught.value.allowed == "AdditiveNoise"
