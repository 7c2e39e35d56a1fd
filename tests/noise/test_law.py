# SPDX-License-Identifier: Apache-2.0
"""What all laws have in common: shapes, probabilities, outward bounds, searches that never fall
short.
"""

import inspect
import math
from fractions import Fraction
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import InvalidNumber
from sfumato.exact import Bracket
from sfumato.noise import (
    Binomial,
    DiscreteGaussian,
    DiscreteLaplace,
    DiscreteStaircase,
    Geometric,
    Law,
    Noise,
    RoundedGaussian,
    Skellam,
    Truncated,
)
from sfumato.noise.law import bracket, half_width_of, open_unit, quantile_of, size_of
from sfumato.noise.search import smallest

PROMISED = [
    name for name, _ in inspect.getmembers(Law, inspect.isfunction) if not name.startswith("_")
]
LAWS = [
    DiscreteLaplace("5/2"),
    DiscreteGaussian("5/2"),
    DiscreteStaircase("1/2", 3),
    Truncated(DiscreteLaplace(3), -4, 9),
    Geometric(2),
    Binomial(9, "1/3"),
    Skellam("5/2"),
    RoundedGaussian("5/2"),
]
SIDES = st.integers(0, 50)
CHANCES = st.fractions(min_value=Fraction(1, 10**9), max_value=1 - Fraction(1, 10**9))


def die(x: int) -> Fraction:
    """P(X <= x) for a die: a law known without any rounding."""
    return Fraction(min(max(x, 0), 6), 6)


def ball(chance: Fraction) -> Bracket:
    """A probability as a law states it."""
    return bracket(chance, chance)


def test_the_promise_of_a_law_is_this():
    assert PROMISED == [
        "above",
        "cdf",
        "half_width",
        "pmf",
        "quantile",
        "sample",
        "sample_one",
        "tail",
    ]
    assert isinstance(Law.variance, property)


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_a_law_keeps_what_is_promised(law):
    assert isinstance(law.variance, Bracket)
    for name in PROMISED:
        promised, kept = (
            inspect.signature(getattr(kind, name)).parameters for kind in (Law, type(law))
        )
        assert list(kept) == list(promised)
        assert [each.default is each.empty for each in kept.values()] == [
            each.default is each.empty for each in promised.values()
        ]


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_the_statements_of_a_law_are_of_one_distribution(law):
    """Each statement in terms of the masses: they hold whatever the law is."""
    for x in range(-12, 13):
        below, mass, beyond = law.cdf(x - 1), law.pmf(x), law.above(x)
        assert (
            below.lower + mass.lower + beyond.lower <= 1 <= below.upper + mass.upper + beyond.upper
        )
        assert (
            law.cdf(x).lower <= below.upper + mass.upper
            and below.lower + mass.lower <= law.cdf(x).upper
        )
    for h in range(8):
        outside = [law.cdf(-h - 1), law.above(h)]
        assert law.tail(h).lower <= math.fsum(each.upper for each in outside) * (1 + 1e-15)
        assert math.fsum(each.lower for each in outside) <= law.tail(h).upper * (1 + 1e-15)
    for chance in (Fraction(1, 20), Fraction(1, 2), Fraction(19, 20)):
        assert (
            law.cdf(law.quantile(chance)).upper >= chance >= law.cdf(law.quantile(chance) - 1).lower
        )
        assert (
            law.tail(law.half_width(chance)).lower
            <= 1 - chance
            <= law.tail(law.half_width(chance) - 1).upper
        )


def test_every_law_that_an_event_can_name_is_tried():
    assert set(get_args(Noise)) <= {type(law) for law in LAWS}


@given(st.lists(SIDES, max_size=6))
@settings(deadline=None)
def test_a_shape_has_the_product_of_its_sides(sides):
    assert size_of(tuple(sides)) == math.prod(sides)
    assert size_of(sum(sides)) == sum(sides)


def test_the_largest_shape_is_two_to_the_sixty():
    assert size_of(2**60) == size_of((2**30, 2**30)) == 2**60
    for shape in (2**60 + 1, (2**30, 2**30 + 1), (2**64, 2)):
        with pytest.raises(InvalidNumber, match="2\\^60"):
            size_of(shape)
    assert size_of((2**60, 0)) == 0


@pytest.mark.parametrize(
    "shape",
    [
        -1,
        (3, -1),
        True,
        (2, True),
        1.0,
        (1.0,),
        "3",
        ("3",),
        None,
        [3],
        (None,),
        (2, (3,)),
        float("nan"),
    ],
)
def test_a_shape_that_cannot_be_is_refused(shape):
    with pytest.raises(InvalidNumber) as caught:
        size_of(shape)
    assert caught.value.allowed == "an integer >= 0, or a tuple of them"


