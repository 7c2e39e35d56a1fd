# SPDX-License-Identifier: Apache-2.0
"""An event cannot be built wrong: counts, rates and norms are what they say."""

import dataclasses
import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import InvalidDeclaration, InvalidNumber
from sfumato.noise import DiscreteGaussian, DiscreteLaplace
from sfumato.privacy import (
    AdditiveNoise,
    ApproxEvent,
    BoundedRange,
    Composed,
    ContinuousLaw,
    ContinuousNoise,
    Distance,
    FixedSample,
    Group,
    NoisyMax,
    Nonadaptive,
    Norm,
    PoissonSample,
    PureEvent,
    RandomizedResponse,
    Relation,
    Repeated,
    Rule,
    Sampled,
    Selection,
    Shuffled,
    SparseVector,
    Stream,
    Thresholded,
)

NOISE = DiscreteLaplace(2)
SCORES = Distance(Norm.LINF, Fraction(1))
LAPLACE = AdditiveNoise(NOISE, Distance(Norm.L1, Fraction(1)))
SQUARE = Distance(Norm.L2, Fraction(6))
GAUSSIAN = AdditiveNoise(DiscreteGaussian(10), SQUARE)
REAL = ContinuousNoise(ContinuousLaw.GAUSSIAN, Fraction(11, 10), SQUARE)
NO_COUNTS = (0, -1, True, 1.0, "1", None)
EVERY_KIND = [
    LAPLACE,
    Selection(Rule.EXPONENTIAL, Fraction(1), SCORES),
    NoisyMax(NOISE, SCORES),
    SparseVector(NOISE, NOISE, SCORES, 1),
    RandomizedResponse(Fraction(1), 2),
    Thresholded(LAPLACE, 10, 1),
    REAL,
    BoundedRange(Fraction(1)),
    PureEvent(Fraction(1)),
    ApproxEvent(Fraction(1), Fraction(1, 100)),
    Shuffled(RandomizedResponse(Fraction(1), 2), 10),
    Group(LAPLACE, 4),
    Stream(GAUSSIAN, 8, Fraction(4)),
    Sampled(FixedSample(1, 2), LAPLACE),
    Composed((LAPLACE,)),
    Repeated(LAPLACE, 2),
    Nonadaptive(LAPLACE),
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
    assert all(event.relation is Relation.ADD_REMOVE for event in EVERY_KIND[7:10])


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
        lambda count: Shuffled(RandomizedResponse(Fraction(1), 2), count),
        lambda count: Group(LAPLACE, count),
        lambda count: Stream(REAL, count, Fraction(4)),
        lambda count: Stream(REAL, 8, Fraction(4), participations=count),
        lambda count: Stream(REAL, 8, Fraction(4), separation=count),
        lambda count: Repeated(LAPLACE, count),
    ],
    ids=["positives", "keys", "reports", "size", "steps", "participations", "separation", "times"],
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
        lambda: ContinuousNoise(ContinuousLaw.GAUSSIAN, number, SQUARE),
        lambda: BoundedRange(number),
        lambda: PureEvent(number),
        lambda: Stream(REAL, 8, number),
    ):
        with pytest.raises(InvalidNumber):
            make()


@pytest.mark.parametrize("categories", [1, 0, -3, True, 2.5, "3", None])
def test_a_response_has_two_categories_or_more(categories):
    with pytest.raises(InvalidDeclaration) as caught:
        RandomizedResponse(Fraction(1), categories)
    assert caught.value.allowed == "2 or more"


@pytest.mark.parametrize("cells", [0, -1, True, 1.0, "1"])
def test_cells_are_a_positive_integer_where_they_are_said(cells):
    with pytest.raises(InvalidNumber):
        AdditiveNoise(NOISE, SCORES, cells)


@pytest.mark.parametrize(
    ("law", "norm"),
    [
        (ContinuousLaw.GAUSSIAN, Norm.L1),
        (ContinuousLaw.GAUSSIAN, Norm.LINF),
        (ContinuousLaw.LAPLACE, Norm.L2),
    ],
)
def test_a_continuous_law_has_the_norm_of_its_density(law, norm):
    with pytest.raises(InvalidDeclaration) as caught:
        ContinuousNoise(law, Fraction(1), Distance(norm, Fraction(1)))
    assert caught.value.allowed == (
        "Distance(Norm.L2, ...)" if law is ContinuousLaw.GAUSSIAN else "Distance(Norm.L1, ...)"
    )


@pytest.mark.parametrize(("epsilon", "delta"), [(-1, "0.1"), (1, "-0.1"), (1, "1.001"), (1, 2)])
def test_what_is_known_of_a_mechanism_is_an_epsilon_and_a_chance(epsilon, delta):
    with pytest.raises(InvalidNumber):
        ApproxEvent(Fraction(epsilon), Fraction(delta))


def test_nothing_but_a_chance_may_be_known_of_a_mechanism():
    assert ApproxEvent(Fraction(0), Fraction(1, 10)).epsilon == 0
    assert [ApproxEvent(Fraction(1), Fraction(delta)).delta for delta in (0, 1)] == [0, 1]


# one of every kind, with a number in the place that is looked at
NUMBERS = {
    "scale": lambda value: ContinuousNoise(ContinuousLaw.LAPLACE, value, LAPLACE.distance),
    "rate": lambda value: Selection(Rule.EXPONENTIAL, value, SCORES),
    "epsilon": lambda value: PureEvent(value),
    "response": lambda value: RandomizedResponse(value, 2),
    "eta": lambda value: BoundedRange(value),
    "approximate": lambda value: ApproxEvent(value, 0),
    "delta": lambda value: ApproxEvent(1, value),
    "sample": lambda value: PoissonSample(value),
    "column": lambda value: Stream(REAL, 8, value),
}


@pytest.mark.parametrize("place", NUMBERS)
@pytest.mark.parametrize("value", [math.nan, math.inf, "nan", "x", None, True, "1e400000", -1, [1]])
def test_a_number_of_an_event_is_a_finite_number(place, value):
    with pytest.raises(InvalidNumber):
        NUMBERS[place](value)


@pytest.mark.parametrize("place", NUMBERS)
def test_a_number_of_an_event_is_exactly_what_was_written(place):
    for written in ("0.1", 0.1, Decimal("0.1")):
        assert NUMBERS[place](written) == NUMBERS[place](Fraction(1, 10))
    assert PureEvent("1.1").epsilon == Fraction(11, 10)


@pytest.mark.parametrize("threshold", ["5", 5.0, None, True, Fraction(5)])
def test_a_threshold_is_an_integer(threshold):
    with pytest.raises(InvalidNumber):
        Thresholded(AdditiveNoise(NOISE, SCORES, 1), threshold, 1)


def test_parts_that_are_listed_are_a_tuple():
    assert Composed([LAPLACE, LAPLACE]) == Composed((LAPLACE, LAPLACE)) and hash(
        Composed([LAPLACE])
    )
