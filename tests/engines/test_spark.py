# SPDX-License-Identifier: Apache-2.0
"""Spark passes the conformance suite, in an application whose settings are against it.

And how it fails.
"""

import logging
import math
import os
import signal
import threading
from contextlib import closing, nullcontext
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.engines import spark as module
from sfumato.engines import spark_quiet
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.emit import Statement
from sfumato.engines.lanes import Lanes
from sfumato.engines.reference import Reference
from sfumato.engines.spark import PASSED, Spark, SparkEngine
from sfumato.engines.spark_quiet import PRINTERS, TALKERS
from sfumato.engines.stop import ENDLESS, Patience, Stop
from sfumato.errors import Cancelled, EngineFailed, InvalidDeclaration, InvalidSource
from sfumato.metadata.column import Column
from sfumato.metadata.dataset import Dataset
from sfumato.plan.aggregate import CountDistinct, CountRows, CountUnits, Mean, Quantiles, Sum
from sfumato.plan.owner import owner_of
from sfumato.plan.relation import (
    Computed,
    PerUnit,
    Ranked,
    Scan,
    Sort,
    Summary,
    Union,
    Windowed,
    WindowFunction,
)
from sfumato.plan.scalar import ChangeCase, Field, Substring
from sfumato.plan.value import GroupKey, Value
from sfumato.privacy.distance import Norm
from sfumato.query.pipeline import compile_plan
from tests.contracts import unit_rows, world
from tests.contracts.conformance import EngineContract, differs
from tests.contracts.corpus import DATASET, FOLDER, statements
from tests.contracts.effort import examples
from tests.contracts.interrupts import heard
from tests.contracts.spark import interpreted
from tests.contracts.world import by, content, plan, read, scan
from tools import corpus

CANARY = "canary-4711"
COLUMNS = {"a": sf.Integer(0, 9), "b": sf.Text()}
# Spark takes a second or two to plan the statements of an example, and minutes to shrink one
FEW = settings(
    max_examples=examples(0.1),
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
)


@pytest.mark.long
class TestSpark(EngineContract):
    without_rows = "Spark"

    @pytest.fixture(autouse=True)
    def _with_spark(self, spark):
        self.spark = spark
        self.prepared = lambda engine: engine

    def open_engine(self, tables):
        return self.prepared(SparkEngine(tables, self.spark))

    @FEW
    @given(st.data(), world.data(), st.text(max_size=3))
    def test_the_engine_gives_the_integers_of_the_reference(self, data, rows, key):
        self.prepared = interpreted
        EngineContract.test_the_engine_gives_the_integers_of_the_reference.hypothesis.inner_test(
            self, data, rows, key
        )

    @FEW
    @given(st.data(), world.data())
    def test_the_engine_gives_the_marginals_of_the_reference(self, data, rows):
        self.prepared = interpreted
        EngineContract.test_the_engine_gives_the_marginals_of_the_reference.hypothesis.inner_test(
            self, data, rows
        )

    def test_the_engine_gives_the_rows_of_the_reference(self):
        every = unit_rows.bounded(world.scan("people"), world.read(world.scan("people"), "n"))
        assert self.rows_of(world.declared(world.content()), every)


# --- a fixed sample of the suite for a change; the whole takes minutes, most of them Spark's ---


@pytest.fixture
def suite(spark):
    """The suite on Spark without generated code, which is quicker for a few rows."""
    suite = TestSpark()
    suite.spark, suite.prepared = spark, interpreted
    return suite


def test_the_application_runs(suite):
    # the first test with Spark: that the JVM starts and loads its planner is in its time
    suite.test_the_engine_gives_the_integers_of_the_reference_on("weights in L1")


@pytest.mark.parametrize(
    "name",
    [
        "open keys",
        "first groups of some",
        "distinct values of each group",
        "units of a shared stay",
        "an outer public join",
        "an anti-join",
        "the mean of a unit on fine steps",
        "first row, descending 1",
        "a union",
        "huge integers",
        "names that differ in case",
    ],
)
def test_an_example_of_the_suite_has_the_integers_of_the_reference(suite, name):
    suite.test_the_engine_gives_the_integers_of_the_reference_on(name)


