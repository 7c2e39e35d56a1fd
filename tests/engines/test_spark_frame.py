# SPDX-License-Identifier: Apache-2.0
"""What can be a source on Spark.

What might differ from read to read, or fail on a row, is refused.
"""

import datetime
from contextlib import closing

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.engines import spark_frame
from sfumato.engines.reference import Reference
from sfumato.engines.spark import SparkEngine
from sfumato.engines.spark_frame import frame_of, is_frame, require_plain, shared_session
from sfumato.errors import EngineFailed, InvalidSource
from sfumato.metadata.column import Column
from sfumato.plan.aggregate import CountRows, CountValues, Sum
from sfumato.plan.relation import Scan
from sfumato.plan.value import Value
from tests.contracts.spark import interpreted
from tests.contracts.world import plan
from tests.engines.conftest import flat

CANARY = "canary-4711"
COLUMNS = {"a": sf.Integer(0, 9), "b": sf.Text()}
FRAME = {"a": [1, 2, None], "b": [CANARY, None, "x"]}
SCAN = Scan("t", "", tuple(Column(name, kind) for name, kind in COLUMNS.items()))
A, B = (Value.of(each) for each in SCAN.columns)
COUNTS = plan(SCAN, CountRows(), CountValues(A), CountValues(B), Sum(A))


def asked(spark, source, **options):
    """COUNT(*), COUNT(a), COUNT(b) and SUM(a)."""
    tables = {"t": sf.Table(source, columns=COLUMNS, **options)}
    with closing(interpreted(SparkEngine(tables, spark))) as engine:
        return flat(COUNTS, engine.run(COUNTS, "key"))[()]


@pytest.fixture
def frame(spark, tmp_path):
    """A DataFrame over a Parquet file, with a fraction."""
    pq.write_table(pa.table({**FRAME, "x": [0.5, float("nan"), None]}), tmp_path / "data.parquet")
    return spark.read.parquet(str(tmp_path / "data.parquet"))


# --- sources ---------------------------------------------------------------------------------


def test_every_kind_of_source_gives_the_same_integers(spark, tmp_path):
    pq.write_table(pa.table(FRAME), tmp_path / "it's.parquet")
    folder = tmp_path / "hive" / "k=1"
    folder.mkdir(parents=True)
    pq.write_table(pa.table(FRAME), folder / "part.parquet")
    (folder / "_SUCCESS").touch()
    sources = [
        pa.table(FRAME), pd.DataFrame(FRAME), pl.DataFrame(FRAME), FRAME, tmp_path / "it's.parquet",
        str(tmp_path / "it's.parquet"), tmp_path / "hive", f"{tmp_path}/hive/*/*.parquet",
        spark.createDataFrame(pa.table(FRAME)),
    ]  # fmt: skip
    assert [asked(spark, each) for each in sources] == [(3, 2, 2, 3)] * len(sources)


TAKEN = [
    *(
        ("a", pa.array([1, None, 2], kind))
        for kind in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(), pa.int8())
    ),
    *(("a", pa.array([1.0, None, 2.0], kind)) for kind in (pa.float16(), pa.float32())),
    *(("b", pa.array(["x", None, "y"], kind)) for kind in (pa.string_view(), pa.large_string())),
    ("b", pa.array(["x", None, "y"]).dictionary_encode()),
    ("b", pa.array([0, None, 86_400_000], pa.date64())),
]


@pytest.mark.parametrize(
    ("column", "cells"), TAKEN, ids=lambda each: str(getattr(each, "type", each))
)
def test_an_arrow_type_that_spark_does_not_take_is_sent_as_another(spark, column, cells):
    source = pa.table(FRAME)
    assert asked(spark, source.set_column("ab".index(column), column, cells)) == (3, 2, 2, 3)


def test_the_key_of_a_folder_is_text(spark, tmp_path):
    for key in ("01", "2"):
        (tmp_path / f"b={key}").mkdir()
        pq.write_table(pa.table({"a": [1]}), tmp_path / f"b={key}" / "part.parquet")
    with closing(SparkEngine({"t": sf.Table(tmp_path, columns=COLUMNS)}, spark)) as engine:
        found = engine._session.sql(
            f"SELECT b FROM {engine._reads['t'].rows.sql} ORDER BY b"
        ).collect()
    assert [row[0] for row in found] == ["01", "2"]


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("people.db", "people"),
        ("mysql://ada:secret@db/clinic", "people"),
        ("s3://clinic/people.parquet", None),
    ],
)
@pytest.mark.parametrize("public", [True, False])
def test_a_table_of_a_database_or_a_store_is_refused_by_name(spark, source, name, public):
    table = sf.Table(source, table=name, public=public)
    with pytest.raises(InvalidSource, match="a table of a database, or an object of a store"):
        frame_of(spark, "people", table)


