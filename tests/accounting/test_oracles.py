# SPDX-License-Identifier: Apache-2.0
"""Privacy curves and Renyi divergences against dp-accounting, on random plans.

Its privacy buckets round every loss up to a grid, or every loss down (``pessimistic_estimate``);
connecting the dots lies above the truth too, and nearer. So the truth is between its two
answers, but for what its transforms lose: below ``ROUNDING`` at delta >= 1e-8 and 1,000
compositions (at smaller deltas it under-reports, see test_published.py). Hence

* our upper end is never below its optimistic answer: we never say less than is lost;
* our lower end is never above its pessimistic answer: what we call proved is not refuted;
* our upper end is at most 1e-3 above its pessimistic answer (a few heavy steps: 3e-3 of epsilon):
  as tight.

A fault within its width, half a step of its grid for each event, is not seen here; the exact
laws of ``laws.py`` and the values of ``test_published.py`` are for that.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import dp_accounting as google
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.rdp import RdpAccountant
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.accounting import curve as module
from sfumato.accounting.curve import privacy_curve
from sfumato.accounting.renyi import epsilon_from_renyi, renyi
from sfumato.noise import DiscreteGaussian, DiscreteLaplace
from sfumato.privacy import (
    AdditiveNoise,
    Composed,
    ContinuousLaw,
    ContinuousNoise,
    Distance,
    Norm,
    PoissonSample,
    RandomizedResponse,
    Relation,
    Repeated,
    Sampled,
)
from tests.contracts.effort import examples

ROUNDING = 1e-6
TIGHT, FEW_STEPS = 1e-3, 3e-3
DELTAS = st.sampled_from((1e-3, 1e-5, 1e-8))
TIMES = st.sampled_from((1, 7, 100, 1000))
# so much noise that epsilon stays below a hundred
SCALES = st.integers(10, 400).map(lambda tenths: Fraction(tenths, 10))
L1, L2 = Distance(Norm.L1, Fraction(1)), Distance(Norm.L2, Fraction(1))
FEW = settings(deadline=None, max_examples=examples(0.2))


@dataclass(frozen=True)
class Theirs:
    """An optimistic and a pessimistic answer: the truth is between them."""

    lower: float
    upper: float

    @classmethod
    def of(cls, make, times, delta, interval, *, dots=True):
        """``make`` builds one use.

        ``dots``: whether it can connect them, which only a pessimistic one does.
        """
        ways = [{"pessimistic_estimate": False}, {"pessimistic_estimate": True}]
        if dots:
            ways = [each | {"use_connect_dots": each["pessimistic_estimate"]} for each in ways]
        built = [make(value_discretization_interval=interval, **way) for way in ways]
        return cls(*(each.self_compose(times).get_epsilon_for_delta(delta) for each in built))

    def never_below(self, found):
        return found.upper >= self.lower * (1 - ROUNDING) - 1e-9

    def never_above(self, found):
        return found.lower <= self.upper * (1 + ROUNDING) + 1e-9

    def agrees(self, found, more=1e-9):
        near = found.upper <= self.upper * (1 + TIGHT) + more
        return (
            found.lower <= found.upper
            and self.never_below(found)
            and self.never_above(found)
            and near
        )


def grid(scale):
    """About 10^4 steps over the losses of one use.

    A power of two, so that 1 / scale can lie on it.
    """
    return 2.0 ** (-9 - math.ceil(math.log2(float(scale))))


def ours(event, times, delta):
    return privacy_curve(Repeated(event, times)).epsilon(str(delta))


def continuous(law, scale, relation=Relation.ADD_REMOVE):
    norm = Norm.L1 if law is ContinuousLaw.LAPLACE else Norm.L2
    return ContinuousNoise(law, scale, Distance(norm, Fraction(1), relation))


@given(SCALES, TIMES, DELTAS)
@FEW
def test_gaussians_agree(sigma, times, delta):
    sigma *= math.isqrt(times)
    theirs = Theirs.of(
        lambda **how: pld.from_gaussian_mechanism(float(sigma), **how), times, delta, grid(sigma)
    )
    assert theirs.agrees(ours(continuous(ContinuousLaw.GAUSSIAN, sigma), times, delta))


@given(SCALES, TIMES, DELTAS)
@FEW
def test_laplaces_agree(scale, times, delta):
    scale *= math.isqrt(times)
    theirs = Theirs.of(
        lambda **how: pld.from_laplace_mechanism(float(scale), **how), times, delta, grid(scale)
    )
    assert theirs.agrees(ours(continuous(ContinuousLaw.LAPLACE, scale), times, delta))


@given(st.integers(1, 5), TIMES, DELTAS)
@FEW
def test_discrete_laplaces_agree(exponent, times, delta):
    scale = Fraction(2 ** (exponent + math.isqrt(times).bit_length() - 1))
    theirs = Theirs.of(
        lambda **how: pld.from_discrete_laplace_mechanism(float(1 / scale), **how),
        times,
        delta,
        grid(scale),
    )
    assert theirs.agrees(ours(AdditiveNoise(DiscreteLaplace(scale), L1), times, delta))


@given(st.integers(2, 20), st.sampled_from((1, 7, 50)), DELTAS)
@FEW
def test_discrete_gaussians_agree(sigma, times, delta):
    theirs = Theirs.of(
        lambda **how: pld.from_discrete_gaussian_mechanism(float(sigma), **how),
        times,
        delta,
        grid(sigma),
    )
    assert theirs.agrees(ours(AdditiveNoise(DiscreteGaussian(sigma), L2), times, delta))


@given(st.integers(1, 48), st.integers(2, 6), st.sampled_from((1, 7, 100)), DELTAS)
@FEW
def test_randomised_responses_agree(sixteenths, categories, times, delta):
    epsilon = Fraction(sixteenths, 16)
    # theirs answers at random with this probability, ours lies with another
    random = categories / (math.exp(epsilon) + categories - 1)
    theirs = Theirs.of(
        lambda **how: pld.from_randomized_response(random, categories, **how),
        times,
        delta,
        2.0**-12,
        dots=False,
    )
    assert theirs.agrees(ours(RandomizedResponse(epsilon, categories), times, delta))


@given(st.integers(6, 40), st.sampled_from((1000, 100, 5)), st.sampled_from((1, 7, 30)), DELTAS)
@FEW
def test_poisson_sampled_gaussians_agree(tenths, in_so_many, times, delta):
    sigma, rate = Fraction(tenths, 10), Fraction(1, in_so_many)
    theirs = Theirs.of(
        lambda **how: pld.from_gaussian_mechanism(float(sigma), sampling_prob=float(rate), **how),
        times,
        delta,
        2.0**-11,
    )
    found = ours(
        Sampled(PoissonSample(rate), continuous(ContinuousLaw.GAUSSIAN, sigma)), times, delta
    )
    assert theirs.agrees(found, FEW_STEPS)


@given(SCALES, SCALES, SCALES, TIMES, DELTAS)
@FEW
def test_mixed_plans_agree(sigma, scale, sampled, times, delta):
    root = math.isqrt(times)
    sigma, scale, sampled = (root * each for each in (sigma, scale, sampled))

    def make(**how):
        one = pld.from_gaussian_mechanism(float(sigma), **how)
        return one.compose(pld.from_laplace_mechanism(float(scale), **how)).compose(
            pld.from_gaussian_mechanism(float(sampled), sampling_prob=0.25, **how)
        )

    plan = Composed(
        (
            continuous(ContinuousLaw.GAUSSIAN, sigma),
            continuous(ContinuousLaw.LAPLACE, scale),
            Sampled(PoissonSample(Fraction(1, 4)), continuous(ContinuousLaw.GAUSSIAN, sampled)),
        )
    )
    theirs = Theirs.of(make, times, delta, grid(min(sigma, scale, sampled)))
    assert theirs.agrees(ours(plan, times, delta))


@pytest.mark.parametrize("error", [-1, 1])
def test_a_curve_of_one_use_less_or_more_is_noticed(monkeypatch, error):
    theirs = Theirs.of(lambda **how: pld.from_gaussian_mechanism(20.0, **how), 100, 1e-5, grid(20))
    event = continuous(ContinuousLaw.GAUSSIAN, Fraction(20))
    assert theirs.agrees(ours(event, 100, 1e-5))
    right = module.privacy_curve
    monkeypatch.setitem(
        globals(), "privacy_curve", lambda plan: right(Repeated(plan.event, plan.times + error))
    )
    wrong = ours(event, 100, 1e-5)
    assert theirs.never_below(wrong) is (error > 0) and theirs.never_above(wrong) is (error < 0)


# --- Renyi: their divergences are closed forms, or sums that are exact at whole orders

GAUSSIAN = continuous(ContinuousLaw.GAUSSIAN, Fraction(3, 2))
RENYI = {
    "gaussian": (GAUSSIAN, google.GaussianDpEvent(1.5)),
    "laplace": (continuous(ContinuousLaw.LAPLACE, Fraction(2)), google.LaplaceDpEvent(2.0)),
    "sampled": (
        Sampled(PoissonSample(Fraction(1, 50)), GAUSSIAN),
        google.PoissonSampledDpEvent(0.02, google.GaussianDpEvent(1.5)),
    ),
    "response": (
        RandomizedResponse(Fraction(1), 3),
        google.RandomizedResponseDpEvent(3 / (math.e + 2), 3),
    ),
}
REPLACED = {"response"}


def accountant(name, times, orders=None):
    relation = google.NeighboringRelation
    books = RdpAccountant(
        orders, relation.REPLACE_ONE if name in REPLACED else relation.ADD_OR_REMOVE_ONE
    )
    return books.compose(RENYI[name][1], times)


@pytest.mark.parametrize("order", [2, 3, 8, 50])
@pytest.mark.parametrize("name", RENYI)
def test_divergences_of_whole_orders_are_the_same(name, order):
    (theirs,) = accountant(name, 10, [order])._rdp
    assert float(renyi(Repeated(RENYI[name][0], 10), order)) == pytest.approx(theirs, rel=1e-9)


@pytest.mark.parametrize("order", [1.25, 1.5, 2.75, 10.5])
@pytest.mark.parametrize("name", RENYI)
def test_divergences_between_whole_orders_are_no_less(name, order):
    (theirs,) = accountant(name, 10, [order])._rdp
    found = float(renyi(Repeated(RENYI[name][0], 10), Fraction(order)))
    assert found >= theirs * (1 - 1e-9)
    # where theirs is a series, ours is interpolated: at most what the next whole order has
    (next_whole,) = accountant(name, 10, [math.ceil(order)])._rdp
    assert found <= (next_whole if name == "sampled" else theirs) * (1 + 1e-9)


@pytest.mark.parametrize("times", [1, 30, 1000])
@pytest.mark.parametrize("name", RENYI)
def test_epsilon_from_renyi_is_above_the_truth_and_no_looser_than_theirs(name, times):
    plan = Repeated(RENYI[name][0], times)
    theirs = accountant(name, times).get_epsilon(1e-6)
    found = float(epsilon_from_renyi(plan, Fraction(1, 10**6)))
    assert privacy_curve(plan).epsilon("1e-6").lower <= min(found, theirs)
    assert found <= theirs * (1 + 1e-3)
