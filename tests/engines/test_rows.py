# SPDX-License-Identifier: Apache-2.0
"""Rows of units on DuckDB: wrong ones are noticed, the file is closed to others and gone, order
tells nothing.
"""

import hashlib
import logging
import os
import pickle
import stat
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.engines import duckdb as engine_module
from sfumato.engines.base import UnitRows
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.reference import Reference
from sfumato.engines.rows import listed, mapped, write
from sfumato.engines.stop import Patience, Stop
from sfumato.errors import Cancelled, EngineFailed, WrongUse
from sfumato.metadata.column import Column
from sfumato.metadata.dataset import Dataset
from sfumato.plan.owner import owner_of
from sfumato.plan.relation import Scan
from sfumato.plan.rows import MISSING
from sfumato.plan.value import Value
from tests.contracts import world
from tests.contracts.unit_rows import blocks, bounded
from tests.contracts.world import content, declared

PEOPLE = world.scan("people", "people.")
N, B = (world.read(PEOPLE, f"people.{name}") for name in "nb")
ROWS = [
    {"who": who, "n": number, "b": truth}
    for who, numbers in (("p", "01234"), ("q", "1112"), ("r", "4"), ("s", [None]), (None, "22"))
    for number in numbers
    for truth in (True, False)
]
SEVERAL = content(people=ROWS)
TWO = bounded(PEOPLE, N, B, most=2)
CANARY = "canary-4711"


def test_a_unit_has_at_most_as_many_rows_as_the_plan_says():
    with closing(DuckDB(declared(SEVERAL))) as engine:
        for most in (1, 2, 3, 100):
            with engine.rows(bounded(PEOPLE, N, B, most=most), "key") as found:
                sizes = sorted(np.diff(found.starts).tolist())
                assert sizes == sorted(min(most, size) for size in (10, 8, 2, 2))
                assert found.units == 4 and len(found.codes) == sum(sizes)


def test_the_codes_are_those_of_the_rows():
    with (
        closing(DuckDB(declared(content(people=ROWS[:3])))) as engine,
        engine.rows(TWO, "key") as found,
    ):
        assert found.codes.dtype == np.int64
        assert {tuple(row) for row in found.codes.tolist()} <= {(0, 1), (0, 0), (1, 1)}
    missing = [{"who": "p", "n": None, "b": None}]
    with (
        closing(DuckDB(declared(content(people=missing)))) as engine,
        engine.rows(TWO, "key") as found,
    ):
        assert found.codes.tolist() == [[MISSING, MISSING]]


def test_arrays_are_sorted_in_the_narrow_type_of_their_numbers():
    """A missing one is MISSING in each number, and widens nothing."""
    table = pa.table({"scan": [[1, 2], None, [3], [None, 4]]})
    kind = sf.Array(2, 0, 255)
    declarations = Dataset("d", {"t": sf.Table(table, columns={"scan": kind})})
    scan = Scan("t", "t.", (Column("t.scan", kind),), owner_of(declarations, "t"))
    plan = bounded(scan, world.read(scan, "t.scan"))
    with closing(DuckDB(declarations.tables)) as engine:
        assert "BIGINT[]" not in listed(plan, engine._sources, "key")
        with engine.rows(plan, "key") as found:
            assert sorted(found.codes.tolist()) == [[MISSING] * 2] * 3 + [[1, 2]]


def test_memory_is_given_back_and_codes_stay_readable(tmp_path):
    file = tmp_path / "codes"
    np.arange(10**6).tofile(file)
    codes = np.memmap(file, np.int64, "r", shape=(10**6, 1))
    found = UnitRows(codes, np.arange(10**6 + 1))
    before = codes.sum()
    read = _in_memory(file)
    found.free_pages()
    assert _in_memory(file) < read or not read
    assert codes.sum() == before == 10**6 * (10**6 - 1) // 2
    # codes that lie in no file are left as they are
    UnitRows(np.zeros((1, 1), np.int64), np.array([0, 1])).free_pages()


def _in_memory(file):
    """The kilobytes of a mapped file that are in the memory of this process; 0 beside Linux."""
    listed = Path("/proc/self/smaps")
    lines = listed.read_text().splitlines() if listed.exists() else []
    (place,) = [at for at, line in enumerate(lines) if line.endswith(str(file))] or [None]
    if place is None:
        return 0
    return next(int(line.split()[1]) for line in lines[place:] if line.startswith("Rss:"))


