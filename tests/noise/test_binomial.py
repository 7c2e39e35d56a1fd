# SPDX-License-Identifier: Apache-2.0
"""The binomial: its law against exact fractions, its draws against its law."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import InvalidNumber
from sfumato.noise import SYSTEM, Binomial, ratio
from sfumato.testing import Replay, assert_follows


def exact_pmf(trials: int, bias: Fraction, x: int) -> Fraction:
    return (
        comb(trials, x) * bias**x * (1 - bias) ** (trials - x) if 0 <= x <= trials else Fraction(0)
    )


def holds(noise: Binomial, x: int) -> bool:
    """Whether all that is stated of x holds the exact truth."""
    law = [exact_pmf(noise.trials, noise.probability, y) for y in range(noise.trials + 1)]
    here, below = (
        exact_pmf(noise.trials, noise.probability, x),
        sum(law[: max(x + 1, 0)], Fraction(0)),
    )
    stated = ((noise.pmf(x), here), (noise.cdf(x), below), (noise.above(x), 1 - below))
    return all(
        Fraction(bracket.lower) <= truth <= Fraction(bracket.upper) for bracket, truth in stated
    )


@given(
    st.integers(1, 60),
    st.fractions(Fraction(1, 100), Fraction(99, 100), max_denominator=200),
    st.integers(-2, 62),
)
@settings(deadline=None)
def test_binomial_statements_are_outward_bounds(trials: int, bias: Fraction, x: int) -> None:
    noise = Binomial(trials, bias)
    assert holds(noise, x)
    assert noise.pmf(x).width <= 1e-14 * noise.pmf(x).upper + 1e-40


@pytest.mark.parametrize("trials", [1, 2, 700])
def test_statements_hold_at_the_ends(trials: int) -> None:
    noise = Binomial(trials, "0.3")
    assert all(holds(noise, x) for x in (-1, 0, 1, trials - 1, trials, trials + 1))


@pytest.mark.parametrize(
    ("trials", "bias"), [(1, "1/2"), (10, "0.3"), (1000, "1/2"), (10**6, "1e-6"), (10**5, "0.999")]
)
def test_binomial_draws_follow_the_stated_law(trials: int, bias: str) -> None:
    noise, other = Binomial(trials, bias), Binomial(trials, Fraction(bias) * Fraction(9, 10))
    draws = noise.sample(60_000).tolist()
    assert_follows(draws, lambda x: noise.cdf(x).lower, notices=lambda x: other.cdf(x).lower)
    assert_follows(
        [noise.sample_one() for _ in range(60_000)] if trials < 20 else draws,
        lambda x: noise.cdf(x).lower,
        notices=lambda x: other.cdf(x).lower,
    )


def test_a_wide_law_is_the_sum_of_its_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ratio, "_PIECE", 5)
    noise, other = Binomial(101, "1/2"), Binomial(101, "0.45")
    assert ratio.pieces_for(ratio.BinomialRatio(101, Fraction(1, 2)).variance) == 6
    assert_follows(
        noise.sample(40_000).tolist(),
        lambda x: noise.cdf(x).lower,
        notices=lambda x: other.cdf(x).lower,
    )


def test_the_test_notices_a_piece_too_few(monkeypatch: pytest.MonkeyPatch) -> None:
    noise, other = Binomial(100, "1/2"), Binomial(100, "0.45")
    draws = Binomial(98, "1/2").sample(400_000).tolist()
    with pytest.raises(AssertionError):
        assert_follows(draws, lambda x: noise.cdf(x).lower, notices=lambda x: other.cdf(x).lower)


def test_quantiles_and_widths_are_the_smallest() -> None:
    noise = Binomial(10, "1/2")
    assert [noise.quantile(p) for p in ("0.001", "0.1", "1/2", "0.9")] == [1, 3, 5, 7]
    assert noise.half_width("0.9") == 7


def test_draws_are_integers_of_the_shape_and_repeat_with_their_entropy() -> None:
    noise = Binomial(10**7, "1/2")
    drawn = noise.sample((3, 200), Replay(1))
    assert drawn.dtype == np.int64 and drawn.shape == (3, 200)
    assert (drawn == noise.sample((3, 200), Replay(1))).all()
    assert isinstance(noise.sample_one(SYSTEM), int)
    assert noise.sample(0).size == 0


@pytest.mark.parametrize(
    ("trials", "bias"),
    [
        (0, "1/2"),
        (-1, "1/2"),
        (True, "1/2"),
        (1.5, "1/2"),
        (5, 0),
        (5, 1),
        (5, "nan"),
        (2**40, "1/2"),
    ],
)
def test_what_is_no_binomial_is_refused(trials: object, bias: object) -> None:
    with pytest.raises(InvalidNumber):
        Binomial(trials, bias)
