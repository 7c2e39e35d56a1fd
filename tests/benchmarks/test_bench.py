# SPDX-License-Identifier: Apache-2.0
"""The arithmetic of the benchmarks, who is asked when, and the form of the results.

Nothing is timed.
"""

import json
from dataclasses import asdict, fields, replace
from fractions import Fraction
from importlib import import_module
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from benchmarks import (
    accounting,
    askers,
    driver,
    engines,
    figures,
    figures_engines,
    largest,
    ledger,
    noise,
    report,
    slow_disk,
    telemetry,
    worker,
)
from benchmarks.compare import (
    Case,
    Kind,
    Peer,
    Row,
    Sample,
    Unit,
    Work,
    at_least,
    at_most,
    at_most_more,
    at_most_times,
    faster,
    line,
    rows,
)
from benchmarks.driver import Unavailable, measure
from benchmarks.events import events
from benchmarks.systems import truth, workloads
from benchmarks.systems.estimates import ESTIMATES
from benchmarks.systems.fresh import fresh
from benchmarks.systems.problems import mix
from benchmarks.systems.questions import tables
from sfumato.ledger import Ledger
from tests.contracts.require import missing, program
from tools.postgres import programs

EACH = Unit("ns a sample", 1e9, each=True)
OURS, THEIRS = Work("sfumato", "laplace", 1, 1000), Work("numpy", "laplace", 1, 500)
CASE = Case("a case", EACH, OURS, (Peer("numpy", THEIRS, faster(4)),), at_most(3), repetitions=3)


def taken(*values, cpu=1.0):
    return [Sample(value, value * cpu) for value in values]


def test_a_row_holds_the_medians_their_ratio_and_the_verdict():
    # medians 2 us of 1,000 and 6 us of 500: 2 ns against 12 ns; their processor works half of that
    # time
    samples = {OURS: taken(9e-6, 1e-6, 2e-6), THEIRS: taken(5e-6, 6e-6, 8e-6, cpu=0.5)}
    alone, beside = rows(CASE, samples)
    assert alone == Row("a case", "ns a sample", 2.0, None, None, None, None, "<= 3", True, 3)
    assert beside == Row("a case", "ns a sample", 2.0, 12.0, "numpy", 6.0, 3.0, ">= 4x", True, 3)


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=9), st.randoms(use_true_random=False))
def test_the_order_of_the_repetitions_does_not_matter(times, random):
    shuffled = random.sample(times, len(times))
    told = [
        rows(CASE, {OURS: taken(*given_times), THEIRS: taken(5.0)})
        for given_times in (times, shuffled)
    ]
    assert told[0] == told[1]


@pytest.mark.parametrize(
    ("bar", "ours", "peer", "holds"),
    [
        (faster(4), 1.0, 4.0, True),
        (faster(4), 1.0, 3.999, False),
        (faster(Fraction(3, 2)), 2.0, 3.0, True),
        (faster(Fraction(1, 3)), 3.0, 1.0, True),
        (faster(Fraction(1, 3)), 3.001, 1.0, False),
        (at_most(5), 5.0, 0.0, True),
        (at_most(5), 5.001, 100.0, False),
        (at_least(35.344), 35.344, 0.0, True),
        (at_least(35.344), 35.3439, 0.0, False),
        (at_most_more(3), 4.0, 1.0, True),
        (at_most_more(3), 4.001, 1.0, False),
        (at_most_times(Fraction(11, 10)), 11.0, 10.0, True),
        (at_most_times(Fraction(11, 10)), 11.001, 10.0, False),
    ],
)
def test_a_bar_is_judged_at_its_edge(bar, ours, peer, holds):
    assert bar.holds(ours, peer) is holds


def test_a_peer_that_was_not_measured_has_an_empty_row_with_its_name_and_bar():
    (_, beside) = rows(CASE, {OURS: taken(2e-6)})
    assert beside == Row("a case", "ns a sample", 2.0, None, "numpy", None, None, ">= 4x", None, 1)
    assert line(beside).endswith("not measured")


class Fake:
    """Answers 1, 2, 3, ... and notes who is asked; refuses some works."""

    def __init__(self, asked, refuses=()):
        self.asked, self.refuses = asked, refuses

    def ask(self, work, kind):
        self.asked.append((work.system, kind))
        if work in self.refuses:
            raise Unavailable("cannot")
        return Sample(float(len(self.asked)), None)


