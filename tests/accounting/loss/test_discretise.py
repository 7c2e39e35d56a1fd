# SPDX-License-Identifier: Apache-2.0
"""Rounding a pair to a lattice: both laws keep their mass, the rounded pair dominates, atoms
stay.
"""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.accounting.loss import (
    Atoms,
    Gaussian,
    Lattice,
    Pair,
    Ramp,
    Sampled,
    delta_at,
    discretise,
)
from sfumato.accounting.loss.discretise import Span
from tests.accounting.loss import oracle

PAIRS = [
    Atoms.response(0.3, 4),
    Atoms.discrete_laplace(0.11, 3),
    Ramp(0.4, tips=True),
    Ramp(0.4, tips=False),
    Gaussian(0.3),
    Sampled(Gaussian(1.2), 0.05),
    Sampled(Ramp(1.0, tips=True), 0.2),
    Sampled(Atoms.pure(1.0), 0.3),
]
OUTSIDE = 1e-18


def under_p(x: Lattice) -> np.ndarray:
    return x.weights * np.exp(x.log_mass - x.tilt * x.losses)


@pytest.mark.parametrize("pair", PAIRS, ids=str)
@pytest.mark.parametrize("exchanged", [False, True])
@pytest.mark.parametrize("tilt", [0.0, 3.0])
def test_rounding_keeps_the_mass_of_both_laws(pair: Pair, exchanged: bool, tilt: float) -> None:
    x = discretise(pair, 0.013, tilt, outside=OUTSIDE, exchanged=exchanged)
    masses = under_p(x)
    assert masses.sum() == pytest.approx(1, rel=1e-11)
    assert (masses * np.exp(-x.losses)).sum() == pytest.approx(1, rel=1e-11)
    assert x.blur == pytest.approx(0.013**2 / 4) and x.hidden <= 1e-17


CURVES = [
    (Gaussian(0.3), lambda e: float(oracle.gaussian_delta(Fraction("0.09"), e).mid())),
    (Ramp(0.4, tips=True), lambda e: oracle.laplace_delta(0.4, e)),
    (Ramp(0.4, tips=False), lambda e: oracle.bounded_range_delta(0.4, e)),
    (
        Sampled(Gaussian(1.25), 0.05),
        lambda e: float(
            oracle.sampled_gaussian_delta(Fraction("1.25"), Fraction("0.05"), e, added=False).mid()
        ),
    ),
]


@pytest.mark.parametrize(("pair", "truth"), CURVES, ids=lambda each: str(each)[:20])
@given(st.floats(0.001, 0.39), st.floats(0.002, 0.2))
@settings(deadline=None)
def test_a_rounded_pair_dominates(pair: Pair, truth, epsilon: float, step: float) -> None:
    bounds = delta_at(discretise(pair, step, 2.0, outside=OUTSIDE), epsilon)
    assert bounds.lower <= truth(epsilon) <= bounds.upper


@given(st.floats(0.001, 0.05), st.floats(0.002, 0.1))
@settings(deadline=None)
def test_a_rounded_sample_dominates_when_a_unit_is_added(epsilon: float, step: float) -> None:
    pair = Sampled(Gaussian(1.25), 0.05)
    truth = float(
        oracle.sampled_gaussian_delta(Fraction("1.25"), Fraction("0.05"), epsilon, added=True).mid()
    )
    bounds = delta_at(discretise(pair, step, 2.0, outside=OUTSIDE, exchanged=True), epsilon)
    assert bounds.lower <= truth <= bounds.upper


@pytest.mark.parametrize(
    "pair", [Atoms.pure(0.3), Atoms.response(0.3, 7), Atoms.discrete_laplace(0.1, 5)]
)
@pytest.mark.parametrize("parts", [1, 2, 8])
def test_atoms_on_the_lattice_stay_where_they_are(pair: Atoms, parts: int) -> None:
    x = discretise(pair, pair.spacing / parts, 1.5, outside=OUTSIDE)
    losses, masses = pair.atoms()
    assert x.blur == 0
    assert x.losses[x.weights > 0] == pytest.approx(losses)
    assert under_p(x)[x.weights > 0] == pytest.approx(masses * np.exp(losses), rel=1e-12)


@pytest.mark.parametrize(
    "pair", [Sampled(Gaussian(1.2), 0.05), Sampled(Ramp(1.0, tips=True), 0.2)], ids=str
)
def test_inside_and_outside_make_the_whole(pair: Pair) -> None:
    step = 1 / 128
    whole = discretise(pair, step, 1.0, outside=OUTSIDE)
    parts = [
        discretise(pair, step, 1.0, outside=OUTSIDE, span=Span(-0.0625, 0.25, inside=inside))
        for inside in (True, False)
    ]
    total = dict.fromkeys(whole.losses.tolist(), 0.0)
    for part in parts:
        for loss, mass in zip(part.losses.tolist(), under_p(part).tolist(), strict=True):
            total[loss] = total.get(loss, 0.0) + mass
    for loss, mass in zip(whole.losses.tolist(), under_p(whole).tolist(), strict=True):
        assert total[loss] == pytest.approx(mass, rel=1e-9, abs=1e-18)


def broken_share(edges, mean):
    """Rounds down: all of a cell to its lower edge."""
    return np.zeros_like(mean)


def test_the_bound_notices_rounding_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.accounting.loss.pair.Edges.share", broken_share)
    bounds = delta_at(discretise(Gaussian(0.3), 0.05, 2.0, outside=OUTSIDE), 0.2)
    assert bounds.upper < float(oracle.gaussian_delta(Fraction("0.09"), 0.2).mid())


def test_the_bound_notices_a_dropped_tail() -> None:
    # a reach of two standard deviations, and nobody says what is beyond
    epsilon = 0.7
    truth = float(oracle.gaussian_delta(Fraction("0.09"), epsilon).mid())
    honest = discretise(Gaussian(0.3, reached=2.0), 0.01, 2.0, outside=0.1)
    assert delta_at(honest, epsilon).upper >= truth
    assert delta_at(replace(honest, hidden=0.0), epsilon).upper < truth


def test_the_bound_notices_an_atom_off_by_one() -> None:
    pair = Atoms.pure(0.3)
    right = discretise(pair, 0.01, 1.0, outside=OUTSIDE)
    truth = (math.exp(0.3) - math.exp(0.1)) / (1 + math.exp(0.3))
    assert truth in delta_at(right, 0.1)
    assert truth not in delta_at(replace(right, start=right.start - 1), 0.1)
    assert truth not in delta_at(replace(right, start=right.start + 1), 0.1)
