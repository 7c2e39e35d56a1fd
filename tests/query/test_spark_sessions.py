# SPDX-License-Identifier: Apache-2.0
"""Sessions over Spark: of DataFrames that are handed in, and in an application of their own."""

import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.engines.spark import SparkEngine
from sfumato.errors import InvalidSource, WrongUse
from tests.contracts.people import EXACTLY
from tests.contracts.require import program

ROOT = Path(__file__).parents[2]
VISITS = [*(("ann", ward) for ward in "AAAABBBBB"), ("bob", "A"), ("eve", "B")]
BY_WARD = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
UNIT = sf.Unit("person", max_rows=2, max_groups=2)
WARDS = {"ward": sf.Category("A", "B")}


def session(tables, folder, **options):
    return sf.connect(
        tables, dataset="clinic", ledger=folder / "l.db", budget=sf.Budget(10**6, "1e-6"), **options
    )


@pytest.fixture
def visits(spark):
    """The visits as a DataFrame."""
    return sf.Table(spark.createDataFrame(VISITS, ["person", "ward"]), unit=UNIT, columns=WARDS)


def test_dataframes_are_asked_where_they_are(visits, tmp_path):
    with session({"visits": visits}, tmp_path) as asked:
        assert asked.query(BY_WARD, epsilon=EXACTLY).rows == [["A", 3], ["B", 3]]
        assert "`visits`" in asked.preview(BY_WARD, epsilon=1).statement


def test_spark_refuses_to_check_data(visits, tmp_path):
    with session({"visits": visits}, tmp_path) as asked:
        with pytest.raises(WrongUse, match="Spark does not check data"):
            asked.check_data()
        assert asked.budget.left == sf.Budget(10**6, "1e-6").epsilon


def test_what_was_drawn_once_is_not_drawn_again(visits, tmp_path, monkeypatch):
    runs = []
    run = SparkEngine._run
    monkeypatch.setattr(
        SparkEngine,
        "_run",
        lambda self, *arguments: runs.append(arguments) or run(self, *arguments),
    )
    answers = []
    for _ in range(2):
        with session({"visits": visits}, tmp_path) as asked:
            answers += [asked.query(BY_WARD, epsilon="0.001") for _ in range(2)]
            spent = asked.budget.spent
    assert spent == "0.001"
    assert len({str(each.rows) for each in answers}) == 1
    assert len({each.charge_id for each in answers}) == 1
    assert len(runs) == 1, "Spark is asked once, and what it gave is nowhere but in the answer"


def test_noise_is_in_no_statement(visits, tmp_path, monkeypatch):
    from sfumato.engines import spark as module

    texts = []
    printed = module.printed
    monkeypatch.setattr(
        module, "printed", lambda *a, **b: texts.append(printed(*a, **b)) or texts[-1]
    )
    with session({"visits": visits}, tmp_path) as asked:
        asked.query(BY_WARD, epsilon="0.001")
        asked.query(BY_WARD, rho="0.001")
    assert len(texts) >= 2
    assert not re.search(r"rand|uuid|shuffle|now\(", "".join(texts))


def test_one_engine_is_chosen(visits, tmp_path):
    with pytest.raises(WrongUse, match="DataFrames of Spark, and"):
        session({"visits": visits}, tmp_path, engine=sf.Local())
    with pytest.raises(WrongUse, match="engine="):
        session({"visits": visits}, tmp_path, engine="spark")
    with pytest.raises(InvalidSource, match="runs Spark already"):
        session({"visits": visits}, tmp_path, engine=sf.Spark("local[2]"))


def test_a_layout_is_not_read_by_spark(visits, tmp_path):
    path = tmp_path / "visits.csv"
    path.write_text("person,ward\n" + "".join(f"{who},{ward}\n" for who, ward in VISITS))
    kept = {"visits": sf.Table(path, unit=UNIT, columns=WARDS)}
    layouts = sf.prepare(kept, dataset="clinic", folder=tmp_path / "layouts")
    with pytest.raises(WrongUse, match="prepared layout, and Spark"):
        session(kept, tmp_path, prepared=layouts, engine=sf.Spark("local[2]"))


def test_the_example_of_the_documentation_runs(spark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "engines.md").read_text(encoding="utf-8")
    (example,) = [
        each
        for each in re.findall(r"```python\n(.*?)```", page, re.DOTALL)
        if "SparkSession" in each
    ]
    found = {"sf": sf}
    exec(example, found)
    assert [row[0] for row in found["answer"].rows] == ["A", "B"]


# --- an application of its own -----------------------------------------------------------------

ALONE = """
import os, sys, threading
from pathlib import Path
import sfumato as sf
from sfumato.errors import EngineFailed, InvalidSource

folder = Path(sys.argv[1])
options = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.sql.shuffle.partitions": "2"}
spark = sf.Spark("local[1]", options=options)
unit = sf.Unit("person", max_rows=2, max_groups=2)
tables = {"visits": sf.Table(folder / "visits", unit=unit, columns={"ward": sf.Category("A", "B")})}
opened = {"dataset": "clinic", "ledger": folder / "l.db", "budget": sf.Budget(10**6)}
question = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
with sf.connect(tables, engine=spark, **opened) as session:
    print("answer", session.query(question, epsilon=200_000).rows)
from pyspark import SparkContext
print("ended", SparkContext._active_spark_context is None)

# Spark gone under way: the task that waits at the gate never ends
from pyspark.sql import SparkSession
gate = folder / "gate"
os.mkfifo(gate)

def waits(rows):
    with gate.open("rb") as file:
        file.read()
    return rows

application = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
rows = application.sparkContext.parallelize([("canary-4711", "A")], 1).mapPartitions(waits)
frame = application.createDataFrame(rows, "person STRING, ward STRING")
tables = {"visits": sf.Table(frame, unit=unit, columns={"ward": sf.Category("A", "B")})}

def end():
    with gate.open("wb"):  # opens once the task does
        application.sparkContext._jsc.sc().stop()

session = sf.connect(tables, **opened)
other = threading.Thread(target=end)
other.start()
try:
    session.query("SELECT COUNT(*) AS n FROM visits", epsilon=100_000)
except EngineFailed as failure:
    print("failed", str(failure) == str(EngineFailed()), failure.__cause__, failure.__context__)
other.join()
print("spent", session.budget.spent)

# gone before: refused, and nothing is spent
try:
    session.query("SELECT COUNT(*) AS n FROM visits", epsilon=1)
except InvalidSource as refusal:
    print(refusal.problem)
print("spent", session.budget.spent)
session.close()
"""


@pytest.mark.long
def test_an_application_of_its_own_answers_ends_and_may_be_gone(tmp_path):
    program("java")
    (tmp_path / "visits").mkdir()
    people, wards = zip(*VISITS, strict=True)
    pq.write_table(
        pa.table({"person": people, "ward": wards}), tmp_path / "visits" / "part-0.parquet"
    )
    run = subprocess.run(
        [sys.executable, "-c", ALONE, str(tmp_path)], capture_output=True, text=True, timeout=300
    )
    assert run.returncode == 0, run.stderr[-3000:]
    lines = run.stdout.splitlines()
    assert lines[0] == "answer [['A', 3], ['B', 3]]"
    assert lines[1] == "ended True"
    assert lines[2] == "failed True None None"
    assert "canary" not in run.stdout + run.stderr
    assert lines[3] == "spent 300000"
    assert lines[4:] == ["The Spark application has ended.", "spent 300000"]