def test_systems_are_asked_in_turn():
    asked = []
    samples, failed = measure(CASE, {"sfumato": Fake(asked), "numpy": Fake(asked)})
    assert asked == [("sfumato", Kind.TIME), ("numpy", Kind.TIME)] * 3 and not failed
    assert [each.value for each in samples[OURS]] == [1.0, 3.0, 5.0]


def test_a_peer_that_cannot_is_named_and_left_out_but_we_never_are():
    asked = []
    samples, failed = measure(CASE, {"sfumato": Fake(asked), "numpy": Fake(asked, [THEIRS])})
    assert (
        failed == {THEIRS: "cannot"}
        and list(samples) == [OURS]
        and asked.count(("numpy", Kind.TIME)) == 1
    )
    assert list(measure(CASE, {"sfumato": Fake(asked)})[0]) == [OURS]
    with pytest.raises(Unavailable):
        measure(CASE, {"sfumato": Fake(asked, [OURS])})


def test_a_peer_without_an_environment_is_skipped_by_name(monkeypatch, tmp_path):
    monkeypatch.setattr(driver, "ROOT", tmp_path)
    assert driver.start(["opendp", "python-dp"]) == (
        {},
        {"opendp": "does not install here", "python-dp": "does not install here"},
    )


def test_a_process_answers_and_says_what_it_cannot():
    numpy = driver.Worker("numpy")
    try:
        assert {"numpy", "python"} <= set(numpy.versions)
        assert numpy.ask(Work("numpy", "laplace one"), Kind.TIME).value > 0
        with pytest.raises(Unavailable, match="KeyError"):
            numpy.ask(Work("numpy", "nothing"), Kind.TIME)
    finally:
        numpy.close()
    assert list(worker.answers("nobody", [])) == [
        {"error": "ImportError: No module named 'benchmarks.systems.nobody'"}
    ]


# the accuracy on a grid of settings, each in seconds
GRIDS = ("grid, median", "grid, worst", "grid, wide", "grid, widest")


# each starts a Node or compiles and starts a Java client
CLIENTS = ("telemetry node", "telemetry java")


def test_every_work_of_ours_and_numpy_is_there():
    systems = ("sfumato", "numpy", "naive_sqlite")
    works = {name: import_module(f"benchmarks.systems.{name}").WORKS for name in systems}
    cases = (*noise.cases(), *accounting.cases(), *ledger.cases(), *telemetry.cases())
    asked = [work for case in cases for work in case.works if work.system in works]
    assert not [work for work in asked if work.name not in works[work.system]]
    for name, make in works["sfumato"].items():
        if name not in (*GRIDS, *ESTIMATES) and not name.startswith(CLIENTS):
            assert make(2.5, 64)() is not None, name
    for make in works["naive_sqlite"].values():
        make(2, 4)()


@pytest.mark.parametrize("name", ["telemetry worst mean", "telemetry bias category"])
def test_an_estimate_is_made(name):
    assert ESTIMATES[name](2.5, 64)() is not None


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_reports(client):
    works = import_module("benchmarks.systems.sfumato").WORKS
    assert works[f"{client} category"](2.5, 64)() is not None


@pytest.mark.long
@pytest.mark.parametrize("name", ESTIMATES)
def test_every_estimate_is_made(name):
    assert ESTIMATES[name](2.5, 2000)() is not None


@pytest.mark.long
@pytest.mark.parametrize("name", GRIDS)
def test_every_grid_is_gone_through(name):
    assert import_module("benchmarks.systems.sfumato").WORKS[name](2.5, 64)() is not None


def test_every_work_of_a_ledger_on_a_server_is_there_and_takes_its_time():
    asked = {
        work.name for case in ledger.cases() for work in case.works if work.system == ledger.SERVER
    }
    if programs() is None:
        missing("postgres", "PostgreSQL (initdb, postgres) is not installed")
    server = driver.Worker(ledger.SERVER)
    try:
        for name in asked:
            assert server.ask(Work(ledger.SERVER, name, 2, 4), Kind.VALUE).value > 0, name
    finally:
        server.close()
    assert len(asked) == 4


