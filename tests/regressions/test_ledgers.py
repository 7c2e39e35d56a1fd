# SPDX-License-Identifier: Apache-2.0
"""Ways in which a ledger once let itself be spent twice, or tampered with unnoticed."""

import os
import shutil
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import apsw
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import (
    AccountFrozen,
    LedgerBusy,
    LedgerCorrupt,
    LedgerIncomplete,
    LedgerUnavailable,
)
from sfumato.ledger import Ledger, verify
from sfumato.ledger.recover import recover
from sfumato.ledger.store.sqlite import SQLite

ROOT = Path(__file__).parents[2]
OPEN = """
import sys
from sfumato.errors import LedgerBusy
from sfumato.ledger import Ledger
try:
    Ledger.open(sys.argv[1])
except LedgerBusy:
    print("busy")
"""


def open_session(folder, *, epsilon=1):
    people = sf.Table(pa.table({"age": [1, 2, 3]}), columns={"age": sf.Integer(0, 9)})
    return sf.connect({"t": people}, dataset="d", budget=sf.Budget(epsilon), ledger=folder / "l.db")


def elsewhere(path):
    """What another process is told that opens the ledger."""
    return subprocess.run(
        [sys.executable, "-c", OPEN, str(path)], capture_output=True, text=True, check=True
    ).stdout.strip()


def test_a_second_connect_does_not_let_another_process_in(tmp_path):
    with open_session(tmp_path):
        open_session(tmp_path).close()
        assert elsewhere(tmp_path / "l.db") == "busy"
        with pytest.raises(LedgerBusy):
            Ledger.open(tmp_path / "l.db")
        assert elsewhere(tmp_path / "l.db") == "busy"


def test_reading_the_file_does_not_let_another_process_in(tmp_path):
    with open_session(tmp_path):
        (tmp_path / "l.db").read_bytes()
        assert elsewhere(tmp_path / "l.db") == "busy"


def test_a_fork_has_no_ledger(tmp_path):
    with open_session(tmp_path) as session:
        child = os.fork()
        if child == 0:
            try:
                session.query("SELECT COUNT(*) FROM t", epsilon="0.9")
            except LedgerBusy:
                os._exit(42)
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 42
        assert session.budget.left == 1


def test_an_emptied_ledger_is_no_fresh_budget(tmp_path):
    open_session(tmp_path).close()
    os.truncate(tmp_path / "l.db", 0)
    with pytest.raises(LedgerCorrupt):
        open_session(tmp_path)


def test_the_main_file_of_an_open_ledger_knows_the_account_and_is_refused(tmp_path):
    with open_session(tmp_path):
        (tmp_path / "copy").mkdir()
        shutil.copy(tmp_path / "l.db", tmp_path / "copy" / "l.db")
    with pytest.raises(LedgerIncomplete):
        Ledger.open(tmp_path / "copy" / "l.db")
    recover(tmp_path / "copy" / "l.db", reason="the newest files are lost")
    ledger = Ledger.open(tmp_path / "copy" / "l.db")
    assert ledger.budget_of("d") == sf.Budget(1)
    ledger.close()
    with open_session(tmp_path / "copy") as session, pytest.raises(AccountFrozen):
        session.query("SELECT COUNT(*) FROM t", epsilon="0.1")


@pytest.mark.parametrize(
    "tamper",
    [
        "UPDATE answer SET question = CASE rowid WHEN 1 THEN 'a' ELSE 'b' END",
        "UPDATE answer SET statement = 'another'",
        "UPDATE charge SET acknowledged = 1 WHERE state = 'forfeited'",
        "UPDATE charge SET reason = '' WHERE state = 'forfeited'",
    ],
)
def test_tampering_with_keys_and_failures_is_found(tmp_path, tamper):
    with open_session(tmp_path) as session:
        session.query("SELECT COUNT(*) FROM t", epsilon="0.1")
        session.query("SELECT SUM(age) FROM t", epsilon="0.1")
        session._engine.close()
        with pytest.raises(sf.SfumatoError):
            session.query("SELECT AVG(age) FROM t", epsilon="0.1")
        assert session.verify().problems == ()
    connection = apsw.Connection(str(tmp_path / "l.db"))
    connection.execute(tamper)
    connection.close()
    ledger = Ledger.open(tmp_path / "l.db")
    assert verify(ledger).problems
    ledger.close()


