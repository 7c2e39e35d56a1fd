# SPDX-License-Identifier: Apache-2.0
"""The owner's check of the data: what it finds, who may ask for it, and that nothing is left."""

import ast
import json
import logging
import os
import pickle
from contextlib import closing
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.engines.base import Engine
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.spark import SparkEngine
from sfumato.errors import InvalidSource, LedgerUnavailable, WrongUse
from sfumato.ledger import Ledger
from sfumato.metadata.dataset import Dataset
from sfumato.query import connect as connecting
from sfumato.query.curator import Curator
from sfumato.query.data_check import DataCheck, TableFacts, check_data
from sfumato.query.data_check_text import NOTICE
from tests.architecture.structure import FILES, SOURCE, nodes
from tests.contracts.people import FRAME, session, table

COUNT = "SELECT COUNT(*) AS n FROM people"
CANARY = "Zebediah"
FAULTY = pa.table(
    {
        "person": ["a", "a", "b", "c"],
        "age": ["1,000", "30", CANARY, "200"],
        "born": ["31/12/2024", "01/01/2024", "02/01/2024", None],
        "smoker": ["Y", "N", "Y", "N"],
        "empty": pa.array([None] * 4, pa.string()),
        "job": ["x", "y", None, "z"],
    }
)
KINDS = {
    "age": sf.Integer(0, 120),
    "born": sf.Date("2024-01-01", "2024-12-31"),
    "smoker": sf.Boolean(),
    "empty": sf.Integer(0, 9),
    "job": sf.Text(),
}
UNIT = sf.Unit("person", max_rows=1)


def connected(folder, **options):
    """A session over faulty rows."""
    given = {"budget": sf.Budget(1), "ledger": folder / "ledger.db", **options}
    tables = {"people": sf.Table(FAULTY, unit=UNIT, columns=KINDS)}
    return sf.connect(tables, dataset="tiny", **given)


def checked(frame=FAULTY, kinds=None, **options):
    """The check of one table."""
    tables = {"people": sf.Table(frame, columns=kinds or KINDS, **options)}
    with closing(DuckDB(tables)) as engine:
        return check_data(engine, Dataset("tiny", tables))


# --- what it finds -------------------------------------------------------------------------


def test_the_first_line_says_that_it_is_not_private(tmp_path):
    with connected(tmp_path) as opened:
        found = opened.check_data()
    assert repr(found).splitlines()[0] == NOTICE
    assert NOTICE.startswith("NOT PRIVATE")
    form = found.to_json()
    assert next(iter(form)) == "notice"
    assert form["private"] is False


def test_faults_are_the_columns_that_cannot_be_used(tmp_path):
    with connected(tmp_path) as opened:
        assert opened.check_data().faults == (
            "people.born: wholly unread: none of 3 values is as declared",
            "people.smoker: wholly unread: none of 4 values is as declared",
            "people.empty: 100.0% missing",
        )


@pytest.mark.parametrize(
    ("missing", "unread", "is_fault"), [(99, 0, False), (198, 1, True), (50, 49, False)]
)
def test_more_than_ninety_nine_percent_missing_is_a_fault(missing, unread, is_fault):
    values = [None] * missing + ["?"] * unread + ["1"]
    found = checked(pa.table({"x": values}), {"x": sf.Integer(0, 9)})
    assert bool(found.faults) == is_fault


def test_a_table_without_rows_has_no_fault_and_one_without_units_has():
    nothing = pa.table({"person": pa.array([], pa.string()), "x": pa.array([], pa.string())})
    assert checked(nothing, {"x": sf.Integer(0, 9)}, unit=UNIT).faults == ()
    nobody = pa.table({"person": pa.array([None] * 3, pa.string()), "x": ["1"] * 3})
    assert checked(nobody, {"x": sf.Integer(0, 9)}, unit=UNIT).faults == (
        "people.person: 100.0% without a unit",
    )


def test_the_json_has_every_count(tmp_path):
    with connected(tmp_path) as opened:
        form = json.loads(json.dumps(opened.check_data().to_json()))
    (people,) = form["tables"]
    assert people["columns"][0] == {
        "column": "age",
        "declared": "Integer(0, 120)",
        "rows": 4,
        "read": 2,
        "missing": 0,
        "empty": 0,
        "unread": 2,
        "forms": [{"form": "9,999", "rows": 1}, {"form": "Aaaaaaaa", "rows": 1}],
        "below": 0,
        "above": 1,
        "below_clip": None,
        "above_clip": None,
        "never": [],
        "rounded": 0,
    }
    assert people["unit"]["limits"][0] == {
        "limit": "max_rows=1",
        "group_by": None,
        "units_over": 1,
        "lost": 1,
        "out_of": 4,
        "counts": "rows",
    }
    assert len(form["faults"]) == 3


