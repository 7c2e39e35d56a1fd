# SPDX-License-Identifier: Apache-2.0
"""Coins: the bias that is drawn, bounded and stated is the one that is named."""

from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import InvalidNumber
from sfumato.noise import SYSTEM, coin, law, lazy_uniform
from sfumato.noise.coin import Bernoulli, BernoulliExp, BernoulliLogistic, Coin
from sfumato.testing import Replay, assert_at_most
from tests.contracts.effort import examples
from tests.noise.truth import PRECISION, ball, every_path, is_outward

COINS = [
    *(Bernoulli(text) for text in ("0", "1", "1/2", "1/3", "0.999999", "1e-30")),
    *(BernoulliExp(text) for text in ("0", "1e-30", "1/100", "1", "17/2", "1000", "12345")),
    *(BernoulliLogistic(text) for text in ("0", "1e-30", "1/100", "1", "17/2", "1000", "12345")),
    *(BernoulliLogistic("3/2", odds) for odds in ("1/7", "9", "1e30", "1e-400")),
]
EVERY = pytest.mark.parametrize("one", COINS, ids=repr)
POSITIVE = st.fractions(min_value=Fraction(1, 10**6), max_value=2000)
ANY_COIN = st.one_of(
    st.builds(Bernoulli, st.fractions(0, 1)),
    st.builds(BernoulliExp, POSITIVE),
    st.builds(BernoulliLogistic, POSITIVE, POSITIVE),
)


def bias(one: Coin) -> arb:
    """The probability of true, in 400 bits."""
    with ctx.workprec(PRECISION):
        match one:
            case Bernoulli():
                return ball(one.probability)
            case BernoulliExp():
                return (-ball(one.gamma)).exp()
        odds = ball(one.odds) * (-ball(one.gamma)).exp()
        return odds / (1 + odds)