def test_a_closed_session_says_that_it_is_closed(tmp_path):
    session = open_session(tmp_path)
    session.close()
    with pytest.raises(LedgerUnavailable, match="closed"):
        session.query("SELECT COUNT(*) FROM t", epsilon="0.1")


def test_a_forged_second_answer_of_a_charge_is_found(tmp_path):
    with open_session(tmp_path) as session:
        session.query("SELECT COUNT(*) FROM t", epsilon="0.1")
    connection = apsw.Connection(str(tmp_path / "l.db"))
    # whoever has the file can also take the constraint away
    connection.execute("CREATE TABLE t AS SELECT rowid, * FROM answer; DROP TABLE answer")
    columns = "question, statement, shared, charge, body, seq, coding"
    connection.execute(f"CREATE TABLE answer ({columns})")
    connection.execute(f"INSERT INTO answer (rowid, {columns}) SELECT * FROM t")
    connection.execute(
        "INSERT INTO answer (rowid, question, charge, body) SELECT -1, 'q', charge, x'00' FROM t"
    )
    connection.close()
    ledger = Ledger.open(tmp_path / "l.db")
    assert verify(ledger).problems
    ledger.close()


@pytest.mark.parametrize("column", ["contract", "gates", "spent"])
def test_a_row_that_cannot_be_read_is_a_problem_and_no_failure(tmp_path, column):
    open_session(tmp_path).close()
    connection = apsw.Connection(str(tmp_path / "l.db"))
    connection.execute(f"UPDATE account SET {column} = '[]'")
    connection.close()
    with pytest.raises(LedgerCorrupt):
        Ledger.open(tmp_path / "l.db")
    ledger = Ledger.open(tmp_path / "l.db", read_only=True)
    assert verify(ledger).problems
    ledger.close()


def test_a_disk_that_is_full_is_no_corrupt_ledger(tmp_path):
    session = open_session(tmp_path)
    connection = session._ledger.store._connection
    connection.execute(
        f"PRAGMA max_page_count = {connection.execute('PRAGMA page_count').fetchone()[0]}"
    )
    with pytest.raises(LedgerUnavailable):
        for place in range(200):
            session.query(f"SELECT COUNT(*) FROM t WHERE age <> {place}", epsilon="0.001")
    session.close()


def test_a_fork_that_closes_does_not_lose_what_its_parent_spends(tmp_path):
    script = f"""
import os, pathlib, signal, sys
sys.path.insert(0, {str(ROOT)!r})
from tests.regressions.test_ledgers import open_session
session = open_session(pathlib.Path({str(tmp_path)!r}))
session.query("SELECT COUNT(*) FROM t", epsilon="0.1")
child = os.fork()
if child == 0:
    session.close()
    os._exit(0)
os.waitpid(child, 0)
session.query("SELECT SUM(age) FROM t", epsilon="0.8")
os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", script], check=False)
    with open_session(tmp_path) as session:
        assert session.budget.left == Fraction(1, 10)


def test_a_link_to_a_ledger_is_the_same_ledger(tmp_path):
    with open_session(tmp_path):
        (tmp_path / "soft.db").symlink_to(tmp_path / "l.db")
        os.link(tmp_path / "l.db", tmp_path / "hard.db")
        (tmp_path / "l.db").read_bytes()
        (tmp_path / "l.db.lock").unlink()
        assert [elsewhere(tmp_path / name) for name in ("soft.db", "hard.db", "l.db")] == [
            "busy"
        ] * 3


def test_what_is_left_of_a_ledger_is_no_new_one(tmp_path):
    (tmp_path / "l.db-wal").write_bytes(b"what was not yet in the main file")
    with pytest.raises(LedgerCorrupt):
        open_session(tmp_path)


@pytest.mark.parametrize("path", ["", None, "a\0b", "."])
def test_what_names_no_file_is_no_ledger(path):
    with pytest.raises(LedgerUnavailable):
        Ledger.open(path)


def test_a_damaged_page_is_found_even_where_no_row_lies(tmp_path):
    open_session(tmp_path).close()
    connection = apsw.Connection(str(tmp_path / "l.db"))
    root = connection.execute(
        "SELECT rootpage FROM sqlite_master WHERE name = 'answer_statement'"
    ).fetchone()[0]
    size = connection.execute("PRAGMA page_size").fetchone()[0]
    connection.close()
    with (tmp_path / "l.db").open("r+b") as file:
        file.seek((root - 1) * size)
        file.write(b"\xff" * 64)
    ledger = SQLite(tmp_path / "l.db")
    assert ledger.damage()
    ledger.close()
