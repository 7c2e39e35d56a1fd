# SPDX-License-Identifier: Apache-2.0
"""The owner's way out: what is left is frozen, by an entry of the journal, until the owner has
decided.
"""

import json
import shutil
from pathlib import Path

import pytest

from sfumato.errors import (
    AccountFrozen,
    LedgerCorrupt,
    LedgerIncomplete,
    LedgerMissing,
    LedgerMoved,
    WrongUse,
)
from sfumato.ledger import Ledger, verify
from sfumato.ledger import recover as room
from sfumato.ledger.recover import recover
from sfumato.ledger.store.base import SUCCESSOR
from sfumato.ledger.store.sqlite import SQLite
from sfumato.privacy import Budget
from tests.contracts.charges import contract, entries, opened, paid, pure


@pytest.fixture
def left(tmp_path: Path) -> Path:
    """The file alone of a ledger with two datasets that was open."""
    ledger = opened(tmp_path / "l.db")
    ledger.adopt(contract(Budget(2), "e"), Budget(2))
    paid(ledger, pure("0.1", "a"))
    ledger.store.checkpoint()
    paid(ledger, pure("0.5", "b"))
    return Path(shutil.copy(tmp_path / "l.db", tmp_path / "left.db"))


def test_a_recovered_ledger_charges_nothing_before_the_owner_has_decided(left: Path) -> None:
    assert "its mark (.open) is missing" in recover(left, reason="the disk died")
    ledger = Ledger.open(left)
    for dataset in ("d", "e"):
        with pytest.raises(
            AccountFrozen, match="recovered, and something is missing: the disk died"
        ):
            ledger.reserve(pure("0.1", "c", dataset=dataset))
    assert verify(ledger).problems == ()
    told = [json.loads(each.body) for each in entries(ledger) if each.kind == "recover"]
    why = "recovered, and something is missing: the disk died"
    assert [(each["account"], each["reason"]) for each in told] == [("d", why), ("e", why)]
    assert all("(.open) is missing" in each["missing"] for each in told)
    ledger.thaw("d")
    paid(ledger, pure("0.1", "c"))
    assert verify(ledger).problems == ()
    ledger.close()
    assert Ledger.open(left).balance("d").spent.epsilon == 2 * 10**11


def test_a_recovery_that_froze_nothing_would_be_noticed(
    left: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "_freeze", lambda rows, *_: rows.put_about("loss", ""))
    with pytest.raises(pytest.fail.Exception):
        test_a_recovered_ledger_charges_nothing_before_the_owner_has_decided(left)


def test_a_recovery_that_is_killed_before_the_freeze_is_none(
    left: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(room, "_freeze", killed)
    with pytest.raises(MemoryError):
        recover(left, reason="r")
    monkeypatch.undo()
    with pytest.raises(LedgerIncomplete, match="may have forgotten"):
        Ledger.open(left)
    recover(left, reason="again")
    assert Ledger.open(left).standing("d").frozen.endswith("again")


def test_an_older_copy_behind_its_head_can_be_recovered_too(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    opened(path).close()
    old = path.read_bytes()
    ledger = Ledger.open(path)
    paid(ledger, pure("0.9"))
    ledger.close()
    path.write_bytes(old)
    assert "forgets what was spent" in recover(path, reason="r")
    assert Ledger.open(path).standing("d").frozen != ""


def test_where_nothing_is_missing_nothing_is_recovered(tmp_path: Path) -> None:
    opened(tmp_path / "l.db").close()
    with pytest.raises(WrongUse, match="lacks nothing"):
        recover(tmp_path / "l.db", reason="r")
    assert Ledger.open(tmp_path / "l.db").standing("d").frozen == ""
    with pytest.raises(LedgerMissing):
        recover(tmp_path / "none.db", reason="r")
    with pytest.raises(WrongUse, match="reason="):
        recover(tmp_path / "l.db", reason="")


def test_a_ledger_that_has_moved_is_not_recovered(tmp_path: Path) -> None:
    ledger = opened(tmp_path / "l.db")
    ledger.store.write(lambda rows: rows.put_about(SUCCESSOR, "elsewhere"))
    ledger.close()
    with pytest.raises(LedgerMoved):
        recover(tmp_path / "l.db", reason="r")


def test_what_is_damaged_besides_is_not_recovered(left: Path) -> None:
    store = SQLite(left, accept_loss=True)
    store._connection.execute("UPDATE answer SET body = x'00'")
    store.close()
    with pytest.raises(LedgerCorrupt, match="damaged besides"):
        recover(left, reason="r")
