# SPDX-License-Identifier: Apache-2.0
"""Who watches a statement ends what takes too long, and tells the owner a share that never
falls.
"""

import threading
import weakref

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.engines import duckdb, time_limit
from sfumato.engines.emit import Statement
from sfumato.engines.time_limit import Watch, Watcher
from sfumato.errors import EngineFailed, InvalidDeclaration

TABLE = sf.Table(pa.table({"a": [1, 2]}), columns={"a": sf.Integer(0, 9)})
ENDLESS = "SELECT sum(a.range * b.range) FROM range(10000000) AS a, range(10000000) AS b"


def session(tmp_path, **limits):
    return sf.connect(
        {"t": TABLE},
        dataset="d",
        budget=sf.Budget(10),
        ledger=tmp_path / "l.db",
        engine=sf.Local(**limits),
    )


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(time_limit, "TICK", 0.001)


@pytest.fixture
def endless(monkeypatch):
    monkeypatch.setattr(duckdb, "_statements", lambda *_: (Statement(ENDLESS, (0,)),))


def test_what_takes_too_long_is_interrupted_until_it_ends():
    interrupted = threading.Semaphore(0)
    with Watcher(0.001, interrupted.release).over():
        for _ in range(3):
            assert interrupted.acquire(timeout=30)


@pytest.mark.usefixtures("quick")
def test_the_owner_is_told_a_share_that_never_falls():
    percents, told, enough = iter([-1.0, 10.0, 50.0, 30.0, 100.0]), [], threading.Event()

    def tell(share):
        told.append(share)
        if len(told) == 4:
            enough.set()

    with Watcher(60, lambda: None, percent=lambda: next(percents, -1.0), told=tell).over(
        2
    ) as watched:
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

    with Watcher(60, lambda: None, percent=percent, told=broken).over():
        assert not again.wait(0.3), "it is not asked again"
    assert told == [0.5]
    assert "ValueError" in caplog.text
    assert "a private value" not in caplog.text


def test_what_is_no_statement_can_see_whether_the_time_is_over():
    assert not Watch(1e6).is_over
    assert Watch(-1.0).is_over


def watching(before):
    return set(threading.enumerate()) - before


def test_one_thread_watches_question_after_question(monkeypatch):
    monkeypatch.setattr(time_limit, "STAY", 60.0)
    before, watcher = set(threading.enumerate()), Watcher(60, lambda: None)
    for _ in range(3):
        with watcher.over():
            assert len(watching(before)) == 1
    (thread,) = watching(before)
    assert thread.daemon


def test_nobody_stays_where_nothing_runs_and_the_next_question_is_watched_again(monkeypatch):
    monkeypatch.setattr(time_limit, "STAY", 0.001)
    before, interrupted = set(threading.enumerate()), threading.Semaphore(0)
    watcher = Watcher(0.05, interrupted.release)
    for _ in range(2):
        with watcher.over():
            (thread,) = watching(before)
            assert interrupted.acquire(timeout=30)
        thread.join(30)
        assert not thread.is_alive()


def test_who_stays_holds_nothing_of_the_engine(monkeypatch):
    monkeypatch.setattr(time_limit, "STAY", 60.0)
    before, watcher = set(threading.enumerate()), Watcher(60, lambda: None)
    with watcher.over():
        assert len(watching(before)) == 1
    engine = weakref.ref(watcher)
    del watcher
    assert engine() is None


def test_what_has_ended_is_neither_interrupted_nor_told(monkeypatch):
    monkeypatch.setattr(time_limit, "TICK", 0.001)
    before, heard = set(threading.enumerate()), []
    watcher = Watcher(0.05, lambda: heard.append("end"), percent=lambda: 50.0, told=heard.append)
    with watcher.over():
        (thread,) = watching(before)
    done = list(heard)
    thread.join(30)
    assert not thread.is_alive()
    assert heard == done


def test_a_question_that_follows_one_whose_telling_broke_is_told_of(monkeypatch):
    monkeypatch.setattr(time_limit, "TICK", 0.001)
    told, again = [], threading.Event()

    def broken(share):
        told.append(share)
        if len(told) == 1:
            raise ValueError("once")
        again.set()

    watcher = Watcher(60, lambda: None, percent=lambda: 50.0, told=broken)
    with watcher.over():
        assert not again.wait(0.1)
    with watcher.over():
        assert again.wait(30)


@pytest.mark.usefixtures("quick", "endless")
def test_a_session_tells_its_owner_and_says_nothing_itself(tmp_path, capfd):
    told = []
    with (
        session(tmp_path, progress=told.append, time_limit=1, threads=1) as asked,
        pytest.raises(EngineFailed),
    ):
        asked.query("SELECT SUM(a) AS s FROM t", epsilon=1)
    assert told
    assert all(0 <= share <= 1 for share in told)
    assert sorted(told) == told
    assert capfd.readouterr() == ("", "")


def test_an_answer_says_nothing_of_it(tmp_path):
    with session(tmp_path, progress=lambda share: None) as asked:
        assert round(asked.query("SELECT SUM(a) AS s FROM t", epsilon=10).rows[0][0]) in range(
            -9, 16
        )


def test_only_a_function_can_be_told():
    with pytest.raises(InvalidDeclaration, match="progress="):
        sf.Local(progress=5)
    assert sf.Local(progress=print) == sf.Local()
