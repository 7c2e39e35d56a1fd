# SPDX-License-Identifier: Apache-2.0
"""Means and distributions of numbers: unbiased, and covered as often as stated."""

import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import InvalidDeclaration, TooFewReports, UnknownName, WrongUse
from sfumato.telemetry import Aggregator, report_task, simulate
from sfumato.telemetry.numbers import Distribution
from sfumato.telemetry.oracles import category, levels, mean, unary
from sfumato.testing import Replay, assert_at_most

AGES = sf.Integer(0, 99)


def task(oracle, domain=AGES, **fields):
    usual = {"oracle": oracle, "start": 0, "periods": 1, "min_batch": 100}
    return report_task("t", "?", domain, **(usual | fields))


def bell(devices, middle=40, width=12):
    """Numbers of devices by age."""
    shares = np.exp(-(((np.arange(100) - middle) / width) ** 2))
    counts = np.floor(shares / shares.sum() * devices).astype(int)
    counts[middle] += devices - counts.sum()
    return counts.tolist()


def test_an_interval_of_a_mean_holds_it_as_often_as_stated():
    counts = bell(2000)
    true = float(np.dot(counts, np.arange(100))) / 2000
    asked, missed, errors = task(mean(100, 1)), 0, []
    for seed in range(250):
        found = simulate(asked, counts, entropy=Replay(seed)).mean(confidence="0.8")
        errors.append((found.estimate - true) / found.standard_error)
        missed += not found.low <= true <= found.high
    assert_at_most(missed, 250, 0.2, notices=0.61)
    assert abs(np.mean(errors)) < 6.2 / 250**0.5 and 0.6 < np.std(errors) < 1.3


def test_the_error_of_a_mean_is_that_of_the_worst_number():
    found = simulate(task(mean(100, 1)), bell(1_000_000)).mean()
    assert found.standard_error == pytest.approx(99 / 2 * (4.289 / 1_000_000) ** 0.5, rel=0.01)
    assert found.high - found.low < 2 * 2.1 * found.standard_error


def test_a_mean_is_in_the_units_of_the_domain():
    asked = task(mean(41, 4), sf.Real(-5, 5, step="0.25"))
    found = simulate(asked, [0] * 8 + [100_000] + [0] * 32).mean()
    assert abs(found.estimate + 3) < 0.2


@pytest.mark.parametrize("make", [lambda: levels(100, 1), lambda: levels(100, 3, branching=10)])
def test_shares_are_unbiased_and_covered(make):
    counts = bell(3000)
    asked, missed, errors = task(make()), 0, []
    true = sum(counts[:37]) / 3000
    for seed in range(200):
        sums = simulate(asked, counts, entropy=Replay(seed))
        found = sums.distribution(confidence="0.8").below(37)
        errors.append((found.estimate - true) / found.standard_error)
        missed += not found.low <= true <= found.high
    assert_at_most(missed, 200, 0.2, notices=0.66)
    assert abs(np.mean(errors)) < 6.2 / 200**0.5 and 0.5 < np.std(errors) < 1.3


def test_an_interval_of_a_quantile_holds_it_as_often_as_stated():
    counts = bell(20_000)
    true = int(np.searchsorted(np.cumsum(counts), 10_000, side="left"))
    asked, missed = task(levels(100, 2)), 0
    for seed in range(100):
        found = simulate(asked, counts, entropy=Replay(seed)).distribution(confidence="0.8")
        middle = found.quantile("0.5")
        missed += not middle.low <= true <= middle.high
        assert abs(middle.estimate - true) < 12 and middle.low <= middle.estimate <= middle.high
    assert_at_most(missed, 100, 0.2, notices=0.86)


def test_a_range_is_made_of_disjoint_nodes_that_cover_it():
    oracle = levels(77, 1, branching=3)
    shown = Distribution(oracle, task(levels(100, 1)).domain, np.zeros(oracle.cells), "0.95")
    for first in range(0, 77, 5):
        for end in range(first, 78):
            numbers = []
            for level, low, high in shown._range_nodes(first, end):
                width = 3**level
                for node in range(low, high):
                    assert node < oracle.parts[level].values
                    numbers += range(node * width, min((node + 1) * width, 77))
            assert sorted(numbers) == list(range(first, end))


def test_the_error_of_a_median_is_far_below_that_of_sums_of_counts():
    by_levels = simulate(task(levels(1024, 1), sf.Integer(0, 1023)), [1000] * 1024)
    found = by_levels.distribution().below(400)
    sums = (400 * 3.683 / (1024 * 1000)) ** 0.5
    assert found.standard_error < 0.3 * sums
    assert abs(found.estimate - 400 / 1024) < 6 * found.standard_error


def test_ranges_and_numbers_that_are_none_are_refused():
    found = simulate(task(levels(100, 1)), bell(5000)).distribution()
    assert found.below(0).estimate == 0
    assert abs(found.between(0, 99).estimate - 1) < 0.3
    with pytest.raises(WrongUse, match="ends before"):
        found.between(5, 4)
    with pytest.raises(UnknownName):
        found.below(100)


def test_each_task_answers_what_it_asks():
    counts = bell(500)
    by_mean, by_levels, by_count = (
        simulate(task(oracle), counts) for oracle in (mean(100, 1), levels(100, 1), unary(100, 1))
    )
    for wrong in (
        by_mean.estimate,
        by_mean.distribution,
        by_levels.mean,
        by_levels.estimate,
        by_count.mean,
        by_count.distribution,
    ):
        with pytest.raises(WrongUse, match="whose oracle is"):
            wrong()
    again = Aggregator.from_bytes(by_levels.to_bytes())
    assert again.distribution().below(50) == by_levels.distribution().below(50)
    for few in (Aggregator(task(mean(100, 1))).mean, Aggregator(task(levels(100, 1))).distribution):
        with pytest.raises(TooFewReports):
            few()


def test_texts_have_no_mean():
    for oracle in (mean(3, 1), levels(3, 1)):
        with pytest.raises(InvalidDeclaration, match="texts"):
            report_task("t", "?", ["a", "b"], oracle=oracle, start=0, periods=1)
    assert task(category(100, 1)).domain.size == 100
