# SPDX-License-Identifier: Apache-2.0
"""What the medium does to a ledger: disks, clocks, wires and servers that fail in the middle of a
charge.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import apsw
import pytest

from sfumato.errors import (
    LeaseExpired,
    LedgerError,
    LedgerIncomplete,
    LedgerReadOnly,
    LedgerUnavailable,
)
from sfumato.ledger import Ledger, verify
from sfumato.ledger.store import postgres as postgres_store
from sfumato.ledger.store import postgres_server, sqlite_rows
from sfumato.ledger.store.base import COMMITTED, EXECUTING, FORFEITED, RESERVED, VOIDED
from sfumato.ledger.store.postgres_rows import CLOCK
from sfumato.privacy.budget import Budget
from tests.contracts.charges import contract, pure
from tests.contracts.crashes import Mutant, ask
from tests.contracts.disks import SYNC, WRITE, Trouble, troubled
from tests.contracts.kill_points import LEFT
from tests.contracts.postgres import Cluster
from tests.contracts.proxy import Cut, Wire
from tests.contracts.server_disks import BROKEN, FULL, failing, logs, recovered
from tests.contracts.servers import crash_under_callers

STEPS = ["reserve", "execute", "commit"]
UNIT = 10**11


def opened(place: str, lease_ms: int = 60_000) -> Ledger:
    """A ledger with an account that pays for ten questions of 1/10."""
    ledger = Ledger.open(place, lease=timedelta(milliseconds=lease_ms))
    ledger.adopt(contract(Budget(10)), Budget(10))
    return ledger


def lived(ledger: Ledger, before: Callable[[str], None]) -> None:
    """A charge's life, told of each step before it is taken."""
    before("reserve")
    charge = ledger.reserve(pure("0.1"))
    before("execute")
    ledger.execute(charge)
    before("commit")
    ledger.commit(charge, b"answer")


def found(ledger: Ledger) -> tuple[str, bytes | None]:
    """The state of the one charge and its answer, once all leases have ended.

    Spent is what that state costs.
    """
    while ledger.store.read(lambda rows: rows.overdue(rows.now() + 5, 1)):
        ledger.sweep()
    rows = ledger.store.read(
        lambda rows: [(row.state, a.body if a else None) for row, a in rows.history()]
    )
    assert len(rows) <= 1
    state, body = rows[0] if rows else ("none", None)
    balance = ledger.balance("d")
    assert balance.reserved.epsilon == 0
    assert balance.spent.epsilon == (UNIT if state in (COMMITTED, FORFEITED) else 0)
    assert verify(ledger).problems == ()
    return state, body


@pytest.fixture
def disk() -> Iterator[Trouble]:
    """A disk that fails when it is told to."""
    with troubled() as trouble:
        yield trouble


ERRORS = {"EIO": (apsw.IOError, LedgerUnavailable), "full": (apsw.FullError, LedgerUnavailable)}
ERRORS |= {"read-only": (apsw.ReadOnlyError, LedgerReadOnly)}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize(
    ("kind", "where"), [("EIO", SYNC), ("EIO", WRITE), ("full", WRITE), ("read-only", WRITE)]
)
@pytest.mark.parametrize("spared", [0, 3])
def test_a_disk_that_fails_is_no_answer_and_loses_nothing(
    tmp_path: Path, disk: Trouble, step: str, kind: str, where: str, spared: int
) -> None:
    ledger = opened(str(tmp_path / "l.db"))
    raised, typed = ERRORS[kind]
    spared = 0 if where == SYNC else spared

    def before(name: str) -> None:
        if name == step:
            disk.begin(raised, where, spared=spared)

    with pytest.raises(typed):
        lived(ledger, before)
    assert disk.hits
    disk.end()
    ledger.close()
    again = opened(str(tmp_path / "l.db"))
    state, body = found(again)
    assert state in {
        LEFT[step],
        LEFT[STEPS[STEPS.index(step) - 1]] if step != "reserve" else "none",
    }
    assert body == (b"answer" if state == COMMITTED else None)
    # and the next question is served
    ask(again, pure("0.1", "another"), lambda *_: None, Mutant.NONE)


