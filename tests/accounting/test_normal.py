# SPDX-License-Identifier: Apache-2.0
"""The tail of the normal law against arbitrary precision balls."""

from decimal import Decimal
from fractions import Fraction

import pytest
from flint import arb, ctx, fmpq
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.accounting import normal
from sfumato.accounting.decimals import above
from sfumato.accounting.normal import normal_excess, normal_point, normal_tail

BITS = 20_000

POINTS = st.fractions(min_value=-45, max_value=45) | st.fractions(min_value=-2, max_value=2)
CHANCES = st.fractions(min_value=Fraction(1, 10**9), max_value=Fraction(1, 2)) | st.integers(
    1, 2000
).map(lambda power: Fraction(1, 10**power))


def number(value: Fraction) -> arb:
    """A ball of very many bits: tails may be 1e-4000."""
    return arb(fmpq(value.numerator, value.denominator))


def true_tail(x: Fraction) -> arb:
    """erfc(x / sqrt 2) / 2."""
    with ctx.workprec(BITS):
        return (number(x) / arb(2).sqrt()).erfc() / 2


def holds(x: Fraction) -> bool:
    """Whether the bounds are on their sides of the truth."""
    lower, upper = normal_tail(x)
    with ctx.workprec(BITS):
        return bool(number(lower) <= true_tail(x)) and bool(true_tail(x) <= number(upper))


@given(POINTS)
@settings(deadline=None)
def test_the_normal_tail_lies_between_its_bounds(x):
    assert holds(x)
    lower, upper = normal_tail(x)
    assert upper - lower <= upper / 10**24


@pytest.mark.parametrize("x", ["0", "0.999999", "1", "100", "141", "-141", "150", "1e-30"])
def test_the_ends_and_the_joint_of_the_two_ways(x):
    assert holds(Fraction(x))


def test_far_out_the_tail_is_nearly_nothing_and_not_nothing():
    lower, upper = normal_tail(Fraction(10**9))
    assert lower == 0 < upper < Fraction(1, 10**4000)
    assert normal_tail(Fraction(-(10**9))) == (1 - upper, 1)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("_ROOT_UP", Decimal("2.50662827463100050241576528481")),
        ("_central", lambda context, x: above(x)),
        ("_hazard", lambda x: (above(x + 1 / (x + 2 / x)),) * 2),
    ],
)
def test_a_wrong_series_is_noticed(monkeypatch, name, wrong):
    normal_tail.cache_clear()
    monkeypatch.setattr(normal, name, wrong)
    assert not (holds(Fraction(1, 2)) and holds(Fraction(3)))
    normal_tail.cache_clear()


def test_a_root_of_two_pi_is_between_its_bounds():
    with ctx.workprec(BITS):
        root = (2 * arb.pi()).sqrt()
        assert bool(number(Fraction(normal._ROOT_DOWN)) < root) and bool(
            root < number(Fraction(normal._ROOT_UP))
        )


@given(CHANCES)
@settings(deadline=None)
def test_the_normal_point_is_beyond_its_chance(chance):
    point = normal_point(chance)
    with ctx.workprec(BITS):
        assert bool(true_tail(point) <= number(chance))
        # and hardly beyond: a little nearer is not enough
        nearer = point * (1 - Fraction(1, 10**14)) - Fraction(1, 10**15)
        assert bool(true_tail(nearer) > number(chance))


def test_a_chance_beyond_all_decimals_still_has_a_point():
    chance = Fraction(1, 10**5000)
    assert 151 < normal_point(chance) < 152
    with ctx.workprec(BITS):
        assert bool(true_tail(normal_point(chance)) <= number(chance))
    assert normal_point(Fraction(1, 2)) == 0


@given(
    st.fractions(-30, 60, max_denominator=1000),
    st.fractions(Fraction(1, 100), 40, max_denominator=1000),
)
@settings(deadline=None)
def test_the_excess_lies_between_its_bounds(near, more):
    far = max(near + more, Fraction(1, 1000))
    assert exceeds(near, far)
    lower, upper = normal_excess(near, far)
    assert upper - lower < Fraction(1, 10**24)


def test_an_excess_without_its_second_term_is_noticed(monkeypatch):
    monkeypatch.setattr(normal, "_density_up", lambda x: above(Fraction(0)))
    assert not exceeds(Fraction(1, 7), Fraction(8, 5))


def exceeds(near: Fraction, far: Fraction) -> bool:
    """Whether the bounds are on their sides of the truth."""
    lower, upper = normal_excess.__wrapped__(near, far)
    with ctx.workprec(BITS):
        power = ((number(far) ** 2 - number(near) ** 2) / 2).exp()
        truth = true_tail(near) - power * true_tail(far)
        return bool(number(lower) <= truth) and bool(truth <= number(upper))
