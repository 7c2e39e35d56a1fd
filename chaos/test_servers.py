# SPDX-License-Identifier: Apache-2.0
"""Three hundred rounds of a ledger on servers: clients that stop, locks that time out, standbys
that take over.
"""

from collections.abc import Callable

import pytest

from tests.contracts.crashes import crashed
from tests.contracts.failovers import fail_over

SEVERAL = {"processes": 4, "threads": 2, "lease_ms": 200, "longest_ms": 400}


@pytest.mark.parametrize("seed", range(8))
def test_clients_that_stop_hold_nobody_up_for_long_and_lose_nothing(
    database: str, report: Callable[[str], None], seed: int
) -> None:
    found = crashed(place=database, rounds=25, seed=seed, stopped=2, patience="300ms", **SEVERAL)
    assert found.sound, found
    assert (found.rounds, found.released > 0) == (25, True)
    report(f"postgresql, two of four clients stopped, seed {seed}: {found}")


def test_clients_that_stop_are_ended_within_the_real_limits_of_time(
    database: str, report: Callable[[str], None]
) -> None:
    found = crashed(place=database, rounds=10, stopped=2, **SEVERAL)
    assert found.sound, found
    report(f"postgresql, two of four clients stopped, real limits of time: {found}")


@pytest.mark.parametrize("seed", range(4))
def test_locks_that_time_out_poison_no_connection(
    database: str, report: Callable[[str], None], seed: int
) -> None:
    found = crashed(
        place=database,
        rounds=20,
        seed=seed,
        lock_timeout="50ms",
        **(SEVERAL | {"longest_ms": 2000}),
    )
    assert found.sound, found
    assert found.released > 0
    report(f"postgresql, waits for a lock of at most 50 ms, seed {seed}: {found}")


def test_standbys_that_take_over_have_everything_or_do_not_charge(
    report: Callable[[str], None],
) -> None:
    counted = fail_over(20)
    assert (counted.whole, counted.refused) == (10, 10)
    report(f"postgresql, 20 fail-overs: {counted}")
