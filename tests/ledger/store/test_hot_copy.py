# SPDX-License-Identifier: Apache-2.0
"""Copies of a ledger file that is being written, at the worst moments."""

from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from sfumato.errors import LedgerBusy, LedgerCorrupt, LedgerError, LedgerMissing, LedgerUnavailable
from sfumato.ledger import Ledger
from sfumato.ledger.store import hot_copy as module
from sfumato.ledger.store.hot_copy import hot_copy
from sfumato.privacy.budget import Budget
from tests.contracts.charges import contract, paid, pure


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """A ledger in use."""
    opened = Ledger.open(tmp_path / "l.db")
    opened.adopt(contract(Budget(100)), Budget(100))
    yield opened
    opened.close()


def charged(path: Path) -> int:
    """How many charges with an answer are in a copy that SQLite finds sound."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    (found,) = connection.execute(
        "SELECT count(*) FROM charge JOIN answer ON answer.charge = charge.id"
    ).fetchall()
    connection.close()
    return int(found[0])


def begun_anew(ledger: Ledger, monkeypatch: pytest.MonkeyPatch, times: int) -> list[str]:
    """So often, after the file was copied and before its log is, charges come and the log is begun
    anew.
    """
    copied, copy = list[str](), module._copy

    def interrupted(source: str, target: str) -> None:
        if source.endswith("-wal") and copied.count(source) < times:
            for number in range(20):
                paid(ledger, pure("0.01", f"{len(copied)} {number}"), b"x" * 5000)
            ledger.store.checkpoint()
            paid(ledger, pure("0.01", f"{len(copied)} last"))
        copied.append(source)
        copy(source, target)

    monkeypatch.setattr(module, "_copy", interrupted)
    return copied


def test_a_copy_holds_every_charge_that_had_returned_before_it_was_begun(
    ledger: Ledger, tmp_path: Path
) -> None:
    for number in range(1, 4):
        paid(ledger, pure("0.01", str(number)))
        hot_copy(str(tmp_path / "l.db"), str(tmp_path / "copy"))
        assert charged(tmp_path / "copy") == number
        assert (tmp_path / "copy").stat().st_mode & 0o777 == 0o600
    assert not (tmp_path / "copy-wal").exists()


def test_a_log_that_was_begun_anew_is_copied_again(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied = begun_anew(ledger, monkeypatch, times=2)
    hot_copy(str(tmp_path / "l.db"), str(tmp_path / "copy"))
    assert (len(copied), charged(tmp_path / "copy")) == (6, 42)


def test_a_copy_that_does_not_look_at_the_log_lacks_charges(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mutant."""
    monkeypatch.setattr(module, "_state", lambda _: 0)
    begun_anew(ledger, monkeypatch, times=1)
    with pytest.raises((LedgerCorrupt, AssertionError, apsw.Error)):
        hot_copy(str(tmp_path / "l.db"), str(tmp_path / "copy"))
        assert charged(tmp_path / "copy") == 21


def test_a_log_that_never_rests_is_said_so(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_ATTEMPTS", 2)
    begun_anew(ledger, monkeypatch, times=9)
    with pytest.raises(LedgerBusy, match="too quickly"):
        hot_copy(str(tmp_path / "l.db"), str(tmp_path / "copy"))


@pytest.mark.parametrize(
    ("source", "target", "error"),
    [
        ("nothing", "copy", LedgerMissing),
        ("l.db", "no/folder", LedgerUnavailable),
        ("text", "copy", LedgerCorrupt),
    ],
)
def test_what_cannot_be_copied_is_said(
    ledger: Ledger, tmp_path: Path, source: str, target: str, error: type[LedgerError]
) -> None:
    (tmp_path / "text").write_text("x" * 5000)
    with pytest.raises(error):
        hot_copy(str(tmp_path / source), str(tmp_path / target))
