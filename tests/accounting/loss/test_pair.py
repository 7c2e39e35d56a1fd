# SPDX-License-Identifier: Apache-2.0
"""Dominating pairs against closed forms, enumeration and 200-bit integrals."""

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

from sfumato.accounting.loss import Atoms, Gaussian, Ramp, Sampled
from sfumato.accounting.loss import pair as pairs
from sfumato.accounting.loss.edges import Edges
from sfumato.errors import InvalidNumber
from tests.accounting.loss import oracle


def edges(losses: np.ndarray) -> Edges:
    ratio = np.exp(losses)
    return Edges(ratio, np.expm1(losses), ratio[:-1] * np.expm1(np.diff(losses)))


def delta(pair, epsilon: float) -> float:
    """By the atoms and very fine cells: (1 - e^(epsilon - l))_+ under P."""
    losses, masses = pair.atoms()
    total = float((masses * np.maximum(np.exp(losses) - math.exp(epsilon), 0.0)).sum())
    if pair.continuous:
        reach = pair.reach(1e-30)
        points = np.linspace(reach.lower - 0.01, reach.upper + 0.01, 200_001)
        mass, share = pair.cells(edges(points))
        mean = np.exp(points[:-1]) + share * np.diff(np.exp(points))
        total += float((mass * np.maximum(mean - math.exp(epsilon), 0.0)).sum())
    return total


@pytest.mark.parametrize("epsilon", [1e-6, 0.3, 2.0, 30.0])
def test_a_pure_loss_is_dominated_by_two_atoms(epsilon: float) -> None:
    losses, masses = Atoms.pure(epsilon).atoms()
    assert masses.sum() == pytest.approx(1, rel=1e-15)
    assert (masses * np.exp(losses)).sum() == pytest.approx(1, rel=1e-14)
    # Kairouz, Oh, Viswanath (2015): (e^own - e^at) / (1 + e^own)
    at = epsilon / 3
    worst = (math.exp(epsilon) - math.exp(at)) / (1 + math.exp(epsilon))
    assert delta(Atoms.pure(epsilon), at) == pytest.approx(worst, rel=1e-12)


@given(st.fractions(Fraction(1, 100), 8), st.integers(2, 50))
def test_a_response_has_three_atoms(epsilon: Fraction, categories: int) -> None:
    losses, masses = Atoms.response(float(epsilon), categories).atoms()
    law = oracle.response_law(epsilon, categories)
    for loss, mass in zip(losses.tolist(), masses.tolist(), strict=True):
        index = round(loss / float(epsilon))
        # the masses are those of Q: those of P, mirrored
        assert mass == pytest.approx(float(law[-index].mid()), rel=1e-13)


@given(st.fractions(Fraction(1, 2), 20), st.integers(1, 8), st.integers(1, 8))
def test_laplace_noise_on_integers_dominates_its_parts(
    scale: Fraction, one: int, other: int
) -> None:
    # two cells that move by one and by other, against one cell that moves by both
    first, second = (oracle.discrete_laplace_law(scale, shift) for shift in (one, other))
    with ctx.workprec(oracle.BITS):
        unit = 1 / oracle.number(scale)
        both: dict[int, arb] = {}
        for a, p in first.items():
            for b, q in second.items():
                both[a + b] = both.get(a + b, arb(0)) + p * q
    whole = Atoms.discrete_laplace(float(1 / scale), one + other)
    for index in range(-one - other, one + other + 1):
        at = index * float(1 / scale)
        assert float(oracle.delta_of(both, unit, at).mid()) <= delta(whole, at) + 1e-12


@given(st.fractions(Fraction(1, 2), 20), st.integers(1, 12))
def test_the_atoms_of_integer_laplace_are_those_of_a_sum_over_outputs(
    scale: Fraction, shift: int
) -> None:
    losses, masses = Atoms.discrete_laplace(float(1 / scale), shift).atoms()
    law = oracle.discrete_laplace_law(scale, shift)
    assert masses.sum() == pytest.approx(1, rel=1e-13)
    for loss, mass in zip(losses.tolist(), masses.tolist(), strict=True):
        assert mass == pytest.approx(float(law[-round(loss * float(scale))].mid()), rel=1e-12)


@pytest.mark.parametrize("variance", [0.3, 4.0, 100.0])
@pytest.mark.parametrize("shift", [1, 2, 3])
def test_the_atoms_of_the_discrete_gaussian_keep_both_laws(variance: float, shift: int) -> None:
    if shift / math.sqrt(variance) > 3:
        return
    losses, masses = Atoms.discrete_gaussian(variance, shift).atoms()
    assert masses.sum() == pytest.approx(1, rel=1e-13)
    assert (masses * np.exp(losses)).sum() == pytest.approx(1, rel=1e-12)
    # KL = shift^2 / (2 sigma^2), as for the continuous law (Canonne, Kamath, Steinke 2020)
    assert (masses * np.exp(losses) * losses).sum() == pytest.approx(
        shift**2 / (2 * variance), rel=1e-11
    )


