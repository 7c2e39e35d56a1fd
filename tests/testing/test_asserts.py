# SPDX-License-Identifier: Apache-2.0
"""The statistical assertions pass on the truth, fail on the wrong law, and refuse weak samples."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from sfumato.noise import DiscreteLaplace
from sfumato.noise.entropy import SYSTEM, below
from sfumato.testing import (
    assert_at_most,
    assert_counts_agree,
    assert_counts_follow,
    assert_follows,
    asserts,
)


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
@settings(deadline=None)
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
@settings(deadline=None)
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
        assert_follows(
            draws, lambda x: noise.cdf(x).lower, notices=lambda x: DiscreteLaplace(3).cdf(x).lower
        )


# ---------------------------------------------------------------- counts

FAIR, LOADED = np.full(6, 1 / 6), np.array([0.5, *[0.1] * 5])


def rolled(law, n, seed):
    """The counts of n rolls of a die.

    Numpy's generator, so that nothing here is tested by itself.
    """
    return np.random.default_rng(seed).multinomial(n, law)


def alarms(n, p):
    """P(assert_counts_follow fails) for n coins of bias p: the exact mass of the counts on which it
    fails.
    """
    failing = 0.0
    for heads in range(n + 1):
        try:
            assert_counts_follow([n - heads, heads], [1 - p, p], notices=[1.0, 0.0])
        except AssertionError:
            failing += binom.pmf(heads, n, p)
    return failing


@pytest.mark.parametrize(("n", "p"), [(60, 0.5), (300, 0.1), (300, 0.5), (300, 0.97)])
def test_counts_raise_a_false_alarm_as_rarely_as_stated(n, p):
    notable = alarms(n, p)
    assert 0 < notable <= 1e-9


def test_the_rate_of_false_alarms_notices_a_divergence_that_counts_twice(monkeypatch):
    honest = asserts._divergence
    monkeypatch.setattr(asserts, "_divergence", lambda shares, law: 2 * honest(shares, law))
    assert alarms(300, 0.5) > 1e-9


@given(st.integers(200, 2000), st.floats(0.05, 0.95), st.floats(0.05, 0.95))
@settings(deadline=None)
def test_a_law_that_is_said_to_be_noticed_is_noticed(n, p, q):
    """The exact probability, under q, of a count that passes."""
    try:
        assert_counts_follow(expected(n, p), [1 - p, p], notices=[1 - q, q])
    except AssertionError:
        return
    assert missed(n, p, q) <= 1e-9


def expected(n, p):
    """Counts that are as close to a coin's law as they can be."""
    return [n - round(n * p), round(n * p)]


def missed(n, p, q):
    """P(counts pass for the law p) when the coins have bias q."""
    step = 1 if q > p else -1
    edge = round(n * p)
    while 0 <= edge <= n:
        try:
            assert_counts_follow(
                [n - edge, edge], [1 - p, p], notices=[1.0, 0.0] if p > 0.3 else [0.0, 1.0]
            )
        except AssertionError:
            break
        edge += step
    return binom.cdf(edge - 1, n, q) if q > p else binom.sf(edge, n, q)


def test_the_power_notices_a_border_that_is_put_at_the_stated_law(monkeypatch):
    monkeypatch.setattr(asserts, "_border", lambda near, far, least: near)
    assert_counts_follow(expected(400, 0.5), [0.5, 0.5], notices=[0.29, 0.71])
    assert missed(400, 0.5, 0.71) > 1e-9


def test_counts_of_the_stated_law_pass_and_of_the_noticed_one_fail():
    assert_counts_follow(rolled(FAIR, 2000, 1), FAIR, notices=LOADED)
    with pytest.raises(AssertionError, match="counts are"):
        assert_counts_follow(rolled(LOADED, 2000, 1), FAIR, notices=LOADED)


@pytest.mark.parametrize("n", [1, 10, 60])
def test_too_few_counts_fail_even_on_the_truth(n):
    with pytest.raises(AssertionError, match="do not notice"):
        assert_counts_follow([n] * 6, FAIR, notices=[0.2, *[0.16] * 5])


def test_one_cell_of_many_and_one_draw_where_none_can_be_are_noticed():
    law = np.full(1000, 1e-3)
    counts = np.full(1000, 1000)
    assert_counts_follow(counts, law, notices=np.roll(np.repeat([2e-3, 0.0], 500), 1))
    counts[700] += 300
    with pytest.raises(AssertionError, match="counts are"):
        assert_counts_follow(counts, law, notices=np.repeat([2e-3, 0.0], 500))
    with pytest.raises(AssertionError, match="counts are e"):
        assert_counts_follow([5000, 5000, 1], [0.5, 0.5, 0.0], notices=[0.6, 0.4, 0.0])


def test_a_small_shift_of_all_is_noticed_that_no_single_cell_shows():
    x = np.arange(400)
    law = np.full(400, 1 / 400)
    wrong = law * (1 + 0.03 * np.sign(x - 199.5))
    counts = np.round(wrong * 400_000).astype(np.int64)
    with pytest.raises(AssertionError, match="counts are"):
        assert_counts_follow(counts, law, notices=wrong)


def test_a_law_that_is_not_a_number_does_not_pass():
    for law in ([math.nan, 0.5, 0.5], [0.5, 0.5, math.nan], [-0.5, 1.0, 0.5]):
        with pytest.raises(AssertionError):
            assert_counts_follow([500, 500, 500], law, notices=[0.8, 0.1, 0.1])


def test_samples_of_one_law_agree_and_of_two_do_not():
    one, other = rolled(FAIR, 40_000, 2), rolled(FAIR, 2000, 3)
    assert_counts_agree(one, other, notices=(FAIR, LOADED))
    assert_counts_agree(rolled(LOADED, 40_000, 2), rolled(LOADED, 2000, 3), notices=(FAIR, LOADED))
    for wrong in (rolled(LOADED, 2000, 3), rolled(LOADED[::-1], 2000, 3)):
        with pytest.raises(AssertionError, match="apart"):
            assert_counts_agree(one, wrong, notices=(FAIR, LOADED))
        with pytest.raises(AssertionError, match="apart"):
            assert_counts_agree(wrong, one, notices=(FAIR, LOADED))


def test_samples_too_small_to_differ_fail():
    with pytest.raises(AssertionError, match="40000 and 200 draws notice"):
        assert_counts_agree(rolled(FAIR, 40_000, 2), rolled(FAIR, 200, 3), notices=(FAIR, LOADED))


@pytest.mark.parametrize("p", [0.5, 0.2])
@pytest.mark.parametrize(("n", "m"), [(150, 150), (400, 100)])
def test_samples_of_one_law_are_called_different_as_rarely_as_stated(n, m, p):
    one, other = binom.pmf(range(n + 1), n, p), binom.pmf(range(m + 1), m, p)
    spread = (1 / n + 1 / m) / 2
    u = math.sqrt(spread * math.log(2 * 3 / 1e-9))
    apart = np.abs(np.arange(n + 1)[:, None] / n - np.arange(m + 1)[None, :] / m) > u
    assert float((np.outer(one, other) * apart).sum()) <= 1e-9
    # and the assertion draws its border where this test does
    heads = next(k for k in range(n + 1) if k / n > u)
    everything = ([1.0, 0.0], [0.0, 1.0])
    assert_counts_agree([n - heads + 1, heads - 1], [m, 0], notices=everything)
    with pytest.raises(AssertionError, match="apart"):
        assert_counts_agree([n - heads, heads], [m, 0], notices=everything)