def test_the_bars_of_the_ledger_are_those_of_the_issue():
    cases = list(ledger.cases())
    names = [(case.name, case.unit.name) for case in cases]
    assert len(set(names)) == len(names)
    alone = {(case.name, case.unit.name): case.bar.text for case in cases if case.bar is not None}
    beside = {
        (case.name, peer.name): peer.bar.text
        for case in cases
        for peer in case.peers
        if peer.bar is not None
    }
    for disk in ("", ", a 4 ms disk"):
        assert beside[f"SQLite{disk}, 32 callers", "naive SQLite"] == ">= 15x"
        assert alone[f"SQLite{disk}, 32 callers", "ms, p99"] == "<= 150"
        for kind in ("processes", "threads"):
            assert beside[f"PostgreSQL{disk}, 8 {kind}", "one global chain"] == ">= 3x"
    # 500 charges a second are one in 2,000 microseconds
    assert alone["SQLite, a 4 ms disk, 32 callers", "us a charge"] == "<= 2000"
    assert alone["SQLite, 1 caller", "flushes a charge"] == "<= 3"
    assert (
        alone["opening, 1,000,000 charges", "s"]
        == alone["what is left, 1,000,000 charges", "ms"]
        == "<= 1"
    )
    assert alone["verify, 1,000,000 charges", "s"] == "<= 60"
    # a bare flush of the same disk stands beside each time
    assert [
        case.name for case in cases if "one fdatasync" not in [peer.name for peer in case.peers]
    ] == ["SQLite, 1 caller"]
    assert all(
        peer.work.system.endswith("disk") == case.ours.system.endswith("disk")
        for case in cases
        for peer in case.peers
    )


def test_small_cases_are_the_same_with_fewer_charges():
    whole, small = list(ledger.cases()), list(ledger.cases(small=True))
    assert [case.unit for case in whole] == [case.unit for case in small]
    assert all(
        less.ours.n < case.ours.n
        for case, less in zip(whole, small, strict=True)
        if case.ours.n >= 1000
    )


def test_the_bars_of_many_askers_are_those_of_the_issue():
    cases = list(askers.cases())
    alone = {(case.name, case.unit.name): case.bar.text for case in cases if case.bar is not None}
    beside = {
        (case.name, peer.name): peer.bar.text
        for case in cases
        for peer in case.peers
        if peer.bar is not None
    }
    together = "small questions of 32 threads, a 4 ms disk"
    assert beside[together, "one thread"] == ">= 4x"
    assert beside[together, "the ledger alone, and planning"] == "<= 1.3x"
    assert beside["a small question beside one that runs", "alone"] == "<= 1.5x"
    assert alone["a stored answer beside a question that runs", "ms"] == "<= 20"
    assert (
        alone["a stored answer, by its text", "ms"] == "<= 0.3"
        and alone["asking_as", "ms"] == "<= 0.2"
    )
    assert alone["verify, 1,000,000 charges", "s"] == "<= 56"
    assert alone["incremental verify, 1,000 charges after 1,000,000", "s"] == "<= 1"
    assert beside["one charge after 10,000 forfeits", "no forfeits"] == "<= 1.2x"
    assert alone["a preview of 200 sums over 200 tests", "ms"] == "<= 100"
    assert alone["100,000 accounts, created together", "s"] == "<= 15"
    assert (
        alone["100,000 accounts, listed", "s"]
        == alone["100,000 accounts, the report", "MB"]
        == "<= 1"
    )
    assert alone["100,000 accounts, the report", "s"] == "<= 5"
    works = import_module("benchmarks.systems.askers").WORKS
    assert {
        work.name for case in cases for work in case.works if work.system.startswith(askers.ASKERS)
    } == set(works)


def test_more_charges_are_verified_after_what_was_verified_before():
    works = import_module("benchmarks.systems.charges").CHARGES
    assert 0 < works["verify more"](3, 40)() < 60
    assert works["after forfeits"](5, 3)() > 0


def test_a_ledger_of_accounts_that_could_not_be_opened_is_no_fast_one(monkeypatch):
    works = import_module("benchmarks.systems.askers").WORKS
    assert works["created"](1, 64)() > 0 and works["report size"](1, 64)() > 64 * len("analyst")
    monkeypatch.setattr(Ledger, "allocate_all", lambda *_, **__: None)
    with pytest.raises(RuntimeError, match="could not be opened"):
        works["created"](1, 96)()


