# SPDX-License-Identifier: Apache-2.0
"""The Skellam: its law against Bessel functions in ball arithmetic, its draws against its law."""

from fractions import Fraction

import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import InvalidNumber
from sfumato.exact.bracket import Bracket
from sfumato.noise import Skellam, skellam
from sfumato.testing import assert_follows


def exact_pmf(rate: Fraction, x: int) -> arb:
    """e^(-2 rate) I_|x|(2 rate)."""
    ctx.prec = 200
    twice = 2 * arb(rate.numerator) / rate.denominator
    return (-twice).exp() * twice.bessel_i(abs(x))


def contains(bracket: Bracket, truth: arb) -> bool:
    # a ball of 2^-190 may touch an end that is exact, such as 1
    return not bool(truth < arb(bracket.lower)) and not bool(truth > arb(bracket.upper))


@given(st.fractions(Fraction(1, 1000), 300, max_denominator=1000), st.integers(-40, 40))
@settings(deadline=None)
def test_skellam_statements_are_outward_bounds(rate: Fraction, x: int) -> None:
    noise = Skellam(rate)
    assert contains(noise.pmf(x), exact_pmf(rate, x))
    reach = 300 + int(rate)
    beyond = sum((exact_pmf(rate, y) for y in range(x + 1, x + reach)), arb(0))
    assert contains(noise.above(x), beyond) and contains(noise.cdf(-x - 1), beyond)


@pytest.mark.parametrize("rate", ["0.001", "1", "1000", "1e6"])
def test_skellam_statements_are_tight(rate: str) -> None:
    noise = Skellam(rate)
    for x in (0, 1, int(Fraction(rate) ** Fraction(1, 2)) * 3):
        assert noise.pmf(x).width <= 1e-9 * noise.pmf(x).upper
        assert noise.above(x).width <= 1e-9 * noise.above(x).upper + 1e-12


@pytest.mark.parametrize("rate", ["0.3", "2", "50", "1e5"])
def test_skellam_draws_follow_the_stated_law(rate: str) -> None:
    noise, other = Skellam(rate), Skellam(Fraction(rate) * Fraction(8, 10))
    cdf = {"noise": noise.cdf, "other": other.cdf}
    draws = noise.sample(60_000).tolist()
    assert_follows(draws, lambda x: cdf["noise"](x).lower, notices=lambda x: cdf["other"](x).lower)


def test_the_test_notices_a_one_sided_draw() -> None:
    noise, other = Skellam(2), Skellam(1)
    wrong = [abs(draw) for draw in noise.sample(20_000).tolist()]
    with pytest.raises(AssertionError):
        assert_follows(wrong, lambda x: noise.cdf(x).lower, notices=lambda x: other.cdf(x).lower)


def test_the_bounds_notice_a_sum_that_forgets_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    right = skellam._dot
    monkeypatch.setattr(skellam, "_dot", lambda *given, **more: right(*given, **more) * (1 - 1e-6))
    skellam._shifted.cache_clear()
    assert not contains(Skellam(3).pmf(1), exact_pmf(Fraction(3), 1))
    skellam._shifted.cache_clear()


def test_one_draw_has_the_same_law() -> None:
    noise, other = Skellam(1), Skellam("0.6")
    draws = [noise.sample_one() for _ in range(40_000)]
    assert_follows(draws, lambda x: noise.cdf(x).lower, notices=lambda x: other.cdf(x).lower)


def test_widths_and_quantiles() -> None:
    noise = Skellam(3)
    assert noise.half_width("0.95") == 5 and noise.quantile("1/2") == 0
    assert noise.tail(-1) == Bracket(1.0, 1.0)


@pytest.mark.parametrize("rate", [0, -1, "nan", "inf", 2**28])
def test_what_is_no_rate_is_refused(rate: object) -> None:
    with pytest.raises(InvalidNumber):
        Skellam(rate)