def test_values_beyond_a_declared_clip_are_counted_and_said():
    columns = {
        "x": sf.Integer(0, 100, clip=(10, 50)),
        "none": sf.Integer(0, 100, clip=100),
        "auto": sf.Integer(0, 100, clip=sf.AUTO),
    }
    values = ["5", "10", "50", "51", "900", None, "?", "-3"]
    found = checked(pa.table(dict.fromkeys(columns, values)), columns)
    (table,) = found.to_json()["tables"]
    counts = [(each["below_clip"], each["above_clip"]) for each in table["columns"]]
    assert counts == [(2, 2), (0, 0), (None, None)]
    assert [line for line in repr(found).split("\n") if "clip are" in line] == [
        "  x: beyond its clip are 50.0% (4) of the rows: 2 below 10, 2 above 50",
        "  none: beyond its clip are 0.0% (0) of the rows: 0 below 0, 0 above 100",
    ]


def test_each_step_is_reported_before_it_begins(tmp_path):
    lines = []
    with connected(tmp_path) as opened:
        opened.check_data(report=lines.append)
    assert lines[0] == "people.age (1 of 11)"
    assert lines[5] == "people: units (6 of 11)"
    assert lines[-1] == "people: units by job (11 of 11)"


def test_public_tables_and_tables_without_a_unit_are_checked_too():
    tables = {
        "rows": sf.Table(pa.table({"x": ["1", "y"]}), columns={"x": sf.Integer(0, 9)}),
        "drugs": sf.Table(pa.table({"d": ["a"]}), columns={"d": sf.Text()}, public=True),
        "bare": sf.Table(pa.table({"d": ["a", "b"]})),
    }
    with closing(DuckDB(tables)) as engine:
        found = check_data(engine, Dataset("tiny", tables))
    assert [(each.name, each.rows, each.units) for each in found.tables] == [
        ("rows", 2, None),
        ("drugs", 1, None),
        ("bare", 2, None),
    ]
    assert isinstance(found.tables[0], TableFacts)


def test_a_file_that_has_changed_is_read_as_it_is_now(tmp_path):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"x": ["1", "2"]}), path)
    tables = {"t": sf.Table(path, columns={"x": sf.Integer(0, 9)})}
    with closing(DuckDB(tables)) as engine:
        assert check_data(engine, Dataset("d", tables)).tables[0].rows == 2
        pq.write_table(pa.table({"x": ["1", "2", "zz"]}), path)
        found = check_data(engine, Dataset("d", tables)).tables[0]
        assert (found.rows, found.columns[0].unread) == (3, 1)
        path.unlink()
        with pytest.raises(InvalidSource):
            check_data(engine, Dataset("d", tables))


# --- who may ask -----------------------------------------------------------------------------


def refused(opened):
    with pytest.raises(WrongUse, match="not the owner's own session"):
        opened.check_data()


def test_only_the_owners_own_session_has_it(tmp_path):
    with session(tmp_path) as opened:
        assert isinstance(opened.check_data(), DataCheck)
        refused(opened.asking_as("ann"))
        refused(opened.asking_as("owner"))
        assert isinstance(opened.check_data(), DataCheck)
    refused_later = opened
    with pytest.raises(LedgerUnavailable, match="closed"):
        refused_later.check_data()


def test_a_session_for_an_analyst_does_not_have_it(tmp_path):
    with session(tmp_path, analyst="ann") as opened:
        refused(opened)


def test_a_session_over_a_ledger_that_others_use_does_not_have_it(tmp_path, monkeypatch):
    ledger = Ledger.open(tmp_path / "shared.db")
    with connected(tmp_path, ledger=ledger) as opened:
        refused(opened)
    ledger.close()
    assert not connecting._is_owners("owner", "postgresql://ada@db.example/clinic")
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with connected(tmp_path) as opened:
        refused(opened)


def test_a_server_is_read_in_the_same_way(tmp_path, database):
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS public CASCADE")
        connection.execute("CREATE SCHEMA public")
        connection.execute("CREATE TABLE people (person text, age text, job text)")
        connection.execute(
            "INSERT INTO people VALUES ('a', '1,000', 'x'), ('a', '30', NULL), (NULL, '200', 'y')"
        )
    kinds = {"age": sf.Integer(0, 120), "job": sf.Text()}
    people = sf.Table(database, table="people", unit=UNIT, columns=kinds)
    given = {"budget": sf.Budget(1), "ledger": tmp_path / "ledger.db"}
    with sf.connect({"people": people}, dataset="tiny", **given) as opened:
        (found,) = opened.check_data().tables
    age, job = found.columns
    assert (found.rows, age.unread, age.above, job.empty) == (3, 1, 1, 1)
    assert (found.units.units, found.units.unnamed, found.units.limits[0].lost) == (1, 1, 1)


