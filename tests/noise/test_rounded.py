# SPDX-License-Identifier: Apache-2.0
"""The rounded Gaussian: its law is that of a rounded normal, drawn exactly and stated outward."""

import pickle
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sfumato.errors import InvalidNumber
from sfumato.exact.bracket import Bracket
from sfumato.noise import SYSTEM, DiscreteGaussian, RoundedGaussian, rounded
from sfumato.testing import Replay, assert_follows
from tests.noise.truth import ball, is_outward

SIGMAS = [Fraction(text) for text in ("1", "4/3", "7", "64", "5000", str(2**17), str(2**28))]


def beyond(sigma: Fraction, x: int) -> arb:
    """P(N > x + 1/2) by the error function in ball arithmetic."""
    with ctx.workprec(400):
        return ((ball(Fraction(2 * x + 1, 2)) / ball(sigma)) / arb(2).sqrt()).erfc() / 2


def is_stated_outward(noise: RoundedGaussian, x: int) -> bool:
    """Whether everything stated about ``x`` holds the truth."""
    # each probability by its smaller complement, which has more digits
    near, above, below = abs(x), beyond(noise.sigma, x), beyond(noise.sigma, -x - 1)
    mass = beyond(noise.sigma, near - 1) - beyond(noise.sigma, near)
    pmf, cdf, told, tail = noise.pmf(x), noise.cdf(x), noise.above(x), noise.tail(near)
    return (
        is_outward(pmf.lower, mass, pmf.upper)
        and is_outward(told.lower, above, told.upper, below)
        and is_outward(cdf.lower, below, cdf.upper, above)
        and is_outward(tail.lower, 2 * beyond(noise.sigma, near), tail.upper)
    )


@pytest.mark.parametrize("sigma", SIGMAS, ids=str)
def test_rounded_gaussian_statements_are_outward_bounds(sigma: Fraction) -> None:
    noise, width = RoundedGaussian(sigma), int(sigma)
    for x in (0, 1, -1, width, -3 * width, 10 * width, 36 * width, -40 * width):
        assert is_stated_outward(noise, x)


@given(st.fractions(1, 3000, max_denominator=1000), st.integers(-20_000, 20_000))
@example(Fraction(2489, 263), 350)
@settings(deadline=None)
def test_rounded_gaussian_statements_are_outward_bounds_of_any_sigma(
    sigma: Fraction, x: int
) -> None:
    assert is_stated_outward(RoundedGaussian(sigma), x)


@pytest.mark.parametrize("sigma", SIGMAS, ids=str)
def test_statements_are_tight(sigma: Fraction) -> None:
    noise = RoundedGaussian(sigma)
    for x in (0, int(sigma), 5 * int(sigma)):
        assert noise.pmf(x).width <= 4e-7 * noise.pmf(x).upper
        assert noise.above(x).width <= 3e-9 * noise.above(x).upper


def test_the_bounds_notice_the_discrete_law(monkeypatch: pytest.MonkeyPatch) -> None:
    discrete = DiscreteGaussian(3)
    monkeypatch.setattr(RoundedGaussian, "pmf", lambda _, x: discrete.pmf(x))
    assert not is_stated_outward(RoundedGaussian(3), 2)


@pytest.mark.parametrize("sigma", ["1", "3/2", "8", "1000", str(2**17)])
def test_rounded_gaussian_draws_follow_the_stated_law(sigma: str) -> None:
    noise, other = RoundedGaussian(sigma), RoundedGaussian(Fraction(sigma) * Fraction(8, 5))
    count = 6_000 if Fraction(sigma) < 64 else 40_000
    draws = noise.sample(count).tolist()
    assert_follows(draws, lambda x: noise.cdf(x).lower, notices=lambda x: other.cdf(x).lower)


def test_one_draw_has_the_same_law() -> None:
    noise, other = RoundedGaussian(2), RoundedGaussian("3.2")
    draws = [noise.sample_one() for _ in range(5_000)]
    assert_follows(draws, lambda x: noise.cdf(x).lower, notices=lambda x: other.cdf(x).lower)


