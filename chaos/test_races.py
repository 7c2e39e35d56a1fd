# SPDX-License-Identifier: Apache-2.0
"""Two hundred races for a budget, from 64 threads and from 4 processes."""

from collections.abc import Callable

import pytest

from tests.contracts.races import Race, raced

LEDGERS, ROUNDS = range(8), 25


@pytest.mark.parametrize("seed", LEDGERS)
def test_threads_are_paid_exactly_as_often_as_the_budget_lasts(
    place: str, report: Callable[[str], None], seed: int
) -> None:
    _race(Race(place, rounds=ROUNDS, seed=seed), report)


@pytest.mark.parametrize("seed", LEDGERS)
def test_processes_are_paid_exactly_as_often_as_the_budget_lasts(
    database: str, report: Callable[[str], None], seed: int
) -> None:
    _race(Race(database, rounds=ROUNDS, processes=4, threads=16, seed=seed), report)


def _race(race: Race, report: Callable[[str], None]) -> None:
    outcomes = raced(race)
    assert [outcome for outcome in outcomes if not outcome.sound(race)] == []
    report(f"{race}: {sum(outcome.paid for outcome in outcomes)} paid, as many as the budgets")