@pytest.mark.parametrize(
    "name",
    [
        "test_an_expression_means_what_evaluate_says",
        "test_a_test_means_what_evaluate_says",
        "test_an_expression_of_the_widest_codes_means_what_evaluate_says",
        "test_a_pattern_means_what_evaluate_says",
        "test_the_engine_gives_the_rows_of_the_reference_at_the_edges",
    ],
)
def test_a_part_of_the_suite_passes(suite, name):
    getattr(suite, name)()


# --- the statements of analysts ----------------------------------------------------------------

REGIONS = ["R01", "R02", "R03", "N", "R99", "Ü", None]
AMOUNTS = [0.0, 12.5, 499.999, -3.0, 1e308, math.nan, math.inf, -math.inf, None, 250.0]
WORDS = ["p1", "空", "👩‍👧", "", "a\\b", None, "p1", "p2", "it's"]
EVERY_DAY = [
    "2024-01-01",
    "2024-06-15",
    "1969-12-31",
    "0001-01-01",
    "2024-12-31",
    "2024-02-30",
    "",
    None,
]


def shop():
    """Tables for the corpus: some users with many rows, one with a row, rows of nobody."""
    users = ["u0"] * 23 + ["u1"] * 9 + ["ü2"] * 5 + ["u3", None]
    pick = lambda values, step: [values[place * step % len(values)] for place in range(len(users))]  # noqa: E731
    more = [Decimal(place) * 10**30 for place in range(len(users))]
    return {
        "events": {"user_id": users, "region": pick(REGIONS, 3), "product": pick(WORDS, 2), "amount": pick(AMOUNTS, 7),
                   "day": pick(EVERY_DAY, 5)},
        "users": {"user_id": ["u0", "u1", "ü2", "u4", None, "u1"], "age_band": ["18-24", "65+", "?", "25-34", "65+", "18-24"],
                  "joined": ["2020-01-01", "2024-12-31", None, "2022-02-02", "2021-01-01", "2023-03-03"]},
        "products": {"product": ["p1", "空", "p1", "p2", None], "category": ["food", "toys", "books", None, "food"]},
        "orders": {"user_id": users, "price": pick([Decimal("1.50"), None, Decimal("99.99"), Decimal(-1)], 3),
                   "quantity": pick(WORDS, 4)},
        "events_unbounded": {"user_id": users, "amount": [str(each) for each in more], "product": pick(WORDS, 3)},
    }  # fmt: skip


@pytest.mark.parametrize("step", [6, pytest.param(1, marks=pytest.mark.long)])
def test_statements_of_the_corpus_give_the_same_integers(spark, step):
    cells = {name: pa.table(columns) for name, columns in shop().items()}
    tables = {
        name: sf.Table(cells[name], unit=each.unit, columns=each.columns, public=each.public)
        for name, each in DATASET.tables.items()
    }
    oracle = Reference({name: each.to_pylist() for name, each in cells.items()})
    answered = [statement.name for statement in statements() if statement.verdict == "answered"]
    assert len(answered) > 30
    wrong = []
    with (
        closing(interpreted(SparkEngine(tables, spark))) as engine,
        closing(DuckDB(tables)) as duckdb,
    ):
        for place, name in enumerate(answered[::step]):
            asked = corpus.question(FOLDER / f"{name}.sql")
            bounded = compile_plan(asked.raw, DATASET, (Norm.L1, Norm.L2)[place % 2])
            expected = oracle.run(bounded, name)
            if not engine.run(bounded, name) == expected == duckdb.run(bounded, name):
                wrong.append(name)
    assert not wrong


# --- what statements mean ----------------------------------------------------------------------