def test_a_slow_disk_flushes_in_milliseconds_and_the_same_system_does_so_without():
    program("cc")
    slow = driver.Worker(f"{ledger.NAIVE}{driver.SLOW_DISK}")
    try:
        assert slow.ask(Work(slow, "one fdatasync", 3), Kind.VALUE).value >= 4e-3
        assert slow.versions.keys() == {"apsw", "python"}
    finally:
        slow.close()


def test_where_flushes_cannot_be_held_back_the_cases_are_skipped_by_name(monkeypatch):
    monkeypatch.setattr(slow_disk, "slow_disk", lambda: None)
    workers, missing = driver.start([f"{driver.OURS}{driver.SLOW_DISK}"])
    assert (workers, list(missing)) == ({}, ["sfumato on a slow disk"])
    case = Case("slow", EACH, Work("sfumato on a slow disk", "charges"))
    assert list(report.run([case], workers, missing)) == []
    assert missing["slow"] == missing["sfumato on a slow disk"]


def test_a_repetition_is_so_many_calls(monkeypatch):
    calls = []
    worker.duration(lambda: calls.append(1), 5)
    assert len(calls) == 5
    monkeypatch.setattr(worker, "_LONG", 0)
    assert worker.enough(lambda: None) == 1


def test_a_number_is_told_with_the_digits_of_its_unit():
    epsilon = Unit("epsilon", 1, kind=Kind.VALUE, digits=7)
    (alone,) = rows(Case("e", epsilon, OURS, bar=at_least(35.344)), {OURS: taken(35.34412345)})
    assert alone.ours == 35.34412 and alone.holds


def test_a_number_is_what_the_call_gives():
    assert worker.measured(lambda: 2.5, 1, Kind.VALUE) == {"value": 2.5, "cpu": None}


def test_a_fresh_program_tells_its_own_seconds():
    assert 0.05 <= fresh("time.sleep(0.05)")() < 5


def test_the_mix_is_the_same_everywhere():
    # the prototype's 1,000 queries
    assert [kind for kind, _ in mix(6)] == [
        "laplace",
        "gaussian",
        "geometric",
        "response",
        "exponential",
        "laplace",
    ]
    assert mix(10**4)[:10] == mix(10) and all(2e-3 <= epsilon <= 2e-2 for _, epsilon in mix(1000))
    assert mix(1)[0][1] == pytest.approx(0.00421563, abs=1e-8)


def test_memory_is_what_is_held_beside_the_result():
    class Result:
        nbytes = 10**6

    def call():
        output, beside = bytearray(10**6), bytearray(3 * 10**5)
        del beside
        return Result() if output else None

    assert abs(worker.peak(call) - 3 * 10**5) < 10**4


def test_cases_and_peers_are_told_apart():
    for cases in (list(noise.cases()), list(accounting.cases())):
        names = [(case.name, case.unit.name, peer.name) for case in cases for peer in case.peers]
        alone = [(case.name, case.unit.name) for case in cases]
        assert len(set(names)) == len(names) and len(set(alone)) == len(alone)


def test_the_bars_are_those_of_the_issue():
    asked = {
        (case.name, peer.name): peer.bar.text
        for case in noise.cases()
        for peer in case.peers
        if peer.bar is not None
    }
    assert asked["Laplace 16, n = 1,000,000", "numpy"] == ">= 4x"
    assert asked["Laplace 2^40, n = 1,000,000", "numpy"] == ">= 5/2x"
    assert asked["Gaussian 16, n = 1,000,000", "numpy"] == ">= 3x"
    assert asked["Gaussian 1e+06, n = 1,000,000", "numpy"] == ">= 2x"
    assert asked["Laplace 100, n = 100,000", "opendp"] == ">= 700x"
    assert asked["Gaussian 100, n = 100,000", "opendp"] == ">= 1000x"
    assert asked["Gaussian 100, n = 1", "opendp"] == ">= 12x"
    assert asked["Laplace 16, n = 1,000", "numpy"] == ">= 1x"
    assert asked["Laplace 100, n = 1,000", "numpy"] == ">= 1/2x"
    assert asked["Exponential, 1,000,000 scores: votes", "opendp, a list"] == ">= 80x"
    assert asked["Permute-and-flip, 1,000,000 scores: normal", "opendp, a list"] == ">= 40x"


