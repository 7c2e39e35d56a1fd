# SPDX-License-Identifier: Apache-2.0
"""A rollback of the whole folder of a ledger: heads that left the machine refuse it."""

import json
import shutil
import socket
import syslog
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import AccountFrozen, LedgerIncomplete, WrongUse
from sfumato.ledger import Ledger, head_sinks, head_watch, verify
from sfumato.ledger.head_sinks import sink_at
from sfumato.ledger.head_watch import HeadWatch
from sfumato.ledger.recover import recover
from sfumato.ledger.signed_heads import Head, Signer
from sfumato.query.session import Session
from tests.contracts.charges import entries, opened, paid, pure
from tests.contracts.head_server import certificate, serving


@pytest.fixture
def sink(tmp_path: Path) -> str:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "here").mkdir()
    return f"file://{tmp_path}/elsewhere/study.head"


def connected(
    tmp_path: Path, *sinks: str, without: str = "", ledger: str = "", ledger_key: Path | None = None
) -> Session:
    people = sf.Table(pa.table({"age": [30, 40, 50]}), columns={"age": sf.Integer(0, 120)})
    return sf.connect(
        {"people": people},
        dataset="study",
        budget=sf.Budget(1),
        ledger=ledger or tmp_path / "here" / "l.db",
        ledger_key=ledger_key,
        ledger_heads=list(sinks),
        without_heads=without,
    )


def ask(session: Session, epsilon: str) -> None:
    session.query("SELECT COUNT(*) AS n FROM people", epsilon=epsilon)


def rolled_back(tmp_path: Path, sink: str) -> None:
    """A folder as it was after the first of two questions: database, log, mark, key and head."""
    with connected(tmp_path, sink) as session:
        ask(session, "0.1")
    shutil.copytree(tmp_path / "here", tmp_path / "old")
    with connected(tmp_path, sink) as session:
        ask(session, "0.2")
    shutil.rmtree(tmp_path / "here")
    (tmp_path / "old").rename(tmp_path / "here")


def test_a_ledger_behind_a_head_that_is_kept_elsewhere_does_not_charge(
    tmp_path: Path, sink: str
) -> None:
    rolled_back(tmp_path, sink)
    for _ in range(2):  # a refused opening does not replace the newer head
        with pytest.raises(
            LedgerIncomplete, match=r"chain of 'study' ends before entry .*kept at file://"
        ):
            connected(tmp_path, sink)