def is_drawn_exactly(one: Coin) -> bool:
    """Whether the mass of the paths to True is the bias, up to the undecided.

    Three bits at a time.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lazy_uniform, "_STEP", 3)
        law_of_one, rest = every_path(lambda script: one.sample_one(script), 2.0**-16)
    sure = ball(law_of_one.get(True, Fraction(0)))
    with ctx.workprec(PRECISION):
        return (
            rest <= Fraction(1, 2**10)
            and bool(sure <= bias(one))
            and bool(bias(one) <= sure + ball(rest))
        )


@EVERY
def test_a_coin_is_drawn_with_exactly_its_bias(one):
    assert is_drawn_exactly(one)


@pytest.mark.parametrize(
    "one",
    [Bernoulli("0.3"), BernoulliExp("0.4"), BernoulliLogistic("1"), BernoulliLogistic("1", "1/3")],
    ids=repr,
)
def test_arrays_of_a_coin_have_its_share(one):
    true = int(np.count_nonzero(one.sample((200, 5000), SYSTEM)))
    share = float(bias(one).mid())
    assert_at_most(true, 10**6, share, notices=share + 0.01)
    assert_at_most(10**6 - true, 10**6, 1 - share, notices=1 - share + 0.01)


def test_the_paths_notice_a_logistic_coin_without_its_odds(monkeypatch):
    honest = BernoulliLogistic.bounds
    monkeypatch.setattr(
        BernoulliLogistic,
        "bounds",
        lambda one, precision: honest(BernoulliLogistic(one.gamma), precision),
    )
    assert is_drawn_exactly(BernoulliLogistic(1))
    assert not is_drawn_exactly(BernoulliLogistic(1, 3))


def test_the_paths_notice_a_rounded_bias(monkeypatch):
    monkeypatch.setattr(
        Bernoulli, "bounds", lambda one, precision: (10 << precision >> 5, 10 << precision >> 5)
    )
    assert not is_drawn_exactly(Bernoulli("1/3"))


def bounds_hold(one: Coin, precision: int) -> bool:
    """Whether the integer bounds hold 2^precision p, are close, and never leave [0,
    2^precision].
    """
    lower, upper = one.bounds(precision)
    with ctx.workprec(PRECISION):
        truth = bias(one) * 2**precision
        held = bool(ball(lower) <= truth) and bool(truth <= ball(upper))
    return held and 0 <= lower <= upper <= 1 << precision and upper - lower <= 3


@EVERY
@pytest.mark.parametrize("precision", [0, 1, 64, 200])
def test_the_bounds_of_every_coin_hold_its_bias(one, precision):
    assert bounds_hold(one, precision)


@given(ANY_COIN, st.integers(0, 150))
@settings(deadline=None, max_examples=examples(2))
def test_the_bounds_of_any_coin_hold_its_bias(one, precision):
    assert bounds_hold(one, precision)


def test_the_check_of_bounds_notices_a_lower_one_rounded_up(monkeypatch):
    honest = BernoulliExp.bounds
    monkeypatch.setattr(
        BernoulliExp, "bounds", lambda one, precision: (honest(one, precision)[1],) * 2
    )
    assert not bounds_hold(BernoulliExp(1), 64)


def is_stated_outward(one: Coin) -> bool:
    """Whether all that is stated holds the truth."""
    with ctx.workprec(PRECISION):
        truth = bias(one)
        stated = [
            (one.pmf(1), truth, 1 - truth),
            (one.above(0), truth, 1 - truth),
            (one.tail(0), truth, 1 - truth),
        ]
        stated += [(one.pmf(0), 1 - truth, truth), (one.cdf(0), 1 - truth, truth)]
        stated += [(one.variance, truth * (1 - truth), None)]
        return all(
            is_outward(each.lower, value, each.upper, complement)
            for each, value, complement in stated
        )


@EVERY
def test_coin_statements_are_outward_bounds(one):
    assert is_stated_outward(one)


@given(ANY_COIN)
@settings(deadline=None)
def test_coin_statements_are_outward_bounds_and_tight(one):
    assert is_stated_outward(one)
    for stated in (one.pmf(0), one.pmf(1), one.variance):
        assert stated.width <= 9e-16 * stated.upper + 5e-324


def test_the_statements_notice_rounding_to_nearest(monkeypatch):
    monkeypatch.setattr(law, "float_down", float)
    monkeypatch.setattr(law, "float_up", float)
    assert not is_stated_outward(BernoulliExp(1))


@EVERY
def test_all_mass_is_on_zero_and_one(one):
    assert (one.pmf(-1).upper, one.pmf(2).upper) == (0.0, 0.0)
    assert (one.cdf(-1).upper, one.cdf(1).lower, one.cdf(7).lower) == (0.0, 1.0, 1.0)
    assert (one.above(-1).lower, one.above(1).upper, one.tail(-1).lower) == (1.0, 0.0, 1.0)


@pytest.mark.parametrize(("probability", "median"), [("0.3", 0), ("0.7", 1), (0, 0), (1, 1)])
def test_the_quantile_is_the_side_that_reaches_its_probability(probability, median):
    assert Bernoulli(probability).quantile("0.5") == median
    assert Bernoulli("1/4").quantile("3/4") == 0


@pytest.mark.parametrize("shape", [0, 1, 63, 64, 65, (3, 5), (), (2, 0)])
def test_samples_are_the_packed_bits_in_their_shape(shape):
    size = int(np.prod(shape))
    drawn = BernoulliExp(1).sample(shape, Replay(4))
    assert (drawn.dtype, drawn.shape) == (np.bool_, (shape,) if isinstance(shape, int) else shape)
    packed = BernoulliExp(1).bits(size, Replay(4))
    assert drawn.ravel().tolist() == [bool(int(packed[i // 64]) >> i % 64 & 1) for i in range(size)]


def test_long_samples_are_drawn_in_blocks(monkeypatch):
    monkeypatch.setattr(coin, "_BLOCK", 128)
    entropy = Replay(9)
    parts = [BernoulliLogistic(1).sample(size, entropy) for size in (128, 128, 44)]
    assert BernoulliLogistic(1).sample(300, Replay(9)).tolist() == np.concatenate(parts).tolist()


@pytest.mark.parametrize(
    "probability", [-0.1, "1.0000001", float("nan"), float("inf"), True, "x", None]
)
def test_a_probability_outside_of_its_range_is_refused(probability):
    with pytest.raises(InvalidNumber):
        Bernoulli(probability)


@pytest.mark.parametrize("gamma", [-1, "-1e-30", float("nan"), float("inf"), False, "x", None])
def test_a_gamma_below_zero_is_refused(gamma):
    for kind in (BernoulliExp, BernoulliLogistic):
        with pytest.raises(InvalidNumber):
            kind(gamma)


@pytest.mark.parametrize("odds", [0, -1, float("nan"), None])
def test_odds_that_are_not_positive_are_refused(odds):
    with pytest.raises(InvalidNumber):
        BernoulliLogistic(1, odds)


@pytest.mark.parametrize("one", [BernoulliExp("1e400"), BernoulliLogistic("1e400", "1e400")])
def test_a_bias_below_every_float_is_drawn_and_stated(one):
    assert not one.sample_one() and not one.sample(1000).any()
    assert (one.pmf(1).lower, one.pmf(1).upper, one.pmf(0).upper) == (0.0, 5e-324, 1.0)


def test_a_coin_without_a_bias_cannot_be_made():
    with pytest.raises(TypeError, match="bounds"):
        Coin()
