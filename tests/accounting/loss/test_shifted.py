# SPDX-License-Identifier: Apache-2.0
"""Integers moved by several steps: against enumerated laws, alone, composed and sampled.

A mutant.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from sfumato.accounting.curve import privacy_curve
from sfumato.accounting.loss import shifted
from sfumato.errors import InvalidDeclaration
from sfumato.noise import Binomial, DiscreteGaussian, Skellam
from sfumato.privacy import (
    AdditiveNoise,
    Composed,
    Distance,
    Event,
    FixedSample,
    Norm,
    PoissonSample,
    Repeated,
    ReplaceOne,
    Sampled,
)

MODULE = "sfumato.accounting.loss.shifted"
SPREAD = 150


def skellam(rate: float) -> np.ndarray:
    """The difference of two Poisson variables, by convolution; the middle is 0."""
    poisson = [math.exp(k * math.log(rate) - rate - math.lgamma(k + 1)) for k in range(SPREAD + 1)]
    return np.convolve(poisson, poisson[::-1])


def coins(trials: int) -> np.ndarray:
    found = np.zeros(2 * SPREAD + 1)
    for heads in range(trials + 1):
        found[SPREAD + heads - trials // 2] = math.comb(trials, heads) / 2**trials
    return found


def bell(variance: float) -> np.ndarray:
    weights = np.array([math.exp(-x * x / (2 * variance)) for x in range(-SPREAD, SPREAD + 1)])
    return weights / weights.sum()


def excess(here: np.ndarray, there: np.ndarray, epsilon: float) -> float:
    return float(np.maximum(here - math.exp(epsilon) * there, 0.0).sum())


def together(law: np.ndarray, times: int) -> np.ndarray:
    found = law
    for _ in range(times - 1):
        found = np.outer(found, law).ravel()
    return found


def moved(noise: object, shift: int, relation: object = None) -> AdditiveNoise:
    distance = (
        Distance(Norm.LINF, Fraction(shift))
        if relation is None
        else Distance(Norm.LINF, Fraction(shift), relation)
    )
    return AdditiveNoise(noise, distance, cells=1)


CASES = [
    (Skellam(4), skellam(4.0), 1),
    (Skellam(4), skellam(4.0), 3),
    (Skellam("1/2"), skellam(0.5), 2),
    (Binomial(60, "1/2"), coins(60), 2),
    (Binomial(200, "1/2"), coins(200), 5),
    (DiscreteGaussian(3), bell(9.0), 4),
]


def is_exact(event: Event, law: np.ndarray, shift: int, epsilon: float, times: int) -> bool:
    found = privacy_curve(Repeated(event, times)).delta(epsilon)
    one = [
        excess(together(np.roll(law, move), times), together(law, times), epsilon)
        for move in range(1, shift + 1)
    ]
    # a smaller shift loses no more
    return (
        max(one) <= found.upper * (1 + 1e-9) + 1e-13
        and found.lower <= max(one) * (1 + 1e-9) + 1e-13
    )


@pytest.mark.parametrize(("noise", "law", "shift"), CASES, ids=lambda value: str(value)[:24])
@pytest.mark.parametrize(("epsilon", "times"), [(0.1, 2), (1.0, 2), (0.5, 1)])
def test_a_shifted_integer_loses_the_ratio_of_two_probabilities(
    noise, law, shift, epsilon, times
) -> None:
    assert is_exact(moved(noise, shift), law, shift, epsilon, times)


def test_ratios_of_other_probabilities_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    module = __import__(MODULE, fromlist=["_falls"])
    right = module._falls
    monkeypatch.setattr(module, "_falls", lambda noise, count: right(noise, count + 1)[1:])
    monkeypatch.setattr("sfumato.accounting.dominating_pairs.shifted", shifted.__wrapped__)
    assert not is_exact(moved(Skellam(4), 1), skellam(4.0), 1, 0.5, 2)


@pytest.mark.parametrize(("noise", "law", "shift"), CASES, ids=lambda value: str(value)[:24])
def test_samples_of_shifted_integers_lose_what_their_mixtures_lose(noise, law, shift) -> None:
    rate = 0.3
    mixed = (1 - rate) * law + rate * np.roll(law, shift)
    poisson = privacy_curve(
        Repeated(Sampled(PoissonSample(Fraction(3, 10)), moved(noise, shift)), 2)
    )
    fixed = privacy_curve(Sampled(FixedSample(3, 10), moved(noise, shift, ReplaceOne)))
    for epsilon in (0.05, 0.4):
        truth = max(
            excess(together(one, 2), together(other, 2), epsilon)
            for one, other in itertools.permutations((mixed, law), 2)
        )
        found = poisson.delta(epsilon)
        assert found.lower <= truth * 1.001 + 1e-12 and truth * 0.999 <= found.upper + 1e-12
        assert found.upper <= truth * 1.02 + 1e-9
        once = max(excess(mixed, law, epsilon), excess(law, mixed, epsilon))
        assert once <= fixed.delta(epsilon).upper * (1 + 1e-9) + 1e-12


def test_several_integers_are_so_many_uses() -> None:
    noise = Skellam(30)
    cells = AdditiveNoise(noise, Distance(Norm.LINF, Fraction(2)), cells=10)
    assert privacy_curve(cells).epsilon("1e-6") == privacy_curve(
        Repeated(moved(noise, 2), 10)
    ).epsilon("1e-6")
    both = Composed(
        (moved(noise, 2), moved(DiscreteGaussian(20), 3), moved(Binomial(400, "1/2"), 1))
    )
    found = privacy_curve(both).epsilon("1e-6")
    assert 0 < found.lower <= found.upper <= found.lower * (1 + 1e-3)


def test_a_thousand_sums_of_poisson_noise_lose_what_gaussian_ones_do_nearly() -> None:
    # variance 2000: mu^2 of a thousand is 1/2
    summed = AdditiveNoise(Skellam(1000), Distance(Norm.L1, Fraction(1)), cells=1)
    found = privacy_curve(Repeated(summed, 1000)).epsilon("1e-6")
    mu = math.sqrt(1000 / 2000)
    tail = lambda x: math.erfc(x / math.sqrt(2)) / 2  # noqa: E731
    delta = tail(found.upper / mu - mu / 2) - math.exp(found.upper) * tail(
        found.upper / mu + mu / 2
    )
    assert delta == pytest.approx(1e-6, rel=0.02)


@pytest.mark.parametrize(
    "event",
    [
        moved(Binomial(60, "1/3"), 1),
        moved(Binomial(61, "1/2"), 1),
        moved(Skellam(10**6), 1),
        moved(Skellam(50), 65),
        AdditiveNoise(Skellam(50), Distance(Norm.L1, Fraction(1)), cells=2),
        AdditiveNoise(Skellam(50), Distance(Norm.L1, Fraction(1))),
    ],
)
def test_what_has_no_pair_is_refused(event: Event) -> None:
    with pytest.raises(InvalidDeclaration, match="no proved rho"):
        privacy_curve(Repeated(event, 2))
