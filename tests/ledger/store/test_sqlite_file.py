# SPDX-License-Identifier: Apache-2.0
"""The file of a ledger: held once, made whole, widened once."""

import os
from pathlib import Path

import pytest

from sfumato.errors import LedgerBusy, LedgerCorrupt, LedgerReadOnly, LedgerUnavailable
from sfumato.ledger.store.sqlite import SQLite
from sfumato.ledger.store.sqlite_file import hold, let_go, make, place_of, widen
from tests.contracts.images import crash_image
from tests.contracts.ledger_store import ACCOUNT, put


def test_one_place_has_one_name(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    assert (
        place_of(tmp_path / "link" / "l.db")
        == place_of(str(tmp_path / "l.db"))
        == str(tmp_path / "l.db")
    )


@pytest.mark.parametrize("path", ["", None, 3, "a\0b", "."])
def test_what_names_no_file_has_no_place(path: object) -> None:
    with pytest.raises(LedgerUnavailable):
        place_of(path)


def test_a_file_is_held_once_until_it_is_let_go(tmp_path: Path) -> None:
    path, first, second = str(tmp_path / "l"), list[int](), list[int]()
    hold(f"{path}.lock", path, first, create=True)
    with pytest.raises(LedgerBusy, match=r"postgresql://") as refused:
        hold(f"{path}.lock", path, second, create=True)
    assert "one process at a time" in refused.value.remedy
    let_go(first)
    hold(f"{path}.lock", path, second, create=True)
    let_go(second)
    assert first == second == []


def test_copies_of_a_lock_are_closed_without_unlocking(tmp_path: Path) -> None:
    path, mine = str(tmp_path / "l"), list[int]()
    hold(f"{path}.lock", path, mine, create=True)
    copies = [os.dup(mine[0])]
    let_go(copies, unlock=False)
    with pytest.raises(LedgerBusy):
        hold(f"{path}.lock", path, copies, create=True)
    let_go(mine)


def test_a_new_ledger_has_its_name_only_when_it_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("sfumato.ledger.store.sqlite_schema.create", crash)
    with pytest.raises(MemoryError):
        make(str(tmp_path / "l.db"))
    assert not (tmp_path / "l.db").exists()


def test_what_is_there_is_not_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    make(str(path))
    content = path.read_bytes()
    make(str(path))
    assert path.read_bytes() == content
    path.write_bytes(b"")
    with pytest.raises(LedgerCorrupt):
        make(str(path))


def test_a_folder_that_may_only_be_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("tempfile.mkstemp", refuse)
    with pytest.raises(LedgerReadOnly):
        make(str(tmp_path / "l.db"))


def test_a_log_is_widened_once_and_says_nothing_more_by_it(tmp_path: Path) -> None:
    store = SQLite(tmp_path / "l.db")
    log = tmp_path / "l.db-wal"
    size = log.stat().st_size
    assert size >= 1000 * 4096
    put(store, ACCOUNT)
    widen(str(log))
    assert log.stat().st_size == size
    copy = SQLite(crash_image(tmp_path / "l.db", tmp_path / "copy.db"))
    assert copy.peek("d") == ACCOUNT
    copy.close()
    store.close()


def test_a_log_that_cannot_be_widened_is_left(tmp_path: Path) -> None:
    widen(str(tmp_path / "none"))
    widen(str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_what_a_crash_left_without_a_name_is_cleared(tmp_path: Path) -> None:
    for name in (
        "l.db.x1y2.new",
        "l.db.head.new",
        "l.db.key.new",
        "l.db.open.new",
        "other.db.x.new",
        "l.db.news",
    ):
        (tmp_path / name).touch()
    SQLite(tmp_path / "l.db").close()
    left = {each.name for each in tmp_path.iterdir()}
    assert left == {"l.db", "l.db.lock", "other.db.x.new", "l.db.news"}