def test_units_have_the_same_names_in_every_read():
    """A hash that the plan keys, whatever key orders the rows; the reference has the same."""
    plan = replace(bounded(PEOPLE, N, most=2), naming="a stream")
    named = {}
    for key in ("key", "another"):
        with closing(DuckDB(declared(SEVERAL))) as engine, engine.rows(plan, key) as found:
            assert found.names is not None and len(found.names) == found.units
            named[key] = sorted(found.names.tolist())
            kept = found.of(np.array([2]))
            assert kept.names is not None and kept.names.tolist() == [found.names[2]]
    expected = [hashlib.md5(f"a stream|{unit}".encode()).hexdigest().encode() for unit in "pqrs"]
    assert named["key"] == named["another"] == sorted(expected)
    with closing(Reference(SEVERAL)) as engine, engine.rows(plan, "key") as found:
        assert sorted(found.names.tolist()) == sorted(expected)
    with closing(DuckDB(declared(SEVERAL))) as engine, engine.rows(TWO, "key") as found:
        assert found.names is None


@pytest.mark.parametrize("key", ["key", "another"])
def test_the_order_of_rows_is_a_function_of_key_unit_and_content(key):
    found = []
    for rows in (ROWS, ROWS[::-1], ROWS[7:] + ROWS[:7]):
        with (
            closing(DuckDB(declared(content(people=rows)))) as engine,
            engine.rows(TWO, key) as opened,
        ):
            found.append(blocks(opened))
    assert found[0] == found[1] == found[2]
    with closing(DuckDB(declared(SEVERAL))) as engine, engine.rows(TWO, key + "!") as other:
        assert blocks(other) != found[0]


def test_without_a_unit_the_others_are_as_they_were():
    def of(people):
        with (
            closing(DuckDB(declared(content(people=people)))) as engine,
            engine.rows(TWO, "key") as opened,
        ):
            return blocks(opened)

    whole = of(ROWS)
    for unit in "pqrs":
        less = of([row for row in ROWS if row["who"] != unit])
        (gone,) = [place for place in range(4) if whole[:place] + whole[place + 1 :] == less]
        assert whole[gone] == of([row for row in ROWS if row["who"] == unit])[0]


# --- wrong rows are noticed ----------------------------------------------------------------------

_WRONG = {
    "one row of a unit too many": ("place <= 2", "place <= 3"),
    "the order of the file": ("ORDER BY md5", "ORDER BY length(md5", ")"),
    "units in another order": (
        "ORDER BY md5(concat_ws('|', 'key', coalesce(CAST(unit",
        "ORDER BY md5(concat_ws('|', coalesce(CAST(unit",
    ),
    "equal rows alike": (", coalesce(CAST(number AS VARCHAR), 'N')", ""),
    "missing is zero": ("SELECT a0,", "SELECT coalesce(a0, 0) AS a0,"),
    "where units start": ("place = 1", "place = 2"),
}


@pytest.mark.parametrize("name", _WRONG)
def test_wrong_rows_are_noticed(monkeypatch, suite, name):
    assert suite.rows_of(declared(SEVERAL), TWO)
    old, new, *after = _WRONG[name]
    sql = listed(TWO, DuckDB(declared(SEVERAL))._sources, "key")
    assert old in sql
    wrong = sql.replace(old, new)
    if after:
        # the hash is only one of several things that order the rows
        wrong = wrong.replace(
            "coalesce(CAST(number AS VARCHAR), 'N'))), a0",
            "coalesce(CAST(number AS VARCHAR), 'N')))), a0",
        )
        wrong = wrong.replace(
            "coalesce(CAST(unit AS VARCHAR), 'N'))), CAST",
            "coalesce(CAST(unit AS VARCHAR), 'N')))), CAST",
        )
    monkeypatch.setattr(engine_module, "listed", lambda *_: wrong)
    assert not suite.rows_of(declared(SEVERAL), TWO)


# --- nothing stays, nothing comes out -------------------------------------------------------------


def test_the_file_is_closed_to_others_has_no_name_and_is_gone(monkeypatch, tmp_path):
    seen = []

    def looked_at(file, *rest):
        seen.append((os.fstat(file.fileno()), file))
        return mapped(file, *rest)

    monkeypatch.setattr(engine_module, "mapped", looked_at)
    before = os.umask(0)
    try:
        with (
            closing(DuckDB(declared(SEVERAL), spill=tmp_path)) as engine,
            engine.rows(TWO, "key") as found,
        ):
            assert found.units == 4
            (folder,) = tmp_path.iterdir()
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700 and not [*folder.iterdir()]
    finally:
        os.umask(before)
    ((status, file),) = seen
    assert stat.S_IMODE(status.st_mode) == 0o600 and status.st_nlink == 0 and file.closed
    assert not [*tmp_path.iterdir()]