def test_no_setting_of_the_application_is_one_of_ours(spark):
    with closing(SparkEngine({}, spark)) as engine:
        ours, theirs = engine._session.conf, spark.conf
        assert (
            ours.get("spark.sql.parser.quotedRegexColumnNames"),
            ours.get("spark.sql.ansi.enabled"),
        ) == (
            "false",
            "true",
        )
        assert ours.get("spark.sql.files.ignoreCorruptFiles") == "false"
        assert ours.get("spark.sql.session.timeZone") == "UTC"
        # how long it takes stays theirs, and so does the session
        assert ours.get("spark.sql.shuffle.partitions") == "2"
        assert (theirs.get("spark.sql.ansi.enabled"), theirs.get("spark.sql.caseSensitive")) == (
            "false",
            "false",
        )
        theirs.set("spark.sql.parser.escapedStringLiterals", "false")
        theirs.set("spark.sql.parser.escapedStringLiterals", "true")
        assert ours.get("spark.sql.parser.escapedStringLiterals") == "false"


def test_an_application_whose_settings_are_believed_is_noticed(spark, monkeypatch):
    monkeypatch.setattr(SparkEngine, "_settle", lambda self: None)
    assert differs(
        lambda tables: interpreted(SparkEngine(tables, spark)), "names that differ in case"
    )


def ranked_union(spark):
    """A plan over a union below a window. Of one such statement a rule of Spark's optimiser
    (excluded in
    ``_MEANING``) made nonsense; as it is emitted now the rule leaves it alone."""
    days = [scan("days", f"T{place}.") for place in range(2)]
    one = PerUnit(
        days[0],
        (),
        (Computed(Column("n", sf.Integer(0, 1)), Summary.COUNT_DISTINCT, read(days[0], "T0.n")),),
    )
    rank = Column("rank", sf.Integer(1, 2))
    bounded = plan(
        Ranked(Union((one, days[1]), ((), ()), ()), (), (), rank),
        Sum(Value.of(rank)),
        limits=(1, 2, None),
    )
    tables = world.declared(
        content(days=[{"who": "p", "when": 1, "n": "1"}, {"who": "q", "when": 1, "n": "2"}])
    )
    rows = {name: table.source.to_pylist() for name, table in tables.items()}
    with closing(interpreted(SparkEngine(tables, spark))) as engine:
        return engine.run(bounded, "key") == Reference(rows).run(bounded, "key")


def test_a_union_may_stand_below_a_window(spark):
    assert ranked_union(spark)


def test_windows_and_functions_of_texts_are_those_of_the_reference(spark):
    columns = {"n": sf.Integer(0, 9), "t": sf.Text()}
    cells = [("p", 1, "Äb"), ("p", 3, "ab"), ("p", 3, "AB"), ("q", 2, None), ("q", None, "äB")]
    rows = [dict(zip(("who", "n", "t"), cell, strict=True)) for cell in cells]
    tables = {"t": sf.Table(pa.Table.from_pylist(rows), unit=sf.Unit("who"), columns=columns)}
    relation = Scan(
        "t",
        "",
        tuple(Column(*each) for each in columns.items()),
        owner_of(Dataset("d", tables), "t"),
    )
    n, t = (Field(column) for column in relation.columns)
    lower = ChangeCase(Substring(t, 1, 2), upper=False)
    computed = []
    for function in WindowFunction:
        looked_up = function in (WindowFunction.LAG, WindowFunction.LEAD)
        column = Column(function.value, sf.Integer(0, 9))
        value = Value.of(n.column) if looked_up else None
        ties, order = (n, t), (Sort(n, descending=True),)
        computed.append(Value.of(column))
        relation = Windowed(relation, function, (lower,), order, ties, column, value)
    key = GroupKey(Value("t", sf.Text(), lower), None, missing=True)
    bounded = plan(relation, *map(Sum, computed), keys=(key,), limits=(9, 9, None))
    with closing(interpreted(SparkEngine(tables, spark))) as engine:
        assert engine.run(bounded, "key") == Reference({"t": rows}).run(bounded, "key")


