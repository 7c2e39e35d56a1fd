# SPDX-License-Identifier: Apache-2.0
"""Backups of a ledger in use, and the way back: never to less than is known, unless it is
frozen.
"""

import threading
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from sfumato.errors import AccountFrozen, LedgerCorrupt, LedgerError, LedgerIncomplete, WrongUse
from sfumato.ledger import Head, Ledger, Signer, verify
from sfumato.ledger import backup as module
from sfumato.ledger.backup import backup, restore
from sfumato.privacy.budget import Budget
from tests.contracts.charges import contract, paid, pure

UNIT = 10**10


@pytest.fixture
def ledger(place: str) -> Iterator[Ledger]:
    """A ledger in use that has spent 0.01 of 10, in a file or on a server."""
    opened = Ledger.open(place)
    opened.adopt(contract(Budget(10)), Budget(10))
    paid(opened, pure("0.01", "one"))
    yield opened
    opened.close()


@pytest.fixture
def signer(tmp_path: Path) -> Signer:
    """A key that lies elsewhere."""
    return Signer(tmp_path / "elsewhere.key")


def head_of(ledger: Ledger, signer: Signer) -> Head:
    """The newest head, as it is kept elsewhere."""
    return ledger.store.read(lambda rows: signer.sign(ledger.store.identity, rows))


def restored(tmp_path: Path, copy: Path, heads: list[Head], *, accept_loss: bool = False) -> Ledger:
    """The ledger of a backup, in a new place."""
    target = tmp_path / "restored.db"
    restore(copy, target, heads, accept_loss=accept_loss)
    return Ledger.open(target)


def test_a_backup_of_a_ledger_in_use_is_the_ledger(
    ledger: Ledger, place: str, tmp_path: Path, signer: Signer
) -> None:
    copy = tmp_path / "copy"
    head = backup(place, copy, signer)
    assert copy.stat().st_mode & 0o777 == 0o600
    assert Head.from_text((tmp_path / "copy.head").read_text()) == head
    back = restored(tmp_path, copy, [head_of(ledger, signer)])
    assert verify(back).problems == ()
    assert (back.answer("one"), back.balance("d").spent.epsilon) == (ledger.answer("one"), UNIT)
    paid(back, pure("0.01", "two"))
    back.close()
    # and the ledger goes on
    paid(ledger, pure("0.01", "two"))
    assert (
        sorted(
            path.name
            for path in tmp_path.iterdir()
            if ".new" in path.name or ".restoring" in path.name
        )
        == []
    )


def test_a_backup_that_lacks_what_a_head_knows_is_refused(
    ledger: Ledger, place: str, tmp_path: Path, signer: Signer
) -> None:
    backup(place, tmp_path / "copy", signer)
    paid(ledger, pure("0.01", "two"))
    for heads in ([head_of(ledger, signer)], []):
        with pytest.raises(LedgerIncomplete, match="older copy" if heads else "no head"):
            restored(tmp_path, tmp_path / "copy", heads)
        assert not (tmp_path / "restored.db").exists()


