# SPDX-License-Identifier: Apache-2.0
"""What a machine and account remember of a ledger: a whole folder of an older time is refused."""

import logging
import os
import shutil
import stat
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import AccountFrozen, LedgerIncomplete, LedgerUnavailable, WrongUse
from sfumato.ledger import Ledger, remembered_head, spend
from sfumato.ledger.backup import backup, restore
from sfumato.ledger.recover import recover
from sfumato.ledger.remembered_head import LastEntry, RememberedHead, state_folder
from sfumato.ledger.signed_heads import Head, Signer
from sfumato.ledger.store import sqlite
from sfumato.ledger.store.base import Rows
from sfumato.ledger.store.sqlite import SQLite
from sfumato.noise.entropy import token
from tests.contracts.charges import entries, opened, paid, pure
from tests.contracts.images import crash_image

FULL = "ab" * 32


@pytest.fixture
def place(home: Path, tmp_path: Path) -> Iterator[Path]:
    """A closed ledger in a folder, charged once; ``older`` beside it is a copy from before."""
    live = tmp_path / "live"
    live.mkdir()
    with closing(opened(live / "l.db")) as ledger:
        paid(ledger, pure("0.1", "first"))
    shutil.copytree(live, tmp_path / "older")
    with closing(Ledger.open(live / "l.db")) as ledger:
        paid(ledger, pure("0.9", "second"))
    yield live / "l.db"


def go_back(place: Path) -> None:
    """Restores the older copy of the whole folder."""
    shutil.rmtree(place.parent)
    shutil.copytree(place.parent.with_name("older"), place.parent)


def test_a_ledger_that_lacks_the_remembered_entry_is_noticed(place: Path) -> None:
    Ledger.open(place).close()
    go_back(place)
    with pytest.raises(LedgerIncomplete, match="this user charged on this machine") as refusal:
        Ledger.open(place)
    assert "a copy of it was charged" in str(refusal.value)
    assert "sfumato ledger recover --accept-loss" in str(refusal.value)


class Other(RememberedHead):
    """A memory of another ledger."""

    def __init__(self, identity: str, *, shared: bool = False) -> None:
        super().__init__(token(), shared=shared)


