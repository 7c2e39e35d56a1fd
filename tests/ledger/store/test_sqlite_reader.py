# SPDX-License-Identifier: Apache-2.0
"""A file that is only read stays as it is, whoever reads it."""

import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import apsw
import pytest

from sfumato.errors import (
    LedgerBusy,
    LedgerCorrupt,
    LedgerMissing,
    LedgerReadOnly,
    LedgerTooNew,
    LedgerUnavailable,
)
from sfumato.ledger import Ledger, verify
from sfumato.ledger.store.format import FORMAT
from sfumato.ledger.store.sqlite_reader import SQLiteReader
from sfumato.ledger.summary import summary
from tests.contracts.charges import in_state, opened, paid, pure

OLD = Path(__file__).parents[1] / "data"
NOBODY = 65534


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a closed ledger, which has an open charge: a dead process left it."""
    (tmp_path / "f").mkdir()
    ledger = opened(tmp_path / "f" / "l.db")
    paid(ledger, pure("0.1", "one"), b"answer")
    in_state(ledger, "executing", "two")
    ledger.close()
    return tmp_path / "f"


@pytest.fixture
def crashed(tmp_path: Path) -> Iterator[Path]:
    """A folder as a crash leaves it: what was charged last is in the log alone."""
    (tmp_path / "alive").mkdir()
    ledger = opened(tmp_path / "alive" / "l.db")
    paid(ledger, pure("0.1", "one"), b"answer")
    shutil.copytree(tmp_path / "alive", tmp_path / "crashed")
    yield tmp_path / "crashed"
    ledger.close()


def content(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Every file with its bytes and the time of its last change."""
    return {
        each.name: (each.read_bytes(), each.stat().st_mtime_ns) for each in sorted(folder.iterdir())
    }


def looked_at(folder: Path) -> tuple[object, ...]:
    """All that an auditor asks."""
    with_head = Ledger.open(folder / "l.db", read_only=True)
    try:
        entries = with_head.store.read(lambda rows: [each.kind for each in rows.entries("d")])
        spent = with_head.standing("d").spent.epsilon
        return (
            verify(with_head).problems,
            len(summary(with_head, "d").released),
            spent,
            with_head.accounts() != [],
            entries,
        )
    finally:
        with_head.close()


def test_nothing_is_written_beside_or_in_the_file(folder: Path) -> None:
    before = content(folder)
    problems, released, spent, has_accounts, entries = looked_at(folder)
    assert (problems, released, spent, has_accounts) == ((), 1, 10**11, True)
    assert entries == ["account", "reserve", "execute", "commit", "reserve", "execute"]
    assert content(folder) == before


def test_an_opening_that_writes_would_be_noticed(folder: Path) -> None:
    before = content(folder)
    Ledger.open(folder / "l.db").close()
    assert content(folder) != before


def test_what_a_crash_left_in_the_log_is_read_too(crashed: Path) -> None:
    before = content(crashed)
    assert before["l.db-wal"][0].count(b"answer") > 0
    assert looked_at(crashed)[2] == 10**11
    assert content(crashed) == before


@pytest.mark.parametrize("kind", ["folder", "crashed"])
def test_a_file_and_a_folder_that_may_only_be_read_are_read(
    kind: str, request: pytest.FixtureRequest
) -> None:
    place = request.getfixturevalue(kind)
    for each in place.iterdir():
        each.chmod(0o444)
    place.chmod(0o555)
    assert as_nobody(place, lambda: looked_at(place)[2] == 10**11)
    place.chmod(0o755)


def as_nobody(place: Path, check: Callable[[], bool]) -> bool:
    """Whether a check holds for somebody who is not the owner and not root."""
    for each in place.parents:
        if each.stat().st_uid == os.getuid() and len(each.parts) > 2:
            each.chmod(each.stat().st_mode | 0o055)
    child = os.fork()
    if child == 0:
        held = False
        try:
            if os.getuid() == 0:
                os.setuid(NOBODY)
            assert not os.access(place, os.W_OK)
            held = check()
        finally:
            os._exit(0 if held else 1)
    return os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("kind", ["folder", "crashed"])
