# SPDX-License-Identifier: Apache-2.0
"""How processes end: in order, or killed, with charges in progress."""

import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from sfumato.errors import AccountFrozen, LedgerUnavailable
from sfumato.ledger import Ledger, at_exit
from sfumato.ledger.store.base import FORFEITED
from sfumato.privacy import Budget
from tests.contracts.charges import charges, contract, in_state, opened, pure

# Ends with two charges in progress, after a signal that the process catches or not.
ENDING = """
import os, signal, sys, threading, time
from datetime import timedelta
from sfumato.ledger import Ledger
from sfumato.ledger.heartbeat import Heartbeat
from tests.contracts.charges import in_pieces, in_state

place, name, handled = sys.argv[1:]
ledger = Ledger.open(place, create=False, lease=timedelta(seconds=5))
if handled:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))
begun = threading.Event()

def work():
    charge = in_state(ledger, "executing", name)
    pieces, fence = in_pieces(ledger, 2, name + " in pieces")
    with Heartbeat(ledger, charge), Heartbeat(ledger, pieces, fence=fence):
        begun.set()
        time.sleep(60)

threading.Thread(target=work, daemon=True).start()
begun.wait()
os.kill(os.getpid(), signal.SIGTERM)
time.sleep(60)
"""


def ended(place: str, name: str, *, handled: bool) -> None:
    """A process that is ended by SIGTERM with two charges in progress."""
    command = [sys.executable, "-c", ENDING, place, name, "handled" if handled else ""]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == (3 if handled else -signal.SIGTERM), done.stderr


def test_a_process_that_ends_in_order_leaves_no_failure(place: str) -> None:
    with closing(Ledger.open(place)) as ledger:
        ledger.adopt(contract(Budget(1)), Budget(1))
    ended(place, "one", handled=True)
    with closing(Ledger.open(place)) as ledger:
        states = {(row.state, row.reason, row.failures) for row in charges(ledger)}
        assert states == {("forfeited", "interrupted", 0), ("suspended", "interrupted", 0)}
        # nothing is given back: 0.1 is spent, and 0.1 reserved
        balance = ledger.balance("d")
        assert balance.spent.epsilon == balance.reserved.epsilon == 10**11


def test_a_process_that_is_killed_leaves_failures(tmp_path: Path) -> None:
    opened(tmp_path / "l.db").close()
    ended(str(tmp_path / "l.db"), "one", handled=False)
    with closing(Ledger.open(tmp_path / "l.db")) as ledger:
        assert {row.reason for row in charges(ledger)} == {"crash"}
        in_state(ledger, FORFEITED, "two")
        with pytest.raises(AccountFrozen) as refusal:
            ledger.reserve(pure("0.1"))
    assert "sfumato ledger thaw, or Ledger.open(path).thaw('d')" in str(refusal.value)


def test_a_ledger_that_was_closed_before_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    class Closed:
        def interrupt(self) -> None:
            done.append("closed")
            raise LedgerUnavailable("The session is closed.")

    class Open:
        def interrupt(self) -> None:
            done.append("open")

    both = [Closed(), Open()]
    monkeypatch.setattr(at_exit, "_OPEN", both)
    at_exit._interrupt_all()
    assert done == ["closed", "open"]
