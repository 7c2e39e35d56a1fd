# SPDX-License-Identifier: Apache-2.0
"""Opening, locking down and failing: typed errors without a value, or one constant message."""

import logging
import os
import signal
import stat
import threading
from contextlib import closing
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.engines.duckdb import PASSED, DuckDB
from sfumato.engines.emit import Statement
from sfumato.engines.inspect_columns import read_through
from sfumato.errors import EngineFailed, InvalidDeclaration, InvalidSource, SfumatoError
from sfumato.ledger.store.base import FORFEITED
from sfumato.plan.aggregate import CountRows, CountUnits, CountValues
from tests.contracts.charges import charges
from tests.contracts.interrupts import heard
from tests.contracts.world import by
from tests.engines.conftest import flat

COLUMNS = {"a": sf.Integer(0, 9), "b": sf.Text()}
CANARY = "canary-4711"
FRAME = {"a": [1, 2, None], "b": [CANARY, None, "x"]}


def everything(ask):
    """COUNT(*), COUNT(a), COUNT(b) and SUM(a)."""
    return ask.duckdb(ask.counts())


@pytest.fixture
def csv(tmp_path, asker):
    """Writes bytes as a CSV file and asks all of it."""

    def ask(content, columns=COLUMNS):
        path = tmp_path / "data.csv"
        path.write_bytes(content)
        return everything(asker(path, columns))

    return ask


# --- sources ---------------------------------------------------------------------------------


def test_every_kind_of_source_gives_the_same_integers(asker, tmp_path, csv):
    pq.write_table(pa.table(FRAME), tmp_path / "data.parquet")
    sources = [
        pa.table(FRAME),
        pd.DataFrame(FRAME),
        pl.DataFrame(FRAME),
        FRAME,
        tmp_path / "data.parquet",
    ]
    expected = {(): (3, 2, 2, 3)}
    assert [everything(asker(each, COLUMNS)) for each in sources] == [expected] * 5
    assert csv(f"a,b\n1,{CANARY}\n2,\n,x\n".encode()) == expected
    with duckdb.connect() as connection:
        connection.register("frame", pa.table(FRAME))
        assert everything(asker(connection.table("frame"), COLUMNS)) == expected


@pytest.mark.parametrize("name", ["it's.csv", "A.CSV", "é 空.csv", "a b.csv"])
def test_an_odd_file_name_is_read(tmp_path, asker, name):
    (tmp_path / name).write_bytes(b"a,b\n1,x\n")
    assert everything(asker(str(tmp_path / name), COLUMNS)) == {(): (1, 1, 1, 1)}


# What a file gives where nothing in it may raise: a line that cannot be read is no row.
ODD = {
    "a quote in a value": (b'a,b\n1,x"y\n2,y\n3,z\n', (3, 3, 3, 6)),
    "nul bytes": (b"a,b\n1,x\x00y\n2,y\n", (2, 2, 2, 3)),
    "header only": (b"a,b\n", (0, 0, 0, 0)),
    "header without an end": (b"a,b", (0, 0, 0, 0)),
    "blank lines": (b"a,b\n\n1,x\n\n\n2,y\n", (2, 2, 2, 3)),
    "windows lines": (b"a,b\r\n1,x\r\n2,y\r\n", (2, 2, 2, 3)),
    "old line ends": (b"a,b\r1,x\r2,y\r", (2, 2, 2, 3)),
    "a byte order mark": (b"\xef\xbb\xbfa,b\n1,x\n", (1, 1, 1, 1)),
    "a quoted line end": (b'a,b\n1,"x\ny"\n2,z\n', (2, 2, 2, 3)),
    "a doubled quote": (b'a,b\n1,"x""y"\n2,z\n', (2, 2, 2, 3)),
    "the word NULL": (b"a,b\n1,NULL\n2,null\n", (2, 2, 2, 3)),
}
DAMAGED = {
    "bytes that are not utf-8": (b"a,b\n1,\xff\xfe\n2,y\n", (1, 1, 1, 2)),
    "short lines": (b"a,b\n1\n2,y\n", (2, 2, 1, 3)),
    "long lines": (b"a,b\n1,x,z,k\n2,y\n", (2, 2, 2, 3)),
    "a quote that is never closed": (b'a,b\n1,"x\n2,y\n3,z\n', (1, 1, 1, 1)),
    "text behind a quote": (b'a,b\n1,"x"y\n2,y\n', (2, 2, 2, 3)),
    "a line of 5 MB": (b"a,b\n1," + b"x" * 5_000_000 + b"\n2,y\n", (1, 1, 1, 2)),
    "mixed lines": (b"a,b\r\n1,x\n2,y\r\n3,z\n", (3, 3, 3, 6)),
}


