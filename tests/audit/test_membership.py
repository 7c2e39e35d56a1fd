# SPDX-License-Identifier: Apache-2.0
"""The likelihood ratio attack finds members of a leaky training, and no members of a private one."""

import importlib
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ndtr

from sfumato.audit import Verdict, membership
from sfumato.errors import InvalidDeclaration, InvalidNumber
from sfumato.privacy import GaussianDP, PureDP

MEMBERSHIP = importlib.import_module("sfumato.audit.membership")
ROWS = 1000


def leaky(shift, seed=1):
    """A training whose score of a row is higher if it is included, by ``shift`` deviations."""
    generator = np.random.default_rng(seed)
    hardness = generator.normal(size=ROWS) * 5
    return lambda included: hardness + shift * included + generator.normal(size=ROWS)


def test_a_leaky_training_is_found_and_a_private_one_is_not():
    found = membership(leaky(4), rows=ROWS, claim=PureDP(1), shadows=16)
    assert found.verdict is Verdict.VIOLATED and "VIOLATED" in found.sentence
    # rows that are hard for everybody are no members: the ratio compares a row with itself
    assert found.found("0.01") > 0.6
    private = membership(leaky(0.5), rows=ROWS, claim=GaussianDP("0.25"), shadows=16)
    assert private.verdict is Verdict.UNDECIDED and private.found("0.01") < 0.1


def test_the_share_found_is_that_of_the_best_test():
    # N(shift, 1) against N(0, 1): Phi(shift - 1.645) at 5% false alarms
    found = membership(leaky(2), rows=ROWS, claim=PureDP(1), shadows=64).found("0.05")
    assert abs(found - ndtr(2 - 1.645)) < 0.1


def test_ratios_are_those_of_normal_laws():
    shadows = np.array([[0.0, 9.0], [1.0, 9.0], [4.0, 9.0], [5.0, 9.0]])
    coins = np.array([[False, True], [False, True], [True, True], [True, True]])
    ratios = MEMBERSHIP._ratios(shadows, coins, np.array([4.5, 1.0]))
    # means 0.5 and 4.5, spread 0.5
    assert math.isclose(ratios[0], 4.0**2 / (2 * 0.5**2)) and ratios[1] == 0


def test_the_attacked_run_takes_no_part_in_the_shadows(monkeypatch):
    runs = []

    def fit(included):
        runs.append(included)
        return included.astype(float)

    result = membership(fit, rows=50, claim=PureDP(1), shadows=8)
    assert len(runs) == 9 and (result.included == runs[-1]).all()
    seen = []
    monkeypatch.setattr(
        MEMBERSHIP, "_ratios", lambda scores, coins, last: seen.append((scores, coins)) or last
    )
    membership(fit, rows=50, claim=PureDP(1), shadows=8)
    assert len(seen[0][0]) == len(seen[0][1]) == 8
    assert not any((coins == runs[-1]).all() for coins in seen[0][1])


def test_mutant_that_looks_at_the_attacked_run(monkeypatch):
    # a private training is accused if the coins of the attacked run leak into the attack
    honest = MEMBERSHIP._ratios
    coins_of = np.random.default_rng(1).random((17, ROWS)) < 0.5
    monkeypatch.setattr(
        MEMBERSHIP,
        "_ratios",
        lambda shadows, coins, last: honest(shadows, coins, last) + 9 * coins_of[-1],
    )
    result = membership(leaky(0), rows=ROWS, claim=PureDP(1), shadows=16)
    assert result.verdict is Verdict.VIOLATED


def test_bad_input_is_refused():
    fit = leaky(1)
    for arguments in ({"rows": 9}, {"rows": ROWS, "shadows": 7}, {"rows": True}):
        with pytest.raises(InvalidNumber):
            membership(fit, claim=PureDP(1), **arguments)
    for scores in ([1.0], np.full(ROWS, math.nan), ["a"] * ROWS):
        with pytest.raises(InvalidDeclaration):
            membership(lambda included, scores=scores: scores, rows=ROWS, claim=PureDP(1))
    result = membership(fit, rows=ROWS, claim=PureDP(1), shadows=8)
    with pytest.raises(InvalidNumber):
        result.found(Fraction(3, 2))
    done = []
    membership(fit, rows=ROWS, claim=PureDP(1), shadows=8, progress=lambda *run: done.append(run))
    assert done[-1] == (9, 9)