@pytest.mark.long
def test_weights_of_many_units_add_up_beyond_64_bits(spark):
    units, top, letters = 1_100_000, 2**22 - 1, sf.Category("a", "b")
    columns = {"n": sf.Integer(-top, top), "c": letters}
    frame = spark.range(units).selectExpr("id AS who", f"-{top} AS n", "'a' AS c")
    table = sf.Table(frame, unit=sf.Unit("who"), columns=columns)
    source = Scan(
        "t",
        "",
        tuple(Column(*each) for each in columns.items()),
        owner_of(Dataset("d", {"t": table}), "t"),
    )
    bounded = plan(
        source, Mean(read(source, "n")), keys=(by(source, "c"),), limits=(1, 1, None), fine=2**20
    )
    with closing(SparkEngine({"t": table}, spark)) as engine:
        assert engine.run(bounded, "key") == ({(0,): (0, units * 2 * top * 2**20)},)
    assert units * 2 * top * 2**20 > 2**63


# --- failures ----------------------------------------------------------------------------------


@pytest.fixture
def engine(spark, tmp_path):
    """An engine over one Parquet file."""
    pq.write_table(
        pa.table({"a": [1, 2, None], "b": [CANARY, None, "x"]}), tmp_path / "data.parquet"
    )
    opened = SparkEngine({"t": sf.Table(tmp_path / "data.parquet", columns=COLUMNS)}, spark)
    yield opened
    opened.close()


def counts():
    """COUNT(*) of the file."""
    return plan(Scan("t", "", ()), CountRows())


def failure_of(engine, caplog):
    """What reaches the analyst and what the logs, when a run fails."""
    caplog.clear()
    with caplog.at_level(logging.DEBUG), pytest.raises(sf.SfumatoError) as failure:
        engine.run(counts(), "key")
    assert type(failure.value) is EngineFailed
    # nothing of the engine's text hangs on the error, where a traceback would print it
    assert failure.value.__cause__ is None
    assert failure.value.__context__ is None
    return str(failure.value), caplog.text


BROKEN = [
    f"SELECT raise_error('{CANARY}')",
    f"SELECT CAST(concat('{CANARY}', id) AS INT) FROM range(3)",
    f"SELECT {CANARY.replace('-', '_')} FROM nowhere",
    f"SELECT FROM WHERE '{CANARY}'",
    f"SELECT 1 / (id - 1) AS `{CANARY}` FROM range(3)",
]


def test_an_engine_failure_is_one_constant_message(
    engine, tmp_path, caplog, capfd, java_errors, monkeypatch
):
    seen = set()
    for broken in (*BROKEN, None):
        with monkeypatch.context() as patch:
            if broken is None:
                (tmp_path / "data.parquet").unlink()
            else:
                patch.setattr(module, "_statements", lambda *_, sql=broken: [Statement(sql, (0,))])
            said, logged = failure_of(engine, caplog)
        seen.add(said)
        assert CANARY not in said + logged
        assert "the engine failed: " in logged
    assert seen == {str(EngineFailed())}
    told = capfd.readouterr()
    assert CANARY not in told.out + told.err + java_errors.read_text()


def test_a_failure_that_is_printed_is_noticed(engine, caplog, monkeypatch):
    monkeypatch.setattr(spark_quiet, "may_be_printed", lambda record: True)
    monkeypatch.setattr(module, "_statements", lambda *_: [Statement(BROKEN[0], (0,))])
    for name in (*PRINTERS, *TALKERS):
        logger = logging.getLogger(name)
        monkeypatch.setattr(logger, "filters", [])
    _, logged = failure_of(engine, caplog)
    assert CANARY in logged


def test_failures_of_others_are_printed_as_before(spark, engine, caplog):
    with caplog.at_level(logging.DEBUG, logger="py4j.clientserver"):
        caplog.clear()
        with pytest.raises(Exception, match=CANARY):
            spark.sql(BROKEN[0]).collect()
        assert CANARY in caplog.text


def test_a_failure_does_not_end_the_engine(engine, monkeypatch, caplog):
    with monkeypatch.context() as patch:
        patch.setattr(module, "_statements", lambda *_: [Statement(BROKEN[1], (0,))])
        failure_of(engine, caplog)
    assert engine.run(counts(), "key") == ({(): (3,)},)