def test_a_small_public_csv_is_sent(spark, tmp_path):
    (tmp_path / "public.csv").write_text("a,b\n1,x\n2,y\n")
    assert asked(spark, tmp_path / "public.csv", public=True) == (2, 2, 2, 3)


def refusal(spark, source, **options):
    with pytest.raises(InvalidSource) as refused:
        SparkEngine({"t": sf.Table(source, columns=COLUMNS, **options)}, spark)
    assert CANARY not in str(refused.value)
    return str(refused.value)


def test_what_cannot_be_read_is_refused_without_a_value(spark, tmp_path, java_errors):
    (tmp_path / "data.csv").write_text(f"a,b\n1,{CANARY}\n")
    (tmp_path / "data.parquet").write_text(f"a,b\n1,{CANARY}\n")
    assert "CSV or Excel, which Spark" in refusal(spark, tmp_path / "data.csv")
    assert "cannot be read" in refusal(spark, tmp_path / "data.parquet")
    assert "cannot be read" in refusal(spark, tmp_path / "nosuch.parquet")
    assert "cannot be read" in refusal(spark, {"a": [1, 2], "b": [CANARY]})
    assert "cannot be read" in refusal(spark, object())
    assert CANARY not in java_errors.read_text()


def test_files_that_do_not_fit_together_are_refused_at_opening(spark, tmp_path):
    pq.write_table(pa.table({"a": [1], "b": ["x"]}), tmp_path / "one.parquet")
    pq.write_table(pa.table({"a": ["one"], "b": ["x"]}), tmp_path / "two.parquet")
    assert "cannot be read" in refusal(spark, tmp_path)