def test_a_disk_that_failed_to_sync_is_not_trusted_again_before_a_new_opening(
    tmp_path: Path, disk: Trouble
) -> None:
    ledger = opened(str(tmp_path / "l.db"))
    disk.begin(apsw.IOError, SYNC)
    with pytest.raises(LedgerUnavailable):
        ledger.reserve(pure("0.1"))
    disk.end()
    with pytest.raises(LedgerUnavailable, match="could not be flushed"):
        ledger.reserve(pure("0.1", "another"))
    ledger.close()


def test_a_disk_that_is_free_again_is_used_again(tmp_path: Path, disk: Trouble) -> None:
    ledger = opened(str(tmp_path / "l.db"))
    disk.begin(apsw.FullError, WRITE)
    with pytest.raises(LedgerUnavailable):
        ledger.reserve(pure("0.1"))
    disk.end()
    lived(ledger, lambda _: None)
    assert found(ledger) == (COMMITTED, b"answer")


def test_a_ledger_that_answers_before_the_disk_did_is_caught(tmp_path: Path, disk: Trouble) -> None:
    """The mutant: a store whose failed commit is taken for a good one."""
    ledger = opened(str(tmp_path / "l.db"))
    charge = ledger.reserve(pure("0.1"))
    ledger.execute(charge)
    disk.begin(apsw.FullError, WRITE)
    with pytest.raises(LedgerError):
        ledger.commit(charge, b"answer")
    disk.end()
    ledger.close()
    released = b"answer"
    assert found(opened(str(tmp_path / "l.db"))) != (COMMITTED, released)