def test_the_test_notices_a_hat_that_is_never_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    noise, other = RoundedGaussian(1), RoundedGaussian("1.6")
    monkeypatch.setattr(RoundedGaussian, "_kept", lambda _, drawn, *rest: drawn == drawn)
    draws = noise.sample(6_000).tolist()
    with pytest.raises(AssertionError):
        assert_follows(draws, lambda x: noise.cdf(x).lower, notices=lambda x: other.cdf(x).lower)


@given(
    st.fractions(1, 2**28, max_denominator=99), st.integers(-(2**31), 2**31), st.integers(0, 999)
)
@settings(deadline=None)
def test_the_first_bits_decide_only_what_is_certain(sigma: Fraction, x: int, seed: int) -> None:
    square, slope, constant, farthest = rounded._slopes(sigma)
    share = rounded._Share(sigma, x, Replay(seed))
    lower, upper = share(64)
    assert 0 <= lower <= upper <= 1 << 64
    if abs(x) <= farthest:
        least = (1 << 62) - (square * x * x + slope * abs(x) + constant)
        assert least >= 0 and least << 2 <= upper
        assert square * farthest * farthest + slope * farthest + constant < 2**63
    first, near = rounded._sure(sigma, (square, slope, constant, farthest))
    assert 0 <= first < 2**16 and near <= farthest
    if abs(x) <= near:
        # a height that begins with any smaller 16 bits is below what is kept of every place
        assert first << 48 <= upper and first << 46 <= least


class Ones:
    """A source whose long draws begin with these 16 bits, and go on with ones or zeros."""

    def __init__(self, first: int, rest: int) -> None:
        self._first, self._rest = first, rest

    def bits(self, count: int) -> int:
        return (1 << count) - 1 if self._rest else 0

    def fill(self, buffer: np.ndarray) -> None:
        flat = buffer.reshape(-1)
        flat[:] = 255 * self._rest
        if not self._rest or flat.size == 2:
            flat[:2] = np.frombuffer(self._first.to_bytes(2, "little"), np.uint8)


def test_the_first_bits_go_on_where_they_do_not_decide() -> None:
    noise = RoundedGaussian(2**17)
    first, near = rounded._sure(noise.sigma, noise._slopes)
    middle, far = np.array([0]), np.array([near + 1])
    # below the bound they decide, from it on the other bits do
    assert noise._rejected(middle, Ones(first - 1, 1)).tolist() == []
    assert noise._rejected(middle, Ones(2**16 - 1, 1)).tolist() == [0]
    # a draw too far away is never decided by them, and a height of zeros keeps it all the same
    assert noise._rejected(far, Ones(0, 0)).tolist() == []
    assert noise._rejected(far, Ones(2**16 - 1, 1)).tolist() == [0]


@given(st.fractions(1, 50, max_denominator=9), st.integers(-200, 200), st.integers(0, 999))
@settings(deadline=None)
def test_the_share_is_that_of_one_place(sigma: Fraction, x: int, seed: int) -> None:
    # more bits narrow the same place: the bounds are nested
    share = rounded._Share(sigma, x, Replay(seed))
    rough, fine = share(40), share(120)
    assert rough[0] << 80 <= fine[1] and fine[0] <= rough[1] << 80
    assert fine[1] - fine[0] < 1 << 20


def test_draws_are_integers_of_a_shape() -> None:
    drawn = RoundedGaussian(2**17).sample((3, 4))
    assert drawn.shape == (3, 4) and drawn.dtype == np.int64
    assert RoundedGaussian(1).sample(0).shape == (0,)
    assert isinstance(RoundedGaussian(5).sample_one(SYSTEM), int)


def test_widths_and_values() -> None:
    noise = RoundedGaussian(3)
    assert noise.half_width("0.95") == 6 and noise.quantile("1/2") == 0
    assert noise.tail(-1) == Bracket(1.0, 1.0)
    assert noise.variance.lower <= 9 + 1 / 12 <= noise.variance.upper
    assert pickle.loads(pickle.dumps(noise)) == noise == RoundedGaussian("3.0")


@pytest.mark.parametrize("sigma", [0, "0.99", -1, "nan", "inf", 2**28 + 1])
def test_what_is_no_sigma_is_refused(sigma: object) -> None:
    with pytest.raises(InvalidNumber):
        RoundedGaussian(sigma)
