# SPDX-License-Identifier: Apache-2.0
"""Kills by the thousand: at every point, at random moments, and of the server."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.contracts import instalment_kills, series_kills
from tests.contracts.crashes import Mutant, crashed, program
from tests.contracts.kill_points import killed
from tests.contracts.postgres import Cluster
from tests.contracts.servers import crash_under_callers

# a ledger grows with its rounds, and is verified after each: so twenty ledgers of fifty rounds
LEDGERS, ROUNDS = range(20), 50


def test_a_kill_at_every_point_and_every_write_leaves_a_declared_state(
    place: str, report: Callable[[str], None]
) -> None:
    store = place.partition(":")[0] if "://" in place else "sqlite"
    kills = killed(place=place, lease_ms=1, files=store == "sqlite")
    assert [kill for kill in kills if not kill.sound] == []
    report(
        f"{store}: {len(kills)} points, left {dict(Counter(kill.state for kill in kills))}, all sound"
    )


def test_a_worker_on_instalments_killed_at_every_point_and_every_write_draws_no_place_twice(
    place: str, report: Callable[[str], None]
) -> None:
    store = place.partition(":")[0] if "://" in place else "sqlite"
    found = [
        instalment_kills.Found(**each)
        for each in instalment_kills.killed(place=place, files=store == "sqlite")
    ]
    assert [each for each in found if each.wrong] == []
    names = {each.point.partition(": ")[2] for each in found}
    assert names >= {
        f"before {name}"
        for name in ("put_charge", "put_instalment", "put_account", "append", "the commit")
    }
    report(f"{store}: {len(found)} points on instalments, all sound")


def test_a_worker_on_a_series_killed_at_every_named_point_draws_no_place_twice(
    tmp_path: Path,
) -> None:
    found = program("series_kills", folder=str(tmp_path), mutant="", points=series_kills.POINTS)
    assert [each["point"] for each in found] == series_kills.POINTS
    assert not [each for each in found if series_kills.is_wrong(each)]


@pytest.mark.parametrize("seed", LEDGERS)
def test_threads_killed_at_random_lose_nothing(
    tmp_path: Path, report: Callable[[str], None], seed: int
) -> None:
    found = crashed(place=str(tmp_path / "l.db"), rounds=ROUNDS, seed=seed)
    assert found.sound, found
    assert (found.rounds, found.released > 0) == (ROUNDS, True)
    report(f"sqlite, seed {seed}: {found}")


@pytest.mark.parametrize("seed", LEDGERS)
def test_processes_killed_at_random_lose_nothing(
    database: str, report: Callable[[str], None], seed: int
) -> None:
    found = crashed(
        place=database,
        rounds=ROUNDS,
        processes=4,
        threads=2,
        lease_ms=200,
        longest_ms=400,
        seed=seed,
    )
    assert found.sound, found
    assert (found.rounds, found.released > 0) == (ROUNDS, True)
    report(f"postgresql, seed {seed}: {found}")


@pytest.mark.parametrize("mutant", [Mutant.BEFORE_RESERVE, Mutant.BEFORE_COMMIT])
def test_the_witness_catches_processes_that_answer_too_early(
    database: str, report: Callable[[str], None], mutant: Mutant
) -> None:
    found = crashed(
        place=database,
        rounds=200,
        processes=4,
        threads=2,
        lease_ms=200,
        longest_ms=400,
        mutant=mutant.value,
    )
    assert not found.sound
    report(f"postgresql, {mutant.value}: caught after {found.rounds} rounds")


def test_a_server_that_crashes_a_hundred_times_loses_nothing(
    postgres: Cluster, database: str, report: Callable[[str], None]
) -> None:
    released = crash_under_callers(postgres, database, rounds=100)
    report(f"postgresql: 100 crashes of the server, {released} answers released, none lost")