@given(CHANCES)
@settings(deadline=None)
def test_a_probability_stays_exact(chance):
    assert open_unit("confidence", chance) == chance
    assert open_unit("confidence", str(chance)) == chance


@pytest.mark.parametrize(
    "chance",
    [0, 1, -0.1, 1.5, "1", float("nan"), float("inf"), True, None, 1 - Fraction(1, 10**16)],
)
def test_a_probability_outside_the_open_interval_is_refused_by_name(chance):
    with pytest.raises(InvalidNumber, match="confidence"):
        open_unit("confidence", chance)


@given(st.fractions(min_value=0, max_value=1), st.fractions(min_value=0, max_value=1))
@settings(deadline=None)
def test_bounds_go_outward_and_stay_in_the_unit_interval(one, other):
    lower, upper = sorted((one, other))
    stated = bracket(lower, upper)
    assert 0 <= stated.lower <= lower and upper <= stated.upper <= 1
    # and not further than to the next float
    assert math.nextafter(stated.lower, 2) >= lower and math.nextafter(stated.upper, -1) <= upper


def test_bounds_beyond_the_unit_interval_are_cut():
    assert bracket(Fraction(-1, 10), Fraction(11, 10)) == Bracket(0.0, 1.0)
    assert bracket(Fraction(-1, 10**400), 1 + Fraction(1, 10**400)) == Bracket(0.0, 1.0)


@given(CHANCES, st.integers(0, 40))
@settings(deadline=None)
def test_a_quantile_is_the_smallest_value_that_is_certain_to_reach(chance, guess):
    found = quantile_of(lambda x: ball(die(x)), chance, guess=guess)
    # sixths are not floats: a chance of exactly k/6 may need the next value to be certain
    assert ball(die(found)).lower >= chance > ball(die(found - 1)).lower
    assert math.ceil(6 * chance) <= found <= math.ceil(6 * chance) + 1


@given(CHANCES, st.integers(0, 40))
@settings(deadline=None)
def test_a_half_width_is_the_smallest_that_is_certain_to_cover(confidence, guess):
    def tail(h):
        """P(|X| > h) of a uniform on -5..5."""
        return Fraction(max(10 - 2 * max(h, -1), 0), 11) if h >= 0 else Fraction(1)

    found = half_width_of(lambda h: ball(tail(h)), confidence, guess=guess)
    assert ball(tail(found)).upper <= 1 - confidence < ball(tail(found - 1)).upper


def test_the_searches_notice_a_bound_of_the_wrong_side():
    """With the other end of the bracket a quantile is claimed that the law does not certainly
    reach.
    """
    wide, third = Bracket(0.3, 0.4), Fraction(35, 100)

    def cdf(x):
        return Bracket(0.0, 0.0) if x < 0 else wide if x == 0 else Bracket(1.0, 1.0)

    assert quantile_of(cdf, third) == 1
    assert smallest(lambda x: cdf(x).upper >= third) == 0
    assert half_width_of(lambda h: cdf(-h), 1 - third) == 1
    assert smallest(lambda h: cdf(-h).lower <= third) == 0


@pytest.mark.parametrize("search", [quantile_of, half_width_of])
@pytest.mark.parametrize("chance", [0, 1, 2, "nan", True])
def test_a_search_refuses_before_it_asks_the_law(search, chance):
    def never(x):
        raise AssertionError("the law was asked")

    with pytest.raises(InvalidNumber):
        search(never, chance)


@pytest.mark.parametrize(
    "law",
    [
        DiscreteLaplace(3),
        DiscreteGaussian(3),
        DiscreteGaussian(300),
        Geometric(3),
        DiscreteStaircase(1, 3),
        Truncated(DiscreteLaplace(3), -5, 5),
        Binomial(10, "0.5"),
        Skellam(2),
    ],
    ids=lambda law: type(law).__name__,
)
@pytest.mark.parametrize("x", [np.int64(2), np.int64(-1), np.int32(0)], ids=repr)
def test_an_integer_of_numpy_states_what_a_python_one_does(law, x):
    assert all(
        getattr(law, name)(x) == getattr(law, name)(int(x))
        for name in ("pmf", "cdf", "above", "tail")
    )


@pytest.mark.parametrize("shape", [(2**70, 0, 3), (0, 2**62)], ids=str)
def test_a_huge_side_of_an_empty_shape_is_refused(shape):
    with pytest.raises(InvalidNumber):
        size_of(shape)
