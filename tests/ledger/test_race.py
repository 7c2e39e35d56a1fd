# SPDX-License-Identifier: Apache-2.0
"""Many callers race for a budget of k: exactly k are paid."""

import pytest

from tests.contracts.races import CHECK_THEN_ACT, Race, raced


def test_threads_that_race_for_a_budget_are_paid_exactly_as_often_as_it_lasts(place: str) -> None:
    race = Race(place, rounds=2)
    assert [outcome for outcome in raced(race) if not outcome.sound(race)] == []


def test_processes_that_race_for_a_budget_are_paid_exactly_as_often_as_it_lasts(
    database: str,
) -> None:
    race = Race(database, rounds=2, processes=4, threads=16, seed=1)
    assert [outcome for outcome in raced(race) if not outcome.sound(race)] == []


@pytest.mark.parametrize("processes", [1, 4])
def test_a_check_outside_the_unit_of_work_is_caught(database: str, processes: int) -> None:
    race = Race(
        database, rounds=1, processes=processes, threads=64 // processes, mutant=CHECK_THEN_ACT
    )
    assert [outcome for outcome in raced(race) if outcome.sound(race)] == []
