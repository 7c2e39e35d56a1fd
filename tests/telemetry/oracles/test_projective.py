# SPDX-License-Identifier: Apache-2.0
"""Projective-geometry response: every point in exact fractions, and its variance."""

import math
from dataclasses import replace

import numpy as np
import pytest

from sfumato.accounting import account
from sfumato.errors import InvalidDeclaration
from sfumato.telemetry.choose import spread
from sfumato.telemetry.oracles.projective import ProjectiveOracle, projective
from sfumato.testing import Replay
from tests.contracts.oracles import OracleContract, check_law, law_of_one_word, swap

WHOLE = 1 << 64


class TestProjective(OracleContract):
    def make(self, values, epsilon):
        return projective(values, epsilon)

    def swapped(self, oracle):
        return swap(oracle, "near", "far")


def test_a_point_has_exactly_the_stated_weights():
    oracle = projective(8, "0.5")
    assert (oracle.prime, oracle.dimension) == (3, 3)
    law = law_of_one_word(oracle, 4)
    weights = sorted(chance * WHOLE for chance in law.values())
    assert weights == [oracle.far] * 9 + [oracle.near] * 4


def test_hyperplanes_meet_as_often_as_stated():
    oracle = projective(13, "0.5")
    check_law(oracle, [law_of_one_word(oracle, value) for value in range(13)])


def mutated(**methods):
    """A projective oracle with some methods exchanged, of the weights of a good one."""
    good = projective(8, "0.5")
    kind = type("Mutant", (ProjectiveOracle,), {"__slots__": (), **methods})
    return kind(8, good.prime, good.dimension, good.near, good.far)


def one_word_more(self, value, word):
    return ProjectiveOracle._point(self, value, max(word - 1, 0))


def neighbours(self, value, word):
    return ProjectiveOracle._point(self, (value + 1) % 8, word)


@pytest.mark.parametrize("wrong", [one_word_more, neighbours])
def test_a_law_that_is_not_the_stated_one_is_noticed(wrong):
    bad = mutated(_point=wrong)
    with pytest.raises(AssertionError):
        check_law(bad, [law_of_one_word(bad, value) for value in range(8)])


def test_a_weight_that_is_rounded_the_wrong_way_costs_too_much():
    good = projective(8, "0.5")
    step = (good.space.on_plane, good.prime ** (good.dimension - 1))
    bad = replace(good, far=good.far - step[0], near=good.near + step[1])
    assert account(good.event).epsilon <= 0.5 < account(bad.event).epsilon


@pytest.mark.parametrize(
    ("epsilon", "values"),
    [(e, k) for e in (0.5, 1, 2) for k in (8, 100, 1024, 5000, 65_536, 300_000, 1 << 20)]
    + [(4, k) for k in (200, 1024, 65_536)],
)
def test_the_variance_is_hardly_more_than_that_of_unary_encoding(epsilon, values):
    unary = 4 * math.exp(epsilon) / (math.exp(epsilon) - 1) ** 2
    assert spread(projective(values, epsilon)) <= 1.03 * unary


def test_the_variance_is_that_of_the_paper():
    # Feldman, Nelson, Nguyen, Talwar 2022: measured in real arithmetic by the research prototype
    assert round(spread(projective(1024, 1)), 3) == 3.761
    assert round(spread(projective(65_536, 2)), 4) == 0.7319


def test_many_are_encoded_as_one_is():
    oracle = projective(1000, 1)
    values = np.arange(1000) % 1000
    buffer = np.empty(8000, np.uint8)
    Replay(5).fill(buffer)
    many = oracle.encode_many(values, Replay(5))
    words = zip(values.tolist(), buffer.view("<u8").tolist(), strict=True)
    assert many.tobytes() == b"".join(oracle.encode(value, [word]) for value, word in words)


def test_what_is_no_point_is_no_report():
    oracle = projective(1000, 1)
    assert oracle.space.points == 1093
    rows = np.array([[4, 68], [4, 69]], np.uint8)
    assert oracle.valid(rows).tolist() == [True, False]


def test_a_space_that_is_too_small_is_refused():
    good = projective(1000, 1)
    with pytest.raises(InvalidDeclaration):
        replace(good, values=1094)
