# SPDX-License-Identifier: Apache-2.0
"""Samples of fixed size against closed forms, and against every pair of small datasets."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from sfumato.accounting import curve
from sfumato.accounting.curve import privacy_curve
from sfumato.accounting.dominating_pairs import FixedPlan
from sfumato.accounting.loss import Atoms, Gaussian, Ramp, Replaced, Sampled
from sfumato.accounting.loss.replaced import Edges
from sfumato.noise import DiscreteLaplace
from sfumato.privacy import Distance, FixedSample, Norm, Relation, Repeated
from sfumato.privacy.event import AdditiveNoise
from sfumato.privacy.event import Sampled as SampledEvent

SYMMETRIC = [
    Ramp(1.0, tips=True),
    Ramp(0.7, tips=False),
    Ramp(1e-5, tips=True),
    Gaussian(0.9),
    Gaussian(3.0),
    Atoms.pure(1.0),
    Atoms.response(1.0, 4),
    Atoms.discrete_laplace(0.5, 3),
    Atoms.discrete_laplace(0.5, 4),
    Atoms.discrete_gaussian(4.0, 1),
]


def told(pair: Replaced | Sampled, points: int = 4001) -> tuple[np.ndarray, np.ndarray]:
    """Ratios and their masses under Q: atoms, and cells at their means; 0 is an edge."""
    losses, masses = pair.atoms()
    ratios = np.exp(losses)
    if pair.continuous:
        reach = pair.reach(1e-25)
        upper = max(reach.upper, -reach.lower) * 1.001
        edges = np.arange(-points, points + 1) * (upper / points)
        ratio = np.exp(edges)
        seen = Edges(ratio, np.expm1(edges), ratio[:-1] * np.expm1(np.diff(edges)))
        mass, share = pair.cells(seen)
        assert (pair.doubt(seen) < 1e-9).all() and (share >= 0).all() and (share <= 1 + 1e-12).all()
        ratios, masses = (
            np.concatenate([ratios, ratio[:-1] + share * np.diff(ratio)]),
            np.concatenate([masses, mass]),
        )
    return ratios, masses


def shown(pair: Replaced | Sampled, odds: float) -> float:
    """E_Q (x - odds)_+."""
    ratios, masses = told(pair)
    return float((masses * np.maximum(ratios - odds, 0.0)).sum())


@pytest.mark.parametrize("pair", SYMMETRIC, ids=repr)
@pytest.mark.parametrize("rate", [1e-3, 0.3])
def test_a_replaced_unit_has_the_worst_of_both_directions(
    pair: Atoms | Ramp | Gaussian, rate: float
) -> None:
    both, one_way = Replaced(pair, rate), Sampled(pair, rate)
    ratios, masses = told(both)
    # both are laws: of two masses that were worked out apart, one is a rest
    assert masses.sum() == pytest.approx(1, abs=1e-12)
    assert (masses * ratios).sum() == pytest.approx(1, abs=1e-12)
    for odds in (1.0, 1.0001, 1.1, 1.5):
        # above 1 the direction of the unit that leaves; below it, by put and call, that of the unit
        # that comes
        up = shown(one_way, odds)
        assert shown(both, odds) == pytest.approx(up, rel=1e-3, abs=1e-15)
        assert shown(both, 1 / odds) == pytest.approx(1 - 1 / odds + up / odds, rel=1e-6)
        # and neither direction is worse anywhere: E_Q' (1/x - t)_+ = E_P (1 - t x)_+ / 1
        assert shown(both, 1 / odds) >= shown(one_way, 1 / odds) - 1e-12


def test_one_gaussian_has_its_closed_form() -> None:
    mu, rate = 2.0, 0.3
    normal = lambda x: math.erfc(-x / math.sqrt(2)) / 2  # noqa: E731
    for epsilon in (0.0, 0.1, 0.5):
        inner = math.log1p(math.expm1(epsilon) / rate)
        whole = normal(mu / 2 - inner / mu) - math.exp(inner) * normal(-mu / 2 - inner / mu)
        assert shown(Replaced(Gaussian(mu), rate), math.exp(epsilon)) == pytest.approx(
            rate * whole, rel=1e-6
        )


# one of four units is sampled, its value of 0 or 1 gets noise, three times
SIZE, POPULATION, USES = 1, 4, 3
RUN = Repeated(
    SampledEvent(
        FixedSample(SIZE, POPULATION),
        AdditiveNoise(
            DiscreteLaplace(1), Distance(Norm.L1, Fraction(1), Relation.REPLACE_ONE), cells=1
        ),
    ),
    USES,
)


def law(data: list[int]) -> np.ndarray:
    """Of the noisy sum of a sample, by all samples; noise beyond 14, below 1e-6, is left out."""
    found, shrinks = np.zeros(30 + SIZE), math.exp(-1)
    samples = list(itertools.combinations(data, SIZE))
    for sample in samples:
        for noise in range(-14, 15):
            found[14 + sum(sample) + noise] += (
                (1 - shrinks) / (1 + shrinks) * shrinks ** abs(noise) / len(samples)
            )
    return found


def neighbours() -> list[tuple[np.ndarray, np.ndarray]]:
    """All pairs of datasets of bits of which one bit differs."""
    found = []
    for ones in range(POPULATION):
        rest = [1] * ones + [0] * (POPULATION - 1 - ones)
        here, there = law([1, *rest]), law([0, *rest])
        found += [(here, there), (there, here)]
    return found


def lost(laws: tuple[tuple[np.ndarray, np.ndarray], ...], epsilon: float) -> float:
    """delta of several answers, of which each may be about other data of the same two units."""
    here = there = np.ones(1)
    for one, other in laws:
        here, there = np.outer(here, one).ravel(), np.outer(there, other).ravel()
    return float(np.maximum(here - math.exp(epsilon) * there, 0.0).sum())


@pytest.mark.parametrize("epsilon", ["0", "0.1", "0.4"])
def test_no_three_questions_about_fixed_samples_show_more(epsilon: str) -> None:
    every, at = neighbours(), float(epsilon)
    worst = max(lost(laws, at) for laws in itertools.combinations_with_replacement(every, USES))
    found = privacy_curve(RUN).delta(epsilon)
    assert worst <= found.upper
    # what is claimed below is shown by one pair of neighbours, three times
    assert (
        found.lower is not None
        and found.lower <= max(lost((laws,) * USES, at) for laws in every) + 3e-6
    )
    # and is near
    assert found.upper <= 1.25 * found.lower


def test_one_direction_alone_would_be_noticed() -> None:
    # as if a unit that is replaced only left: questions of both kinds together show more
    one_way = FixedPlan.of(RUN).one_way
    claimed = curve._Composed(one_way, 1e-4, RUN).delta("0.1").upper
    assert (
        max(lost(laws, 0.1) for laws in itertools.combinations_with_replacement(neighbours(), USES))
        > 1.05 * claimed
    )


def test_a_forgotten_rest_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.accounting.loss.replaced._total_variation", lambda pair: 0.0)
    assert told(Replaced(Gaussian(0.9), 0.3))[1].sum() < 0.9
