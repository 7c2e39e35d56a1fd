# SPDX-License-Identifier: Apache-2.0
"""SQLite as a store, and every trouble that a file can give."""

import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from sfumato.errors import (
    LedgerBusy,
    LedgerCorrupt,
    LedgerError,
    LedgerIncomplete,
    LedgerMissing,
    LedgerTooNew,
    LedgerUnavailable,
)
from sfumato.ledger import Ledger
from sfumato.ledger.recover import recover
from sfumato.ledger.store.base import Store
from sfumato.ledger.store.format import FORMAT
from sfumato.ledger.store.sqlite import SQLite
from tests.contracts.charges import opened, paid, pure
from tests.contracts.images import crash_image
from tests.contracts.ledger_store import LedgerStoreContract


@pytest.fixture
def open_store(tmp_path: Path) -> Callable[[], Store]:
    """Opens the same file each time."""
    return lambda: SQLite(tmp_path / "l.db")


class TestSQLite(LedgerStoreContract):
    """The shared suite."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A closed ledger with one paid answer."""
    where = tmp_path / "l.db"
    ledger = opened(where)
    paid(ledger, pure("0.1"))
    ledger.close()
    return where


def elsewhere(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Runs code in another process."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def pragma(store: SQLite, name: str) -> object:
    """A setting of the store's own connection."""
    return store._connection.execute(f"PRAGMA {name}").fetchone()[0]


def test_the_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    previous = os.umask(0)
    try:
        store = SQLite(tmp_path / "l.db")
    finally:
        os.umask(previous)
    store.write(lambda rows: None)
    for file in tmp_path.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file.name


def test_every_commit_is_flushed_and_one_connection_holds_the_file(tmp_path: Path) -> None:
    store = SQLite(tmp_path / "l.db")
    full = 2
    assert (pragma(store, "synchronous"), pragma(store, "journal_mode")) == (full, "wal")
    assert (pragma(store, "locking_mode"), pragma(store, "foreign_keys")) == ("exclusive", 1)


def test_the_sqlite_is_one_without_the_wal_reset_bug() -> None:
    assert tuple(int(part) for part in apsw.sqlite_lib_version().split(".")) >= (3, 51, 3)


def test_a_zero_length_file_is_a_ledger_that_was_lost_and_no_new_one(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    path.touch()
    with pytest.raises(LedgerCorrupt, match="is not a ledger, or is damaged"):
        Ledger.open(path)
    assert path.stat().st_size == 0


@pytest.mark.parametrize(
    "content", [os.urandom(8192), b"SQLite format 3\x00" + os.urandom(4080), b"hello, I am a text"]
)
def test_a_file_of_other_bytes_is_corrupt_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "l.db"
    path.write_bytes(content)
    with pytest.raises(LedgerCorrupt, match="is not a ledger, or is damaged") as caught:
        Ledger.open(path)
    assert "do not start a new ledger" in caught.value.remedy
    assert path.read_bytes() == content


def test_a_truncated_ledger_is_corrupt(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2 // 4096 * 4096 + 100])
    with pytest.raises(LedgerCorrupt):
        Ledger.open(path).answer("q")


def test_a_ledger_with_damaged_pages_never_answers_wrongly(path: Path) -> None:
    content = bytearray(path.read_bytes())
    for start in range(4096, len(content), 4096):
        content[start : start + 64] = os.urandom(64)
    path.write_bytes(content)
    with pytest.raises(LedgerCorrupt):
        Ledger.open(path).answer("q")


def test_the_database_of_another_program_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    other = apsw.Connection(str(path))
    other.execute("CREATE TABLE t (a); INSERT INTO t VALUES (1)")
    other.close()
    before = path.read_bytes()
    with pytest.raises(LedgerCorrupt):
        Ledger.open(path)
    assert path.read_bytes() == before


def test_a_newer_format_is_refused_and_left_alone(path: Path) -> None:
    newer = apsw.Connection(str(path))
    newer.execute(f"PRAGMA user_version = {FORMAT + 1}")
    newer.close()
    before = path.read_bytes()
    with pytest.raises(LedgerTooNew, match=f"has format {FORMAT + 1}; this version reads up to"):
        Ledger.open(path)
    assert path.read_bytes() == before


def test_a_ledger_that_another_process_holds_is_busy(path: Path) -> None:
    held = Ledger.open(path)
    tried = elsewhere(
        "import sys; from sfumato.errors import LedgerBusy\n"
        "from sfumato.ledger import Ledger\n"
        "try: Ledger.open(sys.argv[1])\n"
        "except LedgerBusy as error: print(error.problem)",
        path,
    )
    assert "is in use by another session or process" in tried.stdout, tried.stderr
    held.close()
    Ledger.open(path).close()


def test_a_second_session_of_the_same_process_is_busy_too(path: Path) -> None:
    held = Ledger.open(path)
    with pytest.raises(LedgerBusy):
        Ledger.open(path)
    held.close()


_AS_NOBODY = """
import os, sys
from sfumato.errors import LedgerReadOnly
from sfumato.ledger import Ledger
if os.getuid() == 0:
    os.setuid(65534)
try: Ledger.open(sys.argv[1])
except LedgerReadOnly as error: print(error.problem)
"""


def test_a_ledger_that_cannot_be_written_is_read_only() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "l.db"
        opened(path).close()
        before = path.read_bytes()
        path.chmod(0o444)
        path.parent.chmod(0o555)
        tried = elsewhere(_AS_NOBODY, path)
        path.parent.chmod(0o755)
        assert "cannot be written, so nothing can be charged" in tried.stdout, tried.stderr
        assert path.read_bytes() == before


@pytest.mark.parametrize("place", ["nowhere/l.db", "."])
def test_a_place_that_cannot_hold_a_file_is_unavailable(tmp_path: Path, place: str) -> None:
    with pytest.raises(LedgerUnavailable, match=r"No ledger can be kept|cannot be written"):
        Ledger.open(tmp_path / place)


def test_without_create_a_missing_ledger_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(LedgerMissing, match="No ledger at"):
        Ledger.open(tmp_path / "l.db", create=False)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_no_answer_and_no_spending(tmp_path: Path) -> None:
    ledger = opened(tmp_path / "l.db")
    charge = ledger.reserve(pure("0.1"))
    ledger.execute(charge)
    store = ledger.store
    assert isinstance(store, SQLite)
    store._connection.execute(f"PRAGMA max_page_count = {pragma(store, 'page_count')}")
    with pytest.raises(LedgerError):
        ledger.commit(charge, os.urandom(100_000))  # which no compression makes smaller
    assert ledger.answer("q") is None
    assert ledger.balance("d").reserved.epsilon == 10**11


def test_an_error_of_sqlite_never_reaches_the_caller(tmp_path: Path) -> None:
    store = SQLite(tmp_path / "l.db")
    store.close()
    for call in (store.damage, store.checkpoint, lambda: store.read(lambda rows: rows.charge("c"))):
        with pytest.raises(LedgerError):
            call()


def test_what_is_committed_can_be_read_by_a_copy_of_the_files(tmp_path: Path) -> None:
    ledger = opened(tmp_path / "l.db")
    paid(ledger, pure("0.1"), b"kept")
    assert Ledger.open(crash_image(tmp_path / "l.db", tmp_path / "copy.db")).answer("q") == b"kept"


def test_after_a_checkpoint_the_main_file_alone_knows_the_account_and_is_refused_until_it_is_recovered(
    tmp_path: Path,
) -> None:
    ledger = opened(tmp_path / "l.db")
    paid(ledger, pure("0.1"), b"kept")
    ledger.store.checkpoint()
    (tmp_path / "copy.db").write_bytes((tmp_path / "l.db").read_bytes())
    with pytest.raises(LedgerIncomplete, match=r"its mark \(.open\) is missing"):
        Ledger.open(tmp_path / "copy.db")
    with pytest.raises(LedgerIncomplete, match=r"its mark \(.open\) is missing"):
        Ledger(SQLite(tmp_path / "copy.db", accept_loss=True))
    recover(tmp_path / "copy.db", reason="the newest files are lost")
    copied = Ledger.open(tmp_path / "copy.db")
    assert copied.answer("q") == b"kept"
    assert copied.balance("d").spent.epsilon == 10**11


def test_a_lock_taken_in_the_same_process_survives_another_reader_of_the_file(path: Path) -> None:
    held = Ledger.open(path)
    # POSIX locks would be lost here: this process opens and closes the file
    path.read_bytes()
    with pytest.raises(LedgerBusy):
        Ledger.open(path)
    held.close()


def test_a_fork_has_no_ledger(path: Path) -> None:
    forked = elsewhere(
        "import os, sys\n"
        "from sfumato.errors import LedgerBusy\n"
        "from sfumato.ledger import Ledger\n"
        "ledger = Ledger.open(sys.argv[1])\n"
        "if os.fork() == 0:\n"
        "    try: ledger.answer('q')\n"
        "    except LedgerBusy as error: print(error.problem, flush=True)\n"
        "    os._exit(0)\n"
        "os.wait()\n"
        "print(ledger.answer('q'))",
        path,
    )
    assert "this is a fork of it" in forked.stdout
    assert "answer" in forked.stdout.splitlines()[-1], forked.stderr