def test_a_run_that_takes_too_long_is_ended(spark, caplog, monkeypatch):
    endless = "SELECT sum(id % 7) FROM range(1000000000000000)"
    before = set(threading.enumerate())
    with (
        closing(SparkEngine({}, spark, time_limit=0.001)) as engine,
        monkeypatch.context() as patch,
    ):
        patch.setattr(module, "_statements", lambda *_: [Statement(endless, (0,))] * 2)
        said, _ = failure_of(engine, caplog)
    assert said == str(EngineFailed())
    begun = set(threading.enumerate()) - before
    assert not [each.name for each in begun if each.name.startswith("sfumato")]


@pytest.mark.parametrize("limit", [0, -1, True, "1", float("nan"), float("inf"), None])
def test_a_time_limit_is_a_number_of_seconds(limit):
    with pytest.raises(InvalidDeclaration, match="time_limit") as refusal:
        Spark("local[2]", time_limit=limit)
    assert "seconds" in refusal.value.allowed


@pytest.mark.parametrize("master", ["", None, 5])
def test_an_address_is_a_text(master):
    with pytest.raises(InvalidDeclaration, match="Spark"):
        Spark(master)


@pytest.mark.parametrize("options", [{"spark.executor.cores": 2}, {2: "x"}, {"x": None}])
def test_options_are_texts(options):
    with pytest.raises(InvalidDeclaration, match="options=") as refusal:
        Spark("local[2]", options=options)
    assert "spark.executor.memory" in refusal.value.allowed


def test_a_version_that_has_not_passed_is_refused(spark, monkeypatch):
    assert spark.version in PASSED
    monkeypatch.setattr(module, "PASSED", ("4.2.9",))
    with pytest.raises(InvalidSource, match="has not passed the conformance suite") as refusal:
        SparkEngine({}, spark)
    assert "4.2.9" in refusal.value.allowed
    assert spark.range(3).count() == 3, "the application is theirs, and goes on"


def test_a_second_application_in_one_process_is_refused(spark):
    with pytest.raises(InvalidSource, match="runs Spark already") as refusal:
        Spark("local[2]").open({})
    assert "spark.table" in refusal.value.remedy


def test_a_plan_of_a_layout_is_refused(engine, spark):
    tables = {"t": sf.Table("t.parquet", unit=sf.Unit("b", max_rows=1), columns=COLUMNS)}
    source = Scan("t", "", (), owner_of(Dataset("d", tables), "t"))
    bounded = plan(source, CountRows(), limits=(1, None, None))
    kept = replace(bounded, tracked=replace(bounded.tracked, kept=1))
    for run in (lambda: engine.run(kept, "key"), lambda: engine.statement(kept)):
        with pytest.raises(TypeError, match="prepared layout"):
            run()


def test_the_statement_hides_the_sampling_key_and_the_data(engine, spark):
    tables = {
        "t": sf.Table(
            {"a": [1], "who": ["p"]}, unit=sf.Unit("who"), columns={"a": sf.Category("1", "2", "3")}
        )
    }
    scan = Scan(
        "t",
        "",
        tuple(Column("a", tables["t"].columns["a"]) for _ in "a"),
        owner_of(Dataset("d", tables), "t"),
    )
    with closing(SparkEngine(tables, spark)) as opened:
        shown = opened.statement(
            plan(scan, CountUnits(), keys=(by(scan, "a"),), limits=(None, 2, None))
        )
    assert "<sampling key>" in shown
    assert "`t`" in shown
    assert "global_temp" not in shown


def test_rows_are_gathered_where_a_unit_has_few_in_a_group_by_declaration(spark):
    tables = {
        "t": sf.Table({"c": ["a"], "who": ["p"]}, unit=sf.Unit("who"), columns={"c": LETTERS})
    }
    source = Scan("t", "", (Column("c", LETTERS),), owner_of(Dataset("d", tables), "t"))
    with closing(SparkEngine(tables, spark)) as opened:
        shown = [
            opened.statement(
                plan(source, CountRows(), keys=(by(source, "c"),), limits=(most, 2, None))
            )
            for most in (16, 17, None)
        ]
    assert ["REPARTITION" in each for each in shown] == [True, False, False]


