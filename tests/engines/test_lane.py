# SPDX-License-Identifier: Apache-2.0
"""Lanes of DuckDB: each sees every source, and runs beside the others."""

import threading
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.engines import lane as room
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.local import Local
from sfumato.errors import EngineFailed
from sfumato.plan.aggregate import CountRows
from tests.engines.conftest import flat

COLUMNS = {"a": sf.Integer(0, 9)}
FRAME = pa.table({"a": [1, 2, 3]})


def sources(folder: Path) -> list[object]:
    """A frame, a Parquet file, a CSV."""
    pq.write_table(FRAME, folder / "t.parquet")
    (folder / "t.csv").write_text("a\n1\n2\n3\n")
    return [FRAME, folder / "t.parquet", folder / "t.csv"]


def each_lane(engine: DuckDB, asker: object, count: int) -> list[object]:
    """What every lane answers, while all others are held."""
    plan = asker(None, COLUMNS).plan(CountRows())
    found = []
    for place in range(count):
        lanes = engine._lanes
        held = [lanes._free.pop() for _ in range(len(lanes._free))]
        lanes._free.append(held.pop(place))
        found.append(flat(plan, engine.run(plan, "key")))
        lanes._free.extend(held)
    return found


@pytest.mark.parametrize("kind", [0, 1, 2])
def test_every_lane_sees_every_source(asker: object, tmp_path: Path, kind: int) -> None:
    source = sources(tmp_path)[kind]
    with closing(
        DuckDB({"people": sf.Table(source, columns=COLUMNS)}, limits=Local(lanes=3))
    ) as engine:
        assert each_lane(engine, asker, 3) == [{(): (3,)}] * 3


def test_a_lane_that_was_shown_nothing_is_noticed(
    asker: object, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(room.Lane, "show", lambda self, sources: None)
    engine = DuckDB({"people": sf.Table(FRAME, columns=COLUMNS)}, limits=Local(lanes=2))
    with closing(engine), pytest.raises(EngineFailed):
        each_lane(engine, asker, 2)


def test_lanes_keep_their_settings_when_the_engine_is_locked(tmp_path: Path) -> None:
    limits = Local(lanes=2, progress=lambda share: None)
    with closing(DuckDB({"people": sf.Table(FRAME, columns=COLUMNS)}, limits=limits)) as engine:
        for lane in engine._lanes.all:
            shown = "SELECT current_setting('enable_progress_bar'), current_setting('enable_progress_bar_print')"
            assert lane.connection.execute(shown).fetchone() == (True, False)
            assert lane.connection.execute(
                "SELECT current_setting('lock_configuration')"
            ).fetchone() == (True,)


def test_a_short_question_is_answered_beside_a_long_one(
    asker: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = asker(None, COLUMNS).plan(CountRows())
    with closing(
        DuckDB({"people": sf.Table(FRAME, columns=COLUMNS)}, limits=Local(lanes=2))
    ) as engine:
        entered, leave = threading.Event(), threading.Event()

        def long() -> None:
            with engine._lanes.take():
                entered.set()
                leave.wait(10)

        thread = threading.Thread(target=long)
        thread.start()
        assert entered.wait(10)
        assert flat(plan, engine.run(plan, "key")) == {(): (3,)}
        leave.set()
        thread.join()