MUTANTS: dict[str, tuple[object, str, object]] = {
    "nothing is compared": (RememberedHead, "missing_from", lambda *_: ""),
    "every entry is there": (LastEntry, "is_in", lambda *_: True),
    "every slot is torn": (LastEntry, "from_bytes", lambda *_: None),
    "another identity": (spend, "RememberedHead", Other),
    "nothing is noted": (SQLite, "remember", lambda *_: None),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_broken_memory_lets_a_restored_folder_charge(
    mutant: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(*MUTANTS[mutant])
    place: Path = request.getfixturevalue("place")
    go_back(place)
    # 1.9 is spent of 1
    with closing(Ledger.open(place)) as ledger:
        paid(ledger, pure("0.9", "second"))


def test_a_stream_that_was_restored_draws_no_place_again(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "live" / "l.db"
    place.parent.mkdir()

    def next_day() -> int:
        with closing(Ledger.open(place)) as ledger:
            pieces = ledger.resume(charge)
            ledger.begin(charge, pieces.begun + 1, fence=pieces.fence)
            ledger.append(charge, pieces.begun + 1, b"a day", fence=pieces.fence)
            ledger.suspend(charge, fence=pieces.fence)
            return pieces.begun + 1

    with closing(opened(place)) as ledger:
        charge = ledger.reserve(pure("0.5", "daily"))
        ledger.suspend(charge, fence=ledger.start(charge, places=3))
    assert next_day() == 1
    shutil.copytree(place.parent, tmp_path / "older")
    assert next_day() == 2
    go_back(place)
    with pytest.raises(LedgerIncomplete):
        next_day()
    # the mutant draws the second day again
    monkeypatch.setattr(RememberedHead, "missing_from", lambda *_: "")
    assert next_day() == 2


def test_a_copy_that_charged_looks_the_same(place: Path, tmp_path: Path) -> None:
    shutil.copytree(place.parent, tmp_path / "copy")
    with closing(Ledger.open(tmp_path / "copy" / "l.db")) as ledger:
        ledger.freeze("d", reason="a charge of the copy")
    with pytest.raises(LedgerIncomplete, match="a copy of it was charged"):
        Ledger.open(place)


def test_a_ledger_that_is_newer_than_what_is_remembered_charges(place: Path, home: Path) -> None:
    (head,) = home.iterdir()
    known = head.read_bytes()
    with closing(Ledger.open(place)) as ledger:
        ledger.freeze("d", reason="more entries")
    head.write_bytes(known)
    with closing(Ledger.open(place)) as ledger:
        assert ledger.thaw("d") == 0


def test_a_remembered_head_names_nobody_and_no_place(place: Path, home: Path) -> None:
    (head,) = home.iterdir()
    assert stat.S_IMODE(head.stat().st_mode) == 0o600
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    with closing(Ledger.open(place)) as ledger:
        identity, last = ledger.store.identity, entries(ledger)[-1]
    # title, counts, hashes: each word of both slots is one of them
    for line in head.read_text().splitlines():
        title, form, number, seq, digest, checksum = line.split(" ")
        assert (title, form) == ("sfumato-remembered-head", "1")
        assert number.isdigit() and seq.isdigit()
        assert len(bytes.fromhex(digest)) == len(bytes.fromhex(checksum)) == 32
    assert last.hash in head.read_text()
    assert identity not in head.read_text() + head.name


def are_noted_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each noted entry of a charge is on disk when it is noted."""
    seen: list[bool] = []

    def note(self: RememberedHead, seq: int, digest: str) -> None:
        # what another process would read now, if this one died
        image = crash_image(tmp_path / "l.db", tmp_path / f"image {len(seen)}")
        with closing(Ledger.open(image, read_only=True)) as copy:
            seen.append(digest in [entry.hash for entry in entries(copy)])

    monkeypatch.setattr(RememberedHead, "note", note)
    with closing(opened(tmp_path / "l.db")) as ledger:
        paid(ledger, pure("0.1"))
    return seen


def test_it_is_written_after_the_entry_is_on_disk(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the account, then three steps of a charge
    assert are_noted_on_disk(tmp_path, monkeypatch) == [True] * 4


def test_what_is_noted_before_the_commit_is_not_on_disk(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mutant: a power cut would leave a memory that is newer than the ledger."""
    commit = sqlite._Batches._commit

    def note_and_commit(self: sqlite._Batches) -> None:
        for row in self.rows.held.changed():
            if self.listener is not None:
                self.listener(row.seq, row.head)
        commit(self)

    monkeypatch.setattr(sqlite._Batches, "_commit", note_and_commit)
    assert False in are_noted_on_disk(tmp_path, monkeypatch)


@pytest.mark.parametrize("torn", [0, 1])
def test_a_torn_slot_is_absent_and_the_other_counts(place: Path, home: Path, torn: int) -> None:
    (head,) = home.iterdir()
    content = bytearray(head.read_bytes())
    slots = [LastEntry.from_bytes(bytes(content[:198])), LastEntry.from_bytes(bytes(content[198:]))]
    content[198 * torn + 50] ^= 1
    head.write_bytes(content)
    with closing(Ledger.open(place)) as ledger:
        assert RememberedHead(ledger.store.identity).entries() == [slots[1 - torn]]


def test_without_its_checksum_a_torn_slot_locks_the_ledger(
    place: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mutant."""

    def unchecked(slot: bytes) -> LastEntry:
        order, seq, digest, _ = slot.decode().split()[2:]
        return LastEntry(int(order), int(seq), digest)

    (head,) = home.iterdir()
    content = bytearray(head.read_bytes())
    for torn in (0, 1):
        content[198 * torn + 100] ^= 1
    head.write_bytes(content)
    Ledger.open(place).close()
    head.write_bytes(content)
    monkeypatch.setattr(LastEntry, "from_bytes", unchecked)
    with pytest.raises(LedgerIncomplete):
        Ledger.open(place)


@pytest.mark.parametrize("content", [b"", b"\xff\x00" * 198, b"a word", b"x" * 396, b"y" * 5000])
def test_a_torn_or_unreadable_head_is_absent(
    place: Path, home: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    (head,) = home.iterdir()
    head.write_bytes(content)
    go_back(place)
    with caplog.at_level(logging.WARNING, "sfumato.owner"):
        # as before there was any: nothing locks the ledger
        Ledger.open(place).close()
    assert ("is ignored" in caplog.text) == bool(content)


def test_a_folder_that_cannot_be_written_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    for state in (tmp_path / "file", tmp_path / "no" / "home" / "at" / "all"):
        monkeypatch.setenv("XDG_STATE_HOME", str(state))
        name = f"{len(state.parts)}.db"
        with closing(opened(tmp_path / name)) as ledger:
            paid(ledger, pure("0.1"))
        Ledger.open(tmp_path / name).close()
    assert (tmp_path / "file").read_text() == "" and not (tmp_path / "no").exists()


def test_a_user_without_a_home_remembers_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", "/home/ann")
    assert state_folder() == Path("/home/ann/.local/state/sfumato")

    def no_home(path: Path) -> Path:
        raise RuntimeError("no home")

    monkeypatch.setattr(Path, "expanduser", no_home)
    assert not RememberedHead("x").path.exists()
    RememberedHead("x").note(1, FULL)


def test_a_recovered_ledger_is_remembered_anew(place: Path, home: Path) -> None:
    go_back(place)
    missing = recover(place, reason="the disk died")
    assert "this user charged on this machine" in missing
    with closing(Ledger.open(place)) as ledger:
        assert ledger.standing("d").frozen
        ledger.thaw("d", reason="counted as nothing")
        paid(ledger, pure("0.2", "third"))
    Ledger.open(place).close()
    go_back(place)
    with pytest.raises(LedgerIncomplete):
        Ledger.open(place)


def test_a_backup_that_lacks_the_remembered_entry_is_refused(home: Path, tmp_path: Path) -> None:
    place, copy = tmp_path / "l.db", tmp_path / "b"
    with closing(opened(place)) as ledger:
        paid(ledger, pure("0.1", "first"))
        head = backup(place, copy, Signer(tmp_path / "key"))
        paid(ledger, pure("0.2", "second"))
    with pytest.raises(LedgerIncomplete, match="this user charged on this machine"):
        restore(copy, tmp_path / "new.db", [head])
    lost = restore(copy, tmp_path / "new.db", [head], accept_loss=True)
    assert len(lost) == 1
    with closing(Ledger.open(tmp_path / "new.db")) as ledger:
        assert ledger.standing("d").frozen


@pytest.fixture
def lost(home: Path, tmp_path: Path) -> Head:
    """The head of a backup, ``b``, of a ledger that then spent 0.9 of 1 and was lost."""
    place = tmp_path / "l.db"
    with closing(opened(place)) as ledger:
        paid(ledger, pure("0.1", "first"))
        head = backup(place, tmp_path / "b", Signer(tmp_path / "key"))
        paid(ledger, pure("0.9", "second"))
    for path in tmp_path.glob("l.db*"):
        path.unlink()
    return head


def restore_elsewhere(head: Head, folder: Path) -> None:
    """Restores a backup with its loss accepted at a scratch place, then without at the real one,
    which charges 0.9 again.
    """
    assert restore(folder / "b", folder / "scratch.db", [head], accept_loss=True)
    restore(folder / "b", folder / "l.db", [head])
    with closing(Ledger.open(folder / "l.db")) as ledger:
        paid(ledger, pure("0.9", "second"))


def test_after_an_accepted_loss_every_copy_without_its_freeze_is_refused(
    lost: Head, tmp_path: Path
) -> None:
    with pytest.raises(LedgerIncomplete, match="this user charged on this machine"):
        restore_elsewhere(lost, tmp_path)
    # the copy that was frozen goes on, once the owner has decided
    with closing(Ledger.open(tmp_path / "scratch.db")) as ledger:
        with pytest.raises(AccountFrozen):
            ledger.reserve(pure("0.9", "second"))
        ledger.thaw("d", reason="counted as nothing")
        paid(ledger, pure("0.2", "third"))
    # until a loss is accepted for another one
    assert restore(tmp_path / "b", tmp_path / "l.db", [lost], accept_loss=True)
    Ledger.open(tmp_path / "l.db").close()
    with pytest.raises(LedgerIncomplete, match="this user charged on this machine"):
        Ledger.open(tmp_path / "scratch.db")


def test_a_memory_that_an_accepted_loss_empties_lets_another_copy_charge(
    lost: Head, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mutant."""
    monkeypatch.setattr(RememberedHead, "accept", lambda head, _: head.path.write_bytes(b""))
    restore_elsewhere(lost, tmp_path)


@pytest.mark.parametrize("on_server", [False, True])
def test_a_restore_that_fails_accepts_no_loss(
    lost: Head, tmp_path: Path, database: str, *, on_server: bool
) -> None:
    target = tmp_path / "no folder" / "l.db"
    if on_server:
        # it holds another ledger
        opened(database).close()
    with pytest.raises((LedgerUnavailable, WrongUse)):
        restore(tmp_path / "b", database if on_server else target, [lost], accept_loss=True)
    with pytest.raises(LedgerIncomplete, match="this user charged on this machine"):
        restore(tmp_path / "b", tmp_path / "l.db", [lost])


def test_a_loss_that_is_accepted_before_the_restore_lets_another_copy_charge(
    lost: Head, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mutant."""

    def early(head: RememberedHead, rows: Rows) -> str:
        missing = compare(head, rows)
        head.accept(rows)
        return missing

    compare = RememberedHead.missing_from
    with monkeypatch.context() as hasty, pytest.raises(LedgerUnavailable):
        hasty.setattr(RememberedHead, "missing_from", early)
        restore(tmp_path / "b", tmp_path / "no folder" / "l.db", [lost], accept_loss=True)
    restore(tmp_path / "b", tmp_path / "l.db", [lost])
    with closing(Ledger.open(tmp_path / "l.db")) as ledger:
        paid(ledger, pure("0.9", "second"))


def test_after_a_restore_to_a_server_no_copy_in_a_file_charges(
    lost: Head, tmp_path: Path, database: str
) -> None:
    assert restore(tmp_path / "b", database, [lost], accept_loss=True)
    with closing(Ledger.open(database)) as ledger, pytest.raises(AccountFrozen):
        ledger.reserve(pure("0.9", "second"))
    with pytest.raises(LedgerIncomplete, match="this user charged on this machine"):
        restore(tmp_path / "b", tmp_path / "l.db", [lost])


def test_a_recovered_copy_that_lacks_nothing_remembered_locks_no_original(place: Path) -> None:
    with closing(Ledger.open(place)):
        copy = shutil.copy(place, place.with_name("copy.db"))
    assert "its mark (.open) is missing" in recover(copy, reason="the disk died")
    Ledger.open(place).close()


def test_after_a_recovery_no_older_copy_charges(place: Path, tmp_path: Path) -> None:
    shutil.copytree(tmp_path / "older", tmp_path / "scratch")
    go_back(place)
    recover(tmp_path / "scratch" / "l.db", reason="the disk died")
    with pytest.raises(LedgerIncomplete, match="this user charged on this machine"):
        Ledger.open(place)


def test_a_reader_compares_too_when_it_is_asked(place: Path) -> None:
    go_back(place)
    with closing(Ledger.open(place, read_only=True)) as ledger, pytest.raises(LedgerIncomplete):
        ledger.require_newest()


def test_the_ledgers_charged_longest_ago_are_forgotten(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remembered_head, "_MOST", 3)
    for number in range(5):
        head = RememberedHead(str(number))
        head.note(1, FULL)
        os.utime(head.path, (number, number))
    kept = [RememberedHead(str(number)).entries() != [] for number in range(5)]
    assert kept == [False, False, True, True, True]


@given(st.integers(0, 10**19), st.integers(0, 10**19), st.binary(min_size=32, max_size=32))
def test_a_slot_is_read_as_it_was_written(order: int, seq: int, digest: bytes) -> None:
    last = LastEntry(order, seq, digest.hex())
    assert len(last.to_bytes()) == 198
    assert LastEntry.from_bytes(last.to_bytes()) == last


@given(st.integers(0, 197), st.integers(1, 255))
def test_a_slot_with_another_byte_is_torn(place: int, change: int) -> None:
    slot = bytearray(LastEntry(7, 5, FULL).to_bytes())
    slot[place] ^= change
    assert LastEntry.from_bytes(bytes(slot)) is None


def test_slots_are_written_in_turn_also_by_the_next_process(home: Path) -> None:
    for first in (1, 3, 5):
        head = RememberedHead("one")
        for number in (first, first + 1):
            head.note(number, FULL)
            assert RememberedHead("one").entries()[0] == LastEntry(number, number, FULL)
        assert [entry.order for entry in RememberedHead("one").entries()] == [first + 1, first]


def test_threads_that_charge_at_once_leave_the_last_entry(home: Path, tmp_path: Path) -> None:
    with closing(opened(tmp_path / "l.db")) as ledger:
        threads = [
            threading.Thread(target=paid, args=(ledger, pure("0.01", f"q{number}")))
            for number in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        newest = RememberedHead(ledger.store.identity).entries()[0]
        assert newest.hash == entries(ledger)[-1].hash