def test_the_bars_of_the_accountant_are_those_of_the_issue():
    alone = {
        (case.name, case.unit.name): case.bar.text
        for case in accounting.cases()
        if case.bar is not None
    }
    beside = {
        (case.name, peer.name): peer.bar.text
        for case in accounting.cases()
        for peer in case.peers
        if peer.bar
    }
    assert (
        alone["DP-SGD, a million steps", "ms"] == "<= 70"
        and alone["DP-SGD, a million steps", "MB"] == "<= 60"
    )
    assert alone["DP-SGD, a million steps", "relative width"] == "<= 0.0001"
    assert beside["DP-SGD, a million steps", "dp-accounting"] == ">= 10x"
    assert beside["DP-SGD, a million steps, to 1e-5", "dp-accounting"] == ">= 50x"
    assert alone["DP-SGD, a million steps, delta 1e-12", "epsilon"] == ">= 35.344"
    assert alone["DP-SGD, MNIST", "ms"] == "<= 30"
    assert (
        beside["A million gaussians", "dp-accounting"]
        == beside["A million laplaces", "dp-accounting"]
        == ">= 50x"
    )
    assert (
        alone["10,000 different events", "s"] == "<= 1.2"
        and alone["10,000 different events", "epsilon"] == "<= 4.48"
    )
    assert alone["What is left, 10,000 times", "s"] == "<= 1"
    assert alone["The sigma of 10,000 DP-SGD steps", "ms"] == "<= 100"
    assert alone["Import and a first answer", "ms"] == "<= 150"


def test_the_bars_of_the_engines_are_those_of_the_issue():
    cases = list(engines.cases({"1M": 10**6, "10M": 10**7}))
    asked = {
        (case.name, peer.name): peer.bar.text
        for case in cases
        for peer in case.peers
        if peer.bar is not None
    }
    for size in ("1M", "10M"):
        assert asked[f"{size}: W2 by 50 regions", "SQL by hand, no noise"] == "<= 1.1x"
        assert asked[f"{size}: W7 a small filtered count", "plain DuckDB"] == "<= 10 more"
        assert asked[f"{size}: W7 a small filtered count, prepared", "plain DuckDB"] == "<= 6 more"
        prepared = [
            asked[f"{size}: {name} {title}, prepared", "plain DuckDB"]
            for name, title in engines.TITLES.items()
        ]
        assert prepared == ["<= 1.2x", "<= 1.2x", "<= 4x", "<= 1.2x", "<= 4x", "<= 2x"]
    assert asked["Spark, 10M: W2 by 50 regions", "plain Spark by (unit, key)"] == "<= 1.5x"
    assert (
        asked["1M: W2 by 50 regions", "OpenDP"] == ">= 15x"
        and ("10M: W2 by 50 regions", "OpenDP") not in asked
    )
    for name in (
        "W1 error of the count",
        "W2 error of a count",
        "W4 error of a number of users",
        "W5 error of p50",
    ):
        assert asked[f"1M: {name}", "OpenDP"] == "<= 1.02x"
    assert {peer: bar for (_, peer), bar in asked.items() if bar.startswith(">=")} == {
        "OpenDP": ">= 15x",
        "SmartNoise SQL": ">= 4x",
        "PipelineDP": ">= 50x",
        "Tumult": ">= 50x",
    }
    assert {(case.name, case.bar.text) for case in cases if case.bar} == {
        ("1M: W5 error of p50", "<= 1.5"),
        ("10M: W5 error of p50", "<= 1.5"),
        ("1M: 105 marginals of 15 columns", "<= 1.5"),
        ("1M: a marginal of 10^6 cells", "<= 0.3"),
        ("1M: a marginal of 10^6 cells", "<= 100"),
        ("10M: 105 marginals of 15 columns", "<= 12"),
        ("10M: 105 marginals of 15 columns", "<= 1500"),
        ("10M: 20 marginals more", "<= 2.5"),
    }
    large = {(case.name, case.unit.name): case.bar.text for case in largest.once() if case.bar}
    assert large == {
        ("100M: W2 by 50 regions", "s"): "<= 15",
        ("100M: W2 by 50 regions, prepared", "s"): "<= 2",
        ("100M: W5 error of p50", "%"): "<= 1.5",
        ("100M: W2 by 50 regions", "MB at most"): "<= 4000",
    }


