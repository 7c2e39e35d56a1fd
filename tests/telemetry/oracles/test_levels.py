# SPDX-License-Identifier: Apache-2.0
"""The oracle of a distribution: its level is public, and its cost that of the dearest part."""

from fractions import Fraction

import numpy as np
import pytest

from sfumato.accounting import account
from sfumato.errors import InvalidDeclaration
from sfumato.telemetry.oracles.bit import BitOracle
from sfumato.telemetry.oracles.category import category
from sfumato.telemetry.oracles.form import oracle_from_json, oracle_to_json
from sfumato.telemetry.oracles.levels import LevelsOracle, levels, sizes
from sfumato.testing import Replay, assert_counts_follow
from tests.telemetry.oracles.test_choice import law

WHOLE = 1 << 64


def small():
    """Eight numbers in two levels, each by k-ary randomised response."""
    return LevelsOracle(8, 4, (category(8, 1), category(2, 1)))


def test_numbers_of_one_node_have_the_same_reports_at_its_level():
    laws = [law(small(), value) for value in range(8)]
    for report, chance in laws[5].items():
        if report[0] == 1:
            assert laws[6][report] == chance


@pytest.mark.parametrize("values", [2, 5, 64, 1000, 5000])
@pytest.mark.parametrize("epsilon", ["0.5", 1, 4])
def test_levels_cover_the_numbers_and_cost_what_was_asked(values, epsilon):
    oracle = levels(values, epsilon)
    nodes = [part.values for part in oracle.parts]
    assert nodes == sizes(values, 4) and nodes[0] == values and nodes[-1] <= 4
    assert account(oracle.event).epsilon <= Fraction(epsilon)
    assert oracle_from_json(oracle_to_json(oracle)) == oracle
    assert sum(oracle.event.weights) == WHOLE
    assert isinstance(oracle.parts[0], BitOracle) == (values > 2048)


def test_reports_of_many_devices_have_the_law_of_one():
    oracle = small()
    payloads = oracle.encode_many(np.full(40_000, 3), Replay(6))
    assert oracle.valid(payloads).all()
    codes = payloads[:, 0] * 8 + payloads[:, 1]
    counts = np.bincount(codes, minlength=16)
    chances, wrong = np.zeros(16), np.zeros(16)
    for report, chance in law(oracle, 3).items():
        chances[report[0] * 8 + report[1]] = float(chance)
    for report, chance in law(oracle, 6).items():
        wrong[report[0] * 8 + report[1]] = float(chance)
    kept = chances > 0
    assert counts[~kept].sum() == 0
    assert_counts_follow(counts[kept], chances[kept], notices=wrong[kept])


def test_tallies_add_up_and_split_by_level():
    oracle = levels(100, 1)
    payloads = oracle.encode_many(np.arange(900) % 100, Replay(1))
    parts = oracle.tally(payloads[:300]) + oracle.tally(payloads[300:])
    assert parts.tolist() == oracle.tally(payloads).tolist()
    split = oracle.split(parts)
    assert sum(reports for reports, _ in split) == 900
    assert [len(support) for _, support in split] == [100, 25, 7, 2]


def test_what_is_no_report_is_not_valid():
    oracle = levels(100, 1)
    good = oracle.encode_many(np.zeros(50, np.int64), Replay(1))
    high = good[good[:, 0] == 3][:1].copy()
    padded = high.copy()
    padded[0, -1] = 1
    level = high.copy()
    level[0, 0] = 4
    assert oracle.valid(np.concatenate((high, padded, level))).tolist() == [True, False, False]


@pytest.mark.parametrize(
    "make",
    [
        lambda: LevelsOracle(8, 4, (category(8, 1),)),
        lambda: LevelsOracle(8, 4, (category(8, 1), category(3, 1))),
        lambda: LevelsOracle(8, 1, (category(8, 1),)),
        lambda: LevelsOracle(8, 4, (category(8, 1), small())),
        lambda: levels(1, 1),
        lambda: levels(1 << 25, 1),
    ],
)
def test_parts_that_are_no_levels_are_refused(make):
    with pytest.raises(InvalidDeclaration):
        make()
