# SPDX-License-Identifier: Apache-2.0
"""A ledger file is opened once in a process, however many sessions there are."""

import os
import threading
from pathlib import Path

import pytest

from sfumato.errors import LedgerBusy, LedgerError, WrongUse
from sfumato.ledger import Ledger, process
from sfumato.ledger.process import borrow, give_back


def is_open(ledger: Ledger) -> bool:
    try:
        ledger.store.read(lambda rows: rows.counts())
    except LedgerError:
        return False
    return True


def test_the_same_file_is_the_same_ledger_until_the_last_lets_go(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    one, other = borrow(path), borrow(str(path))
    assert one is other
    give_back(one)
    assert is_open(other)
    give_back(other)
    assert not is_open(other)
    again = borrow(path)
    assert again is not one
    give_back(again)


def test_another_name_of_the_file_is_the_same_ledger(tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(tmp_path / "l.db")
    one = borrow(tmp_path / "l.db")
    other = borrow(tmp_path / "link.db")
    assert other is one
    give_back(one)
    give_back(other)


def test_other_files_are_other_ledgers(tmp_path: Path) -> None:
    one, other = borrow(tmp_path / "a.db"), borrow(tmp_path / "b.db")
    assert one is not other
    give_back(one)
    assert is_open(other)
    give_back(other)


def test_a_file_that_somebody_opened_otherwise_is_held(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path / "l.db")
    with pytest.raises(LedgerBusy):
        borrow(tmp_path / "l.db")
    ledger.close()
    give_back(borrow(tmp_path / "l.db"))


def test_another_key_than_that_of_the_open_ledger_is_refused(tmp_path: Path) -> None:
    path, key = tmp_path / "l.db", tmp_path / "keys" / "heads.pem"
    key.parent.mkdir()
    one = borrow(path, key)
    assert borrow(path) is borrow(path, str(key)) is one
    with pytest.raises(WrongUse, match="has the ledger open with another key"):
        borrow(path, tmp_path / "other.pem")
    for _ in range(3):
        give_back(one)
    assert (key.is_file(), path.with_name("l.db.key").exists()) == (True, False)
    give_back(borrow(path, tmp_path / "other.pem"))


def test_a_file_that_took_the_place_of_another_is_another_ledger(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    one = borrow(path)
    path.rename(tmp_path / "moved.db")
    # the lock lies beside the path, which is still held
    with pytest.raises(LedgerBusy):
        borrow(path)
    give_back(one)


def test_many_threads_open_it_once(tmp_path: Path) -> None:
    found: list[Ledger] = []
    threads = [
        threading.Thread(target=lambda: found.append(borrow(tmp_path / "l.db"))) for _ in range(16)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len({id(each) for each in found}) == 1
    for each in found:
        assert is_open(each)
        give_back(each)
    assert not is_open(found[0])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_does_not_wait_for_a_thread_that_it_does_not_have() -> None:
    with process._GUARD:
        child = os.fork()
        if child == 0:
            os._exit(0 if process._GUARD.acquire(timeout=1) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
