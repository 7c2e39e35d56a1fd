# SPDX-License-Identifier: Apache-2.0
"""The honest check: three columns are counted too, and wrong rows are found out."""

import json
from itertools import combinations

import numpy as np
import pytest

import sfumato as sf
from sfumato.metadata.dataset import Dataset
from sfumato.query.allowance import allowance
from sfumato.synthetic.honest import correlations, seen_of, ways_of
from sfumato.synthetic.rows import Dice
from sfumato.synthetic.task import Released, _checked_marginals, check_blocks
from tests.synthetic.shadows import fit_task, fitted

COLUMNS = {"a": sf.Integer(0, 1), "b": sf.Integer(0, 1), "c": sf.Integer(0, 1)}
DECLARED = Dataset("d", {"t": sf.Table("t.csv", columns=COLUMNS)})
# every pair is independent, and the three are not: c is whether a and b differ
ROWS = [{"a": a, "b": b, "c": a ^ b} for a in (0, 1) for b in (0, 1) for _ in range(100)]
CELLS = np.array([[row["a"], row["b"], row["c"]] for row in ROWS])


@pytest.fixture(scope="module")
def released():
    task = fit_task(allowance(rho=10_000), DECLARED)
    return fitted(task, ROWS, DECLARED).released


def test_the_check_counts_pairs_and_triples(released):
    assert sorted(len(clique) for clique, _ in released.checks) == [2, 2, 3]
    seen = seen_of(released, CELLS)
    for each in seen:
        # an exhaustive count of the rows, and noise far below one row
        assert each.rows.sum() == 400 and np.abs(each.rows - each.counted).max() < 1


def test_three_columns_that_go_together_are_missed_by_pairs_alone(released):
    """Independent columns have every pair right, and half of the rows of the triple wrong."""
    wrong = np.array([[a, b, c] for a in (0, 1) for b in (0, 1) for c in (0, 1)] * 50)
    one, two, three = ways_of(released.base, seen_of(released, wrong))
    assert (one.columns, two.columns, three.columns) == (1, 2, 3)
    assert one.distance < 0.01 and two.distance < 0.01
    assert three.distance == pytest.approx(0.5, abs=0.01)
    # each of eight cells is off by 50 of 400 rows; a missing value would have a cell of its own
    assert three.off == pytest.approx(0.125 * (8 / 27) ** 0.5, abs=0.005) and not one.off > 0.01


def test_correlations_are_those_of_the_blocks(released):
    tilted = np.array([row for row in CELLS.tolist() if row != [1, 0, 1]])
    found = correlations(released.base, seen_of(released, tilted))
    expected = np.corrcoef(tilted.T)
    for each in found:
        first, second = ("abc".index(name) for name in each.columns)
        assert each.rows == pytest.approx(expected[first, second], abs=1e-9)
    assert {each.columns for each in found} == set(combinations("abc", 2))
    # the private columns are independent; the scores are those of the tilted rows
    true = correlations(released.base, seen_of(released, CELLS))
    assert all(abs(each.counted) < 0.01 + each.error for each in true)


def test_columns_of_too_many_cells_are_not_counted_together():
    wide = {name: sf.Integer(0, 250) for name in "abcd"}
    dataset = Dataset("d", {"t": sf.Table("t.csv", columns=wide)})
    task = fit_task(dataset=dataset)
    base = task.base([np.zeros(size, np.int64) for size in task.schema.cells])
    chosen = _checked_marginals(base, Dice())
    # 252 cubed is above 2^22, so all six are pairs
    assert sorted(chosen) == list(combinations(range(4), 2)) and task.schedule.checks == 6


NULLABLE = {"a": sf.Integer(0, 7, missing="?"), "b": sf.Boolean(missing="?")}
# b goes with a; of every fourth row, one of both is missing
SOME = [{"a": k % 8, "b": k % 8 > 3} for k in range(800)]
SOME += [{"a": None, "b": True}] * 100 + [{"a": 0, "b": None}] * 100


def test_missing_values_are_a_block_of_their_own_and_of_no_correlation():
    dataset = Dataset("d", {"t": sf.Table("t.csv", columns=NULLABLE)})
    found = fitted(fit_task(allowance(rho=10_000), dataset), SOME, dataset).released
    assert check_blocks(found.base, 0) == (0, 0, 1, 1, 1, 2, 2, 2, 3)
    assert check_blocks(found.base, 1) == (0, 1, 2)
    cells = np.array([[8 if a is None else a, 2 if b is None else b] for a, b in pairs()])
    (one,) = correlations(found.base, seen_of(found, cells))
    known = np.array(
        [[check_blocks(found.base, 0)[a], b] for a, b in pairs() if None not in (a, b)]
    )
    expected = np.corrcoef(known.T)[0, 1]
    assert one.rows == pytest.approx(expected) and abs(one.counted - expected) < 0.01


def pairs():
    return [(row["a"], row["b"]) for row in SOME]


def test_an_earlier_fit_is_read_in_the_blocks_that_it_was_counted_in():
    dataset = Dataset("d", {"t": sf.Table("t.csv", columns=NULLABLE)})
    task = fit_task(allowance(rho=10_000), dataset)
    line, _, numbers = fitted(task, SOME, dataset).stored.body.partition(b"\n")
    facts = json.loads(line)
    assert facts.pop("missing_apart")
    found = Released.of(task, json.dumps(facts).encode() + b"\n" + numbers)
    # then, missing values were counted with the largest ones, and have no order
    assert check_blocks(found.base, 0) == (0, 0, 1, 1, 2, 2, 2, 3, 3)
    assert not correlations(found.base, seen_of(found, np.zeros((1, 2), np.int64)))
