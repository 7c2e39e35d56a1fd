# SPDX-License-Identifier: Apache-2.0
"""What is calibrated meets its target and a little less does not; a split loses nothing.

The curves here are closed forms of scipy, so that only the search is tested; with the
certified curves the values of papers and of other libraries come out (the last tests).
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize
from scipy.stats import norm as normal

from sfumato.accounting import account, approx_from_zcdp, gaussian_delta, split
from sfumato.accounting import calibrate as module
from sfumato.accounting.calibrate import (
    Calibrated,
    gaussian_sigma,
    laplace_scale,
    least_epsilon,
    least_noise,
    most_queries,
    noise_multiplier,
)
from sfumato.errors import InvalidDeclaration, InvalidNumber
from sfumato.exact import Bounds, Bracket
from sfumato.noise import DiscreteGaussian, DiscreteLaplace
from sfumato.privacy import (
    AdditiveNoise,
    ApproxDP,
    Composed,
    ContinuousLaw,
    ContinuousNoise,
    Distance,
    Norm,
    PureDP,
    Repeated,
    ZeroConcentratedDP,
)

L1, L2 = Distance(Norm.L1, Fraction(1)), Distance(Norm.L2, Fraction(1))


def gaussian_profile(mu, epsilon):
    """delta of mu-GDP (Balle and Wang 2018, Theorem 8)."""
    return normal.cdf(mu / 2 - epsilon / mu) - math.exp(
        epsilon + normal.logcdf(-mu / 2 - epsilon / mu)
    )


@dataclass(frozen=True)
class Gaussians:
    """The closed form of repeated continuous Gaussian noise, within ``width`` relative."""

    event: object
    width: float = 1e-9

    @property
    def mu(self):
        times, one = (
            (self.event.times, self.event.event)
            if isinstance(self.event, Repeated)
            else (1, self.event)
        )
        return math.sqrt(times * one.distance.value) / float(one.scale)

    def epsilon(self, delta):
        if delta <= 0:
            raise InvalidNumber("No epsilon holds at delta = 0.")
        if gaussian_profile(self.mu, 0) <= delta:
            return Bracket(0.0, 0.0)
        root = brentq(
            lambda e: gaussian_profile(self.mu, e) - float(delta),
            0,
            self.mu**2 + 40 * self.mu,
            xtol=1e-14,
            rtol=1e-14,
        )
        return Bracket(root * (1 - self.width / 2), root * (1 + self.width / 2))

    def delta(self, epsilon):
        value = gaussian_profile(self.mu, float(epsilon))
        return Bracket(value * (1 - self.width / 2), value * (1 + self.width / 2))


@dataclass(frozen=True)
class OneDiscreteGaussian:
    """The exact curve of one discrete Gaussian on one integer."""

    event: object

    def epsilon(self, delta):
        low, high = Fraction(0), Fraction(100)
        while high - low > Fraction(1, 10**6):
            middle = (low + high) / 2
            stated = gaussian_delta(
                self.event.noise, math.isqrt(int(self.event.distance.value)), middle
            )
            low, high = (low, middle) if stated.upper <= delta else (middle, high)
        return Bracket(float(low - Fraction(1, 10**5)), float(high))


@dataclass(frozen=True)
class ByZcdp:
    """An upper bound for everything that has a rho; nothing is known from below."""

    event: object

    def epsilon(self, delta):
        return Bracket(
            0.0, float(approx_from_zcdp(ZeroConcentratedDP(account(self.event).rho), delta).epsilon)
        )


def continuous(scale):
    return ContinuousNoise(ContinuousLaw.GAUSSIAN, scale, L2)


@given(
    st.fractions(Fraction(1, 100), 20),
    st.sampled_from(("1e-3", "1e-6", "1e-12")),
    st.sampled_from((1e-9, 1e-4)),
    st.sampled_from((Fraction(1, 1000), Fraction(1), Fraction(500))),
)
@settings(deadline=None)
def test_the_least_noise_meets_its_target_and_a_little_less_does_not(epsilon, delta, width, start):
    target = ApproxDP(epsilon, delta)
    asked = []

    def curve(event):
        asked.append(event)
        return Gaussians(event, width)

    found = least_noise(target, continuous, curve=curve, start=start)
    exact = brentq(
        lambda mu: gaussian_profile(mu, float(epsilon)) - float(delta), 1e-6, 1e4, xtol=1e-15
    )
    assert found.fails < 1 / exact * (1 + 1e-7) and found.value > 1 / exact * (1 - 1e-7)
    # the brackets are so wide, and a step of five digits is up to 1e-4 at either end
    assert found.excess <= 1.2 * width + 2.1e-4 and len(asked) <= 16
    assert (
        Gaussians(continuous(found.value), width).epsilon(Fraction(delta)).upper
        == found.cost.upper
        <= epsilon
    )
    assert Gaussians(continuous(found.fails), width).epsilon(Fraction(delta)).lower > epsilon


def test_the_search_notices_a_curve_that_forgets_its_upper_end(monkeypatch):
    target, wide = ApproxDP(1, "1e-6"), lambda event: Gaussians(event, 1e-2)
    honest = least_noise(target, continuous, curve=wide)
    monkeypatch.setattr(module, "_ends", lambda read: (read().lower, read().lower))
    broken = least_noise(target, continuous, curve=wide)
    assert wide(continuous(honest.value)).epsilon(target.delta).upper <= 1
    assert wide(continuous(broken.value)).epsilon(target.delta).upper > 1


def test_where_a_curve_refuses_nothing_is_known():
    def refuses_below_two(event):
        if event.scale < 2:
            raise InvalidNumber("Noise that hides next to nothing.")
        return Gaussians(event)

    found = least_noise(ApproxDP(1, "1e-6"), continuous, curve=refuses_below_two, start="0.01")
    assert found.excess <= 1.1e-4
    high = least_noise(ApproxDP(100, "1e-6"), continuous, curve=refuses_below_two)
    assert high.value == 2 and high.fails is None


def test_a_target_of_epsilon_zero_is_met_by_delta():
    # delta(0) = 2 Phi(mu / 2) - 1
    found = least_noise(ApproxDP(0, "0.01"), continuous, curve=Gaussians)
    assert float(found.value) == pytest.approx(1 / (2 * normal.ppf(0.505)), rel=1e-4)
    assert found.cost.upper <= 0.01


def test_the_discrete_gaussian_agrees_with_its_own_calibration():
    # calibrated_gaussian(Distance(L2, 1), 1, "1e-6", cells=1) gives sigma 4.23 by the same exact
    # curve
    found = gaussian_sigma(ApproxDP(1, "1e-6"), L2, curve=OneDiscreteGaussian)
    assert gaussian_delta(DiscreteGaussian(found.value), 1, 1).upper <= 1e-6
    assert gaussian_delta(DiscreteGaussian(found.fails), 1, 1).lower > 1e-6
    assert round(float(found.value), 2) == 4.23
    assert found.excess < 1e-4


@pytest.mark.parametrize(
    ("queries", "epsilon", "scale"), [(1, "0.1", 10), (1000, 1, 1000), (3, "0.7", Fraction(30, 7))]
)
def test_a_pure_laplace_is_exact(queries, epsilon, scale):
    for target in (PureDP(epsilon), ApproxDP(epsilon, 0)):
        found = laplace_scale(target, L1, queries, curve=ByZcdp)
        assert found.value == scale and found.fails is None and found.excess is None
    assert account(
        Repeated(AdditiveNoise(DiscreteLaplace(scale), L1), queries)
    ).epsilon == Fraction(epsilon)


def test_pure_and_concentrated_targets_are_met_by_exact_costs():
    pure = least_noise(
        PureDP("0.1"), lambda scale: AdditiveNoise(DiscreteLaplace(scale), L1), curve=ByZcdp
    )
    assert pure.value == 10
    # rho = 1 / (2 sigma^2)
    zcdp = least_noise(ZeroConcentratedDP("0.02"), continuous, curve=ByZcdp)
    assert zcdp.value == 5 and zcdp.cost.upper == 0.02


def test_a_bound_without_a_lower_end_still_calibrates():
    found = laplace_scale(ApproxDP(1, "1e-6"), L1, 1000, curve=ByZcdp)
    event = Repeated(AdditiveNoise(DiscreteLaplace(found.value), L1), 1000)
    assert ByZcdp(event).epsilon(Fraction("1e-6")).upper <= 1
    assert found.fails is None and found.value < 1000


@given(st.fractions(Fraction(1, 10), 10), st.integers(5, 300))
@settings(deadline=None)
def test_the_most_queries_meet_their_target_and_one_more_does_not(epsilon, sigma):
    target, one = ApproxDP(epsilon, "1e-6"), continuous(Fraction(sigma))
    found = most_queries(target, one, curve=Gaussians)
    mu = brentq(lambda mu: gaussian_profile(mu, float(epsilon)) - 1e-6, 1e-6, 1e4, xtol=1e-15)
    assert found.value == math.floor((mu * sigma) ** 2) and found.fails == found.value + 1


def test_a_budget_may_buy_no_query_and_ten_tenths_fit_in_one():
    tenth = AdditiveNoise(DiscreteLaplace(10), L1)
    assert most_queries(PureDP(1), tenth, curve=ByZcdp).value == 10
    assert most_queries(PureDP("0.99"), tenth, curve=ByZcdp).value == 9
    assert most_queries(PureDP("0.09"), tenth, curve=ByZcdp) == Calibrated(
        0, None, Bounds(0.0, 0.0)
    )
    assert most_queries(PureDP(1), Composed((tenth, tenth)), curve=ByZcdp).value == 5
    assert most_queries(PureDP(1), tenth, curve=ByZcdp, most=7).value == 7
    # 10^12 questions of a millionth
    speck = AdditiveNoise(DiscreteLaplace(10**6), L1)
    assert most_queries(PureDP(10**6), speck, curve=ByZcdp).value == 10**12


@pytest.mark.parametrize(("error", "confidence"), [(5, "0.95"), (100, "0.99"), (1, "0.5")])
def test_the_least_epsilon_keeps_the_error(error, confidence):
    class Pure:
        def __init__(self, event):
            self.cost = account(event).epsilon

        def epsilon(self, delta):
            return Bracket(float(self.cost) * (1 - 1e-15), float(self.cost) * (1 + 1e-15))

    found = least_epsilon(
        error, confidence, lambda b: AdditiveNoise(DiscreteLaplace(b), L1), curve=Pure, delta=0
    )
    # 2 p^(h+1) / (1 + p) = 1 - confidence, p = e^-epsilon
    exact = brentq(
        lambda e: 2 * math.exp(-e * (error + 1)) / (1 + math.exp(-e)) - (1 - float(confidence)),
        1e-9,
        50,
        xtol=1e-15,
    )
    assert found.epsilon.lower * (1 - 1e-9) <= exact <= found.epsilon.upper * (1 + 1e-9)
    assert found.epsilon.upper <= exact * (1 + 2e-4)
    assert DiscreteLaplace(found.scale.value).tail(error).upper <= 1 - Fraction(confidence)
    assert DiscreteLaplace(found.scale.fails).tail(error).lower > 1 - Fraction(confidence)
    assert found.scale.fails > found.scale.value


@pytest.mark.parametrize(
    "call",
    [
        lambda: least_noise(ApproxDP(0, 0), continuous, curve=Gaussians),
        lambda: least_noise(PureDP(0), continuous, curve=Gaussians),
        lambda: least_noise(PureDP(1), continuous, curve=Gaussians),
        lambda: least_noise(ApproxDP(1, "1e-6"), continuous, curve=Gaussians, start=0),
        lambda: laplace_scale(PureDP(0), L1, curve=Gaussians),
        lambda: laplace_scale(PureDP(1), L1, 0, curve=Gaussians),
        lambda: gaussian_sigma(ApproxDP(1, 0), L2, curve=Gaussians),
        lambda: noise_multiplier(ApproxDP(1, "1e-6"), "1.5", 10, curve=Gaussians),
        lambda: noise_multiplier(ApproxDP(1, "1e-6"), "0.5", 0, curve=Gaussians),
        lambda: most_queries(ApproxDP(1, "1e-6"), continuous(Fraction(1)), curve=Gaussians, most=0),
        lambda: least_epsilon(
            0, "0.9", lambda b: AdditiveNoise(DiscreteLaplace(b), L1), curve=ByZcdp, delta=0
        ),
        lambda: least_epsilon(
            5, 1, lambda b: AdditiveNoise(DiscreteLaplace(b), L1), curve=ByZcdp, delta=0
        ),
    ],
)
def test_bad_numbers_are_refused(call):
    with pytest.raises(InvalidNumber):
        call()


def test_what_is_no_target_or_of_another_norm_is_refused():
    with pytest.raises(InvalidDeclaration):
        least_noise(1, continuous, curve=Gaussians)
    with pytest.raises(InvalidDeclaration):
        laplace_scale(PureDP(1), L2, curve=Gaussians)
    with pytest.raises(InvalidDeclaration):
        gaussian_sigma(ApproxDP(1, "1e-6"), L1, curve=Gaussians)


WEIGHTS = st.lists(st.fractions(min_value=0, max_value=10**6), min_size=1, max_size=8).filter(any)
TOTALS = st.fractions(min_value=Fraction(1, 10**12), max_value=10**6)


@given(TOTALS, WEIGHTS, st.sampled_from((Norm.L1, Norm.L2)))
@settings(deadline=None)
def test_shares_sum_to_the_stated_cost(total, weights, norm):
    shares = split(total, weights, norm)
    assert sum(shares) == total
    assert len(shares) == len(weights)
    assert all(share > 0 for share in shares)


@given(TOTALS, WEIGHTS, st.sampled_from((Norm.L1, Norm.L2)))
@settings(deadline=None)
def test_a_heavier_part_never_gets_less(total, weights, norm):
    ranked = [share for _, share in sorted(zip(weights, split(total, weights, norm), strict=True))]
    assert ranked == sorted(ranked)


def variance(shares, weights, norm):
    """The sum of relative variances that is to be small."""
    if norm is Norm.L1:
        return sum((w / s) ** 2 for w, s in zip(weights, shares, strict=True))
    return sum(w / s for w, s in zip(weights, shares, strict=True))


@pytest.mark.parametrize("norm", (Norm.L1, Norm.L2))
@pytest.mark.parametrize("weights", [[1, 1], [1, 2, 5], [1, 30], [3, 4, 5, 6]])
def test_no_other_split_errs_less(weights, norm):
    shares = [float(each) for each in split(Fraction(1), [Fraction(w) for w in weights], norm)]
    start = [1 / len(weights)] * len(weights)
    best = minimize(
        lambda tried: variance(tried, weights, norm),
        start,
        bounds=[(1e-4, 1)] * len(weights),
        constraints={"type": "eq", "fun": lambda tried: sum(tried) - 1},
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert best.success
    assert variance(shares, weights, norm) <= best.fun * 1.0001
    # the even split, which is what one would do without thinking, is worse where weights differ
    assert len(set(weights)) == 1 or variance(start, weights, norm) > best.fun * 1.001


def test_a_single_part_gets_all():
    assert split(Fraction(1, 3), [Fraction(7)], Norm.L1) == [Fraction(1, 3)]


@dataclass(frozen=True)
class Quickly(Gaussians):
    """The same, told roughly as ``guess`` of the truth, and refused where noise hides nothing."""

    guess: object = float

    def epsilon(self, delta):
        return super().epsilon(delta) if self.mu < 1000 else refused(delta)

    def roughly(self, delta):
        return self.guess(self.epsilon(delta).upper)


def refused(_):
    raise InvalidNumber("Too little noise.")


# a little high, as rough curves are; what no honest one tells; what refuses
GUESSES = {
    "high": lambda truth: truth * 1.002,
    "far": lambda truth: truth / 9,
    "rising": lambda truth: 1 / max(truth, 1e-9),
    "constant": lambda truth: 1.0,
    "nothing": lambda truth: 0.0,
    "infinite": lambda truth: math.inf,
    "nan": lambda truth: math.nan,
    "refused": refused,
}


@pytest.mark.parametrize("guess", GUESSES)
@pytest.mark.parametrize("start", ["1e-3", 700])
def test_a_rough_guess_decides_nothing(guess, start):
    found = least_noise(
        ApproxDP("0.7", "1e-9"),
        continuous,
        curve=lambda event: Quickly(event, 1e-6, GUESSES[guess]),
        start=start,
    )
    exact = brentq(lambda mu: gaussian_profile(mu, 0.7) - 1e-9, 1e-6, 1e4, xtol=1e-15)
    assert 1 - 1e-7 < exact * found.value < 1 + 2e-4 and exact * found.fails < 1 + 1e-7
    assert found.cost.upper <= 0.7 and found.excess <= 2.2e-4


def test_a_search_that_believes_rough_guesses_is_noticed():
    class Believed(Quickly):
        def epsilon(self, delta):
            told = GUESSES["far"](super().epsilon(delta).upper)
            return Bracket(told, told)

    found = least_noise(ApproxDP("0.7", "1e-9"), continuous, curve=Believed)
    assert Gaussians(continuous(found.value)).epsilon(Fraction("1e-9")).lower > 0.7


def test_rough_readings_save_exact_ones():
    asked = []

    class Counted(Gaussians):
        def epsilon(self, delta):
            asked.append(self.event)
            return super().epsilon(delta)

    class Guided(Counted):
        def roughly(self, delta):
            return Gaussians(self.event).epsilon(delta).upper * 1.002

    target, counts = ApproxDP("0.7", "1e-9"), []
    for curve in (Counted, Guided):
        least_noise(target, continuous, curve=curve, start=Fraction(1, 1000))
        counts.append(len(asked) - sum(counts))
    assert counts[1] <= 4 < counts[0]
