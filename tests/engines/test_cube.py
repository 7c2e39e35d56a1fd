# SPDX-License-Identifier: Apache-2.0
"""The table of codes on DuckDB: wrong ones are noticed, nothing of it stays or comes out, no row
makes it fail.
"""

import logging
import stat
import threading
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings

import sfumato as sf
from sfumato.engines import cube as module
from sfumato.engines import duckdb as engine_module
from sfumato.engines.cube import coded, counted, dense, names
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.duckdb_printer import printed
from sfumato.engines.stop import Patience, Stop
from sfumato.errors import Cancelled, EngineFailed, UnknownName, WrongUse
from sfumato.plan.value import Value
from tests.contracts import cubes, world
from tests.contracts.effort import examples
from tests.contracts.verbatim import Verbatim, changed
from tests.contracts.world import content, declared

PEOPLE = world.scan("people", "people.")
N, B = (world.read(PEOPLE, f"people.{name}") for name in "nb")
SEVERAL = content(
    people=[
        {"who": who, "n": str(number), "b": number % 2 == 0 if number else None}
        for who, numbers in (
            ("p", (0, 1, 2, 3)),
            ("q", (1, 1)),
            ("r", (4,)),
            ("s", (None,)),
            (None, (2, 2)),
        )
        for number in numbers
    ]
)
TWO = cubes.bounded(PEOPLE, N, B, most=2)
CLIQUES = [("people.n", "people.b"), ("people.b",), ()]
CANARY = "canary-4711"


def test_the_cells_are_those_worked_out_by_hand():
    half = 2**19
    with closing(DuckDB(declared(SEVERAL))) as engine, engine.cube(TWO) as opened:
        both, truths, total = opened.marginals(CLIQUES)
    # p has four rows of which two count: each a half
    assert truths.tolist() == [half + half + 2 * 2**20, half + 2**20, half + 2**20]
    assert both[3].tolist() == [0, 0, half], "n = 0, and no b"
    assert both[4].tolist() == [half + 2 * 2**20, 0, 0]
    assert both[8].tolist() == [0, 0, 2**20], "neither"
    assert total == both.sum() == truths.sum() == 6 * 2**20
    assert (both.dtype, both.shape, total.shape) == (np.int64, (9, 3), ())


def test_codes_are_in_the_narrowest_type():
    engine = DuckDB(declared(SEVERAL))
    for sizes, found in (((255, 65_535), [1, 1, 1]), ((256, 65_536), [0, 1, 2])):
        axes = [Value(f"x{size}", sf.Integer(-3, size - 4), N.expression) for size in sizes]
        sql = printed(coded(cubes.bounded(PEOPLE, *axes), engine._sources))
        # the weight is an INTEGER too
        assert [sql.count(each) for each in ("AS UTINYINT", "AS USMALLINT", "AS INTEGER")] == found
    engine.close()


def test_names_and_totals_follow_the_weights():
    rows = cubes.bounded(world.scan("rows", "r."), world.read(world.scan("rows", "r."), "r.n"))
    assert names(TWO) == ["a0", "a1", "weight"]
    assert names(rows) == ["a0"]
    assert (
        printed(counted(rows, "t", (0,)))
        == "SELECT a0, TRY_CAST(count(*) * 1 AS BIGINT) AS total FROM t GROUP BY a0"
    )
    assert "GROUP BY" not in printed(counted(TWO, "t", ()))


def test_cells_without_a_row_are_zeros():
    found = [np.array([1, 0], np.uint8), np.array([2, 1], np.uint16), np.array([5, 7])]
    assert dense(found, (2, 3)).tolist() == [[0, 7, 0], [0, 0, 5]]
    assert dense([np.array([4])], ()).tolist() == 4


@settings(deadline=None, max_examples=examples(0.2), suppress_health_check=list(HealthCheck))
@given(cubes.cubes(), world.data())
def test_no_row_can_make_a_cube_fail(cube, rows):
    with closing(DuckDB(declared(rows))) as engine, engine.cube(cube) as opened:
        assert len(opened.marginals([cube.cube.names])) == 1


# --- wrong tables are noticed ------------------------------------------------------------------

_WRONG = {
    "rows within the limit are lost": ("LEFT JOIN", "JOIN"),
    "a limit that is too large": ("n > 2", "n > 4"),
    "missing is the first cell": ("- (-3), 8)", "- (-3), 0)"),
    "weights of rows and not of units": ("count(*) AS n", "count(a0) + 1 AS n"),
    "no weights": (", 1048576)", ", 1)"),
    "one cell further": ("- (-3)", "- (-2)"),
}


