# SPDX-License-Identifier: Apache-2.0
"""Limits of DuckDB: checked when they are given, set when it opens, and changing no answer."""

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.engines.local import Local
from sfumato.errors import InvalidDeclaration, WrongUse

TABLE = sf.Table(pa.table({"a": list(range(1000))}), columns={"a": sf.Integer(0, 999)})


def session(tmp_path, engine):
    return sf.connect(
        {"t": TABLE}, dataset="d", budget=sf.Budget(10**6), ledger=tmp_path / "l.db", engine=engine
    )


@pytest.mark.parametrize("threads", [0, -1, True, 2.0, "2", 1025])
def test_threads_are_a_number(threads):
    with pytest.raises(InvalidDeclaration, match="threads="):
        Local(threads=threads)


@pytest.mark.parametrize("limit", ["", "8", "8 XB", "-1GB", 8, "8GB; DROP"])
def test_a_memory_limit_is_a_size(limit):
    with pytest.raises(InvalidDeclaration, match="memory_limit="):
        Local(memory_limit=limit)


@pytest.mark.parametrize("limit", [0, -1, True, "9", float("nan"), float("inf"), 10**10])
def test_a_time_limit_is_a_number_of_seconds(limit):
    with pytest.raises(InvalidDeclaration, match="time_limit="):
        Local(time_limit=limit)


@pytest.mark.parametrize(
    "engine", [None, Local(), Local(memory_limit="200MB", threads=1, time_limit=60)]
)
def test_no_limit_changes_an_answer(tmp_path, engine):
    with session(tmp_path, engine) as asked:
        assert round(asked.query("SELECT SUM(a) AS s FROM t", epsilon=10**6).rows[0][0]) == 499_500


def test_the_limits_are_those_of_the_connection(tmp_path):
    with session(tmp_path, Local(memory_limit="200MB", threads=3, time_limit=60)) as asked:
        read = asked._engine._connection.execute(
            "SELECT current_setting('threads'), current_setting('memory_limit')"
        )
        assert read.fetchall() == [(3, "190.7 MiB")]
        assert asked._engine._limits.time_limit == 60


@pytest.mark.parametrize("engine", ["duckdb", Local, 5])
def test_what_is_no_engine_is_refused(tmp_path, engine):
    with pytest.raises(WrongUse, match="engine="):
        session(tmp_path, engine)