@pytest.mark.parametrize("name", ["compare", "_publish_all"])
def test_a_watch_that_does_not_look_or_publish_is_noticed(
    tmp_path: Path, sink: str, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(HeadWatch, name, lambda *_: "")
    left_open = []
    opens = sf.connect

    def connect(*given: object, **named: object) -> Session:
        left_open.append(opens(*given, **named))  # type: ignore[arg-type]
        return left_open[-1]

    monkeypatch.setattr(sf, "connect", connect)
    with pytest.raises(pytest.fail.Exception):
        test_a_ledger_behind_a_head_that_is_kept_elsewhere_does_not_charge(tmp_path, sink)
    # its watch would go on, and log while another test looks at the log
    for session in left_open:
        session.close()


def test_a_copy_of_a_closed_ledger_charges_until_it_meets_a_head_of_the_other(
    tmp_path: Path, sink: str
) -> None:
    with connected(tmp_path) as session:
        ask(session, "0.1")
    shutil.copy(tmp_path / "here" / "l.db", tmp_path / "copy.db")
    with connected(tmp_path, sink) as session:
        ask(session, "0.2")
    # as docs/operations.md says: without heads nobody can know of the other
    with connected(tmp_path, ledger=str(tmp_path / "copy.db")) as session:
        ask(session, "0.3")
    with pytest.raises(LedgerIncomplete, match=r"kept at file://"):
        connected(tmp_path, sink, ledger=str(tmp_path / "copy.db"))


def test_a_ledger_that_was_deleted_is_no_fresh_budget(tmp_path: Path, sink: str) -> None:
    with connected(tmp_path, sink) as session:
        ask(session, "0.1")
    shutil.rmtree(tmp_path / "here")
    (tmp_path / "here").mkdir()
    with pytest.raises(LedgerIncomplete):
        connected(tmp_path, sink)


def test_a_ledger_whose_sinks_are_silent_does_not_charge(tmp_path: Path, sink: str) -> None:
    silent = f"file://{tmp_path}/gone/study.head"
    with pytest.raises(
        LedgerIncomplete, match=r"No head of the ledger can be read .*folder is not there"
    ):
        connected(tmp_path, silent)
    with connected(tmp_path, silent, sink) as session:
        ask(session, "0.1")
    with connected(tmp_path, silent, without="the mount is late") as session:
        ask(session, "0.2")
        assert session.verify().problems == ()
    ledger = sf.ledger.Ledger.open(tmp_path / "here" / "l.db")
    (told,) = [
        body for each in entries(ledger) if "without_heads" in (body := json.loads(each.body))
    ]
    assert (told["reason"], told["actor"] != "") == ("the mount is late", True)
    assert told["without_heads"] == f"{silent}: its folder is not there"
    ledger.close()
    with pytest.raises(LedgerIncomplete):
        connected(tmp_path, silent)


def test_the_override_is_none_for_a_ledger_that_is_behind(tmp_path: Path, sink: str) -> None:
    rolled_back(tmp_path, sink)
    with pytest.raises(LedgerIncomplete, match="forgets what was spent"):
        connected(tmp_path, sink, without="let me in")


def test_an_accepted_loss_freezes_first_and_then_goes_on(tmp_path: Path, sink: str) -> None:
    rolled_back(tmp_path, sink)
    place = tmp_path / "here" / "l.db"
    assert "kept at file://" in recover(place, reason="the disk died", sinks=[sink_at(sink)])
    with connected(tmp_path, sink) as session, pytest.raises(AccountFrozen):
        ask(session, "0.3")
    with pytest.raises(WrongUse, match="lacks nothing"):
        recover(place, reason="again", sinks=[sink_at(sink)])


def waited(until: Callable[[], bool]) -> bool:
    end = time.monotonic() + 5
    while not until() and time.monotonic() < end:
        time.sleep(0.01)
    return until()


@pytest.mark.parametrize(("steps", "seconds"), [(3, 60.0), (10**6, 0.02)])
def test_heads_leave_while_the_ledger_is_open(
    tmp_path: Path, sink: str, monkeypatch: pytest.MonkeyPatch, steps: int, seconds: float
) -> None:
    monkeypatch.setattr(head_watch, "STEPS", steps)
    monkeypatch.setattr(head_watch, "SECONDS", seconds)
    kept = Path(sink.removeprefix("file://"))
    with connected(tmp_path, sink) as session:
        ask(session, "0.1")
        assert waited(kept.exists)
        assert Head.from_text(kept.read_text()).chains["study"][0] >= 1


@pytest.fixture(params=["file", "https"])
def kept_at(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """The address of a sink that can be read back."""
    (tmp_path / "here").mkdir()
    if request.param == "file":
        (tmp_path / "elsewhere").mkdir()
        yield f"file://{tmp_path}/elsewhere/study.head"
        return
    made = certificate(tmp_path / "made")
    monkeypatch.setenv("SSL_CERT_FILE", str(made.authority))
    with serving(made) as server:
        yield server.url()


@pytest.mark.parametrize(("steps", "seconds"), [(3, 60.0), (10**6, 0.02)], ids=["charges", "time"])
def test_a_rollback_after_so_many_charges_or_so_much_time_is_refused(
    tmp_path: Path, kept_at: str, monkeypatch: pytest.MonkeyPatch, steps: int, seconds: float
) -> None:
    with connected(tmp_path, kept_at) as session:
        ask(session, "0.1")
    shutil.copytree(tmp_path / "here", tmp_path / "old")
    before = sink_at(kept_at).newest()
    monkeypatch.setattr(head_watch, "STEPS", steps)
    monkeypatch.setattr(head_watch, "SECONDS", seconds)
    monkeypatch.setattr(
        HeadWatch, "close", _stopped
    )  # the machine dies: nothing is published at the end
    with connected(tmp_path, kept_at) as session:
        ask(session, "0.2")
        assert before is not None
        assert waited(
            lambda: (
                (head := sink_at(kept_at).newest()) is not None
                and _length(head) > _length(before) + 2
            )
        )
    shutil.rmtree(tmp_path / "here")
    (tmp_path / "old").rename(tmp_path / "here")
    with pytest.raises(
        LedgerIncomplete, match=r"chain of 'study' ends before entry .*kept at (file|https)://"
    ):
        connected(tmp_path, kept_at)


def _length(head: Head) -> int:
    return head.chains["study"][0]


def _stopped(watch: HeadWatch) -> None:
    watch._ends.set()
    watch._wake.set()


def test_the_log_of_the_system_is_compared_by_hand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[str] = []
    monkeypatch.setattr(syslog, "syslog", lambda _, line: lines.append(line))
    (tmp_path / "here").mkdir()
    rolled_back(tmp_path, "syslog:")
    connected(tmp_path, "syslog:").close()  # it cannot be read back, so nothing is refused
    ledger = Ledger.open(tmp_path / "here" / "l.db", read_only=True)
    problems = [
        verify(
            ledger, [Head.from_text(line.removeprefix("sfumato-head "))], key=Signer(key).public_key
        ).problems
        for line in lines
        for key in [tmp_path / "here" / "l.db.key"]
    ]
    ledger.close()
    # those of before the rollback are on the chain, those of the question that is forgotten are
    # not, the last is again
    assert (problems[0], problems[-1]) == ((), ())
    assert any("ends before entry" in str(each) for each in problems)


def test_a_server_that_was_rolled_back_is_behind_its_heads(
    tmp_path: Path, sink: str, database: str
) -> None:
    with pytest.raises(WrongUse, match="ledger_key names the file of one"):
        connected(tmp_path, sink, ledger=database)
    with connected(tmp_path, sink, ledger=database, ledger_key=tmp_path / "heads.pem") as session:
        ask(session, "0.1")
    with psycopg.connect(database, autocommit=True) as server:
        server.execute("DROP SCHEMA IF EXISTS old CASCADE")
        server.execute("CREATE SCHEMA old")
        query = "SELECT tablename FROM pg_tables WHERE schemaname = 'sfumato'"
        tables = [name for (name,) in server.execute(query)]
        for name in tables:
            server.execute(f'CREATE TABLE old."{name}" AS TABLE sfumato."{name}"')
        with connected(
            tmp_path, sink, ledger=database, ledger_key=tmp_path / "heads.pem"
        ) as session:
            ask(session, "0.2")
        for name in tables:
            server.execute(f'TRUNCATE sfumato."{name}" CASCADE')
        server.execute("SET session_replication_role = replica")  # whatever the order of the tables
        for name in tables:
            server.execute(
                f'INSERT INTO sfumato."{name}" OVERRIDING SYSTEM VALUE TABLE old."{name}"'
            )
        server.execute("DROP SCHEMA old CASCADE")
    ledger = Ledger.open(database, read_only=True)
    assert verify(ledger).problems == ()  # by itself nothing is wrong with it
    ledger.close()
    with pytest.raises(
        LedgerIncomplete, match=r"chain of 'study' ends before entry .*kept at file://"
    ):
        connected(tmp_path, sink, ledger=database, ledger_key=tmp_path / "heads.pem")


def test_no_charge_waits_for_a_sink_that_is_slow_or_dead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(head_watch, "STEPS", 1)
    monkeypatch.setattr(head_sinks, "PATIENCE", 0.5)
    (tmp_path / "here").mkdir()
    with serving() as slow, socket.socket() as dead:
        dead.bind(("127.0.0.1", 0))
        dead.listen()  # it takes the connection and never replies
        # both work when the session connects; from then on every publication would take seconds
        with connected(
            tmp_path, slow.url(), f"http://127.0.0.1:{dead.getsockname()[1]}/", without="dead"
        ) as session:
            slow.drips.set()
            start = time.monotonic()
            for number in range(6):
                ask(session, f"0.0{number + 10}")
            took = time.monotonic() - start
            slow.drips.clear()
    assert took < 1.5


def test_a_charge_that_publishes_by_itself_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HeadWatch, "step", lambda _: time.sleep(0.09))
    with pytest.raises(AssertionError):
        test_no_charge_waits_for_a_sink_that_is_slow_or_dead(tmp_path, monkeypatch)


def test_a_head_that_is_newer_than_the_ledger_is_never_replaced(
    tmp_path: Path, sink: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connected(tmp_path, sink) as session:
        ask(session, "0.1")
    newer = Path(sink.removeprefix("file://")).read_text()
    Path(sink.removeprefix("file://")).unlink()
    monkeypatch.setattr(head_watch, "STEPS", 1)
    ledger = opened(tmp_path / "here" / "other.db", dataset="study")
    ledger.heads.begin([sink_at(sink)])
    assert waited(Path(sink.removeprefix("file://")).exists)
    Path(sink.removeprefix("file://")).write_text(newer)

    def charge() -> bool:
        try:
            paid(ledger, pure("0.001", str(time.monotonic_ns()), dataset="study"))
        except LedgerIncomplete:
            return True
        return False

    assert waited(charge)
    ledger.close()
    assert Path(sink.removeprefix("file://")).read_text() == newer
