# SPDX-License-Identifier: Apache-2.0
"""Intervals of rows that released numbers chose: how many rows they hold for, and how often."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from sfumato.noise import DiscreteLaplace
from sfumato.plan.aggregate import CountRows, CountUnits
from sfumato.plan.output import Item, Order, Output
from sfumato.plan.relation import Scan
from sfumato.plan.scalar import Compare, Comparison, Constant, Estimate, Key
from sfumato.plan.stages import Raw
from sfumato.query import table
from sfumato.query.estimate import Released
from sfumato.query.selected import candidates, declared_rows, is_released
from sfumato.query.table import error_rows
from sfumato.testing.asserts import assert_at_most
from tests.contracts.people import session
from tests.contracts.released import numbers

LAW = DiscreteLaplace(10)
MISS = Fraction(1, 20)
ABOVE = Compare(Comparison.GT, Estimate(0), Constant(Fraction(115)))
BY_COUNT = (Order(Estimate(0), descending=True),)
CHOSEN = {
    "the largest": Output((Item("n", Estimate(0)),), order=BY_COUNT, limit=1),
    "those above": Output((Item("n", Estimate(0)),), having=ABOVE),
}


def test_rows_are_chosen_by_what_reads_an_estimate() -> None:
    assert candidates(Output((), having=ABOVE), 50) == 50
    assert candidates(Output((), order=BY_COUNT, limit=3), 50) == 50
    assert candidates(Output((), order=BY_COUNT, limit=3, offset=1), 50) == 50
    assert candidates(Output((), order=BY_COUNT, offset=1), 50) == 50


def test_rows_that_the_noise_does_not_choose_are_alone() -> None:
    assert candidates(Output((), having=Compare(Comparison.GT, Key(0), Constant(3))), 50) == 1
    assert candidates(Output((), order=(Order(Key(0)),), limit=3), 50) == 1
    assert candidates(Output((), order=BY_COUNT), 50) == 1
    assert candidates(Output((), order=BY_COUNT, limit=50), 50) == 1
    assert not is_released(Key(0)) and is_released(ABOVE)


def test_open_groups_have_no_declared_number() -> None:
    plain = Raw(Scan("people"), (), (CountRows(), CountUnits()))
    assert declared_rows(plain, Output(())) == 1


def shown(output: Output, part: Released) -> list[int]:
    """The rows that an answer shows of one with a count of 100 in each group."""
    values = [value for (value,) in part.values]
    rows = sorted(range(len(values)), key=lambda row: -values[row])
    if output.having is not None:
        return [row for row in rows if values[row] > 115]
    return rows[:1]


def missed(output: Output, trials: int) -> tuple[int, int]:
    """How many answers of 50 equal groups have an interval that misses, of those that show one."""
    draws = LAW.sample(50 * trials).reshape(trials, 50)
    missing = count = 0
    for noise in draws.tolist():
        part = numbers([100 + each for each in noise], LAW)
        rows = shown(output, part)
        if rows:
            lines = error_rows(output, [part], rows, MISS)
            missing += not all(end["low"] <= 100 <= end["high"] for (end,) in lines)
            count += 1
    return missing, count


@pytest.mark.parametrize("name", CHOSEN)
def test_intervals_of_rows_that_were_chosen_hold_for_all_rows_at_once(name: str) -> None:
    assert_at_most(*missed(CHOSEN[name], 300), 0.05, notices=0.5)


def test_intervals_of_each_row_alone_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "candidates", lambda output, rows: 1)
    with pytest.raises(AssertionError):
        assert_at_most(*missed(CHOSEN["the largest"], 300), 0.05, notices=0.5)


def test_a_preview_has_the_width_of_all_rows_at_once(tmp_path: Path) -> None:
    with session(tmp_path) as own:
        alone = own.preview("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", epsilon=1)
        top = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex ORDER BY n DESC LIMIT 1"
        chosen = own.preview(top, epsilon=1)
        answer = own.query(top, epsilon=1)
    half = chosen.error()[0]["half_width"]
    assert half > alone.error()[0]["half_width"]
    assert half == answer.error()[0]["n"]["half_width"]
    assert any("at once" in note for note in answer.notes)


def test_a_wanted_error_buys_the_width_of_all_rows_at_once(tmp_path: Path) -> None:
    top = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex ORDER BY n DESC LIMIT 1"
    with session(tmp_path) as own:
        answer = own.query(top, error=20, max_epsilon=5)
    assert answer.error()[0]["n"]["half_width"] <= 20


def passed(units: int, threshold: int, trials: int) -> tuple[int, int]:
    """How many shown counts of a group of so many units have an interval that misses."""
    law = DiscreteLaplace(2)
    values = units + law.sample(trials)
    values = values[values >= threshold]
    part = replace(numbers(values.tolist(), law), threshold=threshold)
    ends = [part.interval(row, MISS) for row in range(len(values))]
    missing = sum(not low <= units <= high for low, high in ends)
    return missing, len(values)


@pytest.mark.parametrize("units", [12, 18, 21, 22, 25, 40])
def test_a_count_that_was_its_threshold_is_covered(units: int) -> None:
    trials = 40_000 if units < 15 else 4_000
    assert_at_most(*passed(units, 22, trials), 0.05, notices=0.7)


def test_without_its_threshold_a_shown_count_is_noticed() -> None:
    law = DiscreteLaplace(2)
    values = np.asarray(12 + law.sample(40_000))
    part = numbers(values[values >= 22].tolist(), law)
    ends = [part.interval(row, MISS) for row in range(part.count)]
    assert sum(low <= 12 <= high for low, high in ends) == 0


def test_a_total_of_shown_counts_may_be_of_groups_near_the_threshold() -> None:
    part = replace(numbers([60], DiscreteLaplace(2)), threshold=20, copies=(3,))
    low, high = part.interval(0, MISS)
    assert low == 0 and high > 60
