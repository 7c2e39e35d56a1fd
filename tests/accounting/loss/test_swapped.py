# SPDX-License-Identifier: Apache-2.0
"""Poisson samples of which one unit is replaced: against integrals, all small datasets, random
mechanisms; mutants.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from sfumato.accounting import dominating_pairs
from sfumato.accounting.account import account, relations_of
from sfumato.accounting.amplify import after_sampling
from sfumato.accounting.curve import privacy_curve
from sfumato.accounting.loss import Swapped, SwappedNormal
from sfumato.accounting.loss.edges import Edges
from sfumato.accounting.odometer import ConcentratedFilter
from sfumato.accounting.renyi import renyi
from sfumato.errors import InvalidDeclaration, InvalidNumber
from sfumato.mechanisms.additive import laplace
from sfumato.mechanisms.sampling import SamplingMechanism
from sfumato.noise import DiscreteGaussian, DiscreteLaplace
from sfumato.privacy import (
    AdditiveNoise,
    ApproxDP,
    ApproxEvent,
    Composed,
    ContinuousLaw,
    ContinuousNoise,
    Distance,
    Event,
    Norm,
    PoissonSample,
    PureEvent,
    RandomizedResponse,
    Relation,
    Repeated,
    Sampled,
)
from sfumato.privacy.event import event_from_json, event_to_json

REPLACE = Relation.REPLACE_ONE
L1, L2 = (Distance(norm, Fraction(1)) for norm in (Norm.L1, Norm.L2))


def swapped(rate: str, event: Event) -> Sampled:
    return Sampled(PoissonSample(Fraction(rate), REPLACE), event)


def gaussian(sigma: str) -> ContinuousNoise:
    return ContinuousNoise(ContinuousLaw.GAUSSIAN, Fraction(sigma), L2)


def excess(here: np.ndarray, there: np.ndarray, epsilon: float) -> float:
    return float(np.maximum(here - math.exp(epsilon) * there, 0.0).sum())


GRID = np.linspace(-13.0, 13.0, 260_001)


def normal(mean: float) -> np.ndarray:
    """Masses of the cells of the grid, at their middles."""
    return np.exp(-((GRID - mean) ** 2) / 2) / math.sqrt(2 * math.pi) * (GRID[1] - GRID[0])


@pytest.mark.parametrize("rate", ["1/100", "1/3"])
@pytest.mark.parametrize("sigma", ["1/2", "1.1"])
def test_a_swapped_unit_has_a_mixture_on_either_side(rate: str, sigma: str) -> None:
    q, mu = float(Fraction(rate)), 1 / float(Fraction(sigma))
    here, there = ((1 - q) * normal(0.0) + q * normal(mean) for mean in (mu, -mu))
    curve = privacy_curve(swapped(rate, gaussian(sigma)), width="1e-6")
    for epsilon in (0.0, 0.05, 0.4):
        truth, found = excess(here, there, epsilon), curve.delta(epsilon)
        assert (
            found.lower <= truth * (1 + 1e-6) and truth * (1 - 1e-6) <= found.upper <= truth * 1.001
        )


def test_two_swaps_lose_what_the_product_of_their_laws_loses() -> None:
    q, mu, points = 0.2, 1.0, np.linspace(-8.0, 9.0, 1001)
    laws = []
    for sign in (1, -1):
        density = (1 - q) * np.exp(-(points**2) / 2) + q * np.exp(-((points - sign * mu) ** 2) / 2)
        laws.append(density / density.sum())
    truth = excess(np.outer(laws[0], laws[0]), np.outer(laws[1], laws[1]), 0.3)
    found = privacy_curve(Repeated(swapped("1/5", gaussian("1")), 2)).delta("0.3")
    assert found.lower <= truth * 1.001 and truth * 0.999 <= found.upper <= truth * 1.01


@pytest.mark.parametrize("angle", [0.0, 0.5, 2.0, 3.0, math.pi])
@pytest.mark.parametrize("length", [0.0, 0.5, 1.0])
def test_opposite_vectors_are_the_worst(angle: float, length: float) -> None:
    side = np.linspace(-6.5, 6.5, 401)
    x, y = np.meshgrid(side, side)

    def mass(first: float, second: float) -> np.ndarray:
        return (
            np.exp(-((x - first) ** 2 + (y - second) ** 2) / 2)
            / (2 * math.pi)
            * (side[1] - side[0]) ** 2
        )

    here = 0.7 * mass(0, 0) + 0.3 * mass(1, 0)
    there = 0.7 * mass(0, 0) + 0.3 * mass(length * math.cos(angle), length * math.sin(angle))
    curve = privacy_curve(swapped("3/10", gaussian("1")))
    for epsilon in (0.0, 0.2):
        assert max(excess(here, there, epsilon), excess(there, here, epsilon)) <= curve.delta(
            epsilon
        ).upper * (1 + 1e-4)


def test_ten_thousand_steps_cost_what_was_worked_out_beforehand() -> None:
    run = Repeated(swapped("1/100", gaussian("1.1")), 10_000)
    found = privacy_curve(run).epsilon("1e-6")
    assert (
        found.lower <= 10.3805
        and found.upper >= 10.3795
        and found.upper <= found.lower * (1 + 2e-4)
    )


# up to three units of values -1, 0 and 1, each in the sample with probability 2/5
RATE = 0.4


def law(data: tuple[int, ...], noise: dict[int, float]) -> np.ndarray:
    """Of the noisy sum of a Poisson sample, by all samples."""
    found = np.zeros(151)
    for chosen in itertools.product((0, 1), repeat=len(data)):
        chance = math.prod(RATE if one else 1 - RATE for one in chosen)
        total = sum(value for value, one in zip(data, chosen, strict=True) if one)
        for step, mass in noise.items():
            found[75 + total + step] += chance * mass
    return found


def neighbours(noise: dict[int, float]) -> list[tuple[np.ndarray, np.ndarray]]:
    """All pairs of datasets of which one unit differs."""
    laws = {
        data: law(data, noise)
        for size in (1, 2, 3)
        for data in itertools.product((-1, 0, 1), repeat=size)
    }
    return [
        (laws[(one, *rest)], laws[(other, *rest)])
        for size in (0, 1, 2)
        for rest in itertools.product((-1, 0, 1), repeat=size)
        for one, other in itertools.permutations((-1, 0, 1), 2)
    ]


def geometric(scale: float) -> dict[int, float]:
    shrinks = math.exp(-1 / scale)
    return {step: (1 - shrinks) / (1 + shrinks) * shrinks ** abs(step) for step in range(-70, 71)}


def bell(variance: float) -> dict[int, float]:
    weights = {step: math.exp(-step * step / (2 * variance)) for step in range(-70, 71)}
    total = sum(weights.values())
    return {step: weight / total for step, weight in weights.items()}


NOISES = [
    (AdditiveNoise(DiscreteLaplace(1), L1), geometric(1.0)),
    (AdditiveNoise(DiscreteLaplace(2), L1), geometric(2.0)),
    (AdditiveNoise(DiscreteGaussian(2), L2, cells=1), bell(4.0)),
]


def largest(noise: dict[int, float], epsilon: float, times: int = 1) -> float:
    worst = 0.0
    for here, there in neighbours(noise):
        pair = [here, there]
        for _ in range(times - 1):
            pair = [
                np.outer(one, other).ravel() for one, other in zip(pair, (here, there), strict=True)
            ]
        worst = max(worst, excess(pair[0], pair[1], epsilon))
    return worst


def is_exact(event: Event, noise: dict[int, float], epsilon: float, times: int) -> bool:
    """Whether no neighbours lose more than is said, and some lose what is said from below."""
    found, truth = (
        privacy_curve(Repeated(swapped("2/5", event), times)).delta(epsilon),
        largest(noise, epsilon, times),
    )
    assert found.lower is not None
    return truth <= found.upper + 1e-12 and found.lower <= truth + 1e-12


@pytest.mark.parametrize(("event", "noise"), NOISES)
@pytest.mark.parametrize(("epsilon", "times"), [(0.0, 1), (0.15, 1), (0.5, 1), (0.3, 2)])
def test_a_swapped_unit_has_opposite_losses(
    event: Event, noise: dict[int, float], epsilon: float, times: int
) -> None:
    assert is_exact(event, noise, epsilon, times)


@pytest.mark.parametrize("slip", ["a unit that only leaves", "a rate of less"])
def test_a_wrong_pair_is_caught(slip: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Swapped.laplace

    def wrong(step: float, shift: int, rate: float) -> Swapped:
        pair = made(step, shift, rate * 0.9 if slip == "a rate of less" else rate)
        return (
            Swapped(pair.masses, pair.gains, (0.0,) * len(pair.gains), rate)
            if "leaves" in slip
            else pair
        )

    monkeypatch.setattr(dominating_pairs.Swapped, "laplace", wrong)
    assert not is_exact(*NOISES[0], 0.15, 1)


def test_the_closed_form_of_a_unit_that_leaves_is_not_used() -> None:
    # it would say 0.1423
    assert privacy_curve(swapped("1/100", gaussian("1.1"))).epsilon("1e-5").lower > 0.152


@st.composite
def three_laws(draw: st.DrawFn) -> list[np.ndarray]:
    """A law without the unit, and two that are within e of it at each outcome."""
    size = draw(st.integers(2, 5))
    weights = st.lists(st.floats(0.05, 1.0), min_size=size, max_size=size)
    rest, found = np.array(draw(weights)), []
    rest /= rest.sum()
    for _ in range(2):
        tilt = np.array(draw(st.lists(st.floats(-1.0, 1.0), min_size=size, max_size=size)))
        low, high = -3.0, 3.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (
                (low, middle)
                if (rest * np.exp(np.clip(tilt + middle, -1, 1))).sum() > 1
                else (middle, high)
            )
        found.append(rest * np.exp(np.clip(tilt + low, -1, 1)))
    return [rest, *found]


@given(three_laws(), st.sampled_from(["1/100", "1/2", "9/10"]))
@settings(deadline=None)
def test_no_pure_mechanism_loses_more_when_swapped(laws: list[np.ndarray], rate: str) -> None:
    q, (rest, one, other) = float(Fraction(rate)), laws
    here, there = (1 - q) * rest + q * one, (1 - q) * rest + q * other
    event = swapped(rate, PureEvent(Fraction(1)))
    curve = privacy_curve(event)
    for epsilon in (0.0, 0.01, 0.3):
        assert excess(here, there, epsilon) <= curve.delta(epsilon).upper + 1e-12
    assert np.log(here / there).max() <= float(account(event).epsilon) + 1e-12


def test_a_swap_has_its_pure_cost_and_a_renyi_bound() -> None:
    event, q, e = swapped("1/10", PureEvent(Fraction(1))), 0.1, math.e
    truth = math.log((1 - q + q * e) / (1 - q + q / e))
    assert float(account(event).epsilon) == pytest.approx(truth, rel=1e-15)
    # one unit leaves, another comes: each an own delta of q delta, grown by the other step
    approx = account(swapped("1/10", ApproxEvent(Fraction(1), Fraction(1, 1000))))
    step = math.log(1 + q * (e - 1))
    assert float(approx.epsilon) == pytest.approx(2 * step)
    assert float(approx.delta) == pytest.approx(1e-4 * (1 + math.exp(step)))
    assert account(swapped("1", PureEvent(Fraction(1)))).epsilon == 2
    here, there = ((1 - q) * normal(0.0) + q * normal(mean) for mean in (1.0, -1.0))
    least = math.log((here**4 / there**3).sum()) / 3
    assert least <= float(renyi(swapped("1/10", gaussian("1")), 4))
    assert renyi(swapped("1", gaussian("1")), 4) >= Fraction(4 * 4, 2)


def test_a_sample_of_nearly_everybody_is_two_steps_of_the_whole() -> None:
    both = ContinuousNoise(
        ContinuousLaw.GAUSSIAN, Fraction(1), Distance(Norm.L2, Fraction(4), REPLACE)
    )
    assert privacy_curve(swapped("1", gaussian("1"))).epsilon("1e-6") == privacy_curve(
        both
    ).epsilon("1e-6")
    near = privacy_curve(swapped("999/1000", gaussian("1"))).epsilon("1e-6")
    assert near.lower is None and near.upper == privacy_curve(both).epsilon("1e-6").upper
    assert privacy_curve(swapped("999/1000", PureEvent(Fraction(1)))).epsilon("1e-6").upper <= 2
    with pytest.raises(InvalidNumber, match="rate"):
        SwappedNormal(1.0, 0.999)


def test_what_is_sampled_is_stated_for_units_that_enter_or_leave() -> None:
    assert relations_of(swapped("1/2", gaussian("1"))) == {REPLACE}
    values = ContinuousNoise(
        ContinuousLaw.GAUSSIAN, Fraction(1), Distance(Norm.L2, Fraction(1), REPLACE)
    )
    for wrong in (values, RandomizedResponse(Fraction(1), 2), Composed((gaussian("1"), values))):
        with pytest.raises(InvalidDeclaration, match="neighbour relations"):
            privacy_curve(swapped("1/2", wrong))
    with pytest.raises(InvalidDeclaration):
        ConcentratedFilter(cap=Fraction(9)).admits(swapped("1/2", PureEvent(Fraction(1))))
    with pytest.raises(InvalidDeclaration):
        after_sampling(PoissonSample(Fraction(1, 2), REPLACE), REPLACE, ApproxDP(1, 0))
    with pytest.raises(InvalidDeclaration):
        SamplingMechanism(PoissonSample(Fraction(1, 2), REPLACE), laplace(L1, 2))
    with pytest.raises(InvalidDeclaration):
        PoissonSample(Fraction(1, 2), "replace_one")


@pytest.mark.parametrize("rate", ["1/2", "1/100"])
def test_discrete_noise_has_an_upper_end_that_holds(rate: str) -> None:
    # near enough to two samples of a normal law of variance 2 that differ by 3 on either side
    event = AdditiveNoise(DiscreteGaussian(2), Distance(Norm.L2, Fraction(9)))
    upper = privacy_curve(swapped(rate, event)).epsilon("1e-6").upper
    places, share = np.linspace(-40, 40, 400_001), float(Fraction(rate))
    law = norm(0, math.sqrt(2))
    high = (1 - share) * law.pdf(places) + share * law.pdf(places - 3)
    low = (1 - share) * law.pdf(places) + share * law.pdf(places + 3)
    for epsilon, holds in ((upper, True), (upper / 2, False)):
        delta = np.maximum(high - math.exp(epsilon) * low, 0).sum() * (places[1] - places[0])
        assert bool(delta <= 1e-6) is holds


def test_an_event_says_who_is_replaced() -> None:
    event = swapped("1/100", PureEvent(Fraction(1)))
    form = event_to_json(event)
    assert form["design"] == {"design": "poisson", "rate": "1/100", "relation": "replace-one"}
    assert event_from_json(form) == event
    assert (
        "relation"
        not in event_to_json(Sampled(PoissonSample(Fraction(1, 100)), PureEvent(Fraction(1))))[
            "design"
        ]
    )


@pytest.mark.parametrize(
    "pair",
    [
        SwappedNormal(0.9, 0.01),
        SwappedNormal(20.0, 1e-6),
        SwappedNormal(3.0, 0.9),
        SwappedNormal(1e-3, 0.3),
    ],
    ids=repr,
)
def test_both_laws_of_a_swap_are_laws(pair: SwappedNormal) -> None:
    reach = pair.reach(1e-25)
    losses = np.linspace(reach.lower - 1e-9, reach.upper + 1e-9, 200_001)
    ratio = np.exp(losses)
    edges = Edges(ratio, np.expm1(losses), ratio[:-1] * np.expm1(np.diff(losses)))
    mass, share = pair.cells(edges)
    assert mass.sum() == pytest.approx(1, abs=1e-11)
    assert (mass * (ratio[:-1] + share * edges.gap)).sum() == pytest.approx(1, rel=1e-9)
    # each is the mirror image of the other
    assert np.allclose((mass * (ratio[:-1] + share * edges.gap))[::-1], mass, rtol=1e-6, atol=1e-18)


@pytest.mark.parametrize(
    "pair",
    [Swapped.laplace(0.01, 1, 0.001), Swapped.laplace(0.5, 7, 0.4), Swapped.gaussian(4.0, 0.9)],
    ids=lambda pair: f"{len(pair.gains)} atoms",
)
def test_both_laws_of_atoms_are_laws(pair: Swapped) -> None:
    losses, masses = pair.atoms()
    assert masses.sum() == pytest.approx(1, abs=1e-13) and (
        masses * np.exp(losses)
    ).sum() == pytest.approx(1, abs=1e-13)
    assert sorted(losses) == pytest.approx(sorted(-losses), rel=1e-12)