@pytest.fixture
def few_events(monkeypatch, tmp_path):
    monkeypatch.setattr(workloads, "FOLDER", tmp_path)
    monkeypatch.setattr(truth, "_DATA", tmp_path)
    caches = (workloads._session, workloads._prepared, workloads._connection, truth.exact)
    for each in caches:
        each.cache_clear()
    yield 2000
    for each in caches:
        each.cache_clear()


def test_the_chart_of_the_engines_has_a_dot_for_each_time():
    taken_times = {case: 0.01 * place for place, case in enumerate(("ours", "plain", "hand"), 1)}
    made = []
    for case in engines.cases(engines.SIZES):
        made += [
            asdict(row)
            for row in rows(case, {work: taken(taken_times["ours"]) for work in case.works})
        ]
    found = figures_engines.seconds(made)
    # W5 was written by nobody by hand, W7 needs none
    assert len(found) == 2 * (4 * 7 - 2)
    picture = ElementTree.fromstring(figures_engines.speed(found))
    inside(picture)
    assert len(picture.findall(".//{*}circle")) == len(found) + len(figures_engines.NAMES)


def test_a_process_of_its_own_is_asked_for_memory(monkeypatch):
    started = []

    class Counting:
        def __init__(self, names):
            started.append(names)

        def ask(self, work, kind):
            return Sample(float(len(started)), None)

        def close(self):
            started.append("closed")

    monkeypatch.setattr(
        report, "start", lambda names: ({name: Counting(names) for name in names}, {})
    )
    case = Case("memory", Unit("MB", 1.0, kind=Kind.PROCESS), OURS, (Peer("numpy", THEIRS),))
    (row,) = report.run([case], dict.fromkeys(["sfumato", "numpy"]), {})
    assert started == [["sfumato"], "closed", ["numpy"], "closed"]
    assert (row.ours, row.peer, row.repetitions) == (1.0, 3.0, 1)


def test_the_memory_of_a_process_is_what_it_held_at_most():
    held = worker.measured(lambda: len(bytearray(10**8)), 1, Kind.PROCESS)["value"]
    assert 10**8 < held < 10**11


def test_every_work_of_the_engines_is_there():
    cases = [*engines.cases({"1M": 10**6}), *largest.once()]
    works = [work.name for case in cases for work in case.works if work.system == "workloads"]
    assert set(works) == set(workloads.WORKS)


@pytest.mark.parametrize("name", workloads.WORKS)
def test_a_work_of_the_engines_gives_an_answer(few_events, name):
    assert workloads.WORKS[name](1, few_events)() is not None


@pytest.mark.long
def test_every_work_on_spark_is_there_and_gives_an_answer(few_events, spark, tmp_path, monkeypatch):
    from benchmarks.systems import on_spark

    asked = {
        work.name
        for case in engines.cases({"10M": 10**7})
        for work in case.works
        if work.system == engines.SPARK
    }
    assert asked == set(on_spark.WORKS)
    frame = spark.read.parquet(str(events(tmp_path, few_events) / "events.parquet"))
    frame.createOrReplaceTempView(f"events_{few_events}")
    declared = {"events": replace(tables(tmp_path)["events"], source=frame)}
    with sf.connect(
        declared, dataset="few", budget=sf.Budget(10**6, "0.1"), ledger=tmp_path / "l.db"
    ) as session:
        monkeypatch.setattr(on_spark, "_session", lambda rows: session)
        for name, make in on_spark.WORKS.items():
            assert make(1, few_events)() is not None, name
    assert on_spark.clock() > 0
    assert sum(row[1] for row in on_spark.WORKS["W3 plain"](1, few_events)()) == frame.count()


@pytest.mark.parametrize(("name", "column"), [("W1", 0), ("W2", 2), ("W3", 2), ("W4", 1)])
def test_the_sql_by_hand_is_bounded(few_events, name, column):
    connection = workloads._connection(few_events)
    keys = {"W1": "'all'", "W2": "region", "W3": "product", "W4": "day"}[name]
    most = 1 if name == "W4" else 10
    whole = connection.execute(
        f"SELECT sum(c) FROM (SELECT least(count(*), {most}) AS c FROM events GROUP BY user_id, {keys})"
    ).fetchone()
    told = connection.execute(workloads.BY_HAND[name]).fetchall()
    assert 0 < sum(row[column] for row in told) <= whole[0]
    assert name != "W1" or sum(row[column] for row in told) == whole[0]