def test_spark_refuses_by_name(tmp_path):
    spark = SparkEngine.__new__(SparkEngine)
    with pytest.raises(WrongUse, match="Spark does not check data"):
        check_data(spark, Dataset("tiny", {"people": table()}))
    with session(tmp_path) as opened:
        duckdb, opened._engine = opened._engine, spark
        with pytest.raises(WrongUse, match="Spark does not check data"):
            opened.check_data()
        opened._engine = duckdb


# --- that nothing is left, and no question reaches it -----------------------------------------


def test_nothing_is_written_to_ledger_or_log(tmp_path, caplog):
    with connected(tmp_path) as opened:
        caplog.set_level(logging.DEBUG)
        before = opened.verify()
        files = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
        found = opened.check_data()
        assert opened.verify() == before
        assert opened.budget.left == 1
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == files
    assert caplog.text == ""
    assert CANARY not in repr(found) + json.dumps(found.to_json())
    with pytest.raises(WrongUse, match="not pickled"):
        pickle.dumps(found)


def test_a_failure_says_nothing_of_the_data(tmp_path, caplog):
    with connected(tmp_path) as opened:
        engine = opened._engine
        engine._lanes = SimpleNamespace(
            take=lambda patience: (_ for _ in ()).throw(OSError(CANARY)), closed=False, all=[]
        )
        with pytest.raises(InvalidSource) as failed:
            opened.check_data()
        engine._lanes.close = lambda: None
    assert CANARY not in str(failed.value) + caplog.text


def names(path):
    """The attributes and imported names that a file reads."""
    for node in nodes(path):
        if isinstance(node, ast.Attribute):
            yield node.attr
        if isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def readers(name):
    """The files that name something."""
    return {str(path.relative_to(SOURCE)) for path in FILES if name in names_of(path)}


@cache
def names_of(path):
    return frozenset(names(path))


def test_no_question_task_or_curator_reaches_the_exact_counts():
    counting = {f"engines/inspect_{what}.py" for what in ("columns", "ticks", "units")}
    # that one reads a public table, in an engine that holds no other
    assert readers("unprotected") == counting | {"engines/public_rows.py"}
    assert readers("sfumato.engines.public_rows.public_rows") == {"query/outer.py"}
    assert readers("sfumato.engines.inspect_ticks.inspect_ticks") == {"cli/stream_check.py"}
    assert readers("sfumato.engines.inspect_columns.inspect_column") == {"query/data_check.py"}
    assert readers("sfumato.engines.inspect_units.inspect_units") == {"query/data_check.py"}
    assert readers("sfumato.query.data_check.check_data") == {"cli/check.py", "query/session.py"}
    assert not hasattr(Engine, "unprotected")
    assert not [name for name in dir(Curator) if "check" in name or "unprotected" in name]
    # the reader of names sees what there is
    assert "query/statements.py" in readers("sfumato.query.release.release")


def test_the_statement_of_a_question_does_not_reach_it(tmp_path):
    with connected(tmp_path) as opened:
        for sql in ("SELECT check_data() FROM people", "SELECT * FROM check_data"):
            with pytest.raises(sf.SfumatoError):
                opened.query(sql, epsilon="0.1")
        assert opened.budget.left == 1


def test_a_session_may_ask_before_and_after(tmp_path):
    with session(tmp_path) as opened:
        opened.query(COUNT, epsilon=1)
        assert opened.check_data().tables[0].rows == FRAME.num_rows
        opened.query(COUNT, epsilon=2)
    assert Path(tmp_path, "ledger.db").exists()


def test_a_column_in_another_encoding_says_what_may_be_wrong(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"city,age\n" + "\u5317\u4eac,30\n\u4e0a\u6d77,41\n".encode("gbk"))
    columns = {"city": sf.Text(), "age": sf.Integer(0, 120)}
    for encoding, said in [("utf-8", True), ("gbk", False)]:
        table = sf.Table(path, columns=columns, encoding=encoding)
        ledger = tmp_path / f"{encoding}.db"
        with sf.connect({"t": table}, dataset="d", budget=sf.Budget(1), ledger=ledger) as opened:
            found = repr(opened.check_data())
            assert ("not written in utf-8: is encoding= right?" in found) == said