def test_what_is_too_large_to_send_is_refused(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(spark_frame, "_MOST_BYTES", 10)
    assert "too large" in refusal(spark, pa.table(FRAME))
    (tmp_path / "public.csv").write_text("a,b\n1,x\n2,y\n")
    assert "too large" in refusal(spark, tmp_path / "public.csv", public=True)


class Connected:
    """What a DataFrame of Spark Connect looks like from outside."""

    __module__ = "pyspark.sql.connect.dataframe"


Connected.__name__ = "DataFrame"


def test_a_frame_of_another_application_is_refused(spark):
    assert is_frame(Connected())
    assert "Spark Connect" in refusal(spark, Connected())


# --- what a frame may do -----------------------------------------------------------------------

PLAIN = {
    "a table": lambda spark, frame: _table(spark, frame),
    "a view of a table": lambda spark, frame: _view(spark, frame),
    "a file": lambda spark, frame: frame,
    "columns": lambda spark, frame: frame.select(frame.a, frame.b.alias("c")),
    "a test": lambda spark, frame: frame.filter(
        "a > 1 AND b IN ('x', 'y') OR b IS NULL OR NOT a <=> 2"
    ),
    "a choice": lambda spark, frame: frame.selectExpr(
        "CASE WHEN a > 1 THEN coalesce(b, 'z') ELSE if(a = 1, 'u', 'v') END AS b"
    ),
    "a cast that is tried": lambda spark, frame: frame.selectExpr("try_cast(b AS INT) AS a"),
    "a cast to a wider type": lambda spark, frame: frame.selectExpr(
        "CAST(CAST(a AS STRING) AS STRING) AS b"
    ),
    "a join": lambda spark, frame: frame.join(frame.selectExpr("a AS k"), frame.a == 2, "left"),
    "a union": lambda spark, frame: frame.union(frame),
    "an order": lambda spark, frame: frame.repartition(2, "a").sort("a"),
    "a file by the other way": lambda spark, frame: _second(spark).read.parquet(
        *frame.inputFiles()
    ),
    "a cached file": lambda spark, frame: frame.cache(),
    "rows from here": lambda spark, frame: spark.createDataFrame([(1, "x")], ["a", "b"]),
}
ODD = {
    "a division": lambda spark, frame: frame.selectExpr("1 / a AS a"),
    "a sum": lambda spark, frame: frame.selectExpr("a + 1 AS a"),
    "a cast that may fail": lambda spark, frame: _strict(spark, frame).selectExpr(
        "CAST(b AS INT) AS a"
    ),
    "a test of a fraction": lambda spark, frame: frame.filter("x > 1"),
    "a fraction among some": lambda spark, frame: frame.filter("x IN (1D, 2D)"),
    "a join by a fraction": lambda spark, frame: frame.join(
        frame.selectExpr("x AS y"), frame.x < 1.0
    ),
    "a limit": lambda spark, frame: frame.limit(1),
    "an offset": lambda spark, frame: frame.offset(1),
    "a sample": lambda spark, frame: frame.sample(0.5),
    "a random number": lambda spark, frame: frame.selectExpr("rand() AS a"),
    "a place": lambda spark, frame: frame.selectExpr("monotonically_increasing_id() AS a"),
    "one of some": lambda spark, frame: frame.dropDuplicates(["b"]),
    "groups": lambda spark, frame: frame.groupBy("b").count(),
    "a window": lambda spark, frame: frame.selectExpr(
        "row_number() OVER (PARTITION BY b ORDER BY a) AS a"
    ),
    "a function of Python": lambda spark, frame: frame.select(_python(frame.a)),
    "a query inside": lambda spark, frame: _inside(spark, frame),
    "a stream": lambda spark, frame: spark.readStream.format("rate").load(),
    "lines of a file": lambda spark, frame: spark.read.csv(_text(frame)),
    "documents": lambda spark, frame: spark.read.schema("a INT").json(_text(frame)),
    "lines of a file by the other way": lambda spark, frame: (
        _second(spark).read.schema("a INT").csv(_text(frame))
    ),
    "documents by the other way": lambda spark, frame: (
        _second(spark).read.schema("a INT").json(_text(frame))
    ),
    "text by the other way": lambda spark, frame: _second(spark).read.text(_text(frame)),
    "a source in Python": lambda spark, frame: _of_python(spark),
}


def _second(spark):
    """A session that reads files by the second version of Spark's sources."""
    session = spark.newSession()
    session.conf.set("spark.sql.sources.useV1SourceList", "")
    return session


def _of_python(spark):
    from pyspark.sql.datasource import DataSource

    class Ours(DataSource):
        @classmethod
        def name(cls):
            return "ours"

        def schema(self):
            return "a int"

    spark.dataSource.register(Ours)
    return spark.read.format("ours").load()


def _table(spark, frame):
    frame.write.mode("overwrite").saveAsTable("plain_frames")
    return spark.table("plain_frames")


def _view(spark, frame):
    _table(spark, frame)
    spark.sql("CREATE OR REPLACE VIEW plain_view AS SELECT a, b FROM plain_frames WHERE a > 1")
    return spark.table("plain_view")


def _strict(spark, frame):
    session = spark.newSession()
    session.conf.set("spark.sql.ansi.enabled", "true")
    return session.read.parquet(*frame.inputFiles())


def _inside(spark, frame):
    frame.createOrReplaceTempView("inside")
    return spark.sql("SELECT a FROM inside WHERE a > (SELECT max(a) FROM inside)")


def _python(column):
    from pyspark.sql.functions import udf

    return udf(lambda value: value, "int")(column)


def _text(frame):
    (file,) = frame.inputFiles()
    return file.removesuffix("data.parquet")


@pytest.mark.parametrize("name", PLAIN)
def test_what_finds_the_same_rows_is_read(spark, frame, name):
    require_plain("t", PLAIN[name](spark, frame))


# PySpark says so of pandas 3 wherever it looks at a function of Python
@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
@pytest.mark.parametrize("name", ODD)
def test_what_may_differ_or_fail_is_refused(spark, frame, name):
    with pytest.raises(
        InvalidSource, match="another read may find other rows, or fail on one"
    ) as refused:
        require_plain("t", ODD[name](spark, frame))
    assert refused.value.remedy


def test_a_check_that_knows_no_expressions_is_noticed(spark, frame, monkeypatch):
    monkeypatch.setattr(spark_frame, "_partial", lambda expression, jvm: [])
    require_plain("t", ODD["a division"](spark, frame))
    monkeypatch.setattr(spark_frame, "_STABLE", {*spark_frame._STABLE, "GlobalLimit", "LocalLimit"})
    require_plain("t", ODD["a limit"](spark, frame))


def test_a_frame_is_read_as_its_session_meant_it(spark, frame):
    frame.createOrReplaceTempView("meant")
    found = spark.sql("SELECT A, B FROM meant WHERE A <=> 2 OR b = 'x'")
    tables = {"t": sf.Table(found, columns={"A": sf.Integer(0, 9)})}
    scan = Scan("t", "", (Column("A", sf.Integer(0, 9)),))
    bounded = plan(scan, CountRows(), Sum(Value.of(scan.columns[0])))
    with closing(interpreted(SparkEngine(tables, spark))) as engine:
        assert engine.run(bounded, "key") == Reference({"t": [{"A": 2}, {"A": None}]}).run(
            bounded, "key"
        )


# --- one engine for all ------------------------------------------------------------------------


def test_the_session_of_the_frames_is_found(spark, frame):
    assert (
        shared_session({"t": sf.Table(frame), "u": sf.Table("u.csv", public=True)})
        is frame.sparkSession
    )
    assert shared_session({"u": sf.Table("u.csv"), "v": sf.Table(pa.table(FRAME))}) is None


def test_private_tables_in_two_engines_are_refused(spark, frame):
    with pytest.raises(InvalidSource, match="'t' is in Spark, and 'u' is not") as refused:
        shared_session({"t": sf.Table(frame), "u": sf.Table("u.parquet")})
    assert "spark.read.parquet" in refused.value.remedy


# --- days and moments of Parquet ---------------------------------------------------------------


def old_day(spark, folder):
    """Parquet of others with a day before 1582, as a session reads it that fails on such."""
    pq.write_table(
        pa.table({"a": [1, 2], "d": [datetime.date(1200, 1, 1)] * 2}), folder / "old.parquet"
    )
    session = spark.newSession()
    session.conf.set("spark.sql.parquet.datetimeRebaseModeInRead", "EXCEPTION")
    return session, str(folder / "old.parquet")


DAYS = {"d": sf.Date("2000-01-01", "2001-01-01")}
COUNT_DAYS = plan(
    Scan("t", "", (Column("d", DAYS["d"]),)), CountValues(Value.of(Column("d", DAYS["d"])))
)


def days(spark, frame):
    """How many days there are."""
    with closing(interpreted(SparkEngine({"t": sf.Table(frame, columns=DAYS)}, spark))) as engine:
        return flat(COUNT_DAYS, engine.run(COUNT_DAYS, "key"))[()]


def test_a_mode_that_fails_on_an_old_day_is_refused(spark, tmp_path, monkeypatch):
    session, path = old_day(spark, tmp_path)
    with pytest.raises(InvalidSource, match="rebase mode EXCEPTION") as refused:
        days(spark, session.read.parquet(path))
    assert "CORRECTED" in refused.value.remedy
    with pytest.raises(InvalidSource, match="rebase mode EXCEPTION"):
        days(spark, spark.read.option("datetimeRebaseMode", "exception").parquet(path))
    session.conf.set("spark.sql.parquet.datetimeRebaseModeInRead", "CORRECTED")
    assert days(spark, session.read.parquet(path)) == (2,)
    # without the look one old day is a failure
    session.conf.set("spark.sql.parquet.datetimeRebaseModeInRead", "EXCEPTION")
    monkeypatch.setattr(spark_frame, "_rebases", lambda relation: [])
    with pytest.raises(EngineFailed):
        days(spark, session.read.parquet(path))


def test_milliseconds_of_parquet_are_refused_where_they_may_be_read(spark, tmp_path, monkeypatch):
    beyond = pa.array([0, 2**62], pa.int64()).cast(pa.timestamp("ms"), safe=False)
    pq.write_table(pa.table({"d": beyond, "a": [1, 2]}), tmp_path / "ms 1.parquet")
    frame = spark.read.parquet(str(tmp_path / "ms 1.parquet"))
    with pytest.raises(InvalidSource, match="MILLIS") as refused:
        days(spark, frame)
    assert "coerce_timestamps" in refused.value.remedy
    with pytest.raises(InvalidSource, match="MILLIS"):
        spark_frame.require_moments("t", frame.filter("d IS NULL").select("a"), ["a"])
    # what is not read does not matter, nor what is in microseconds
    spark_frame.require_moments("t", frame, ["a"])
    pq.write_table(pa.table({"d": pa.array([0], pa.timestamp("us"))}), tmp_path / "us.parquet")
    assert days(spark, spark.read.parquet(str(tmp_path / "us.parquet"))) == (1,)
    monkeypatch.setattr(spark_frame, "_has_milliseconds", lambda frame: False)
    with pytest.raises(EngineFailed):
        days(spark, frame)


@pytest.mark.parametrize("reading", [{"encoding": "gbk"}, {"decimal": ","}, {"thousands": " "}])
def test_a_declared_reading_of_texts_is_refused_by_name(tmp_path, reading):
    path = tmp_path / "public.csv"
    path.write_text("a\n1\n")
    table = sf.Table(path, public=True, columns={"a": sf.Integer(0, 9)}, **reading)
    with pytest.raises(InvalidSource, match=f"{next(iter(reading))}=, which is not read for Spark"):
        spark_frame._arrow("t", table)
