# SPDX-License-Identifier: Apache-2.0
"""Attacks on synopses: many consistent answers, and a synopsis beside SQL on the same data."""

import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato import synopsis
from sfumato.mechanisms.additive import laplace
from sfumato.metadata.dataset import Dataset
from sfumato.privacy.distance import Norm
from sfumato.query.allowance import allowance
from sfumato.query.session import Session
from sfumato.synopsis.measurement import LayersTask
from sfumato.synopsis.wanted import Wanted

COLUMNS = {"age": sf.Integer(0, 63), "sex": sf.Category("F", "M")}
ROWS = pa.table({"age": [k % 40 for k in range(200)], "sex": list("FM") * 100})
ONE = synopsis.ranges("age")
BOTH = ONE * synopsis.cells("sex")
# Enough trials that a success rate is off by less than 0.025 but for a chance of 1e-9.
TRIALS = 20_000


def opened(folder: Path) -> Session:
    return sf.connect(
        {"t": sf.Table(ROWS, columns=COLUMNS)},
        dataset="d", budget=sf.Budget(2, "1e-6"), ledger=folder / "l.db",
    )  # fmt: skip


@pytest.mark.parametrize(("wanted", "more"), [(ONE, ""), (BOTH, " AND sex = 'F'")])
@pytest.mark.parametrize("cost", [{"epsilon": "0.5"}, {"rho": "0.05"}])
def test_averaging_consistent_answers_removes_no_noise(tmp_path, wanted: Wanted, more, cost):
    """All answers come from the same noisy layers: each difference of two ranges that differ in
    one value is the answer of that value, to rounding. Their average is no better than one."""
    with opened(tmp_path) as session:
        found = synopsis.measure(session, "t", wanted, **cost)
        spent = repr(session.budget)
        target = found.answer(f"age = 20{more}").value
        wide = found.answers([f"age BETWEEN {first} AND 20{more}" for first in range(20)])
        less = found.answers([f"age BETWEEN {first} AND 19{more}" for first in range(20)])
        assert repr(session.budget) == spent
    for one, other in zip(wide, less, strict=True):
        assert one.value - other.value == pytest.approx(target, abs=1e-8)


def test_asking_again_draws_no_new_noise(tmp_path):
    """Neither do other words for the same workload, nor a file that is read again."""
    with opened(tmp_path) as session:
        first = synopsis.measure(session, "t", BOTH, rho="0.05")
        spent = repr(session.budget)
        again = synopsis.measure(session, "t", ONE * synopsis.cells("sex"), rho=Fraction(1, 20))
        assert again.stored.body == first.stored.body
        read = synopsis.from_json(first.to_json(), session.dataset)
        assert read.answer("age = 3") == first.answer("age = 3")
        assert repr(session.budget) == spent


def test_a_synopsis_and_sql_on_the_same_data_are_both_charged(tmp_path):
    """Nor does what a synopsis knows make a question cheaper, or its noise smaller."""
    sql = "SELECT COUNT(*) AS n FROM t WHERE age = 20"
    with opened(tmp_path) as session:
        synopsis.measure(session, "t", ONE, epsilon="0.5")
        answer = session.query(sql, epsilon="0.25")
        assert session.budget.spent == "0.75"
        alone = session.preview(sql, epsilon="0.25").error()
    assert answer.error()[0]["n"]["half_width"] == alone[0]["half_width"]


def guesses(task: LayersTask, exact_rows: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """How many rows of a value the synopsis and SQL show together, weighed by their variances."""
    stack, precisions = task.strategy.stack, task.precisions
    query = np.eye(64)[20]
    coefficients = stack.coefficients(query, precisions)
    shown = np.zeros(TRIALS)
    for layer, weights, mechanism in zip(stack.layers, coefficients, task.mechanisms, strict=True):
        off = mechanism.noise.sample(TRIALS * len(weights)).reshape(TRIALS, -1)
        shown += (layer.apply(exact_rows) + off) @ weights
    first, second = 1 / stack.variance(query, precisions), 1 / noise.var()
    return (first * shown + second * (exact_rows[20] + noise)) / (first + second)


def test_differencing_a_synopsis_and_sql_succeeds_no_more_than_both_charges_allow():
    """Is the one person of 20 years in the table? The best guess of somebody who knows all others.

    With both charges, epsilon = 1.5 in all, nobody is right more often than e^1.5 / (1 + e^1.5).
    A synopsis that were free, or of half the noise it states, would show as a higher success.
    """
    data = Dataset("d", {"t": sf.Table(ROWS, columns=COLUMNS)})
    planned = synopsis.plan(data, "t", ONE, epsilon=1)
    named = {strategy.name: strategy for strategy in planned.candidates}
    task = planned.of(named["identity"])
    asked = laplace(task.statistics[0].distance(Norm.L1), Fraction(1, 2)).noise
    absent = np.zeros(64, np.int64)
    present = absent + np.eye(64, dtype=np.int64)[20]
    right = (guesses(task, present, asked.sample(TRIALS)) > 0.5).mean()
    right += (guesses(task, absent, asked.sample(TRIALS)) <= 0.5).mean()
    most = math.exp(1.5) / (1 + math.exp(1.5))
    assert 0.6 < right / 2 <= most + 0.025
    # the mutant measures at six times the cost that is charged
    loud = replace(task, allowance=allowance(epsilon=6))
    seen = (guesses(loud, present, asked.sample(TRIALS)) > 0.5).mean()
    seen += (guesses(loud, absent, asked.sample(TRIALS)) <= 0.5).mean()
    assert seen / 2 > most + 0.025
