# SPDX-License-Identifier: Apache-2.0
"""Costs add exactly, and what a profile says of an event is enough for what is made of it."""

import dataclasses
import importlib
from fractions import Fraction

import pytest
from flint import arb, ctx, fmpq
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.accounting import Profile
from sfumato.privacy import ZeroConcentratedDP
from tests.accounting import laws

AMOUNTS = st.fractions(min_value=0, max_value=10**9)
PROFILES = st.builds(Profile, st.none() | AMOUNTS, AMOUNTS, AMOUNTS)
NONE = Profile(Fraction(0), Fraction(0))


@given(AMOUNTS, AMOUNTS)
@settings(deadline=None)
def test_a_pure_loss_costs_half_its_square_in_zcdp(epsilon, delta):
    assert Profile.pure(epsilon, delta) == Profile(epsilon, epsilon * epsilon / 2, delta)
    assert Profile.pure(epsilon).delta == 0


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(4)])
def test_the_zcdp_of_a_pure_loss_bounds_the_pair_that_is_worst(epsilon):
    """A truthful bit against a lie: every pure mechanism is made of that (Kairouz, Oh, Viswanath
    2015).
    """
    worst = [laws.response(truth, epsilon, 2) for truth in (0, 1)]
    for order in (fmpq(101, 100), fmpq(2), fmpq(50)):
        bound = arb(order) * laws.number(Profile.pure(epsilon).rho)
        assert bool(laws.renyi(*worst, order) <= bound)


def test_half_of_that_zcdp_would_be_exceeded(monkeypatch):
    def half(guarantee):
        return ZeroConcentratedDP(guarantee.epsilon**2 / 4)

    monkeypatch.setattr(
        importlib.import_module("sfumato.accounting.profile"), "zcdp_from_pure", half
    )
    worst, epsilon = [laws.response(truth, Fraction(1), 2) for truth in (0, 1)], Fraction(1)
    assert not bool(laws.renyi(*worst, fmpq(2)) <= 2 * laws.number(Profile.pure(epsilon).rho))


@given(st.lists(PROFILES, max_size=6))
@settings(deadline=None)
def test_a_total_is_the_sum_in_each_measure(parts):
    total = Profile.total(parts)
    pure = [part.epsilon for part in parts]
    assert total.epsilon == (None if None in pure else sum(pure))
    assert (total.rho, total.delta) == (
        sum(part.rho for part in parts),
        sum(part.delta for part in parts),
    )


@given(st.lists(PROFILES, max_size=5), st.randoms(use_true_random=False), st.integers(0, 5))
@settings(deadline=None)
def test_a_total_does_not_depend_on_order_or_grouping(parts, shuffler, cut):
    mixed = shuffler.sample(parts, len(parts))
    assert Profile.total(mixed) == Profile.total(parts)
    assert Profile.total([Profile.total(parts[:cut]), Profile.total(parts[cut:])]) == Profile.total(
        parts
    )


def test_the_total_of_nothing_is_nothing():
    assert Profile.total([]) == NONE


@given(PROFILES, st.integers(1, 9))
@settings(deadline=None)
def test_so_many_times_is_the_total_of_so_many(part, count):
    assert part.times(count) == Profile.total([part] * count)


def test_a_tenth_ten_times_is_one():
    assert Profile.pure(Fraction(1, 10)).times(10).epsilon == 1


def test_a_profile_cannot_be_changed():
    for field in dataclasses.fields(NONE):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(NONE, field.name, Fraction(0))


def split_in_two(one: laws.Law, other: laws.Law, epsilon: Fraction):
    """The parts of profile.proof.md of a pair that is (epsilon, delta) apart: what is kept of each,
    and delta.
    """
    factor = laws.number(epsilon).exp()
    short = {
        x: (
            one.get(x, arb(0)).min(factor * other.get(x, arb(0))),
            other.get(x, arb(0)).min(factor * one.get(x, arb(0))),
        )
        for x in {*one, *other}
    }
    kept = [sum((pair[side] for pair in short.values()), arb(0)) for side in (0, 1)]
    if bool(kept[0] > kept[1]):
        return split_in_two(other, one, epsilon)
    # the second side gives up the same, between the least that it must keep and the most that it
    # may
    least = sum((pair[0] / factor for pair in short.values()), arb(0))
    share = (kept[0] - least) / (kept[1] - least)
    return [(p, p / factor + share * (q - p / factor)) for p, q in short.values()], 1 - kept[0]


@pytest.mark.parametrize("epsilon", [Fraction(1, 4), Fraction(1, 2), Fraction(1)])
@pytest.mark.parametrize("upper", [2, 5])
def test_what_is_approximately_private_is_mostly_purely_private(epsilon, upper):
    """The lemma under every delta: parts of weight 1 - delta of both laws, within e^epsilon of each
    other.
    """
    noise = laws.laplace(Fraction(2), (-3, upper))
    one, other = laws.shifted(noise, 0), laws.shifted(noise, 1)
    with ctx.workprec(laws.PRECISION):
        parts, delta = split_in_two(one, other, epsilon)
        assert abs(float(delta - laws.hockey_stick(one, other, epsilon))) < 1e-30
        for side in (0, 1):
            assert abs(float(sum((pair[side] for pair in parts), arb(0)) - (1 - delta))) < 1e-30
        assert all(bool(p == 0) == bool(q == 0) for p, q in parts)
        assert all(
            abs(float((p / q).log())) <= float(epsilon) + 1e-15 for p, q in parts if bool(p > 0)
        )
