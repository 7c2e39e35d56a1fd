# SPDX-License-Identifier: Apache-2.0
"""Simulated sums have the law of real ones, for as many devices as there are people."""

import math
import time

import numpy as np
import pytest

from sfumato.errors import UnknownName, WrongUse
from sfumato.telemetry import report_task, simulate
from sfumato.telemetry.oracles import bit, category, hashed, projective, unary
from sfumato.telemetry.simulate import successes
from sfumato.testing import Replay, assert_counts_follow

VALUES = [f"v{number}" for number in range(7)]
MAKERS = [category, projective, bit, hashed, unary]
WHOLE = 1 << 64


def task(maker, values=8, epsilon=1, **fields):
    usual = {"oracle": maker(values, epsilon), "start": 0, "periods": 2}
    return report_task("t", "?", [f"v{n}" for n in range(values - 1)], **(usual | fields))


@pytest.mark.parametrize("maker", MAKERS)
def test_simulated_sums_have_the_law_of_the_sums_of_reports(maker):
    oracle = task(maker).oracle
    sums = simulate(task(maker), {"v2": 30_000, "v5": 10_000}, entropy=Replay(2))
    support = oracle.support(sums._tally, 40_000)
    for value, holders in ((0, 0), (2, 30_000), (5, 10_000), (7, 0)):
        share = holders / 40_000
        chance = share * float(oracle.own) + (1 - share) * float(oracle.other)
        wrong = 0.8 * chance
        count = int(support[value])
        assert_counts_follow(
            [count, 40_000 - count], [chance, 1 - chance], notices=[wrong, 1 - wrong]
        )


@pytest.mark.parametrize("maker", MAKERS)
def test_estimates_are_unbiased_and_their_variance_is_the_stated_one(maker):
    asked = task(maker, epsilon=2)
    scores = []
    for seed in range(200):
        found = simulate(asked, [400, 300, 200, 100, 0, 0, 0, 0], entropy=Replay(seed)).estimate()
        errors = found.estimate - [400, 300, 200, 100, 0, 0, 0, 0]
        scores.append(
            errors / np.sqrt(found.coins.variance(np.array([400.0, 300, 200, 100] + [0] * 4)))
        )
    scores = np.array(scores)
    # means of 200 scores of variance 1, and 1,600 squares: beyond 6 deviations once in 10^9
    assert np.abs(scores.mean(axis=0)).max() < 6.2 / math.sqrt(200)
    assert abs((scores**2).mean() - 1) < 0.35


def test_a_hundred_million_devices_take_seconds():
    started = time.process_time()
    found = simulate(task(unary, 1000), {"v1": 10**8}).estimate()
    assert abs(found.estimate[1] - 10**8) < 6 * found.standard_error[1]
    assert abs(found.estimate[2]) < 6 * found.standard_error[2]
    assert time.process_time() - started < 2


def test_successes_of_any_number_of_trials_are_binomial():
    trials = np.array([0, 1, 5, 1000] * 500)
    found = successes(trials, WHOLE // 4, Replay(3)).reshape(-1, 4)
    assert (found[:, 0] == 0).all()
    ones = int(found[:, 1].sum())
    assert_counts_follow([ones, 500 - ones], [0.25, 0.75], notices=[0.6, 0.4])
    total = int(found[:, 2].sum())
    assert_counts_follow([total, 2500 - total], [0.25, 0.75], notices=[0.45, 0.55])
    total = int(found[:, 3].sum())
    assert_counts_follow([total, 500_000 - total], [0.25, 0.75], notices=[0.26, 0.74])
    # beyond what one binomial takes
    many = successes(np.array([1 << 30, 3 << 28]), WHOLE // 2, Replay(4)).tolist()
    assert abs(many[0] - (1 << 29)) < 150_000 and abs(many[1] - (3 << 27)) < 150_000


def test_a_period_of_a_task_with_memory_is_simulated():
    sums = simulate(task(category, memory=2), [1000] + [0] * 7, period=1)
    assert (sums.period, sums.reports) == (1, 1000)


@pytest.mark.parametrize(
    "counts", [[1, 2], [-1] + [0] * 7, [1.5] + [0] * 7, {"v1": -1}, {"v1": "3"}]
)
def test_counts_that_are_none_are_refused(counts):
    with pytest.raises(WrongUse):
        simulate(task(category), counts)


def test_a_value_that_was_never_listed_is_refused():
    with pytest.raises(UnknownName):
        simulate(task(category), {"v9": 3})


def test_too_many_hashes_are_refused():
    with pytest.raises(WrongUse, match="hash"):
        simulate(task(hashed, 1000), {"v1": 10**8})
