# SPDX-License-Identifier: Apache-2.0
"""Ways in which a file once forgot what was spent: its log lost, a copy, a second name, a move."""

import os
import shutil
from pathlib import Path

import pytest

from sfumato.errors import LedgerBusy, LedgerIncomplete, LedgerUnavailable
from sfumato.ledger import Ledger, verify
from sfumato.ledger.store import sqlite_opening
from sfumato.ledger.store.sqlite_file import require_one_place
from tests.contracts.charges import opened, paid, pure
from tests.contracts.images import crash_image
from tests.contracts.killed import killed_after

SPENT = 'paid(ledger, pure("0.01", "a")); ledger.store.checkpoint(); paid(ledger, pure("0.1", "b"))'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger that was killed after 0.11 were spent, of which the file itself knows 0.01."""
    folder = tmp_path_factory.mktemp("killed")
    killed_after(folder / "l.db", SPENT)
    return folder


@pytest.fixture
def crashed(folder: Path, tmp_path: Path) -> Path:
    """The same crash in a folder of its own."""
    return crash_image(folder / "l.db", tmp_path / "l.db")


def test_after_a_kill_the_next_opening_has_all_that_was_spent(tmp_path: Path) -> None:
    killed_after(tmp_path / "l.db", SPENT)
    killed_after(tmp_path / "l.db", 'paid(ledger, pure("0.2", "c"))')
    ledger = Ledger.open(tmp_path / "l.db")
    assert ledger.balance("d").spent.epsilon == 31 * 10**10
    assert verify(ledger).problems == ()


def test_a_moved_folder_is_the_same_ledger(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    killed_after(tmp_path / "old" / "l.db", SPENT)
    (tmp_path / "old").rename(tmp_path / "new")
    assert Ledger.open(tmp_path / "new" / "l.db").balance("d").spent.epsilon == 11 * 10**10


def lose_log(path: Path) -> None:
    Path(f"{path}-wal").unlink()


def empty_log(path: Path) -> None:
    Path(f"{path}-wal").write_bytes(b"")


def lose_log_and_mark(path: Path) -> None:
    lose_log(path)
    Path(f"{path}.open").unlink()


def lose_mark(path: Path) -> None:
    Path(f"{path}.open").unlink()


def spoil_mark(path: Path) -> None:
    Path(f"{path}.open").write_bytes(b"")


def cut_log(path: Path) -> None:
    os.truncate(f"{path}-wal", 4096)


def copy(path: Path) -> None:
    for end in ("", "-wal", ".open"):
        Path(f"{path}{end}").rename(path.parent / "old")
        shutil.copy(path.parent / "old", f"{path}{end}")


def swap_older(path: Path) -> None:
    other = path.parent / "other.db"
    opened(other).close()
    path.write_bytes(other.read_bytes())


LOSSES = [lose_log, empty_log, lose_log_and_mark, lose_mark, spoil_mark, cut_log, copy, swap_older]


@pytest.mark.parametrize("lose", LOSSES)
def test_a_file_that_lacks_what_was_acknowledged_is_refused_and_left_alone(
    crashed: Path, lose: object
) -> None:
    lose(crashed)  # type: ignore[operator]
    before = crashed.read_bytes()
    for _ in range(2):
        with pytest.raises(LedgerIncomplete, match="may have forgotten what was spent") as refused:
            Ledger.open(crashed)
    assert "sfumato ledger recover --accept-loss" in refused.value.remedy
    assert crashed.read_bytes() == before


@pytest.mark.parametrize("lose", LOSSES)
def test_who_verifies_such_a_file_is_told(crashed: Path, lose: object) -> None:
    lose(crashed)  # type: ignore[operator]
    ledger = Ledger.open(crashed, read_only=True)
    assert any("may have forgotten what was spent" in each for each in verify(ledger).problems)


@pytest.mark.parametrize("lose", LOSSES[:-2])
def test_a_file_put_back_with_what_it_lacked_is_whole_again(
    folder: Path, crashed: Path, lose: object
) -> None:
    saved = {end: Path(f"{crashed}{end}").read_bytes() for end in ("-wal", ".open")}
    lose(crashed)  # type: ignore[operator]
    with pytest.raises(LedgerIncomplete):
        Ledger.open(crashed)
    for end, content in saved.items():
        Path(f"{crashed}{end}").write_bytes(content)
    assert Ledger.open(crashed).balance("d").spent.epsilon == 11 * 10**10


@pytest.mark.parametrize("lose", LOSSES)
def test_an_opening_that_compared_nothing_would_be_noticed(
    crashed: Path, lose: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_opening, "shortfall_of", lambda *_, **__: "")
    with pytest.raises(pytest.fail.Exception):
        test_a_file_that_lacks_what_was_acknowledged_is_refused_and_left_alone(crashed, lose)


def test_a_copy_of_the_open_file_alone_is_refused(tmp_path: Path) -> None:
    ledger = opened(tmp_path / "l.db")
    paid(ledger, pure("0.6"))
    shutil.copy(tmp_path / "l.db", tmp_path / "copy.db")
    with pytest.raises(LedgerIncomplete):
        Ledger.open(tmp_path / "copy.db")
    ledger.close()
    # closed, the file is whole: a copy of it is a backup
    shutil.copy(tmp_path / "l.db", tmp_path / "copy.db")
    assert Ledger.open(tmp_path / "copy.db").balance("d").spent.epsilon == 6 * 10**11


def test_an_older_closed_file_in_place_of_one_that_was_open_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    opened(path).close()
    Path(f"{path}.head").unlink()
    old = path.read_bytes()
    killed_after(path, 'paid(ledger, pure("0.9"))')
    path.write_bytes(old)
    Path(f"{path}-wal").unlink()
    with pytest.raises(LedgerIncomplete, match="from before it was last opened"):
        Ledger.open(path)


def test_a_file_that_was_moved_or_linked_takes_no_charge(tmp_path: Path) -> None:
    path, other = tmp_path / "l.db", tmp_path / "hard.db"
    ledger = opened(path)
    other.hardlink_to(path)
    with pytest.raises(LedgerUnavailable, match="has 2 names"):
        ledger.reserve(pure("0.1"))
    ledger.close()
    for each in (path, other):
        with pytest.raises(LedgerUnavailable, match="has 2 names"):
            Ledger.open(each)
    other.unlink()
    ledger = Ledger.open(path)
    paid(ledger, pure("0.1"))
    assert ledger.balance("d").spent.epsilon == 10**11


@pytest.mark.parametrize("end", ["", "-wal"])
def test_a_file_that_was_moved_takes_no_charge_until_it_is_back(tmp_path: Path, end: str) -> None:
    path, away = Path(f"{tmp_path / 'l.db'}{end}"), tmp_path / "away"
    ledger = opened(tmp_path / "l.db")
    paid(ledger, pure("0.1", "a"))
    path.rename(away)
    with pytest.raises(LedgerUnavailable, match="is not the file that was opened"):
        ledger.reserve(pure("0.1", "b"))
    # what was answered is still there to be read
    assert ledger.answer("a") is not None
    shutil.copy(away, path)
    with pytest.raises(LedgerUnavailable, match="is not the file that was opened"):
        ledger.reserve(pure("0.1", "b"))
    path.unlink()
    away.rename(path)
    paid(ledger, pure("0.1", "b"))
    ledger.close()
    assert Ledger.open(tmp_path / "l.db").balance("d").spent.epsilon == 2 * 10**11


def test_a_charge_that_did_not_look_would_be_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_opening.Opening, "require_in_place", lambda _: None)
    with pytest.raises(pytest.fail.Exception):
        test_a_file_that_was_moved_or_linked_takes_no_charge(tmp_path)
    (tmp_path / "moved").mkdir()
    with pytest.raises(pytest.fail.Exception):
        test_a_file_that_was_moved_takes_no_charge_until_it_is_back(tmp_path / "moved", "")


def test_a_ledger_moved_while_it_is_open_is_whole_with_what_lay_beside_it_and_refused_without(
    tmp_path: Path,
) -> None:
    path, moved = tmp_path / "l.db", tmp_path / "moved.db"
    ledger = opened(path)
    paid(ledger, pure("0.6"))
    path.rename(moved)
    with pytest.raises(LedgerBusy):
        Ledger.open(moved)
    ledger.close()
    with pytest.raises(LedgerIncomplete, match="it is missing, and"):
        Ledger.open(path)
    with pytest.raises(LedgerIncomplete, match="it was open"):
        Ledger.open(moved)
    for end in ("-wal", ".open"):
        Path(f"{path}{end}").rename(f"{moved}{end}")
    assert Ledger.open(moved).balance("d").spent.epsilon == 6 * 10**11


def test_the_closing_of_a_replaced_file_leaves_the_log_of_the_other(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    ledger = opened(path)
    for end in ("", "-wal"):
        Path(f"{path}{end}").rename(tmp_path / f"moved{end}")
        Path(f"{path}{end}").write_bytes(b"another file")
    ledger.close()
    assert Path(f"{path}-wal").read_bytes() == path.read_bytes() == b"another file"


@pytest.mark.parametrize("left", ["-wal", ".open", ".head"])
def test_where_a_ledger_was_no_new_one_is_made(tmp_path: Path, left: str) -> None:
    path = tmp_path / "l.db"
    Path(f"{path}{left}").touch()
    with pytest.raises(LedgerIncomplete, match="it is missing, and"):
        Ledger.open(path)
    assert not path.exists()


def test_a_file_that_is_mounted_by_itself_is_refused(tmp_path: Path) -> None:
    path, table = tmp_path / "a ledger.db", tmp_path / "mountinfo"
    path.touch()
    quoted = str(path).replace(" ", "\\040")
    table.write_text(f"36 35 98:0 / {tmp_path} rw - ext3 /dev/root rw\n")
    require_one_place(str(path), str(table))
    table.write_text(
        f"36 35 98:0 /l.db {quoted} rw,noatime master:1 - ext3 /dev/root rw,errors=continue\n"
    )
    with pytest.raises(LedgerUnavailable, match="is mounted by itself"):
        require_one_place(str(path), str(table))
    require_one_place(str(path), str(tmp_path / "not told"))


def test_a_disk_that_refused_the_last_write_leaves_log_and_mark(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    ledger = opened(path)
    paid(ledger, pure("0.1"))
    ledger.store._batches._lost = True  # type: ignore[attr-defined]
    ledger.close()
    assert Path(f"{path}.open").exists()
    assert Path(f"{path}-wal").stat().st_size > 0
    assert Ledger.open(path).balance("d").spent.epsilon == 10**11