def test_pages_are_checked_while_rows_are_read(kind: str, request: pytest.FixtureRequest) -> None:
    reader = SQLiteReader(request.getfixturevalue(kind) / "l.db")
    with ThreadPoolExecutor(1) as threads:
        # the transaction does not end before the check has
        found = reader.read(
            lambda rows: (threads.submit(reader._broken).result(10), len(list(rows.entries("d"))))
        )
    assert found[0] == []
    assert found[1] >= 4
    reader.close()


def test_a_damaged_page_is_found_by_whoever_only_reads(folder: Path) -> None:
    connection = apsw.Connection(str(folder / "l.db"))
    root = connection.execute(
        "SELECT rootpage FROM sqlite_master WHERE name = 'answer_statement'"
    ).fetchone()
    size = connection.execute("PRAGMA page_size").fetchone()
    connection.close()
    assert root is not None and size is not None
    with (folder / "l.db").open("r+b") as file:
        file.seek((int(root[0]) - 1) * int(size[0]))
        file.write(b"\xff" * 64)
    ledger = Ledger.open(folder / "l.db", read_only=True)
    assert any("the store is damaged" in each for each in verify(ledger).problems)
    ledger.close()


def test_readers_let_each_other_in_and_writers_out(folder: Path) -> None:
    one, other = SQLiteReader(folder / "l.db"), SQLiteReader(folder / "l.db")
    assert one.identity == other.identity
    one.close()
    one.close()
    with pytest.raises(LedgerBusy):
        Ledger.open(folder / "l.db")
    other.close()
    ledger = Ledger.open(folder / "l.db")
    with pytest.raises(LedgerBusy):
        SQLiteReader(folder / "l.db")
    ledger.close()


def test_what_would_change_it_is_refused(folder: Path) -> None:
    ledger = Ledger.open(folder / "l.db", read_only=True)
    for act in (
        lambda: ledger.reserve(pure("0.1", "three")),
        lambda: ledger.freeze("d"),
        lambda: ledger.store.write(lambda rows: None),
        lambda: ledger.store.read(lambda rows: rows.lock(["d"])),
    ):
        with pytest.raises(LedgerReadOnly, match="opened to be read"):
            act()
    ledger.store.checkpoint()
    assert ledger.store.peek("d") is not None
    ledger.close()


@pytest.mark.parametrize(
    "source", sorted(OLD.glob("format-*.sqlite")), ids=lambda source: source.stem
)
def test_an_older_format_is_brought_forward_in_memory(tmp_path: Path, source: Path) -> None:
    (tmp_path / "old").mkdir()
    shutil.copy(source, tmp_path / "old" / "l.db")
    before = content(tmp_path / "old")
    ledger = Ledger.open(tmp_path / "old" / "l.db", read_only=True)
    assert verify(ledger).problems == ()
    ledger.close()
    assert content(tmp_path / "old") == before


def test_what_is_no_ledger_is_refused(folder: Path) -> None:
    path = folder / "l.db"
    with pytest.raises(LedgerMissing):
        SQLiteReader(folder / "none.db")
    assert not (folder / "none.db").exists()
    with pytest.raises(LedgerUnavailable):
        SQLiteReader(folder)
    connection = apsw.Connection(str(path))
    connection.execute(f"PRAGMA user_version = {FORMAT + 1}")
    connection.close()
    with pytest.raises(LedgerTooNew):
        SQLiteReader(path)
    path.write_bytes(b"no database" * 1000)
    with pytest.raises(LedgerCorrupt):
        SQLiteReader(path)
    empty = apsw.Connection(str(folder / "other.db"))
    empty.execute("CREATE TABLE t (x)")
    empty.close()
    with pytest.raises(LedgerCorrupt):
        SQLiteReader(folder / "other.db")
