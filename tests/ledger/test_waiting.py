# SPDX-License-Identifier: Apache-2.0
"""A ledger file that another process has open is waited for; nothing is held meanwhile."""

import fcntl
import os
import threading
import time
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import LedgerBusy, WrongUse
from sfumato.ledger import Ledger, waiting
from sfumato.ledger.waiting import Holder, find_holder, open_when_free, require_free, require_wait
from tests.contracts.charges import opened
from tests.contracts.other_process import held


def session(place: Path, wait: float) -> sf.Session:
    table = sf.Table(pa.table({"a": [1, 2, 3]}), columns={"a": sf.Integer(0, 9)})
    return sf.connect({"t": table}, dataset="d", budget=sf.Budget(1), ledger=place, wait=wait)


def test_a_session_waits_until_the_other_process_closes(tmp_path: Path) -> None:
    place = tmp_path / "l.db"
    with held(place) as process:
        assert process.stdin is not None
        timer = threading.Timer(0.3, process.stdin.close)
        timer.start()
        with session(place, 30) as opened_session:
            assert opened_session.budget.spent == "0"
        timer.join()


def test_who_waits_in_vain_is_told_who_has_it_and_since_when(tmp_path: Path) -> None:
    place = tmp_path / "l.db"
    with held(place) as process:
        start = time.monotonic()
        with pytest.raises(LedgerBusy, match=rf"is in use by process {process.pid}, since 20\d\d-"):
            session(place, 0.2)
        assert 0.2 <= time.monotonic() - start < 5
        with pytest.raises(LedgerBusy, match="--wait"):
            session(place, 0)


def test_nothing_is_held_between_two_attempts(tmp_path: Path) -> None:
    place, attempts = tmp_path / "l.db", list[bool]()
    opened(place).close()

    def attempt() -> None:
        # what another process could do right before this attempt
        with place.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        attempts.append(True)
        if len(attempts) < 3:
            raise LedgerBusy("busy")

    open_when_free(place, 30, attempt)
    assert len(attempts) == 3
    require_free(place)
    require_free(tmp_path / "none.db")


def test_ctrl_c_ends_the_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(seconds: float) -> None:
        raise KeyboardInterrupt

    with held(tmp_path / "l.db"):
        monkeypatch.setattr(waiting.time, "sleep", interrupted)
        with pytest.raises(KeyboardInterrupt):
            session(tmp_path / "l.db", 30)
    monkeypatch.undo()
    session(tmp_path / "l.db", 0).close()


def test_a_file_that_this_process_has_open_is_refused_at_once(tmp_path: Path) -> None:
    place = tmp_path / "l.db"
    with closing(opened(place)):
        start = time.monotonic()
        with pytest.raises(LedgerBusy, match=f"process {os.getpid()}"):
            session(place, 30)
        assert time.monotonic() - start < 5
    # a session shares it
    with session(place, 0), session(place, 30):
        pass


def test_a_reader_is_named_without_a_time(tmp_path: Path) -> None:
    opened(tmp_path / "l.db").close()
    with closing(Ledger.open(tmp_path / "l.db", read_only=True)):
        assert find_holder(tmp_path / "l.db") == Holder(os.getpid())
    assert find_holder(tmp_path / "l.db") == Holder()


def test_where_the_system_names_no_process_none_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "_LOCKS", tmp_path / "none")
    place = tmp_path / "l.db"
    with closing(opened(place)), pytest.raises(LedgerBusy, match="another session or process"):
        open_when_free(place, 0, lambda: Ledger.open(place))
    assert str(Holder()) == "another process"


@pytest.mark.parametrize("wait", [-1, float("nan"), float("inf"), True, "1", None])
def test_a_time_to_wait_is_a_number_of_seconds(tmp_path: Path, wait: float) -> None:
    with pytest.raises(WrongUse, match="seconds"):
        session(tmp_path / "l.db", wait)
    assert require_wait(2) == 2.0