def test_nothing_is_left_of_a_closed_engine(spark):
    engine = SparkEngine({"t": sf.Table({"a": [1], "b": ["x"]}, columns=COLUMNS)}, spark)
    names = set(engine._views)
    shown = lambda: {row.viewName for row in spark.sql("SHOW VIEWS IN global_temp").collect()}  # noqa: E731
    assert names
    assert names <= shown()
    engine.close()
    assert not names & shown()
    engine.close()


# --- tasks that are lost -----------------------------------------------------------------------

LETTERS = sf.Category(*"abcde")
EVENTS = {"who": sf.Text(), "c": LETTERS, "n": sf.Integer(0, 100)}


def events(spark, attempts):
    """Rows of a task that dies half-way at first, and says so in a folder."""
    rows = [(f"p{place % 7}", "abcde"[place % 5], place) for place in range(200)]

    def lost(split, cells):
        from pyspark import TaskContext

        for place, row in enumerate(cells):
            if place == 40 and split == 1 and TaskContext.get().attemptNumber() == 0:
                (attempts / f"{TaskContext.get().taskAttemptId()}").touch()
                os._exit(1)
            yield row

    return spark.createDataFrame(
        spark.sparkContext.parallelize(rows, 3).mapPartitionsWithIndex(lost),
        "who STRING, c STRING, n INT",
    ), rows


def everything():
    """Every kind of integer, with the limits of units and the order of their groups."""
    tables = {"t": sf.Table("t.parquet", unit=sf.Unit("who"), columns=EVENTS)}
    scan = Scan(
        "t",
        "",
        tuple(Column(*each) for each in EVENTS.items()),
        owner_of(Dataset("d", tables), "t"),
    )
    n, who = read(scan, "n"), read(scan, "who")
    parts = (
        CountRows(),
        Sum(n),
        Mean(n),
        CountUnits(),
        CountDistinct(who),
        CountDistinct(n),
        Quantiles(n, (Fraction(1, 2),)),
    )
    return plan(scan, *parts, keys=(by(scan, "c"),), limits=(3, 2, 7), fine=2**20)


def survives(spark, folder):
    """Whether lost tasks change nothing: the integers are those of the reference, and some were
    lost.
    """
    frame, rows = events(spark, folder)
    tables = {"t": sf.Table(frame, unit=sf.Unit("who"), columns=EVENTS)}
    expected = Reference({"t": [dict(zip(EVENTS, row, strict=True)) for row in rows]}).run(
        everything(), "key"
    )
    with closing(SparkEngine(tables, spark)) as engine:
        found = engine.run(everything(), "key")
    assert len(list(folder.iterdir())) >= 3, "a task of each statement was lost"
    return found == expected


@pytest.mark.long
def test_a_lost_task_changes_nothing(spark, tmp_path):
    assert survives(spark, tmp_path)


@pytest.mark.long
def test_a_task_that_is_redrawn_is_noticed(spark, tmp_path, monkeypatch):
    drawn = module.printed
    monkeypatch.setattr(
        module,
        "printed",
        lambda *a, **b: drawn(*a, **b).replace("md5(CAST(", "md5(CAST(uuid() || "),
    )
    assert not survives(spark, tmp_path)


def test_an_interrupted_run_ends_its_jobs(spark, tmp_path):
    gate = tmp_path / "gate"
    os.mkfifo(gate)

    def waits(cells):
        with gate.open("rb") as opened:
            opened.read()
        return cells

    def interrupt():
        with gate.open("wb"):  # opens once the task does
            os.kill(os.getpid(), signal.SIGINT)
            ended.wait()

    frame = spark.createDataFrame(
        spark.sparkContext.parallelize([(1, "x")], 1).mapPartitions(waits), "a INT, b STRING"
    )
    ended = threading.Event()
    with heard(), closing(SparkEngine({"t": sf.Table(frame, columns=COLUMNS)}, spark)) as engine:
        other = threading.Thread(target=interrupt)
        other.start()
        with pytest.raises(KeyboardInterrupt):
            engine.run(counts(), "key")
        ended.set()
        other.join()
    assert spark.range(3).count() == 3


