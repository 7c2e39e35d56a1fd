# SPDX-License-Identifier: Apache-2.0
"""Weaker promises convert to nothing but what they imply, and no account takes them."""

import math
import random
from fractions import Fraction
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.accounting import account
from sfumato.errors import InvalidDeclaration, InvalidNumber, SfumatoError
from sfumato.privacy.guarantee import Guarantee, PureDP
from sfumato.privacy.relaxations import (
    MetricDP,
    RandomDP,
    length_text,
    metres,
    pairs_for,
    sampled_sensitivity,
)


def test_privacy_at_a_scale_converts_within_a_diameter_alone():
    promise = MetricDP("0.5", "200m")
    assert promise.at("1km") == promise.within(1000) == PureDP("2.5")
    assert promise.of_reports(4) == MetricDP(2, 200)
    public = {name for name in dir(MetricDP) if not name.startswith("_")}
    assert public == {"at", "epsilon", "of_reports", "per", "within"}


def test_random_differential_privacy_converts_to_nothing():
    public = {name for name in dir(RandomDP) if not name.startswith("_")}
    assert public == {"delta", "epsilon", "gamma"}


def test_neither_is_a_guarantee_and_no_account_takes_one():
    for weaker in (MetricDP(1, 200), RandomDP(1, 0, "0.05")):
        assert type(weaker) not in get_args(Guarantee)
        assert not isinstance(weaker, PureDP)
        for taken in (account, PureDP(1).implies):
            with pytest.raises((SfumatoError, TypeError, AttributeError)):
                taken(weaker)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: MetricDP(0, 200),
        lambda: MetricDP(1, "0m"),
        lambda: MetricDP(1, "200 miles"),
        lambda: MetricDP(1, "m"),
        lambda: MetricDP(1, -3),
        lambda: MetricDP(1, 200).of_reports(0),
        lambda: MetricDP(1, 200).within("0m"),
        lambda: RandomDP(1, 0, 1),
        lambda: RandomDP(1, 0, 0),
        lambda: RandomDP(1, 1, "0.1"),
        lambda: RandomDP(0, 0, "0.1"),
        lambda: pairs_for(1, "0.1"),
        lambda: pairs_for("0.1", 0),
        lambda: sampled_sensitivity(sum, lambda: 1, 0, "0.1", "0.1"),
    ],
)
def test_what_is_no_promise_is_refused(wrong):
    with pytest.raises(InvalidNumber):
        wrong()


def test_lengths_are_metres():
    assert [metres("per", each) for each in ("200m", "0.2km", 200, "200")] == [200] * 4
    assert [length_text(Fraction(each)) for each in (20, 1500)] == ["20 m", "1.5 km"]


@given(st.fractions("1/100", "99/100"), st.fractions("1/1000", "99/100"))
def test_so_many_pairs_are_enough_and_one_fewer_is_not(gamma, failure):
    pairs = pairs_for(gamma, failure)
    assert (1 - gamma) ** pairs <= failure
    assert pairs == 1 or (1 - gamma) ** (pairs - 1) > failure
    assert abs(pairs - math.log(failure) / math.log(1 - gamma)) <= 1.001


def test_the_sampled_sensitivity_is_the_largest_change_that_was_seen():
    dice = random.Random(5)
    drawn = []

    def draw():
        drawn.append(dice.randint(0, 9))
        return drawn[-1]

    found = sampled_sensitivity(sum, draw, 3, "0.1", "0.1")
    groups = [drawn[at : at + 4] for at in range(0, len(drawn), 4)]
    assert len(groups) == pairs_for("0.1", "0.1") == 22
    assert found == max(abs(group[2] - group[3]) for group in groups)
    assert type(found) is float
    with pytest.raises(InvalidDeclaration):
        sampled_sensitivity(lambda rows: math.nan, draw, 3, "0.1", "0.1")
