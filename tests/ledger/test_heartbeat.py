# SPDX-License-Identifier: Apache-2.0
"""A lease is renewed while its worker lives, and no longer."""

import gc
import threading
import time
import weakref
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from sfumato.errors import LeaseExpired, LedgerUnavailable
from sfumato.ledger import Ledger
from sfumato.ledger.heartbeat import Heartbeat, Heartbeats
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
    """The state of a charge whose worker's thread is gone, without having left its block, after its
    lease.
    """
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

    def _lives(self) -> bool:
        return True


def test_a_lease_renewed_for_a_dead_worker_would_be_noticed(ledger: Ledger) -> None:
    assert died(ledger, Stubborn) == EXECUTING


def test_a_lease_that_is_lost_ends_the_renewals(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    charge, fence = in_pieces(ledger)
    renew, attempts = Ledger.renew, []

    def counted(self: Ledger, charge_id: str, *, fence: int = 0) -> None:
        attempts.append(charge_id)
        renew(self, charge_id, fence=fence)

    monkeypatch.setattr(Ledger, "renew", counted)
    with Heartbeat(ledger, charge, fence=fence):
        end_leases(ledger)
        time.sleep(LEASE)
        assert attempts == [charge]
        with pytest.raises(LeaseExpired):
            ledger.commit(charge, b"late", fence=fence)


def test_a_store_that_is_away_for_a_moment_does_not(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    charge, fence = in_pieces(ledger)
    renew, failures = Ledger.renew, [LedgerUnavailable("the connection was cut")] * 2

    def sometimes(self: Ledger, charge_id: str, *, fence: int = 0) -> None:
        if failures:
            raise failures.pop()
        renew(self, charge_id, fence=fence)

    monkeypatch.setattr(Ledger, "renew", sometimes)
    with Heartbeat(ledger, charge, fence=fence):
        time.sleep(1.5 * LEASE)
        ledger.sweep()
    assert (failures, state_of(ledger, charge)) == ([], EXECUTING)


def test_one_thread_renews_all_charges_and_ends_after_them() -> None:
    beats, before = Heartbeats(timedelta(seconds=0.3)), set(threading.enumerate())
    ledger = SimpleNamespace(lease=timedelta(seconds=0.3), heartbeats=beats)
    ledger.renew = lambda *_, fence: None
    for number in range(20):
        with Heartbeat(ledger, f"one {number}"), Heartbeat(ledger, f"other {number}"):
            assert len(set(threading.enumerate()) - before) == 1
    (thread,) = set(threading.enumerate()) - before
    thread.join(5)
    assert not thread.is_alive()


def test_a_charge_that_comes_after_the_thread_has_ended_is_renewed() -> None:
    renewed: list[str] = []
    lease = timedelta(seconds=0.3)
    ledger = SimpleNamespace(lease=lease, heartbeats=Heartbeats(lease))
    ledger.renew = lambda charge, fence: renewed.append(charge)
    for charge in ("first", "second"):
        with Heartbeat(ledger, charge):
            time.sleep(0.4)
        time.sleep(0.2)
        assert ledger.heartbeats._thread is None
    assert set(renewed) == {"first", "second"}


def test_its_thread_keeps_no_ledger_open() -> None:
    beats = Heartbeats(timedelta(seconds=0.3))
    ledger = SimpleNamespace(
        lease=timedelta(hours=1), heartbeats=beats, renew=lambda *_, fence: None
    )
    with Heartbeat(ledger, "one"):
        pass
    gone = weakref.ref(beats)
    del ledger, beats
    gc.collect()
    assert gone() is None