def test_what_is_spilled_lies_in_a_folder_that_others_cannot_enter(monkeypatch, tmp_path):
    # DuckDB makes its files as the umask lets it: the folder keeps others out, whatever that is
    size = 300_000
    numbers = pa.array(range(size))
    table = sf.Table(
        pa.table({"who": numbers, "n": numbers}),
        unit=sf.Unit("who", max_rows_total=1),
        columns={"n": sf.Integer(0, size)},
    )
    column = Column("n", table.columns["n"])
    scan = Scan("t", columns=(column,), owner=owner_of(Dataset("d", {"t": table}), "t"))
    seen = []

    def looked_at(*given):
        seen.extend(
            (tmp_path / each, each.stat().st_mode) for each in tmp_path.rglob("*") if each.is_dir()
        )
        return write(*given)

    monkeypatch.setattr(engine_module, "write", looked_at)
    before = os.umask(0)
    try:
        engine = DuckDB(
            {"t": table}, limits=sf.Local(memory_limit="60MB", threads=1), spill=tmp_path
        )
        with closing(engine), engine.rows(bounded(scan, Value.of(column)), "key") as found:
            assert found.units == size
            assert [stat.S_IMODE(mode) for _, mode in seen] == [0o700]
            assert all(each.is_relative_to(seen[0][0]) for each in tmp_path.rglob("*"))
    finally:
        os.umask(before)
    assert not [*tmp_path.iterdir()]


def test_nothing_is_read_before_it_is_entered(monkeypatch):
    with closing(DuckDB(declared(SEVERAL))) as engine:
        monkeypatch.setattr(engine, "_found", lambda *_: pytest.fail("it is read"))
        engine.rows(TWO, "key")


def test_rows_cannot_be_changed_shown_or_pickled():
    with closing(DuckDB(declared(SEVERAL))) as engine, engine.rows(TWO, "key") as found:
        with pytest.raises(ValueError, match="read-only"):
            found.codes[0, 0] = 1
        assert "array" not in repr(found)
        with pytest.raises(WrongUse, match="pickled"):
            pickle.dumps(found)


def test_a_failure_is_one_constant_message(monkeypatch, caplog):
    rows = content(people=[{"who": CANARY, "n": CANARY, "b": True}] * 3)
    broken = f"SELECT CAST(who AS BIGINT) AS a0, TRUE AS first FROM people WHERE who = '{CANARY}'"
    monkeypatch.setattr(engine_module, "listed", lambda *_: broken)
    caplog.set_level(logging.DEBUG)
    with (
        closing(DuckDB(declared(rows))) as engine,
        pytest.raises(EngineFailed) as caught,
        engine.rows(TWO, "key"),
    ):
        raise AssertionError("it is not entered")
    assert caught.value.__cause__ is caught.value.__context__ is None
    assert CANARY not in caplog.text + repr(caught.value)


def test_a_caller_who_waits_no_longer_is_told_so():
    stop = Stop()
    stop.stop()
    with (
        closing(DuckDB(declared(SEVERAL))) as engine,
        pytest.raises(Cancelled),
        engine.rows(TWO, "key", Patience(stop)),
    ):
        raise AssertionError("it is not entered")


def test_the_rows_of_some_units_are_theirs():
    rows = UnitRows(np.arange(12).reshape(6, 2), np.array([0, 3, 3, 4, 6]))
    assert blocks(rows.of(np.array([0, 3]))) == [[[0, 1], [2, 3], [4, 5]], [[8, 9], [10, 11]]]
    assert blocks(rows.of(np.array([1]))) == [[]]
    none = rows.of(np.array([], np.int64))
    assert (none.units, none.codes.shape) == (0, (0, 2))


def test_no_row_can_make_rows_fail():
    # every value of every column, of several units and of nobody
    values = [world.read(PEOPLE, f"people.{name}") for name in world.KINDS if name != "t"]
    with (
        closing(DuckDB(declared(world.edges()))) as engine,
        engine.rows(bounded(PEOPLE, *values, most=9), "k") as found,
    ):
        assert found.units == 3
    assert Reference({"people": []}).rows(TWO, "key")
