# SPDX-License-Identifier: Apache-2.0
"""Rare samples against the closed form of one step, the lattice, and binomial chances; a mutant."""

from fractions import Fraction

import pytest
from scipy.stats import binom

from sfumato.accounting.closed import Normal
from sfumato.accounting.curve import privacy_curve
from sfumato.accounting.rare_samples import RareSamples
from sfumato.noise import DiscreteGaussian, RoundedGaussian
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.event import (
    AdditiveNoise,
    ContinuousLaw,
    ContinuousNoise,
    Event,
    FixedSample,
    PoissonSample,
    Repeated,
    Sampled,
    WithReplacementSample,
)
from sfumato.privacy.unit import Relation


def noise(sigma: str, relation: Relation = Relation.ADD_REMOVE) -> ContinuousNoise:
    distance = Distance(Norm.L2, Fraction(1), relation)
    return ContinuousNoise(ContinuousLaw.GAUSSIAN, Fraction(sigma), distance)


def samples(rate: str, sigma: str, times: int) -> Repeated:
    return Repeated(Sampled(PoissonSample(Fraction(rate)), noise(sigma)), times)


def curve_of(event: Event) -> RareSamples:
    found = RareSamples.of(event)
    assert found is not None
    return found


@pytest.mark.parametrize("delta", ["1e-3", "1e-6", "1e-9"])
@pytest.mark.parametrize(("rate", "times"), [("1e-4", 1), ("1e-3", 100), ("1/20", 10)])
def test_samples_of_noise_that_hides_nothing_cost_at_most_their_draws(
    rate: str, times: int, delta: str
) -> None:
    for sigma in ("0.06", "0.5"):
        event = samples(rate, sigma, times)
        truth, rare = privacy_curve(event), curve_of(event)
        # an upper end is above the loss of neighbours that exist, in both readings
        upper = rare.epsilon(delta).upper
        assert upper >= (truth.epsilon(delta).lower or 0)
        assert rare.delta(1).upper >= (truth.delta(1).lower or 0)
        assert rare.delta(Fraction(upper)).upper <= 1.01 * float(delta)
        assert rare.epsilon(delta).lower is None


def test_fewer_draws_than_the_binomial_law_allows_would_be_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    event = samples("1e-3", "0.06", 100)
    chances = RareSamples._chances
    # a mutant by which no unit is ever drawn twice
    monkeypatch.setattr(
        RareSamples,
        "_chances",
        lambda self: ((k, chance if k < 1 else Fraction(0)) for k, chance in chances(self)),
    )
    assert curve_of(event).epsilon("1e-6").upper < (privacy_curve(event).epsilon("1e-6").lower or 0)


def test_chances_are_at_least_those_of_the_binomial_law() -> None:
    for draws, chance in curve_of(samples("0.01", "0.01", 50))._chances():
        assert float(chance) >= binom.sf(draws, 50, 0.01) * (1 - 1e-9)
    # exact for the last: all steps draw the unit
    *_, (draws, chance) = curve_of(samples("0.01", "0.01", 3))._chances()
    assert draws == 2 and float(chance) == pytest.approx(1e-6)


def test_a_unit_that_is_hardly_drawn_costs_nothing() -> None:
    rare = curve_of(samples("1e-6", "1e-5", 10))
    assert rare.epsilon("1.01e-5").upper == 0
    assert rare.delta(5).upper == pytest.approx(1e-5)


def test_at_most_all_steps_draw_a_unit() -> None:
    rare, all_steps = curve_of(samples("1/2", "0.05", 7)), Normal(Fraction(7 * 400))
    assert rare.epsilon("1e-30").upper == all_steps.epsilon("1e-30").upper
    assert rare.delta(900).upper <= all_steps.delta(900).upper


def test_a_replaced_unit_moves_the_mean_twice_as_far() -> None:
    design = PoissonSample(Fraction(1, 100), Relation.REPLACE_ONE)
    assert curve_of(Sampled(design, noise("1/2"))).squared == 16
    fixed = Sampled(FixedSample(1, 100), noise("1/2", Relation.REPLACE_ONE))
    assert curve_of(fixed) == RareSamples(Fraction(4), Fraction(1, 100), 1)


def test_only_samples_of_gaussian_noise_have_such_a_curve() -> None:
    unit = Distance(Norm.L2, Fraction(1))
    sample = PoissonSample(Fraction(1, 10))
    assert RareSamples.of(noise("1/3")) is None
    discrete = AdditiveNoise(DiscreteGaussian(Fraction(1, 3)), unit)
    assert RareSamples.of(Sampled(sample, discrete)) is None
    laplace = ContinuousNoise(ContinuousLaw.LAPLACE, Fraction(1, 9), Distance(Norm.L1, Fraction(1)))
    assert RareSamples.of(Sampled(sample, laplace)) is None
    replaced = noise("1/3", Relation.REPLACE_ONE)
    assert RareSamples.of(Sampled(WithReplacementSample(2, 9), replaced)) is None
    rounded = AdditiveNoise(RoundedGaussian(Fraction(2**20)), Distance(Norm.L2, Fraction(2**42)))
    assert curve_of(Repeated(Sampled(sample, rounded), 3)) == RareSamples(
        Fraction(4), Fraction(1, 10), 3
    )
    # wide noise has better bounds
    assert RareSamples.of(Sampled(sample, noise("1"))) is None