CLOCKS = [
    (postgres_server, "WRITING", postgres_server.WRITING),
    (postgres_store, "_CLOCK", postgres_store._CLOCK),
]
YEAR = 365 * 24 * 3600 * 1000


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Sets the clocks of both stores: milliseconds, for ledgers opened from now on."""

    def set_to(now: int) -> None:
        frozen = SimpleNamespace(time_ns=lambda: now * 10**6, monotonic_ns=lambda: 0)
        monkeypatch.setattr(sqlite_rows, "time", frozen)
        for module, name, sql in CLOCKS:
            monkeypatch.setattr(module, name, sql.replace(CLOCK, f"{now}::bigint"))

    return set_to


NOW = 1_800_000_000_000


@pytest.mark.parametrize("jump", [-YEAR, -1, 0, 1, YEAR])
@pytest.mark.parametrize("state", [RESERVED, EXECUTING])
def test_a_clock_that_jumps_refunds_nothing_that_was_read_and_sticks_nowhere(
    place: str, clock: Callable[[int], None], jump: int, state: str
) -> None:
    clock(NOW)
    ledger = opened(place)
    charge = ledger.reserve(pure("0.1"))
    if state == EXECUTING:
        ledger.execute(charge)
    ledger.store.close()  # its process is gone
    clock(NOW + jump)
    there = opened(place)
    ask(there, pure("0.1", "meanwhile"), lambda *_: None, Mutant.NONE)
    there.close()
    clock(NOW + 2 * YEAR)
    ledger = opened(place)
    states = ledger.store.read(lambda rows: {row.question: row.state for row, _ in rows.history()})
    assert states == {"q": FORFEITED if state == EXECUTING else VOIDED, "meanwhile": COMMITTED}
    assert ledger.balance("d").spent.epsilon == UNIT * (2 if state == EXECUTING else 1)
    assert ledger.balance("d").reserved.epsilon == 0
    assert verify(ledger).problems == ()
    ledger.close()


def test_a_worker_that_comes_back_after_its_lease_releases_nothing(
    database: str, clock: Callable[[int], None]
) -> None:
    clock(NOW)
    slow, other = opened(database), opened(database)
    charge = slow.reserve(pure("0.1"))
    slow.execute(charge)
    clock(NOW + YEAR)
    assert other.sweep() == 1
    with pytest.raises(LeaseExpired):
        slow.commit(charge, b"late")
    assert found(other) == (FORFEITED, None)
    slow.close()
    other.close()


@pytest.mark.parametrize("where", Cut)
@pytest.mark.parametrize("step", STEPS)
def test_a_wire_that_is_cut_at_a_step_is_no_answer_and_pays_once(
    postgres: Cluster, database: str, step: str, where: Cut, monkeypatch: pytest.MonkeyPatch
) -> None:
    # nothing is prepared: a COMMIT that is prepared is not seen on the wire
    monkeypatch.setattr(postgres_server, "_is_direct", lambda _: False)
    with Wire(postgres.socket) as wire:
        ledger = opened(wire.url(database), lease_ms=1)
        with pytest.raises(LedgerUnavailable, match="nobody knows yet"):
            lived(ledger, lambda name: wire.cut(where) if name == step else None)
        assert wire.cuts == 1
        state, body = found(ledger)
        before = LEFT[STEPS[STEPS.index(step) - 1]] if step != "reserve" else "none"
        assert state == (LEFT[step] if where is Cut.AFTER_COMMIT else before)
        # the caller asks again: the stored bytes, or a new charge
        said: list[str] = []
        ask(ledger, pure("0.1"), lambda _, text: said.append(text), Mutant.NONE)
        assert (said == ["answer"]) == (body is not None)
        assert ledger.balance("d").spent.epsilon == UNIT * (2 if state == FORFEITED else 1)
        ledger.close()


def test_a_server_that_crashes_under_its_callers_loses_nothing(
    postgres: Cluster, database: str
) -> None:
    assert crash_under_callers(postgres, database, rounds=1) > 0


@pytest.mark.parametrize("how", [FULL, BROKEN])
@pytest.mark.parametrize("step", STEPS)
def test_a_servers_disk_that_fails_is_no_answer_and_loses_nothing(
    postgres: Cluster, database: str, step: str, how: str
) -> None:
    ledger = opened(database, lease_ms=1)
    with ExitStack() as disk, pytest.raises(LedgerUnavailable):
        lived(
            ledger,
            lambda name: disk.enter_context(failing(postgres, how)) if name == step else None,
        )
    recovered(database)
    before = LEFT[STEPS[STEPS.index(step) - 1]] if step != "reserve" else "none"
    state, body = found(ledger)
    assert state in {LEFT[step], before}
    assert body == (b"answer" if state == COMMITTED else None)
    # and the next question is served
    ask(ledger, pure("0.1", "another"), lambda *_: None, Mutant.NONE)
    ledger.close()


def answered(ledger: Ledger, server: Cluster, question: str) -> bool:
    """Whether a ledger that does not wait for the log answers before the server's disk is full.

    The server flushes on its own five times a second, so on a busy machine it may die first.
    """
    charge = ledger.reserve(pure("0.1", question))
    ledger.execute(charge)
    with pytest.MonkeyPatch.context() as patch, failing(server, FULL, *logs(server)):
        patch.setattr(postgres_server, "FLUSH", "SELECT set_config('synchronous_commit', $1, true)")
        try:
            ledger.commit(charge, b"answer")
        except LedgerUnavailable:
            return False
        patch.undo()
        with pytest.raises(LedgerUnavailable):
            ledger.reserve(pure("0.1", "another"))
    return True


def test_a_ledger_that_answers_before_the_servers_disk_did_is_caught(
    postgres: Cluster, database: str
) -> None:
    """The mutant: nobody waits for the log."""
    ledger = opened(database, lease_ms=1)
    for question in map(str, range(10)):
        told = answered(ledger, postgres, question)
        recovered(database)
        if told:
            break
    assert told
    # what was told is not there, and whoever was told finds out
    assert ledger.store.read(lambda rows: rows.answer(question)) is None
    with pytest.raises(LedgerIncomplete, match="was acknowledged"):
        ledger.reserve(pure("0.1", "another"))
    ledger.close()
