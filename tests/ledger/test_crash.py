# SPDX-License-Identifier: Apache-2.0
"""A process killed (SIGKILL) at every moment of a charge; what the next opening finds.

The outside witness is this process: it holds what the killed one printed before it died,
and opens the ledger file afterwards.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from sfumato.ledger import Ledger, verify
from sfumato.ledger.store.base import COMMITTED, FORFEITED, VOIDED

PROGRAM = """
import os, signal, sys
from fractions import Fraction
from sfumato.ledger import Ledger, Request
from sfumato.metadata.contract import Contract
from sfumato.noise import DiscreteLaplace
from sfumato.privacy import AdditiveNoise, Budget, Distance, Norm

path, point, mutant = sys.argv[1:]

def at(name):
    if name == point:
        os.kill(os.getpid(), signal.SIGKILL)

def spied(store, name):
    original = getattr(store, name)
    def call(*values):
        at("before " + name)
        result = original(*values)
        at("after " + name)
        return result
    setattr(store, name, call)

def show(body):
    sys.stdout.write(body)
    sys.stdout.flush()

budget = Budget(1)
ledger = Ledger.open(path)
ledger.adopt(Contract("d", "add-remove", {"t": "(row)"}, "1", "0"), budget)
event = AdditiveNoise(DiscreteLaplace(10), Distance(Norm.L1, Fraction(1)))
if mutant == "release before reserve":
    show("answer")
    at("shown")
if mutant == "commit after showing":
    Ledger.commit = lambda self, charge, body: None
at("opened")
for name in ("put_charge", "append"):
    if point.endswith("reserve " + name):
        point = point.replace("reserve ", "")
        spied(ledger.store, name)
charge = ledger.reserve(Request("d", "owner", "q", "s", event))
at("reserved")
for name in ("put_charge", "append"):
    if point.endswith("execute " + name):
        point = point.replace("execute ", "")
        spied(ledger.store, name)
ledger.execute(charge)
at("executing")
for name in ("put_charge", "put_account", "put_answer", "append"):
    if point.endswith("commit " + name):
        point = point.replace("commit ", "")
        spied(ledger.store, name)
ledger.commit(charge, b"answer")
at("committed")
show("answer")
at("shown")
"""

# what is found after a kill at each moment: the state of the charge, and the tenths spent
NOTHING, VOID, FORFEIT, COMMIT = ("none", 0), (VOIDED, 0), (FORFEITED, 1), (COMMITTED, 1)
MOMENTS = {
    "opened": NOTHING,
    "before reserve put_charge": NOTHING,
    "after reserve put_charge": NOTHING,
    "after reserve append": NOTHING,
    "reserved": VOID,
    "after execute put_charge": VOID,
    "after execute append": VOID,
    "executing": FORFEIT,
    "after commit put_charge": FORFEIT,
    "after commit append": FORFEIT,
    "after commit put_account": FORFEIT,
    "before commit put_answer": FORFEIT,
    "after commit put_answer": FORFEIT,
    "committed": COMMIT,
    "shown": COMMIT,
}


def killed_at(path: Path, moment: str, mutant: str = "none") -> str:
    """Runs the program until it kills itself; what it had shown by then."""
    command = [sys.executable, "-c", PROGRAM, str(path), moment, mutant]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert finished.returncode == -9, finished.stderr
    return finished.stdout


def found(path: Path) -> tuple[str, int, bytes | None]:
    """The state of the charge after reopening, the tenths of epsilon spent, and the answer."""
    ledger = Ledger.open(path)
    try:
        assert verify(ledger).problems == ()
        states = [row.state for row in ledger.store.charges()]
        balance = ledger.balance("d")
        assert balance.reserved.epsilon == 0
        return (states or ["none"])[0], balance.spent.epsilon // 10**11, ledger.answer("q")
    finally:
        ledger.close()


def paid_for_what_was_shown(shown: str, path: Path) -> bool:
    """The witness: nothing was shown that is not stored and spent."""
    _, spent, answer = found(path)
    return shown == "" or (spent == 1 and answer == shown.encode())


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_kill_at_any_moment_leaves_a_declared_state(tmp_path: Path, moment: str) -> None:
    path = tmp_path / "l.db"
    shown = killed_at(path, moment)
    state, spent, answer = found(path)
    assert (state, spent) == MOMENTS[moment]
    assert answer == (b"answer" if state == COMMITTED else None)
    assert paid_for_what_was_shown(shown, path)


@pytest.mark.parametrize("mutant", ["commit after showing", "release before reserve"])
def test_the_witness_catches_a_ledger_that_shows_too_early(tmp_path: Path, mutant: str) -> None:
    path = tmp_path / "l.db"
    shown = killed_at(path, "shown", mutant)
    assert shown == "answer"
    assert not paid_for_what_was_shown(shown, path)


def test_three_crashes_freeze_the_account_too(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    for _ in range(3):
        killed_at(path, "executing")
    ledger = Ledger.open(path)
    assert ledger.store.failures("d", "owner") == 3
    assert ledger.balance("d").spent.epsilon == 3 * 10**11


def test_a_recovery_that_voids_what_was_read_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "l.db"
    killed_at(path, "executing")

    def forgiving(self: Ledger) -> None:
        """A broken recovery: every open charge is given back."""
        with self.store.transaction():
            for row in list(self.store.charges("executing")):
                self.store.put_charge(type(row)(*(getattr(row, n) if n != "state" else VOIDED for n in row.__slots__)))

    monkeypatch.setattr(Ledger, "_recover", forgiving)
    with pytest.raises(AssertionError):
        found(path)