def test_the_document_is_json_with_a_row_a_line():
    found = rows(CASE, {OURS: taken(2e-6), THEIRS: taken(6e-6)})
    before = {"processor": "P", "cores": 2, "load": 0.5}
    text = report.document(
        found, before, {"numpy": {"numpy": "2.4.6"}}, {"opendp": "does not install here"}
    )
    read = json.loads(text)
    assert read["machine"] == before
    assert read["rows"] == [asdict(row) for row in found] and read["skipped"] == {
        "opendp": "does not install here"
    }
    assert len([each for each in text.splitlines() if '"case"' in each]) == len(found)


def test_the_load_is_that_of_the_machine_before_anything_is_measured(monkeypatch, tmp_path, capsys):
    # each worker and each case makes the machine busier
    busy = [0.25]

    def work(given):
        busy[0] += 1
        return given

    monkeypatch.setattr(report.os, "getloadavg", lambda: (busy[0], 0.0, 0.0))
    monkeypatch.setattr(report, "start", lambda systems: work(({}, {})))
    monkeypatch.setattr(report, "measure", lambda case, workers: work(({OURS: taken(2e-6)}, {})))
    report.bench([], [CASE], (), tmp_path / "results.json")
    read = json.loads((tmp_path / "results.json").read_text("utf-8"))
    assert read["machine"]["load"] == 0.25 and busy == [2.25] and len(read["rows"]) == 2
    assert "of 2 bars hold" in capsys.readouterr().out


@pytest.mark.parametrize(
    "benchmark", [noise, accounting, ledger], ids=["noise", "accounting", "ledger"]
)
def test_the_results_are_of_these_cases_and_judged_by_these_bars(benchmark):
    read = json.loads(benchmark.RESULTS.read_text())
    assert {"date", "machine", "versions", "skipped", "rows"} == set(read)
    bars = {
        (case.name, case.unit.name, peer.name): peer.bar
        for case in benchmark.cases()
        for peer in case.peers
    }
    bars |= {
        (case.name, case.unit.name, None): case.bar
        for case in benchmark.cases()
        if case.bar is not None
    }
    assert {(row["case"], row["metric"], row["peer_name"]) for row in read["rows"]} == set(bars)
    often = {
        (case.name, case.unit.name): 1 if case.unit.kind is Kind.MEMORY else case.repetitions
        for case in benchmark.cases()
    }
    for row in read["rows"]:
        assert list(row) == [each.name for each in fields(Row)]
        bar = bars[row["case"], row["metric"], row["peer_name"]]
        assert row["repetitions"] == often[row["case"], row["metric"]]
        assert row["bar"] == (bar.text if bar else None)
        if row["peer"] is not None:
            assert row["ratio"] == pytest.approx(row["peer"] / row["ours"], rel=1e-3)
        if bar and (row["peer"] is not None or row["peer_name"] is None):
            assert row["holds"] is bar.holds(row["ours"], row["peer"] or 0.0)


def test_the_speed_chart_has_a_line_a_system_within_the_picture():
    made = []
    for case in noise.cases():
        made += [
            asdict(row)
            for row in rows(
                case, {work: taken(1e-3) for work in case.works if work.system != "opendp"}
            )
        ]
    without = ElementTree.fromstring(figures.speed(made))
    assert len(without.findall(".//{*}path")) == 4
    read = json.loads(noise.RESULTS.read_text())
    inside(ElementTree.fromstring(figures.speed(read["rows"])))


def test_the_chart_of_the_laws_shows_each_draw_within_the_picture(monkeypatch):
    monkeypatch.setattr(figures, "DRAWS", 10**4)
    picture = ElementTree.fromstring(figures.law())
    inside(picture)
    # all that is likely enough to be drawn more than once in ten
    assert 60 < len(picture.findall(".//{*}circle")) < 2 * 65


def inside(picture):
    _, _, width, height = map(float, picture.get("viewBox").split())
    for each in picture.iter():
        for name, most in (
            ("x", width),
            ("x1", width),
            ("cx", width),
            ("y", height),
            ("y1", height),
            ("cy", height),
        ):
            assert 0 <= float(each.get(name, 0)) <= most
        assert float(each.get("height", 0)) >= 0


def test_an_axis_is_linear_or_logarithmic():
    assert figures.Axis(1, 100, 0, 10)(10) == pytest.approx(5)
    assert figures.Axis(1, 101, 0, 10, log=False)(51) == pytest.approx(5)