def test_an_interrupt_that_closes_the_connection_stays_an_interrupt(engine, monkeypatch):
    def interrupted(_):
        raise KeyboardInterrupt

    def closed(_):
        raise ConnectionError

    context = engine._session.sparkContext
    monkeypatch.setattr(module, "_rows", interrupted)
    monkeypatch.setattr(context, "removeJobTag", closed)
    with pytest.raises(KeyboardInterrupt):
        engine.run(counts(), "key")


def test_an_interrupt_hidden_by_the_closed_connection_stays_an_interrupt(engine, monkeypatch):
    # py4j closes the connection on Ctrl-C, and PySpark uses it once more on its way out
    def interrupted(_):
        try:
            raise KeyboardInterrupt
        finally:
            raise ConnectionError

    ended = []
    monkeypatch.setattr(module, "_rows", interrupted)
    monkeypatch.setattr(engine._session.sparkContext, "cancelJobsWithTag", ended.append)
    with pytest.raises(KeyboardInterrupt):
        engine.run(counts(), "key")
    assert len(ended) == 1


# of two tables that nothing links: far longer than anybody waits
SLOW = (
    "SELECT sum(a.id * b.id % 7) FROM range(0, 100000000, 1, 2) AS a, range(0, 100000, 1, 2) AS b"
)


def ended_by(engine, monkeypatch, caplog, asked, end, patience=ENDLESS):
    """How a statement ends once it runs and ``end`` is called, and what the owner is told of it."""
    monkeypatch.setattr(module, "_statements", lambda *_: [Statement(asked, (0,))])
    run, over = engine.ready(counts(), "key", patience), threading.Event()

    def again():
        # as a session that closes does: one that comes before the job has begun is lost
        while not over.wait(0.5):
            end()

    other = threading.Thread(target=again)
    other.start()
    with caplog.at_level(logging.DEBUG, "sfumato.owner"), pytest.raises(sf.SfumatoError) as ended:
        run()
    over.set()
    other.join()
    assert (ended.value.__cause__, ended.value.__context__) == (None, None)
    return type(ended.value), caplog.text


@pytest.mark.long
def test_a_stop_interrupts_what_runs(engine, monkeypatch, caplog):
    stop = Stop()
    assert ended_by(engine, monkeypatch, caplog, SLOW, stop.stop, Patience(stop)) == (Cancelled, "")


@pytest.mark.long
def test_what_runs_is_interrupted_as_the_engine_closes(engine, monkeypatch, caplog):
    assert ended_by(engine, monkeypatch, caplog, SLOW, engine.interrupt) == (Cancelled, "")


def test_a_failure_after_the_time_limit_is_one_of_the_engine(engine, monkeypatch, caplog):
    stop = Stop()
    stop.stop()
    # the watcher looks for the first time a while after this has failed
    monkeypatch.setattr(module, "_LOOK", 60)
    monkeypatch.setattr(Lanes, "take", lambda self, patience: nullcontext())
    failing = "SELECT CAST('x' AS INT)"
    kind, text = ended_by(engine, monkeypatch, caplog, failing, stop.stop, Patience(stop))
    assert kind is EngineFailed
    assert "the engine failed" in text
    # the mutant: whatever fails once the caller waits no longer does not count as a failure
    monkeypatch.setattr(module, "is_cancelled_job", lambda failure: True)
    assert ended_by(engine, monkeypatch, caplog, failing, stop.stop, Patience(stop))[0] is Cancelled


def test_a_question_that_waits_as_the_engine_closes_is_cancelled():
    engine = object.__new__(SparkEngine)
    engine._lane, engine._running = Lanes([None]), ""
    engine.interrupt()
    with pytest.raises(Cancelled):
        engine._found(list, ["SELECT 1"], ENDLESS)