@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 4.0])
def test_a_ramp_is_laplace_noise_with_its_atoms_and_a_bounded_range_without(epsilon: float) -> None:
    for part in (-0.9, -0.2, 0.0, 0.4, 0.95):
        at = part * epsilon
        assert delta(Ramp(epsilon, tips=True), at) == pytest.approx(
            oracle.laplace_delta(epsilon, at), rel=1e-6
        )
        assert delta(Ramp(epsilon, tips=False), at) == pytest.approx(
            oracle.bounded_range_delta(epsilon, at), rel=1e-6
        )


@pytest.mark.parametrize("mu", [1e-3, 0.1, 1.0, 6.0, 20.0])
def test_the_cells_of_a_gaussian_hold_its_mass_and_mean(
    mu: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = np.concatenate(
        [[-12.5], np.linspace(-8, -2, 7), np.linspace(-1, 1 + mu, 40), [mu + 6, mu + 12]]
    )
    losses = mu * points - mu**2 / 2
    losses = losses[losses > -600]
    given = edges(losses)
    mass, share = Gaussian(mu).cells(given)
    monkeypatch.setattr(oracle, "BITS", 1500)
    with ctx.workprec(1500):
        for cell in range(len(mass)):
            low, high = (oracle.number(given.ratio[cell + side].item()) for side in (0, 1))
            low, high = (
                each.log() / oracle.number(mu) + oracle.number(mu) / 2 for each in (low, high)
            )
            under_q = oracle.normal_tail(low) - oracle.normal_tail(high)
            under_p = oracle.normal_tail(low - oracle.number(mu)) - oracle.normal_tail(
                high - oracle.number(mu)
            )
            wanted = (under_p / under_q - oracle.number(given.ratio[cell].item())) / oracle.number(
                given.gap[cell].item()
            )
            assert mass[cell] == pytest.approx(float(under_q.mid()), rel=1e-10)
            assert share[cell] == pytest.approx(float(wanted.mid()), rel=1e-9, abs=1e-11)


@pytest.mark.parametrize(
    "pair", [Atoms.response(0.7, 5), Ramp(0.5, tips=True), Ramp(2.0, tips=False), Gaussian(1.5)]
)
def test_a_sample_keeps_the_masses_and_moves_the_ratios(pair) -> None:
    rate = 0.03
    for inner in (-0.3, 0.01, 0.2, 0.45):
        # delta of the mixture at ln(1 + rate (e^inner - 1)) is rate times that of the pair at inner
        at = math.log1p(rate * math.expm1(inner))
        assert delta(Sampled(pair, rate), at) == pytest.approx(
            rate * delta(pair, inner), rel=1e-5, abs=1e-12
        )


@pytest.mark.parametrize("mu", [Fraction(1, 2), Fraction(5, 3)])
def test_a_step_of_sgd_has_its_closed_form(mu: Fraction) -> None:
    pair = Sampled(Gaussian(float(mu)), 0.01)
    for epsilon in (0.001, 0.1, 1.0, 4.0):
        exact = oracle.sampled_gaussian_delta(mu, Fraction(1, 100), epsilon, added=False)
        assert delta(pair, epsilon) == pytest.approx(float(exact.mid()), rel=1e-4)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Gaussian(0.0),
        lambda: Gaussian(-1.0),
        lambda: Gaussian(math.nan),
        lambda: Gaussian(21.0),
        lambda: Ramp(0.0, tips=True),
        lambda: Ramp(301.0, tips=False),
        lambda: Atoms.pure(math.inf),
        lambda: Atoms.discrete_laplace(1.0, 400),
        lambda: Atoms((), (), 1.0),
        lambda: Sampled(Gaussian(1.0), 0.0),
        lambda: Sampled(Gaussian(1.0), 1.0),
    ],
)
def test_a_pair_cannot_be_built_wrong(make) -> None:
    with pytest.raises(InvalidNumber):
        make()


def test_the_masses_notice_an_atom_in_the_wrong_place(monkeypatch: pytest.MonkeyPatch) -> None:
    right = pairs.Atoms.response
    wrong = right(0.5, 4)
    broken = Atoms(wrong.losses[::-1], wrong.masses, wrong.spacing)
    losses, masses = broken.atoms()
    assert (masses * np.exp(losses)).sum() != pytest.approx(1, rel=1e-3)
