# SPDX-License-Identifier: Apache-2.0
"""A lease is renewed while its worker lives, and no longer."""

import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from sfumato.errors import LeaseExpired, LedgerUnavailable
from sfumato.ledger import Ledger
from sfumato.ledger.heartbeat import Heartbeat
from sfumato.ledger.store.base import EXECUTING, SUSPENDED
from sfumato.privacy import Budget
from tests.contracts.charges import contract, end_leases, in_pieces, state_of

LEASE = 0.9


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """A ledger whose leases are short."""
    opened = Ledger.open(tmp_path / "l.db", lease=timedelta(seconds=LEASE))
    opened.adopt(contract(Budget(1)), Budget(1))
    yield opened
    opened.close()


def test_a_live_worker_keeps_its_charge_for_longer_than_a_lease(ledger: Ledger) -> None:
    charge, fence = in_pieces(ledger)
    end = time.monotonic() + 2 * LEASE
    with Heartbeat(ledger, charge, fence=fence):
        while time.monotonic() < end:
            assert ledger.sweep() == 0
            time.sleep(LEASE / 10)
    assert state_of(ledger, charge) == EXECUTING


def died(ledger: Ledger, kind: type[Heartbeat]) -> str:
    """The state of a charge whose worker's thread is gone, without having left its block, after its lease."""
    charge, fence = in_pieces(ledger)
    beating: list[Heartbeat] = []
    worker = threading.Thread(
        target=lambda: beating.append(kind(ledger, charge, fence=fence).__enter__())
    )
    worker.start()
    worker.join()
    time.sleep(2 * LEASE)
    ledger.sweep()
    beating[0].__exit__(None, None, None)
    return state_of(ledger, charge)


def test_a_dead_worker_is_not_renewed(ledger: Ledger) -> None:
    assert died(ledger, Heartbeat) == SUSPENDED


class Stubborn(Heartbeat):
    """A broken one, which never looks whether its worker lives."""

    def _beat(self, worker: threading.Thread) -> None:
        super()._beat(threading.main_thread())


def test_a_lease_renewed_for_a_dead_worker_would_be_noticed(ledger: Ledger) -> None:
    assert died(ledger, Stubborn) == EXECUTING


def test_a_lease_that_is_lost_ends_the_renewals(ledger: Ledger) -> None:
    charge, fence = in_pieces(ledger)
    with Heartbeat(ledger, charge, fence=fence) as beating:
        end_leases(ledger)
        beating._thread.join(5)
        assert not beating._thread.is_alive()
        with pytest.raises(LeaseExpired):
            ledger.commit(charge, b"late", fence=fence)


def test_a_store_that_is_away_for_a_moment_does_not(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    charge, fence = in_pieces(ledger)
    renew, failures = Ledger.renew, [LedgerUnavailable("the connection was cut")]

    def sometimes(self: Ledger, charge_id: str, *, fence: int = 0) -> None:
        if failures:
            raise failures.pop()
        renew(self, charge_id, fence=fence)

    monkeypatch.setattr(Ledger, "renew", sometimes)
    with Heartbeat(ledger, charge, fence=fence):
        time.sleep(1.5 * LEASE)
        ledger.sweep()
    assert (failures, state_of(ledger, charge)) == ([], EXECUTING)
