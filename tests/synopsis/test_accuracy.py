# SPDX-License-Identifier: Apache-2.0
"""Bounds that hold for all queries of a workload, or for a share of them."""

import math

import numpy as np
import pytest

import sfumato as sf
from sfumato import synopsis
from sfumato.errors import InvalidNumber
from sfumato.metadata.dataset import Dataset
from sfumato.synopsis.accuracy import Spread, bound, reach_of, share_of
from sfumato.synopsis.chain import Chain
from sfumato.synopsis.solution import Solution
from sfumato.synopsis.stack import Stack
from sfumato.synopsis.strategy import strategies
from sfumato.synopsis.workload import Cells, GivenKind, Prefixes, Ranges
from tests.synopsis.matrices import queries

DATA = Dataset("d", {"t": sf.Table("t.csv", columns={"a": sf.Integer(0, 12), "b": sf.Boolean()})})
BOTH = synopsis.ranges("a") * synopsis.cells("b") + synopsis.cells("a")
COSTS = [{"epsilon": "0.5"}, {"rho": "0.05"}]


def reach(variance: float, miss: float) -> float:
    """That of Chebyshev."""
    return math.sqrt(variance / miss)


def test_all_at_once_is_the_union_bound():
    assert bound(Spread(1.0, 4.0, 100), reach, "0.9", 1) == pytest.approx(math.sqrt(4 / 0.001))


def test_a_share_is_the_least_of_three_bounds():
    # of 100 queries: 4 / 0.001; the worst at 0.1 * 0.2 = 0.02; the mean * 10 at 0.01
    assert bound(Spread(1.0, 4.0, 100), reach, "0.9", "0.8") == pytest.approx(math.sqrt(4 / 0.02))
    assert bound(Spread(1.0, 1e9, 100), reach, "0.9", "0.8") == pytest.approx(math.sqrt(10 / 0.01))
    assert bound(Spread(1.0, 4.0, 2), reach, "0.9", "0.8") == pytest.approx(math.sqrt(4 / 0.05))


@pytest.mark.parametrize("over", [0, -1, "1.1", "most"])
def test_a_share_is_above_none_and_at_most_all(over):
    with pytest.raises(InvalidNumber):
        share_of(over)


@pytest.mark.parametrize("kind", [Cells, Prefixes, Ranges])
@pytest.mark.parametrize("widths", [(1, 2, 4, 8, 16), (1, 3, 9, 27), (1, 5, 25), (1, 13)])
def test_the_largest_part_of_a_query_is_at_least_that_of_each(kind, widths):
    """And it is never more than twice too large, but for the level of the constants."""
    chain = Chain(13, widths)
    lengths = []
    for query in queries(kind(13)):
        padded = np.pad(query, (0, chain.padded - 13))
        means = [padded.reshape(-1, width).mean(axis=1) for width in widths]
        squares = [float(mean @ mean) * width for mean, width in zip(means, widths, strict=True)]
        lengths.append(-np.diff([*squares, 0.0]) / chain.padded)
    most = np.max(lengths, axis=0)
    said = chain.largest(kind(13))
    assert (said >= most - 1e-12).all()
    assert (said[:-1] <= 2 * most[:-1] + 1e-12).all()
    assert said[-1] == pytest.approx(most[-1])


@pytest.mark.parametrize("kind", [Cells, Prefixes, Ranges])
@pytest.mark.parametrize(
    "norm", [sf.synopsis.plan(DATA, "t", BOTH, **cost).allowance.norm for cost in COSTS]
)
def test_the_worst_query_of_a_column_is_at_least_each(kind, norm):
    workload = kind(13)
    for strategy in strategies(workload, norm):
        stack, precisions = strategy.stack, [1.0] * len(strategy.shares)
        most = max(stack.variance(query, precisions) for query in queries(workload))
        worst = stack.worst(workload, precisions)
        assert worst >= most * (1 - 1e-9)
        if isinstance(stack, Stack):
            assert worst <= 3 * most
        else:
            assert worst == pytest.approx(most)


def test_given_queries_have_their_own_largest_part():
    rows = [np.array([1.0, 1, 0, 1]), np.array([0.0, 0, 2, 0])]
    found = GivenKind.of(rows)(3)
    assert found.largest(1, 2) == max(3 - 2.5, 4 - 2)
    assert found.largest(4, None) == 9 / 4
    assert found.peak(np.diag([1.0, 2, 3, 4])) == 12


@pytest.mark.parametrize("cost", COSTS)
def test_the_worst_query_of_several_columns_is_at_least_each(cost):
    planned = synopsis.plan(DATA, "t", BOTH, **cost)
    for layout in planned.candidates:
        task = planned.of(layout)
        solution = Solution(layout.grid, layout.grid.information(task.precisions), {})
        count, most = 0, 0.0
        for term in BOTH.terms:
            kinds = dict(term.factors)
            for first in queries(kinds["a"](13)):
                for second in queries(kinds["b"](2)) if "b" in kinds else [np.ones(2)]:
                    asked = {0: np.append(first, 0.0)}
                    if "b" in kinds:
                        asked[1] = np.append(second, 0.0)
                    axes = tuple(asked)
                    lengths = [
                        layout.grid.chains[axis].squared(layout.grid.chains[axis].parts(asked[axis]))
                        for axis in axes
                    ]  # fmt: skip
                    most = max(most, solution._variance(axes, lengths))
                    count += 1
        said = synopsis.tables.extremes(BOTH, layout.grid, planned.cube.cube.axes, task.precisions)
        assert said[0] == count
        assert most * (1 - 1e-9) <= said[1] <= 4 * most


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("wanted", [synopsis.ranges("a"), BOTH])
def test_a_plan_bounds_the_error_before_anything_is_spent(cost, wanted):
    planned = synopsis.plan(DATA, "t", wanted, **cost)
    each, most, all_of = (
        planned.error(),
        planned.error(None, "0.95", over="0.9"),
        planned.error(confidence="0.95"),
    )
    assert each == planned.error(planned.candidates[0])
    assert each < most <= all_of < 25 * each
    assert planned.error(confidence="0.5") < all_of


@pytest.mark.parametrize("cost", COSTS)
def test_all_ranges_stay_within_the_bound(cost):
    """2,000 draws of the noise: at a confidence of 1/2, more than 1,200 misses have p < 1e-18."""
    planned = synopsis.plan(DATA, "t", synopsis.ranges("a"), **cost)
    task = planned.task
    asked, half = queries(Ranges(13)), planned.error(confidence="0.5")
    share = planned.error(confidence="0.5", over="0.75")
    misses = unlike = 0
    for _ in range(2000):
        noisy = [m.noise.sample(n) for m, n in zip(task.mechanisms, task.cells, strict=True)]
        off = np.abs(asked @ task.strategy.stack.estimate(noisy, task.precisions))
        misses += bool((off > half).any())
        unlike += bool((off > share).mean() > 0.25)
    assert misses <= 1200
    assert unlike <= 1200


def test_without_layers_there_is_no_bound():
    task = synopsis.plan(DATA, "t", BOTH, rho=1).task
    assert reach_of(task)(math.inf, 0.1) == math.inf
