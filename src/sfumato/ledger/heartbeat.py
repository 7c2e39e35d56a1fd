# SPDX-License-Identifier: Apache-2.0
"""Renews the lease of a long task while the thread that works on it lives."""

import threading
from types import TracebackType

from sfumato.errors import LeaseExpired, LedgerError
from sfumato.ledger.instalments import Instalments

# A lease is renewed so often before it would end that two renewals may fail.
_PART = 3


class Heartbeat:
    """Renews a lease until the ``with`` block is left or the thread that entered it is gone.

    A lease that is lost ends the renewals; the worker is told at its next step. A store that is away for
    a moment does not.

    Guarantees:
        a dead worker is not renewed
    """

    def __init__(self, ledger: Instalments, charge_id: str, *, fence: int = 0) -> None:
        self._ledger, self._charge, self._fence = ledger, charge_id, fence
        self._done = threading.Event()

    def __enter__(self) -> "Heartbeat":
        worker = threading.current_thread()
        self._thread = threading.Thread(
            target=self._beat, args=(worker,), name="sfumato heartbeat", daemon=True
        )
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._done.set()
        self._thread.join()

    def _beat(self, worker: threading.Thread) -> None:
        pause = self._ledger.lease.total_seconds() / _PART
        while not self._done.wait(pause) and worker.is_alive():
            try:
                self._ledger.renew(self._charge, fence=self._fence)
            except LeaseExpired:
                return
            except LedgerError:
                continue  # a server that is away for a moment: the next one may succeed