def test_without_the_comparison_a_restore_forgets(
    ledger: Ledger, place: str, tmp_path: Path, signer: Signer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mutant."""
    backup(place, tmp_path / "copy", signer)
    paid(ledger, pure("0.01", "two"))
    monkeypatch.setattr(module, "lacks", lambda *_: [])
    back = restored(tmp_path, tmp_path / "copy", [head_of(ledger, signer)])
    assert back.balance("d").spent.epsilon == UNIT
    back.close()


def test_a_loss_that_is_accepted_freezes_every_dataset_first(
    ledger: Ledger, place: str, tmp_path: Path, signer: Signer
) -> None:
    ledger.adopt(contract(Budget(1), "e"), Budget(1))
    backup(place, tmp_path / "copy", signer)
    paid(ledger, pure("0.01", "two"))
    back = restored(tmp_path, tmp_path / "copy", [head_of(ledger, signer)], accept_loss=True)
    for dataset in "de":
        with pytest.raises(AccountFrozen):
            back.reserve(pure("0.01", "three", dataset=dataset))
    assert verify(back).problems == ()
    back.thaw("d")
    assert back.reserve(pure("0.01", "three"))
    back.close()


def test_a_restore_goes_to_a_server_too(
    ledger: Ledger, place: str, tmp_path: Path, signer: Signer, database: str
) -> None:
    if place == database:
        with pytest.raises(WrongUse, match="No file"):
            restore(tmp_path / "copy", place, [])
        return
    backup(place, tmp_path / "copy", signer)
    paid(ledger, pure("0.01", "two"))
    with pytest.raises(LedgerIncomplete):
        restore(tmp_path / "copy", database, [head_of(ledger, signer)])
    restore(tmp_path / "copy", database, [head_of(ledger, signer)], accept_loss=True)
    back = Ledger.open(database)
    with pytest.raises(AccountFrozen):
        back.reserve(pure("0.01", "three"))
    assert (verify(back).problems, back.balance("d").spent.epsilon) == ((), UNIT)
    back.close()
    with pytest.raises(WrongUse, match="not empty"):
        restore(tmp_path / "copy", database, [], accept_loss=True)


def test_a_backup_is_no_ledger_by_itself(tmp_path: Path, signer: Signer) -> None:
    """A copy that is put into the ledger's place by hand is refused."""
    ledger = Ledger.open(tmp_path / "l.db")
    ledger.adopt(contract(Budget(1)), Budget(1))
    backup(tmp_path / "l.db", tmp_path / "copy", signer)
    ledger.close()
    with pytest.raises(LedgerIncomplete):
        Ledger.open(tmp_path / "copy")


@pytest.mark.parametrize("end", ["", "-wal", ".open", ".head"])
def test_nothing_is_restored_over_what_is_left_of_a_ledger(
    tmp_path: Path, signer: Signer, end: str
) -> None:
    ledger = Ledger.open(tmp_path / "l.db")
    ledger.adopt(contract(Budget(1)), Budget(1))
    head = backup(tmp_path / "l.db", tmp_path / "copy", signer)
    ledger.close()
    (tmp_path / f"restored.db{end}").write_bytes(b"")
    with pytest.raises(WrongUse, match="is there already"):
        restore(tmp_path / "copy", tmp_path / "restored.db", [head])


@pytest.mark.parametrize(
    "damage",
    ["DELETE FROM answer", "UPDATE account SET spent = held", "UPDATE journal SET body = '{}'"],
)
def test_a_ledger_that_does_not_verify_is_no_backup(
    tmp_path: Path, signer: Signer, damage: str
) -> None:
    ledger = Ledger.open(tmp_path / "l.db")
    ledger.adopt(contract(Budget(1)), Budget(1))
    paid(ledger, pure("0.01", "one"))
    ledger.close()
    connection = apsw.Connection(str(tmp_path / "l.db"))
    connection.execute(damage)
    connection.close()
    with pytest.raises(LedgerCorrupt, match="does not say what happened"):
        backup(tmp_path / "l.db", tmp_path / "copy", signer)
    assert not (tmp_path / "copy").exists() and not (tmp_path / "copy.new").exists()


def test_a_copy_holds_every_charge_that_had_returned_before_it_was_begun(
    tmp_path: Path, signer: Signer
) -> None:
    """Backups in a row while eight callers charge, each verified, none behind the head of its
    moment.
    """
    ledger = Ledger.open(tmp_path / "l.db")
    ledger.adopt(contract(Budget(1000)), Budget(1000))
    stop, done = threading.Event(), []

    def call(number: int) -> None:
        index = 0
        while not stop.is_set():
            index += 1
            paid(
                ledger,
                pure("0.01", f"q {number} {index}", analyst=f"analyst {number}"),
                b"x" * 3000,
            )
            done.append(number)

    callers = [threading.Thread(target=call, args=(number,)) for number in range(8)]
    for caller in callers:
        caller.start()
    try:
        for number in range(10):
            before = head_of(ledger, signer)
            backup(tmp_path / "l.db", tmp_path / f"copy {number}", signer)
            with module._reading(tmp_path / f"copy {number}") as copy:
                assert copy.read(lambda rows, before=before: module.lacks(rows, [before])) == []
    finally:
        stop.set()
        for caller in callers:
            caller.join()
        ledger.close()
    assert len(done) > 20


def test_no_file_and_no_folder_are_said_so(tmp_path: Path, signer: Signer) -> None:
    with pytest.raises(LedgerError):
        backup(tmp_path / "nothing", tmp_path / "copy", signer)
    with pytest.raises(WrongUse, match="No file"):
        restore(tmp_path / "copy", tmp_path / "l.db", [])


def closed_and_copied(tmp_path: Path, signer: Signer) -> Head:
    """The head of a backup of a ledger that was closed."""
    ledger = Ledger.open(tmp_path / "l.db")
    ledger.adopt(contract(Budget(1)), Budget(1))
    ledger.close()
    return backup(tmp_path / "l.db", tmp_path / "copy", signer)


def test_a_backup_takes_no_charge_before_restore_has_compared_it(
    tmp_path: Path, signer: Signer
) -> None:
    head = closed_and_copied(tmp_path, signer)
    with pytest.raises(LedgerIncomplete, match="it is a backup, and 'sfumato ledger restore'"):
        Ledger.open(tmp_path / "copy")
    back = restored(tmp_path, tmp_path / "copy", [head])
    paid(back, pure("0.01", "two"))
    back.close()


def test_a_backup_that_is_not_marked_would_be_a_second_ledger(
    tmp_path: Path, signer: Signer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mutant."""
    monkeypatch.setattr(module, "_mark", lambda _: None)
    with pytest.raises(pytest.fail.Exception):
        test_a_backup_takes_no_charge_before_restore_has_compared_it(tmp_path, signer)
