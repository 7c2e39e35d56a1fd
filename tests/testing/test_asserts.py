# SPDX-License-Identifier: Apache-2.0
"""The statistical assertions pass on the truth, fail on the wrong law, and refuse weak samples."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from sfumato.noise import DiscreteLaplace
from sfumato.noise.entropy import SYSTEM, below
from sfumato.testing import assert_at_most, assert_follows


def die(sides):
    """The cdf of a fair die of values 0..sides-1."""
    return lambda x: min(max((x + 1) / sides, 0.0), 1.0)


def loaded(x):
    """The cdf of a die of six whose zero comes half the time."""
    return 0.5 + 0.1 * x if 0 <= x <= 5 else float(x > 5)


def test_draws_of_the_stated_law_pass():
    assert_follows([below(6, SYSTEM) for _ in range(2000)], die(6), notices=loaded)


def test_draws_of_the_law_to_be_noticed_fail():
    draws = [0 if below(2, SYSTEM) else 1 + below(5, SYSTEM) for _ in range(2000)]
    with pytest.raises(AssertionError, match="from the stated law"):
        assert_follows(draws, die(6), notices=loaded)
    assert_follows(draws, loaded, notices=die(6))


@pytest.mark.parametrize("n", [1, 10, 300])
def test_a_sample_too_small_to_notice_fails_even_on_the_truth(n):
    exact = [value % 6 for value in range(n)]
    with pytest.raises(AssertionError, match="draws notice a distance"):
        assert_follows(exact, die(6), notices=loaded)


def test_a_wrong_law_that_is_no_other_law_is_refused():
    with pytest.raises(AssertionError, match="draws notice a distance"):
        assert_follows([below(6, SYSTEM) for _ in range(2000)], die(6), notices=die(6))


@given(st.integers(1000, 4000), st.integers(-3, 3))
@settings(deadline=None, max_examples=60)
def test_the_border_is_where_massart_puts_it(n, offset):
    # n coins of which k are zero; the fair cdf at zero is 1/2, so the distance is |k/n - 1/2|
    t = math.sqrt(math.log(2e9) / (2 * n))
    zeros = n // 2 + math.floor(t * n) + offset
    draws = [0] * zeros + [1] * (n - zeros)
    fails = abs(zeros / n - 0.5) > t
    if fails:
        with pytest.raises(AssertionError, match="from the stated law"):
            assert_follows(draws, die(2), notices=lambda x: 1.0)
    else:
        assert_follows(draws, die(2), notices=lambda x: 1.0)


def test_a_larger_false_alarm_is_stricter():
    draws = [0] * 1070 + [1] * 930
    assert_follows(draws, die(2), notices=lambda x: 1.0)
    with pytest.raises(AssertionError, match="from the stated law"):
        assert_follows(draws, die(2), notices=lambda x: 1.0, false_alarm=0.05)


@given(st.integers(100, 5000), st.floats(0.01, 0.5))
@settings(deadline=None, max_examples=60)
def test_the_false_alarm_of_at_most_is_below_the_stated_one(trials, probability):
    t = math.sqrt(math.log(1e9) / (2 * trials))
    allowed = math.floor((probability + t) * trials)
    assert binom.sf(allowed + 1, trials, probability) <= 1e-9
    # and a true probability of 2t above is missed as rarely
    if probability + 2 * t < 1:
        assert binom.cdf(allowed - 1, trials, probability + 2 * t) <= 1e-9


def test_as_many_failures_as_stated_pass_and_the_noticed_ones_fail():
    assert_at_most(500, 10_000, 0.05, notices=0.12)
    assert_at_most(0, 10_000, 0.05, notices=0.12)
    with pytest.raises(AssertionError, match=r"1200 of 10000 failed; 0.05 was stated"):
        assert_at_most(1200, 10_000, 0.05, notices=0.12)


def test_too_few_trials_fail_even_without_a_failure():
    with pytest.raises(AssertionError, match="100 trials notice"):
        assert_at_most(0, 100, 0.05, notices=0.12)


def test_draws_that_only_take_even_values_are_noticed():
    noise = DiscreteLaplace(2)
    draws = [2 * math.ceil(draw / 2) for draw in noise.sample(4000)]
    with pytest.raises(AssertionError):
        assert_follows(draws, lambda x: noise.cdf(x).lower, notices=lambda x: DiscreteLaplace(3).cdf(x).lower)