@pytest.mark.parametrize("name", ODD)
def test_an_odd_csv_is_read(csv, name):
    content, integers = ODD[name]
    assert csv(content) == ({(): integers} if any(integers) else {})


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_csv_is_refused_at_opening(csv, name, caplog):
    content, _ = DAMAGED[name]
    with pytest.raises(InvalidSource, match="not well-formed CSV") as refusal:
        csv(content.replace(b"2,y", f"2,{CANARY}".encode()))
    assert refusal.value.remedy
    assert CANARY not in str(refusal.value) + caplog.text


@pytest.mark.parametrize("name", DAMAGED | ODD)
def test_a_csv_that_was_damaged_after_opening_never_raises(engine, asker, tmp_path, name):
    content, integers = (DAMAGED | ODD)[name]
    plan = asker(None, COLUMNS).counts()
    # behind the last look at its file: what has changed before that is refused
    run = engine.ready(plan, "key")
    (tmp_path / "data.csv").write_bytes(content)
    assert flat(plan, run()) == ({(): integers} if any(integers) else {})


def test_random_bytes_after_opening_never_raise(engine, asker, tmp_path):
    run = engine.ready(asker(None, COLUMNS).counts(), "key")
    for _ in range(10):
        (tmp_path / "data.csv").write_bytes(b"a,b\n" + os.urandom(2_000) + b'"' + os.urandom(2_000))
        assert run()[0].get((), (0,))[0] >= 0


