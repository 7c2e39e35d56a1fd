# SPDX-License-Identifier: Apache-2.0
"""Renews the leases of long tasks while their worker threads live."""

import threading
import time
import weakref
from datetime import timedelta
from types import TracebackType
from typing import Protocol

from sfumato.errors import LeaseExpired, LedgerError

# The share of a lease after which it is renewed.
_DUE = 1 / 3
# How many times in a lease the thread checks, so that two renewals may fail; and the longest time
# between two checks, in seconds.
_LOOKS, _LONGEST_PAUSE = 6, 10.0


class _Renewed(Protocol):
    """A ledger whose leases can be renewed."""

    heartbeats: "Heartbeats"

    @property
    def lease(self) -> timedelta:
        """How long a charge may be executing without renewal."""
        ...

    def renew(self, charge_id: str, *, fence: int = 0) -> None:
        """Renews the lease of an executing charge."""
        ...


class Heartbeat:
    """Renews the lease of a charge during a ``with`` block, so that the ledger does not close it.

    Renewal also ends with the thread that entered the block. If the lease is lost, the worker is
    refused at its next step. A store that is unreachable for a moment does not end the renewal.

    Guarantees:
        a dead worker is not renewed
    """

    def __init__(self, ledger: _Renewed, charge_id: str, *, fence: int = 0) -> None:
        self.ledger, self.charge, self.fence = ledger, charge_id, fence

    def __enter__(self) -> "Heartbeat":
        self._worker = threading.current_thread()
        self._due = self._next()
        self.ledger.heartbeats.add(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.ledger.heartbeats.remove(self)

    def beat(self) -> bool:
        """Renews the charge's lease if it is due; returns False if renewal has ended for good."""
        if not self._lives():
            return False
        if time.monotonic() < self._due:
            return True
        try:
            self.ledger.renew(self.charge, fence=self.fence)
        except LeaseExpired:
            return False
        except LedgerError:
            return True  # unreachable for a moment: the next attempt may succeed
        self._due = self._next()
        return True

    def _lives(self) -> bool:
        return self._worker.is_alive()

    def _next(self) -> float:
        return time.monotonic() + self.ledger.lease.total_seconds() * _DUE


class Heartbeats:
    """The thread of a ledger that renews the leases of all charges in progress.

    It starts with the first charge and stays for a while after the last, because starting a thread
    for each small question would be too slow.
    """

    def __init__(self, lease: timedelta) -> None:
        self._pause = min(lease.total_seconds() / _LOOKS, _LONGEST_PAUSE)
        self._lock = threading.Lock()
        self._beating: set[Heartbeat] = set()
        self._thread: threading.Thread | None = None

    def add(self, heartbeat: Heartbeat) -> None:
        """Starts renewing the lease of a charge."""
        with self._lock:
            self._beating.add(heartbeat)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(
                    target=_stay,
                    args=(weakref.ref(self), self._pause),
                    name="sfumato heartbeat",
                    daemon=True,
                )
                self._thread.start()

    def remove(self, heartbeat: Heartbeat) -> None:
        """Stops renewing the lease of a charge; one renewal may still be running."""
        with self._lock:
            self._beating.discard(heartbeat)

    def charges(self) -> list[tuple[str, int]]:
        """Returns the charges whose leases are renewed, each with the fence of its worker."""
        with self._lock:
            return [(heartbeat.charge, heartbeat.fence) for heartbeat in self._beating]

    def look(self) -> bool:
        """Renews all leases that are due; returns False if there are none, which ends the
        thread.
        """
        with self._lock:
            beating = list(self._beating)
            if not beating:
                self._thread = None
                return False
        # without the lock: a renewal may wait for a server
        for heartbeat in beating:
            if not heartbeat.beat():
                self.remove(heartbeat)
        return True


def _stay(heartbeats: "weakref.ref[Heartbeats]", pause: float) -> None:
    """The loop of the thread; between rounds it holds no reference to the ledger."""
    goes_on = True
    while goes_on:
        time.sleep(pause)
        alive = heartbeats()
        goes_on = alive is not None and alive.look()
        del alive
