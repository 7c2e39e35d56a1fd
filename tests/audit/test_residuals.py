# SPDX-License-Identifier: Apache-2.0
"""Residuals notice noise that is not the stated one, and accuse right noise as rarely as stated."""

import importlib
import math

import numpy as np
import pytest

from sfumato.audit import Verdict, residuals
from sfumato.errors import InvalidDeclaration, InvalidNumber
from sfumato.noise import DiscreteGaussian, DiscreteLaplace, Skellam
from sfumato.testing import Replay, assert_at_most

RESIDUALS = importlib.import_module("sfumato.audit.residuals")


def normal(seed, count, sigma=2.0):
    return np.random.default_rng(seed).normal(0, sigma, count)


@pytest.mark.parametrize(("ratio", "count"), [(0.85, 2_000), (0.95, 20_000), (0.975, 120_000)])
def test_noise_that_is_too_small_is_noticed(ratio, count):
    wrong = residuals(normal(1, count, 2 * ratio), sigma=2)
    assert wrong.verdict is Verdict.VIOLATED and wrong.spread[0] < ratio < wrong.spread[1] < 1
    right = residuals(normal(2, count), sigma=2)
    assert right.verdict is Verdict.UNDECIDED and right.spread[0] < 1 < right.spread[1]


@pytest.mark.parametrize(
    ("law", "wrong"),
    [
        (DiscreteLaplace(5), DiscreteLaplace(4)),
        (DiscreteGaussian(3), DiscreteGaussian("2.5")),
        (DiscreteLaplace(1), DiscreteLaplace("1.3")),
        (Skellam(10), Skellam(7)),
    ],
)
def test_laws_on_the_integers(law, wrong):
    right = residuals(law.sample(4000, Replay(1)), law=law)
    assert right.verdict is Verdict.UNDECIDED and right.spread[0] < 1 < right.spread[1]
    assert residuals(wrong.sample(4000, Replay(1)), law=law).verdict is Verdict.VIOLATED


def test_a_wide_law_takes_no_more_buckets():
    law = DiscreteLaplace(10**5)
    assert residuals(law.sample(4000, Replay(1)), law=law).verdict is Verdict.UNDECIDED
    halved = DiscreteLaplace(7 * 10**4).sample(4000, Replay(1))
    assert residuals(halved, law=law).verdict is Verdict.VIOLATED


@pytest.mark.parametrize("lag", ["neighbours", "halves"])
def test_reused_noise_is_noticed(lag):
    law = DiscreteLaplace(5)
    draws = law.sample(400, Replay(3))
    twice = np.repeat(draws, 2) if lag == "neighbours" else np.tile(draws, 2)
    result = residuals(twice, law=law)
    assert result.verdict is Verdict.VIOLATED and "repeats" in result.sentence
    exact = normal(4, 400)
    twice = np.repeat(exact, 2) if lag == "neighbours" else np.tile(exact, 2)
    assert "repeats" in residuals(twice, sigma=2).sentence


def test_noise_of_another_shape_is_noticed():
    # the right variance, but uniform
    flat = np.random.default_rng(5).uniform(-1, 1, 4000) * 2 * math.sqrt(3)
    assert "cells" in residuals(flat, sigma=2).sentence
    shifted = residuals(normal(6, 4000) + 1, sigma=2)
    assert shifted.verdict is Verdict.VIOLATED and "cells" in shifted.sentence


def test_noise_that_follows_itself_is_noticed():
    steps = normal(7, 2001)
    moving = (steps[1:] + steps[:-1]) / math.sqrt(2)
    result = residuals(moving, sigma=2)
    assert result.verdict is Verdict.VIOLATED and "order" in result.sentence


def test_numbers_on_a_fine_lattice_are_no_repeats():
    lattice = np.rint(normal(8, 3000) * 100) / 100
    assert len(np.unique(lattice)) < 1500
    assert residuals(lattice, sigma=2).verdict is Verdict.UNDECIDED


def accusations(run, runs=200):
    """In how many runs each test is at most 5%."""
    totals = dict.fromkeys(("spread", "cells", "repeats", "order"), 0)
    for seed in range(runs):
        for name, p in run(seed).p_values.items():
            totals[name] += p <= 0.05
    return totals


def test_right_normal_noise_is_rarely_accused():
    totals = accusations(lambda seed: residuals(normal(seed, 200), sigma=2))
    for count in totals.values():
        assert_at_most(count, 200, 0.05, notices=0.51)


def test_right_noise_is_accused_as_rarely_as_stated():
    law = DiscreteLaplace(2)
    draws = law.sample((60, 200), Replay(11))
    totals = accusations(lambda seed: residuals(draws[seed], law=law), runs=60)
    for count in totals.values():
        assert_at_most(count, 60, 0.05, notices=0.9)


def test_mutant_of_one_direction(monkeypatch):
    # a test that looks for too much noise alone passes a halved one
    monkeypatch.setattr(RESIDUALS, "_both", lambda below, above: above)
    halved = residuals(normal(9, 2000, 1.0), sigma=2)
    assert halved.p_values["spread"] == 1.0


def test_mutant_of_cells_that_are_not_paid_for(monkeypatch):
    honest = accusations(lambda seed: residuals(normal(seed, 200), sigma=2))["cells"]
    single = RESIDUALS._cells

    def unpaid(counts, least, most, total):
        return single(counts, least, most, total) / (2 * len(counts))

    monkeypatch.setattr(RESIDUALS, "_cells", unpaid)
    assert accusations(lambda seed: residuals(normal(seed, 200), sigma=2))["cells"] > 100 > honest


def test_bad_input_is_refused():
    values = normal(10, 100)
    for arguments in ({}, {"sigma": 1, "law": DiscreteLaplace(1)}):
        with pytest.raises(InvalidDeclaration):
            residuals(values, **arguments)
    with pytest.raises(InvalidDeclaration):
        residuals(values, law=DiscreteLaplace(1))
    with pytest.raises(InvalidDeclaration):
        residuals([*values, math.nan], sigma=1)
    with pytest.raises(InvalidDeclaration):
        residuals(values.reshape(10, 10), sigma=1)
    with pytest.raises(InvalidNumber):
        residuals(values[:19], sigma=1)
    for sigma in (0, -1, math.nan):
        with pytest.raises(InvalidNumber):
            residuals(values, sigma=sigma)
