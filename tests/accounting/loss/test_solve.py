# SPDX-License-Identifier: Apache-2.0
"""Brackets of epsilon and delta: exact small sums, the bell's inequality, mutants."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.accounting.loss import (
    Atoms,
    Gaussian,
    Lattice,
    delta_at,
    discretise,
    epsilon_at,
    power,
    solve,
)
from tests.accounting.loss import oracle

OUTSIDE = 1e-25


def plain(masses: dict[int, float], step: float, tilt: float = 1.0) -> Lattice:
    """The given masses under P at whole steps, exactly."""
    first, last = min(masses), max(masses)
    index = np.arange(first, last + 1)
    weights = np.array([masses.get(place, 0.0) for place in index]) * np.exp(tilt * index * step)
    return Lattice(step, first, weights, tilt, 0.0, 0.0, 0.0, 1e-15, 0.0)


@given(
    st.dictionaries(st.integers(-20, 20), st.fractions(0, 1), min_size=2).filter(
        lambda law: sum(law.values()) > 0
    ),
    st.fractions(0, 2),
    st.floats(0, 4),
)
@settings(deadline=None)
def test_delta_lies_between_its_bounds(
    law: dict[int, Fraction], epsilon: Fraction, tilt: float
) -> None:
    total = sum(law.values())
    exact = {index: mass / total for index, mass in law.items()}
    x = plain({index: float(mass) for index, mass in exact.items()}, 0.125, tilt)
    bounds = delta_at(x, float(epsilon))
    balls = {index: oracle.number(mass) for index, mass in exact.items()}
    truth = float(oracle.delta_of(balls, oracle.number(Fraction(1, 8)), float(epsilon)).mid())
    assert bounds.lower <= truth + 1e-300 and truth <= bounds.upper
    assert bounds.width <= 1e-11


@pytest.mark.parametrize("times", [1, 10, 1000, 10**6])
@pytest.mark.parametrize("delta", ["1e-3", "1e-6", "1e-9", "1e-12", "1e-15"])
def test_epsilon_lies_between_its_bounds(times: int, delta: str) -> None:
    mu = 1 / math.sqrt(times)
    x = power(discretise(Gaussian(mu), mu / 32, 4.0, outside=OUTSIDE), times, 1e-4)
    bounds = epsilon_at(x, float(delta))
    total = times * Fraction(mu) ** 2
    assert oracle.gaussian_delta(total, bounds.upper) <= oracle.number(delta)
    assert bounds.lower == 0 or oracle.gaussian_delta(total, bounds.lower) >= oracle.number(delta)


def test_an_epsilon_that_no_lattice_proves_is_infinite() -> None:
    x = replace(discretise(Atoms.pure(1.0), 1.0, 1.0, outside=OUTSIDE), hidden=0.01)
    assert epsilon_at(x, 0.001).upper == math.inf
    assert epsilon_at(x, 0.1).upper < 1


def test_a_large_delta_needs_no_epsilon() -> None:
    bounds = epsilon_at(discretise(Atoms.pure(0.1), 0.1, 1.0, outside=OUTSIDE), 0.5)
    assert (bounds.lower, bounds.upper) == (0, 0) or bounds.upper <= 1e-12


def test_epsilon_falls_as_delta_grows() -> None:
    x = power(discretise(Gaussian(0.1), 0.01, 3.0, outside=OUTSIDE), 100, 1e-3)
    found = [epsilon_at(x, 10.0**-power_of_ten) for power_of_ten in range(2, 14)]
    assert all(
        one.upper <= other.upper and one.lower <= other.lower for one, other in pairwise(found)
    )


def scarf(t: arb) -> arb:
    """No mean of (M - t)_+ is larger, M of mean 0 and variance 1 at most."""
    return ((1 + t * t).sqrt() - t) / 2


def chernoff(t: arb, rate: arb) -> arb:
    """The same for M of mean 0 and variance proxy 1, for any rate > 0."""
    return (rate * rate / 2 - rate * t).exp() / (rate * arb(1).exp())


def covered(tau: arb, eta: arb, height: float) -> bool:
    """The inequality of solve.proof.md for all of an interval of tau and of eta, in interval
    arithmetic.
    """
    bell = (
        arb(height)
        * (-(tau * tau + 1 + tau * eta + eta + eta * eta / 4) / (2 * arb(solve._BELL))).exp()
    )
    t = tau - eta / 2
    middle = arb(float(t.mid()))
    rate = (middle + (middle * middle + 4).sqrt()) / 2
    return bool(bell >= scarf(t)) or bool(bell >= chernoff(t, arb(float(rate.mid()))))


def test_the_bell_covers_what_rounding_adds() -> None:
    # all widths up to 1/4 and all distances up to 6, box by box; beyond, solve.proof.md
    with ctx.workprec(60):
        for low, high in pairwise(np.linspace(0, 0.25, 126)):
            eta = arb((low + high) / 2, (high - low) / 2)
            # heights grow with the width: the one at the lower end is the least of the box
            height = solve._height(low)
            assert all(
                covered(arb((a + b) / 2, (b - a) / 2), eta, height)
                for a, b in pairwise(np.linspace(0, 6, 301))
            )


@given(st.floats(0, 6), st.floats(0, 0.25))
def test_the_bell_is_as_high_as_stated_at_every_point(tau: float, eta: float) -> None:
    with ctx.workprec(80):
        assert covered(arb(tau), arb(eta), solve._height(eta) / 1.019)


@given(st.integers(1, 12), st.floats(0.001, 0.06), st.floats(-1, 1), st.floats(0, 1))
@settings(deadline=None)
def test_what_fair_rounding_adds_is_below_the_bell(
    times: int, step: float, distance: float, place: float
) -> None:
    # times roundings of a loss at `place` in its cell, enumerated
    fair = math.exp(place * step)
    chance = (1 - fair) / (math.exp(-(1 - place) * step) - fair) if place < 1 else 1.0
    assert 0 <= chance <= 1
    blur = times * step**2 / 4
    width = math.sqrt(blur)
    t = 3 * distance * width
    added = bell = 0.0
    for ups in range(times + 1):
        mass = math.comb(times, ups) * chance**ups * (1 - chance) ** (times - ups)
        noise = ups * (1 - place) * step - (times - ups) * place * step
        added += mass * max(-math.expm1(-t - noise), 0.0)
        bell += (
            mass
            * solve._height(width)
            * width
            * math.exp(-((t + noise) ** 2) / (2 * solve._BELL * blur))
        )
    added -= max(-math.expm1(-t), 0.0)
    assert added <= bell + 1e-12


def test_the_lower_bound_notices_a_missing_bell(monkeypatch: pytest.MonkeyPatch) -> None:
    x = discretise(Gaussian(0.3), 0.05, 2.0, outside=OUTSIDE)
    truth = float(oracle.gaussian_delta(Fraction("0.09"), 0.225).mid())
    assert truth in delta_at(x, 0.225)
    monkeypatch.setattr(solve, "_height", lambda width: 0.0)
    assert delta_at(x, 0.225).lower > truth


def test_a_blur_too_wide_claims_nothing_below() -> None:
    x = replace(discretise(Gaussian(0.3), 0.05, 2.0, outside=OUTSIDE), blur=0.1)
    assert delta_at(x, 0.225).lower == 0


@pytest.mark.parametrize("step", [0.5, 1.0])
def test_a_wide_rounding_has_both_ends(step: float) -> None:
    # mu^2 = 400: an epsilon of about 300, read from a lattice whose blur is far beyond a bell's
    x = power(discretise(Gaussian(2.0), step, 0.3, outside=1e-30), 100, 0.0)
    assert x.blur > 1
    for epsilon in (250.0, 320.0):
        found, truth = (
            delta_at(x, epsilon),
            float(oracle.gaussian_delta(Fraction(400), epsilon).mid()),
        )
        assert found.lower <= truth <= found.upper
    both = epsilon_at(x, 1e-9)
    assert oracle.gaussian_delta(Fraction(400), both.upper) <= oracle.number("1e-9")
    assert both.lower > 200 and oracle.gaussian_delta(Fraction(400), both.lower) >= oracle.number(
        "1e-9"
    )


def test_a_wide_rounding_taken_for_nothing_would_be_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x = power(discretise(Gaussian(2.0), 2.0, 0.3, outside=1e-30), 100, 0.0)
    monkeypatch.setattr(
        solve._Reading, "_far_lower", lambda self, epsilon: 0.999 * self.upper(epsilon)
    )
    lower = epsilon_at(x, 1e-9).lower
    assert oracle.gaussian_delta(Fraction(400), lower) < oracle.number("1e-9")