@pytest.mark.parametrize("name", _WRONG)
def test_a_wrong_table_is_noticed(monkeypatch, suite, name):
    old, new = _WRONG[name]
    assert suite.marginals(declared(SEVERAL), TWO, CLIQUES)
    sql = printed(coded(TWO, DuckDB(declared(SEVERAL))._sources))
    assert old in sql
    head, _, tail = sql.rpartition(old)
    monkeypatch.setattr(engine_module, "coded", lambda *_: Verbatim(head + new + tail))
    try:
        same = suite.marginals(declared(SEVERAL), TWO, CLIQUES)
    except IndexError:
        same = False
    assert not same


def test_a_marginal_that_counts_rows_is_noticed(monkeypatch, suite):
    monkeypatch.setattr(module, *changed(module, "counted", "sum(weight)", "count(weight)"))
    assert not suite.marginals(declared(SEVERAL), TWO, CLIQUES)


# --- nothing stays, nothing comes out -------------------------------------------------------------


def tables(engine):
    return engine._connection.execute("SELECT count(*) FROM duckdb_tables()").fetchone()[0]


def test_the_table_is_gone_however_it_ends():
    with closing(DuckDB(declared(SEVERAL))) as engine:
        before = tables(engine)
        with engine.cube(TWO) as opened:
            assert tables(engine) == before + 1
            assert opened.marginals(CLIQUES)
        assert tables(engine) == before
        for failure in (KeyboardInterrupt, UnknownName):
            with pytest.raises(failure), engine.cube(TWO) as opened:
                if failure is KeyboardInterrupt:
                    raise KeyboardInterrupt
                opened.marginals([("people.n",), ("nothing",)])
            assert tables(engine) == before
        with engine.cube(TWO):
            # an engine that is closed meanwhile takes it along
            engine.close()


def test_nothing_is_read_before_it_is_entered():
    with closing(DuckDB(declared(SEVERAL))) as engine:
        before = tables(engine)
        waiting = engine.cube(TWO)
        assert tables(engine) == before
        with waiting as opened, pytest.raises(WrongUse):
            opened.marginals([])


def test_a_failure_is_one_constant_message(monkeypatch, caplog):
    rows = content(people=[{"who": CANARY, "n": CANARY, "b": True}] * 3)
    broken = f"SELECT CAST(who AS BIGINT) AS a0 FROM people WHERE who = '{CANARY}'"
    monkeypatch.setattr(engine_module, "coded", lambda *_: Verbatim(broken))
    caplog.set_level(logging.DEBUG)
    with (
        closing(DuckDB(declared(rows))) as engine,
        pytest.raises(EngineFailed) as caught,
        engine.cube(TWO),
    ):
        raise AssertionError("it is not entered")
    assert caught.value.__cause__ is caught.value.__context__ is None
    assert str(caught.value) == str(EngineFailed())
    assert CANARY not in caplog.text + repr(caught.value)


def test_a_caller_who_waits_no_longer_is_told_so():
    stop = Stop()
    stop.stop()
    with closing(DuckDB(declared(SEVERAL))) as engine:
        before = tables(engine)
        with pytest.raises(Cancelled), engine.cube(TWO, Patience(stop)):
            raise AssertionError("it is not entered")
        assert tables(engine) == before


def test_others_are_answered_while_it_is_open():
    # one lane: it is free between two marginals
    with closing(DuckDB(declared(SEVERAL))) as engine, engine.cube(TWO) as opened:
        with engine.cube(TWO) as other:
            assert cubes.same(opened.marginals(CLIQUES), other.marginals(CLIQUES))
        answered = threading.Thread(target=engine.wait)
        answered.start()
        answered.join(5)
        assert not answered.is_alive()


def test_spilled_codes_are_closed_to_others(tmp_path):
    rows = 400_000
    data = pa.table({"who": pa.array(range(rows)), "n": pa.array([1] * rows)})
    columns = {"n": sf.Integer(-3, 4)}
    table = sf.Table(data, unit=sf.Unit("who", max_rows_total=1), columns=columns)
    scan = world.Scan(
        "t",
        columns=(world.Column("n", columns["n"]),),
        owner=world.owner_of(world.Dataset("d", {"t": table}), "t"),
    )
    cube = cubes.bounded(scan, Value.of(scan.columns[0]))
    with closing(
        DuckDB({"t": table}, limits=sf.Local(memory_limit="30MB", threads=1), spill=tmp_path)
    ) as engine:
        with engine.cube(cube) as opened:
            (folder,) = tmp_path.iterdir()
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
            assert opened.marginals([["n"]])[0].tolist() == [0, 0, 0, 0, rows * 2**20, 0, 0, 0, 0]
        assert folder == Path(engine._spill)
    assert not [*tmp_path.iterdir()]
