# SPDX-License-Identifier: Apache-2.0
"""Kills while heads are published, then a rollback: an older ledger is refused, an undamaged one
never is.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.contracts.head_kills import SINKS, head_kills

SEEDS, ROUNDS = range(4), 50


@pytest.mark.parametrize("sink", SINKS)
def test_a_kill_at_every_point_of_a_publication_refuses_what_is_older_and_nothing_else(
    tmp_path: Path, report: Callable[[str], None], sink: str
) -> None:
    found = head_kills(place=str(tmp_path), sink=sink)
    assert [each for each in found if each.wrong] == []
    assert {each.refused for each in found} == {False, True}
    report(
        f"heads, {sink}: {len(found)} points, an older ledger was refused after {sum(e.refused for e in found)}"
    )


@pytest.mark.parametrize("sink", SINKS)
@pytest.mark.parametrize("seed", SEEDS)
def test_kills_at_random_while_heads_are_published_refuse_what_is_older_and_nothing_else(
    tmp_path: Path, report: Callable[[str], None], sink: str, seed: int
) -> None:
    found = head_kills(place=str(tmp_path), sink=sink, rounds=ROUNDS, seed=seed)
    assert [each for each in found if each.wrong] == []
    assert sum(each.refused for each in found) > 0
    report(
        f"heads, {sink}, seed {seed}: {ROUNDS} kills, {sum(e.refused for e in found)} older ledgers refused"
    )


@pytest.mark.parametrize("mutant", ["no comparison", "in place"])
def test_a_sink_that_is_not_compared_or_not_replaced_at_once_is_noticed_at_random(
    tmp_path: Path, mutant: str
) -> None:
    assert any(
        each.wrong
        for each in head_kills(place=str(tmp_path), sink="file", rounds=200, mutant=mutant)
    )
