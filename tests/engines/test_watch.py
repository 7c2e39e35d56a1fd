# SPDX-License-Identifier: Apache-2.0
"""Who watches a statement ends what takes too long, and tells the owner a share that never falls."""

import threading

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.engines import duckdb, watch
from sfumato.engines.emit import Statement
from sfumato.engines.watch import Watch
from sfumato.errors import EngineFailed, InvalidDeclaration

TABLE = sf.Table(pa.table({"a": [1, 2]}), columns={"a": sf.Integer(0, 9)})
ENDLESS = "SELECT sum(a.range * b.range) FROM range(10000000) AS a, range(10000000) AS b"


def session(tmp_path, **limits):
    return sf.connect(
        {"t": TABLE}, dataset="d", budget=sf.Budget(10), ledger=tmp_path / "l.db", engine=sf.Local(**limits)
    )


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(watch, "TICK", 0.001)


@pytest.fixture
def endless(monkeypatch):
    monkeypatch.setattr(duckdb, "statements", lambda *_: (Statement(ENDLESS, (0,)),))


def test_what_takes_too_long_is_interrupted_until_it_ends():
    interrupted = threading.Semaphore(0)
    with Watch(0.001, interrupted.release):
        for _ in range(3):
            assert interrupted.acquire(timeout=30)


@pytest.mark.usefixtures("quick")
def test_the_owner_is_told_a_share_that_never_falls():
    percents, told, enough = iter([-1.0, 10.0, 50.0, 30.0, 100.0]), [], threading.Event()

    def tell(share):
        told.append(share)
        if len(told) == 4:
            enough.set()

    with Watch(60, lambda: None, percent=lambda: next(percents, -1.0), told=tell, statements=2) as watched:
        assert enough.wait(30)
        watched.next()
    assert told == [0.05, 0.25, 0.25, 0.5]


@pytest.mark.usefixtures("quick")
def test_what_the_owner_s_function_raises_ends_the_telling_alone(caplog):
    told, again = [], threading.Event()

    def broken(share):
        told.append(share)
        raise ValueError("a private value")

    def percent():
        if told:
            again.set()
        return 50.0

    with Watch(60, lambda: None, percent=percent, told=broken):
        assert not again.wait(0.3), "it is not asked again"
    assert told == [0.5]
    assert "ValueError" in caplog.text
    assert "a private value" not in caplog.text


def test_what_is_no_statement_can_see_whether_the_time_is_over():
    assert not Watch(1e6, lambda: None).is_over
    assert Watch(-1.0, lambda: None).is_over


def test_a_watch_ends_with_what_it_watches():
    before = threading.active_count()
    with Watch(60, lambda: None):
        assert threading.active_count() == before + 1
    assert threading.active_count() == before


@pytest.mark.usefixtures("quick", "endless")
def test_a_session_tells_its_owner_and_says_nothing_itself(tmp_path, capfd):
    told = []
    with session(tmp_path, progress=told.append, time_limit=1, threads=1) as asked, pytest.raises(EngineFailed):
        asked.query("SELECT SUM(a) AS s FROM t", epsilon=1)
    assert told
    assert all(0 <= share <= 1 for share in told)
    assert sorted(told) == told
    assert capfd.readouterr() == ("", "")


def test_an_answer_says_nothing_of_it(tmp_path):
    with session(tmp_path, progress=lambda share: None) as asked:
        assert round(asked.query("SELECT SUM(a) AS s FROM t", epsilon=10).rows[0][0]) in range(-9, 16)


def test_only_a_function_can_be_told():
    with pytest.raises(InvalidDeclaration, match="progress="):
        sf.Local(progress=5)
    assert sf.Local(progress=print) == sf.Local()
