# SPDX-License-Identifier: Apache-2.0
"""A server that is crashed under its callers, who live on and hold every answer that they were
given.
"""

import random
import signal
import threading
from collections import defaultdict
from contextlib import suppress
from datetime import timedelta

from sfumato.errors import AccountFrozen, InProgress, LeaseExpired, LedgerUnavailable
from sfumato.ledger import Ledger, verify
from tests.contracts.charges import contract, pure
from tests.contracts.crashes import BUDGET, COST, Mutant, ask
from tests.contracts.postgres import Cluster

CALLERS = 8
# nothing but the ledger's own flushes brings a unit to the disk
LAZY = {"wal_writer_delay": "10s"}


class Callers:
    """Threads that ask until they are stopped, each question twice."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._stop = threading.Event()
        self._up = threading.Event()
        self._up.set()
        self._answers = threading.Semaphore(0)
        self.released: dict[str, list[str]] = defaultdict(list)
        self._threads = [
            threading.Thread(target=self._call, args=(number,)) for number in range(CALLERS)
        ]

    def __enter__(self) -> "Callers":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def wait_for(self, answers: int) -> None:
        """Returns when so many more answers have been given."""
        for _ in range(answers):
            assert self._answers.acquire(timeout=60)

    def crash(self, server: Cluster) -> None:
        """Loses the server under them, and brings it back."""
        self._up.clear()
        server.stop(signal.SIGQUIT)
        server.start(**LAZY)
        self._up.set()

    def _call(self, number: int) -> None:
        index = 0
        while not self._stop.is_set():
            index += 1
            request = pure(COST, f"q{number}-{index // 2}", analyst=f"analyst {number}")
            try:
                ask(self._ledger, request, self._hear, Mutant.NONE)
            except AccountFrozen:
                with suppress(LedgerUnavailable):
                    self._ledger.thaw("d")
            except LedgerUnavailable:
                self._up.wait()
            except (InProgress, LeaseExpired):
                pass  # the crash interrupted it

    def _hear(self, question: str, body: str) -> None:
        self.released[question].append(body)
        self._answers.release()


def crash_under_callers(server: Cluster, database: str, *, rounds: int, seed: int = 0) -> int:
    """Crashes and restarts the server; afterwards nothing released may be missing.

    How many were released.
    """
    dice = random.Random(seed)
    server.stop()
    server.start(**LAZY)
    ledger = Ledger.open(database, lease=timedelta(milliseconds=500))
    try:
        ledger.adopt(contract(BUDGET), BUDGET)
        with Callers(ledger) as callers:
            for _ in range(rounds):
                callers.wait_for(dice.randrange(20, 60))
                callers.crash(server)
        stored = ledger.store.read(
            lambda rows: {row.question: a.body.decode() for row, a in rows.history() if a}
        )
        assert {question: {stored.get(question)} for question in callers.released} == {
            question: set(bodies) for question, bodies in callers.released.items()
        }
        while ledger.store.read(lambda rows: rows.overdue(None, 1)):
            ledger.sweep()
        assert verify(ledger).problems == ()
        return sum(map(len, callers.released.values()))
    finally:
        ledger.close()
        server.stop()
        server.start()