UNREADABLE = {
    "empty": b"",
    "a name twice": b"a,a\n1,2\n",
    "a name twice but for case": b"a,A,b\n1,2,3\n",
    "a column without a name": b"a,,b\n1,2,3\n",
    "a header that is not utf-8": b"a,\xff\n1,x\n",
    "another encoding": "a,b\n1,x\n".encode("utf-16"),
    "a name of 3 MB": b"a,b," + b"x" * 3_000_000 + b"\n1,2,3\n",
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_csv_without_a_header_is_refused_at_opening(csv, name):
    with pytest.raises(InvalidSource) as refusal:
        csv(UNREADABLE[name])
    assert CANARY not in str(refusal.value)
    assert "data.csv" in str(refusal.value)


@pytest.mark.parametrize("header", [b"a,b\x00\n", b'a,"b\nc"\n', bytes(range(1, 128))])
def test_a_header_that_names_other_columns_is_refused_at_opening(csv, header):
    with pytest.raises((InvalidDeclaration, InvalidSource)):
        csv(header + b"1,x\n")


def parquet_bytes(tmp_path):
    path = tmp_path / "whole.parquet"
    pq.write_table(
        pa.table({"a": list(range(1000)), "b": [f"{CANARY}-{i}" for i in range(1000)]}), path
    )
    return path.read_bytes()


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("cut.parquet", lambda whole: whole[: len(whole) // 2]),
        ("empty.parquet", lambda whole: b""),
        ("text.parquet", lambda whole: f"a,b\n1,{CANARY}\n".encode()),
        ("renamed.csv", lambda whole: whole),
        ("data.txt", lambda whole: b"a,b\n1,x\n"),
        ("data", lambda whole: b"a,b\n1,x\n"),
    ],
)
def test_a_file_that_is_not_what_it_says_is_refused(asker, tmp_path, name, damage):
    path = tmp_path / name
    path.write_bytes(damage(parquet_bytes(tmp_path)))
    with pytest.raises(InvalidSource) as refusal:
        everything(asker(path, COLUMNS))
    assert CANARY not in str(refusal.value)
    assert name in refusal.value.problem and refusal.value.allowed


@pytest.mark.parametrize("name", ["nosuch.csv", "nosuch.parquet", "", "."])
def test_a_missing_file_or_a_folder_is_refused(asker, tmp_path, name):
    with pytest.raises(InvalidSource, match="no file") as refusal:
        everything(asker(tmp_path / name, COLUMNS))
    assert "path" in refusal.value.remedy


@pytest.mark.parametrize(
    "source", [None, 5, object(), [1, 2], {"a": [1, 2], "b": [CANARY]}, pa.array([1])]
)
def test_what_is_no_table_is_refused(asker, source):
    with pytest.raises(InvalidSource) as refusal:
        everything(asker(source, COLUMNS))
    assert CANARY not in str(refusal.value)


@pytest.mark.parametrize("names", [["a"], ["A", "B"], ["b", "x"]])
def test_the_columns_that_are_there_are_told_to_the_owner_alone(asker, names, caplog):
    with pytest.raises(InvalidDeclaration, match="has no column") as refusal:
        everything(asker(pa.table({name: [CANARY] for name in names}), COLUMNS))
    assert f"among its {len(names)}." in refusal.value.problem
    assert ", ".join(map(repr, names)) in caplog.text
    assert CANARY not in str(refusal.value) + caplog.text


def test_a_unit_that_is_not_there_is_refused(asker):
    with pytest.raises(InvalidDeclaration, match="has no column 'who'"):
        everything(asker(pa.table(FRAME), COLUMNS, sf.Unit("who", max_rows=1)))


DAY = sf.Date("2000-01-01", "2001-01-01")
UNHELD = [
    (DAY, pa.int64()),
    (DAY, pa.float64()),
    (DAY, pa.bool_()),
    (sf.Integer(0, 1), pa.date32()),
    (sf.Real(0, 1), pa.timestamp("us")),
    (sf.Text(), pa.binary()),
    (sf.Text(), pa.list_(pa.int64())),
    (sf.Category("a"), pa.timestamp("us", "UTC")),
    (sf.Boolean(), pa.time32("s")),
    (sf.Text(), pa.duration("s")),
    (sf.Text(), pa.struct([("x", pa.int64())])),
]


@pytest.mark.parametrize(("kind", "physical"), UNHELD)
def test_a_declaration_that_the_data_cannot_hold_is_refused(asker, kind, physical):
    with pytest.raises(InvalidDeclaration, match="is declared as") as refusal:
        asker(pa.table({"x": pa.array([None], physical)}), {"x": kind}).duckdb(
            None
        )  # refused before any plan
    assert "convert the column" in refusal.value.remedy


def test_a_column_of_nulls_is_missing_everywhere(asker):
    nothing = pa.table({"x": pa.array([None, None], pa.null())})
    for kind in (sf.Integer(0, 1), sf.Category("a"), DAY, sf.Boolean(), sf.Text()):
        ask = asker(nothing, {"x": kind})
        assert ask.duckdb(ask.plan(CountRows(), CountValues(ask.value("x")))) == {(): (2, 0)}


def test_a_page_that_cannot_be_read_shows_to_the_owner(tmp_path):
    path = tmp_path / "data.parquet"
    pq.write_table(
        pa.table({"a": list(range(5_000)), "b": [f"{CANARY}-{i}" for i in range(5_000)]}), path
    )
    tables = {"people": sf.Table(path, columns=COLUMNS)}
    whole = path.read_bytes()
    path.write_bytes(whole[:200] + bytes(len(whole) // 2) + whole[200 + len(whole) // 2 :])
    engine = DuckDB(tables)
    with pytest.raises(InvalidSource, match="cannot be read to its end") as refusal:
        read_through(engine, tables)
    engine.close()
    assert CANARY not in str(refusal.value)
    path.write_bytes(whole)
    engine = DuckDB(tables)
    read_through(engine, tables)
    engine.close()


# --- lockdown --------------------------------------------------------------------------------


@pytest.fixture
def engine(tmp_path):
    """An engine over one CSV file, with another file beside it."""
    (tmp_path / "data.csv").write_bytes(b"a,b\n1,x\n")
    (tmp_path / "other.csv").write_bytes(b"a,b\n1,x\n")
    opened = DuckDB({"people": sf.Table(tmp_path / "data.csv", columns=COLUMNS)})
    yield opened
    opened.close()


FORBIDDEN = [
    "SELECT * FROM read_csv('{folder}/other.csv')", "SELECT * FROM read_text('/etc/passwd')", "SELECT * FROM glob('/etc/*')",
    "SELECT * FROM '/etc/passwd'", "COPY (SELECT 1) TO '{folder}/new.csv'", "COPY (SELECT 1) TO '{folder}/data.csv'",
    "EXPORT DATABASE '{folder}/dump'", "ATTACH '{folder}/new.db'", "INSTALL httpfs", "LOAD httpfs", "SET memory_limit = '1GB'",
    "SET threads = 1", "SET enable_external_access = true", "SET lock_configuration = false", "RESET lock_configuration",
    "PRAGMA enable_profiling", "CREATE SECRET (TYPE s3)", "SET allowed_paths = ['/']", "SELECT * FROM 'http://127.0.0.1:9/x.csv'",
]  # fmt: skip


@pytest.mark.parametrize("statement", FORBIDDEN)
def test_the_connection_does_nothing_but_read_its_files(engine, tmp_path, statement):
    before = sorted(tmp_path.iterdir())
    with pytest.raises(duckdb.Error):
        engine._connection.execute(statement.format(folder=tmp_path))
    assert sorted(tmp_path.iterdir()) == before
    assert (tmp_path / "data.csv").read_bytes() == b"a,b\n1,x\n"


def test_a_connection_that_is_not_locked_down_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr("sfumato.engines.duckdb.lock_down", lambda *_: None)
    (tmp_path / "data.csv").write_bytes(b"a,b\n1,x\n")
    opened = DuckDB({"people": sf.Table(tmp_path / "data.csv", columns=COLUMNS)})
    opened._connection.execute(f"COPY (SELECT 1) TO '{tmp_path}/new.csv'")
    opened.close()
    assert (tmp_path / "new.csv").exists()


def test_spilled_rows_are_closed_to_others_and_go_with_the_engine(engine):
    spill = Path(engine._spill)
    assert stat.S_IMODE(spill.stat().st_mode) == 0o700
    engine.close()
    assert not spill.exists()


def test_a_table_that_cannot_be_opened_leaves_no_folder(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(InvalidSource):
        DuckDB({"people": sf.Table(tmp_path / "nosuch.csv")})
    assert list(tmp_path.iterdir()) == []


# --- failures --------------------------------------------------------------------------------


def failure_of(asker, engine, caplog, meanwhile=lambda: None):
    """What reaches the analyst and what the log, when a run fails."""
    caplog.clear()
    run = engine.ready(asker(None, COLUMNS).counts(), "key")
    meanwhile()
    with caplog.at_level(logging.DEBUG), pytest.raises(SfumatoError) as failure:
        run()
    assert type(failure.value) is EngineFailed
    # nothing of the engine's text hangs on the error, where a traceback would print it
    assert failure.value.__cause__ is None
    assert failure.value.__context__ is None
    return str(failure.value), caplog.text


def test_an_engine_failure_is_one_constant_message(asker, tmp_path, caplog, monkeypatch):
    path = tmp_path / f"{CANARY}.csv"
    path.write_bytes(f"a,b\n1,{CANARY}\n".encode())
    seen = set()
    for broken in (
        f"SELECT CAST('{CANARY}' AS INTEGER)",
        f"SELECT error('{CANARY}')",
        f"SELECT {CANARY} FROM nowhere",
        f"SELECT * FROM read_csv('/{CANARY}.csv')",
        None,
    ):
        engine = DuckDB({"people": sf.Table(path, columns=COLUMNS)})
        with monkeypatch.context() as patch:
            if broken is not None:
                patch.setattr(
                    "sfumato.engines.duckdb._statements",
                    lambda *_, sql=broken: (Statement(sql, (0,)),),
                )
            said, logged = failure_of(
                asker, engine, caplog, path.unlink if broken is None else lambda: None
            )
        engine.close()
        seen.add(said)
        assert CANARY not in said + logged
        assert "the engine failed: " in logged
    assert seen == {str(EngineFailed())}


@pytest.mark.parametrize(
    "failure", [MemoryError, OSError, RuntimeError, duckdb.OutOfMemoryException]
)
def test_a_resource_failure_is_the_same_message(asker, engine, caplog, failure):
    class Connection:
        interrupt = query_progress = staticmethod(float)

        def execute(self, sql):
            raise failure(CANARY)

    (lane,) = engine._lanes.all
    honest, lane.connection = lane.connection, Connection()
    said, logged = failure_of(asker, engine, caplog)
    lane.connection = honest
    assert said == str(EngineFailed())
    assert CANARY not in logged


def test_a_failure_does_not_end_the_engine(asker, engine):
    with pytest.raises(duckdb.Error):
        engine._connection.execute("SELECT error('x')")
    plan = asker(None, COLUMNS).counts()
    assert flat(plan, engine.run(plan, "key")) == {(): (1, 1, 1, 1)}


def test_the_statement_hides_the_sampling_key(asker):
    ask = asker({"a": [1], "who": ["p"]}, {"a": sf.Category("1", "2", "3")}, sf.Unit("who"))
    with closing(DuckDB(ask.tables)) as engine:
        shown = engine.statement(
            ask.plan(CountUnits(), keys=(by(ask.scan, "a"),), limits=(None, 2, None))
        )
    assert "<sampling key>" in shown


# --- limits and versions ---------------------------------------------------------------------

ENDLESS = "SELECT sum(a.range * b.range) FROM range(10000000) AS a, range(10000000) AS b"


def test_a_run_that_takes_too_long_is_ended(asker, tmp_path, caplog, monkeypatch):
    (tmp_path / "data.csv").write_bytes(b"a,b\n1,x\n")
    # two statements: the second one is ended too
    monkeypatch.setattr(
        "sfumato.engines.duckdb._statements", lambda *_: (Statement(ENDLESS, (0,)),) * 2
    )
    with closing(
        DuckDB(
            {"people": sf.Table(tmp_path / "data.csv", columns=COLUMNS)},
            limits=sf.Local(time_limit=0.001),
        )
    ) as opened:
        said, logged = failure_of(asker, opened, caplog)
    assert (said, "InterruptException" in logged) == (str(EngineFailed()), True)


# rows of declared groups, and columns of those that are not
@pytest.mark.parametrize(
    "question", ["SELECT SUM(a) AS s FROM t", "SELECT b, COUNT(*) AS n FROM t GROUP BY b"]
)
def test_ctrl_c_ends_the_statement_and_stays_what_it_is(question, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "sfumato.engines.duckdb._statements", lambda *_: (Statement(ENDLESS, (0,)),)
    )
    limits = sf.Local(progress=lambda share: os.kill(os.getpid(), signal.SIGINT), time_limit=60)
    columns, ledger = {"a": sf.Integer(0, 9), "b": sf.Text()}, tmp_path / "l.db"
    table, budget = (
        sf.Table(pa.table({"a": [1], "b": ["x"]}), columns=columns),
        sf.Budget(1, "2e-6"),
    )
    with sf.connect(
        {"t": table}, dataset="d", budget=budget, ledger=ledger, engine=limits
    ) as session:
        with heard(), pytest.raises(KeyboardInterrupt):
            session.query(question, epsilon=1, delta="1e-6" if "GROUP" in question else None)
        # the charge is forfeited, and nothing can be asked for it again
        assert session.budget.left == 0
        (row,) = charges(session._ledger)
        assert (row.state, row.reason) == (FORFEITED, "interrupted")


def test_all_runs_have_one_watcher_and_one_worker_which_do_not_keep_the_engine(asker, engine):
    before = threading.active_count()
    for _ in range(3):
        engine.run(asker(None, COLUMNS).counts(), "key")
    assert threading.active_count() <= before + 2


def test_memory_has_a_limit(asker, tmp_path, caplog, monkeypatch):
    (tmp_path / "data.csv").write_bytes(b"a,b\n1,x\n")
    heavy = "SELECT list(range) FROM range(100000000)"
    monkeypatch.setattr("sfumato.engines.duckdb._statements", lambda *_: (Statement(heavy, (0,)),))
    with closing(
        DuckDB(
            {"people": sf.Table(tmp_path / "data.csv", columns=COLUMNS)},
            limits=sf.Local(memory_limit="20MB"),
        )
    ) as opened:
        said, logged = failure_of(asker, opened, caplog)
    assert (said, "OutOfMemoryException" in logged) == (str(EngineFailed()), True)


@pytest.mark.parametrize("limit", [0, -1, True, "1", float("nan"), float("inf"), None])
def test_a_time_limit_is_a_number_of_seconds(limit):
    with pytest.raises(InvalidDeclaration, match="time_limit") as refusal:
        DuckDB({}, limits=sf.Local(time_limit=limit))
    assert "seconds" in refusal.value.allowed


@pytest.mark.parametrize("limit", ["much", "", 5, "8GB; SELECT 1", "-1GB"])
def test_a_memory_limit_is_a_size(limit):
    with pytest.raises(InvalidDeclaration, match="memory_limit") as refusal:
        DuckDB({}, limits=sf.Local(memory_limit=limit))
    assert "8GB" in refusal.value.allowed


def test_a_version_that_has_not_passed_is_refused(monkeypatch):
    assert duckdb.__version__ in PASSED
    monkeypatch.setattr(duckdb, "__version__", "2.0.99")
    with pytest.raises(InvalidSource, match=r"DuckDB 2\.0\.99 has not passed") as refusal:
        DuckDB({})
    assert PASSED[-1] in refusal.value.remedy


# --- several tables --------------------------------------------------------------------------

LINKED = {
    "people": sf.Table({"who": ["p", "q"]}, unit=sf.Unit("who")),
    "stays": sf.Table(
        {"id": [1], "person": ["p"]}, unit=sf.Unit("person", via="people.who", key="who")
    ),
}


def test_the_columns_that_lead_to_a_unit_are_read_too():
    with closing(DuckDB(LINKED)) as opened:
        read_through(opened, LINKED)
        assert set(opened._declared["people"].types) == {"who"}
    for table, source in (("people", {"id": ["p"]}), ("stays", {"who": ["p"]})):
        broken = {**LINKED, table: sf.Table(source, unit=LINKED[table].unit)}
        with pytest.raises(InvalidDeclaration, match="has no column"):
            DuckDB(broken)


def test_a_key_that_nothing_can_be_compared_with_is_refused():
    broken = {**LINKED, "people": sf.Table({"who": [b"p"]}, unit=sf.Unit("who"))}
    with pytest.raises(InvalidDeclaration, match="names units"):
        DuckDB(broken)
