# SPDX-License-Identifier: Apache-2.0
"""Answers in pieces, on every store: opened in full, begun before they are drawn, stored before
they are shown.
"""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import apsw
import pytest

from sfumato.errors import AccountFrozen, LeaseExpired, LedgerCorrupt, LedgerUnavailable, WrongUse
from sfumato.ledger import Ledger, closing, instalments, verify
from sfumato.ledger.archive import lines, load
from sfumato.ledger.backup import backup, restore
from sfumato.ledger.migrate import migrate
from sfumato.ledger.pieces import Pieces
from sfumato.ledger.report import page
from sfumato.ledger.signed_heads import Signer
from sfumato.ledger.store import bodies
from sfumato.ledger.store.base import COMMITTED, EXECUTING, FORFEITED, SUSPENDED, ChargeRow, Rows
from sfumato.ledger.store.open import open_store
from sfumato.ledger.summary import summary
from sfumato.privacy import Budget
from tests.contracts.charges import contract, end_leases, in_pieces, paid, pure, state_of
from tests.contracts.instalment_kills import Found, Mutant, killed
from tests.contracts.killed import killed_after

UNIT = 10**11


@pytest.fixture
def ledger(place: str) -> Iterator[Ledger]:
    """A ledger with an account of 1."""
    opened = Ledger.open(place)
    opened.adopt(contract(Budget(1)), Budget(1))
    yield opened
    opened.close()


def row_of(ledger: Ledger, charge: str) -> ChargeRow:
    """A charge as it is stored."""
    row = ledger.store.read(lambda rows: rows.charge(charge))
    assert row is not None
    return row


def test_an_answer_in_pieces_is_paid_when_it_is_opened(ledger: Ledger, place: str) -> None:
    charge, fence = in_pieces(ledger)
    assert (ledger.balance("d").taken.epsilon, ledger.balance("d").reserved.epsilon) == (UNIT, UNIT)
    ledger.begin(charge, 3, fence=fence)
    ledger.append(charge, 1, b"one", fence=fence)
    ledger.append(charge, 3, b"three", fence=fence)
    ledger.begin(charge, 4, fence=fence)
    ledger.append(charge, 4, b"", fence=fence)
    assert ledger.instalments(charge) == [(1, b"one"), (3, b"three"), (4, b"")]
    assert ledger.instalments(charge, after=1) == [(3, b"three"), (4, b"")]
    ledger.commit(charge, b"the end", fence=fence)
    assert ledger.balance("d").spent.epsilon == UNIT
    assert (ledger.answer("q"), state_of(ledger, charge)) == (b"the end", COMMITTED)
    assert verify(ledger).problems == ()
    ledger.close()
    again = Ledger.open(place)
    assert again.instalments(charge) == [(1, b"one"), (3, b"three"), (4, b"")]
    assert again.instalments("nobody") == []
    again.close()


def test_an_instalment_is_on_disk_before_it_may_be_shown(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    killed_after(path, "c = ledger.reserve(pure('0.1')); f = ledger.start(c, 9); ledger.begin(c, 1, fence=f); "
                       "ledger.append(c, 1, b'shown', fence=f)")  # fmt: skip
    ledger = Ledger.open(path)
    assert ledger.instalments(ledger.suspended("q")) == [(1, b"shown")]
    ledger.close()


def test_a_place_is_on_disk_as_begun_before_it_may_be_drawn(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    killed_after(
        path, "c = ledger.reserve(pure('0.1')); f = ledger.start(c, 9); ledger.begin(c, 3, fence=f)"
    )
    ledger = Ledger.open(path)
    charge = ledger.suspended("q")
    pieces = ledger.resume(charge)
    assert (pieces.begun, pieces.last, pieces.fence) == (3, 3, 2)
    for place in (1, 2, 3):
        with pytest.raises(WrongUse):
            ledger.begin(charge, place, fence=2)
        with pytest.raises(WrongUse):
            ledger.append(charge, place, b"again", fence=2)
    ledger.begin(charge, 4, fence=2)
    ledger.close()


def test_a_worker_that_dies_leaves_its_charge_suspended_and_counted(ledger: Ledger) -> None:
    charge, fence = in_pieces(ledger)
    ledger.begin(charge, 2, fence=fence)
    end_leases(ledger)
    assert state_of(ledger, charge) == SUSPENDED
    assert ledger.balance("d").taken.epsilon == UNIT
    assert ledger.suspended("q") == charge
    assert verify(ledger).problems == ()
    # the same question is not charged again, and nobody waits for it
    with pytest.raises(LedgerUnavailable, match="suspended"):
        ledger.reserve(pure("0.1"))
    pieces = ledger.resume(charge)
    assert (ledger.suspended("q"), state_of(ledger, charge)) == ("", EXECUTING)
    ledger.begin(charge, 3, fence=pieces.fence)
    ledger.append(charge, 3, b"three", fence=pieces.fence)
    ledger.commit(charge, b"end", fence=pieces.fence)
    assert verify(ledger).problems == ()


LATE: list[Callable[[Ledger, str], object]] = [
    lambda ledger, charge: ledger.begin(charge, 5, fence=1),
    lambda ledger, charge: ledger.append(charge, 2, b"late", fence=1),
    lambda ledger, charge: ledger.suspend(charge, fence=1),
    lambda ledger, charge: ledger.renew(charge, fence=1),
    lambda ledger, charge: ledger.commit(charge, b"late", fence=1),
    lambda ledger, charge: ledger.forfeit(charge, "engine", fence=1),
    # one that does not say who it is
    lambda ledger, charge: ledger.commit(charge, b"late"),
    lambda ledger, charge: ledger.renew(charge),
    # one that has lost its fence
    lambda ledger, charge: ledger.begin(charge, 6, fence=None),
    lambda ledger, charge: ledger.append(charge, 5, b"late", fence=None),
    lambda ledger, charge: ledger.suspend(charge, fence=None),
    lambda ledger, charge: ledger.commit(charge, b"late", fence=None),
    lambda ledger, charge: ledger.forfeit(charge, "engine", fence=None),
    lambda ledger, charge: ledger.renew(charge, fence=None),
]


def everyone_late(ledger: Ledger) -> list[str]:
    """Which steps of a replaced worker take effect."""
    charge, fence = in_pieces(ledger)
    ledger.begin(charge, 4, fence=fence)
    end_leases(ledger)
    for step in LATE:
        with pytest.raises(LeaseExpired):
            step(ledger, charge)
    ledger.resume(charge)
    ledger.begin(charge, 5, fence=2)
    before = row_of(ledger, charge)
    taken = []
    for number, step in enumerate(LATE):
        try:
            step(ledger, charge)
            taken.append(f"step {number}")
        except (LeaseExpired, WrongUse, LedgerUnavailable):
            pass
    ledger.abandon(charge, fence=1)
    ledger.abandon(charge)
    return taken + (["a change"] if row_of(ledger, charge) != before else [])


def test_one_worker_goes_on_with_a_charge(ledger: Ledger) -> None:
    assert everyone_late(ledger) == []


def test_a_charge_with_one_answer_has_no_instalments(ledger: Ledger) -> None:
    charge = ledger.reserve(pure("0.1"))
    ledger.execute(charge)
    for step in (
        lambda: ledger.begin(charge, 1, fence=0),
        lambda: ledger.append(charge, 1, b"", fence=0),
        lambda: ledger.suspend(charge, fence=0),
    ):
        with pytest.raises(WrongUse, match="not answered in instalments"):
            step()
    with pytest.raises(WrongUse, match="5 bytes"):
        ledger.commit(charge, b"12345", size=4)
    assert state_of(ledger, charge) == EXECUTING
    ledger.commit(charge, b"12345", size=5)
    assert (ledger.answer("q"), ledger.instalments(charge)) == (b"12345", [])


class Anybody(int):
    """The fence of everybody."""

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False

    __hash__ = int.__hash__


def test_a_replaced_worker_that_goes_on_would_be_noticed(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(closing, "fence_of", lambda _: Anybody())
    assert everyone_late(ledger) != []


def resumed_by_many(ledgers: list[Ledger], charge: str) -> int:
    """How many of as many workers may go on with a suspended charge."""
    start, gone_on = threading.Barrier(len(ledgers)), []

    def work(ledger: Ledger) -> None:
        start.wait()
        with suppress(LedgerUnavailable):
            gone_on.append(ledger.resume(charge))

    threads = [threading.Thread(target=work, args=(each,)) for each in ledgers]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return len(gone_on)


def workers(ledger: Ledger, place: str) -> list[Ledger]:
    """Six: of a server each has a ledger of its own."""
    return [ledger] * 6 if ledger.store.exclusive else [Ledger.open(place) for _ in range(6)]


def test_of_many_workers_one_resumes_a_charge(ledger: Ledger, place: str) -> None:
    charge, fence = in_pieces(ledger)
    ledger.suspend(charge, fence=fence)
    assert resumed_by_many(workers(ledger, place), charge) == 1
    assert Pieces.from_text(row_of(ledger, charge).pieces).fence == 2
    assert verify(ledger).problems == ()


def test_two_workers_on_one_charge_would_be_noticed(
    ledger: Ledger, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = closing.at_step

    def unguarded(
        rows: Rows, charge: str, before: str, after: str, fence: int = closing.ANY_WORKER
    ) -> object:
        """A broken step: whether somebody else has taken it is not looked at."""
        try:
            return honest(rows, charge, before, after, fence)
        except LedgerUnavailable:
            return honest(rows, charge, EXECUTING, after, fence)

    charge, fence = in_pieces(ledger)
    ledger.suspend(charge, fence=fence)
    monkeypatch.setattr(instalments, "at_step", unguarded)
    assert resumed_by_many(workers(ledger, place), charge) > 1


def test_a_charge_with_secret_state_ends_with_its_worker(ledger: Ledger) -> None:
    for question, end in (
        ("crash", lambda charge, fence: end_leases(ledger)),
        ("order", lambda charge, fence: ledger.suspend(charge, fence=fence)),
        ("interrupt", lambda charge, fence: ledger.abandon(charge, fence=fence)),
    ):
        charge, fence = in_pieces(ledger, question=question, secret=True)
        ledger.begin(charge, 1, fence=fence)
        ledger.append(charge, 1, b"shown", fence=fence)
        end(charge, fence)
        assert state_of(ledger, charge) == FORFEITED, question
        with pytest.raises((LedgerUnavailable, LeaseExpired)):
            ledger.resume(charge)
        assert ledger.instalments(charge) == [(1, b"shown")]
    assert ledger.balance("d").spent.epsilon == 3 * UNIT
    assert verify(ledger).problems == ()


def test_a_frozen_account_begins_no_places(ledger: Ledger) -> None:
    charge, fence = in_pieces(ledger)
    ledger.begin(charge, 1, fence=fence)
    ledger.freeze("d")
    with pytest.raises(AccountFrozen):
        ledger.begin(charge, 2, fence=fence)
    with pytest.raises(AccountFrozen):
        ledger.instalments(charge)
    # what was begun is completed
    ledger.append(charge, 1, b"one", fence=fence)
    ledger.suspend(charge, fence=fence)
    with pytest.raises(AccountFrozen):
        ledger.resume(charge)
    ledger.thaw("d")
    assert ledger.resume(charge).fence == 2
    assert verify(ledger).problems == ()


def test_three_deaths_freeze_the_account_however_they_are_spread(ledger: Ledger) -> None:
    charge, _ = in_pieces(ledger)
    for _ in range(2):
        end_leases(ledger)
        fence = ledger.resume(charge).fence
    # an orderly end is no failure
    ledger.suspend(charge, fence=fence)
    fence = ledger.resume(charge).fence
    ledger.commit(charge, b"end", fence=fence)
    assert row_of(ledger, charge).failures == 2
    other, fence = in_pieces(ledger, question="other")
    ledger.suspend(other, fence=fence, reason="engine")
    with pytest.raises(AccountFrozen, match="3 failures"):
        ledger.resume(other)
    with pytest.raises(AccountFrozen, match="3 failures"):
        ledger.reserve(pure("0.1", "third"))
    assert verify(ledger).problems == ()
    assert ledger.thaw("d") == 2
    assert verify(ledger).problems == ()
    ledger.forfeit(other, "engine", fence=ledger.resume(other).fence)
    assert ledger.thaw("d") == 1
    assert verify(ledger).problems == ()


def test_failures_are_remembered_by_the_next_opening(ledger: Ledger, place: str) -> None:
    for question in ("one", "two", "three"):
        in_pieces(ledger, question=question)
    end_leases(ledger)
    ledger.close()
    again = Ledger.open(place)
    with pytest.raises(AccountFrozen):
        again.resume(again.suspended("one"))
    again.close()


def test_a_lease_that_has_ended_is_not_renewed(place: str) -> None:
    ledger = Ledger.open(place, lease=timedelta(seconds=20))
    ledger.adopt(contract(Budget(1)), Budget(1))
    charge, fence = in_pieces(ledger)
    whole = ledger.reserve(pure("0.1", "whole"))
    ledger.execute(whole)
    before = row_of(ledger, charge).lease_until
    for name, number in ((charge, fence), (whole, 0)):
        ledger.renew(name, fence=number)
        assert row_of(ledger, name).lease_until >= before
    # nobody has closed them yet, and they are late all the same
    for name in (charge, whole):
        late = row_of(ledger, name)._replace(lease_until=1)
        ledger.store.write(lambda rows, late=late: (rows.lock(["d"]), rows.put_charge(late)))
    for late_step in (
        lambda: ledger.renew(charge, fence=fence),
        lambda: ledger.begin(charge, 1, fence=fence),
        lambda: ledger.renew(whole),
    ):
        with pytest.raises(LeaseExpired, match="lease"):
            late_step()
    assert ledger.sweep() == 2
    assert (state_of(ledger, charge), state_of(ledger, whole)) == (SUSPENDED, FORFEITED)
    with pytest.raises(LeaseExpired):
        ledger.renew(whole)
    assert verify(ledger).problems == ()
    ledger.close()


def test_a_lease_renewed_late_would_be_noticed(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        instalments.Instalments,
        "_renewed",
        lambda self, rows, row: row._replace(lease_until=rows.now() + self._lease),
    )
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        test_a_lease_that_has_ended_is_not_renewed(place)


@pytest.fixture
def closed(tmp_path: Path) -> Path:
    """A closed ledger whose charge was suspended after one of two places, by a crash."""
    ledger = Ledger.open(tmp_path / "l.db")
    ledger.adopt(contract(Budget(1)), Budget(1))
    charge, fence = in_pieces(ledger)
    ledger.begin(charge, 2, fence=fence)
    ledger.append(charge, 1, b"one", fence=fence)
    end_leases(ledger)
    ledger.close()
    return tmp_path / "l.db"


def edited(path: Path, edit: str) -> Ledger:
    """The ledger after somebody with the file, who also takes away the head beside it."""
    Path(f"{path}.head").unlink()
    connection = apsw.Connection(str(path))
    connection.execute(edit)
    assert connection.total_changes() > 0
    connection.close()
    return Ledger.open(path)


@pytest.mark.parametrize(
    "edit", ["body = x'00'", "place = 2", "seq = seq - 1", "coding = 'zstd 9'"]
)
def test_a_forged_instalment_is_not_given(
    closed: Path, edit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = edited(closed, f"UPDATE instalment SET {edit}")
    charge = ledger.suspended("q")
    with pytest.raises(LedgerCorrupt):
        ledger.instalments(charge)
    assert verify(ledger).problems != ()
    # mutants: each of both would take it
    monkeypatch.setattr(instalments, "is_instalment_of", lambda *_: True)
    assert ledger.instalments(charge) != []
    monkeypatch.setattr(
        sys.modules["sfumato.ledger.verify"], "_compare_instalments", lambda *_: None
    )
    assert verify(ledger).problems == ()
    ledger.close()


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE charge SET pieces = replace(pieces, '\"begun\":2', '\"begun\":1')",
        "UPDATE charge SET failures = failures - 1",
        "UPDATE charge SET state = 'executing'",
        "DELETE FROM instalment",
        "INSERT INTO instalment SELECT charge, 2, body, chain, 99, coding FROM instalment",
    ],
)
def test_an_edit_of_a_charge_in_pieces_is_found(closed: Path, edit: str) -> None:
    ledger = edited(closed, edit)
    assert verify(ledger).problems != ()
    ledger.close()


def test_a_verification_goes_on_from_an_earlier_one(ledger: Ledger) -> None:
    charge, fence = in_pieces(ledger)
    ledger.begin(charge, 2, fence=fence)
    ledger.append(charge, 1, b"one", fence=fence)
    end_leases(ledger)
    first = verify(ledger).verified
    fence = ledger.resume(charge).fence
    ledger.begin(charge, 4, fence=fence)
    ledger.append(charge, 4, b"four", fence=fence)
    second = verify(ledger, since=first)
    assert second.problems == ()
    ledger.commit(charge, b"end", fence=fence)
    third = verify(ledger, since=second.verified)
    assert third.problems == ()
    # it failed once, and is acknowledged after its end
    assert ledger.thaw("d") == 1
    assert verify(ledger, since=third.verified).problems == ()
    assert verify(ledger).problems == ()


def instalment_ledger(ledger: Ledger) -> str:
    """A suspended charge with two instalments, one of which is large, and a large answer."""
    charge, fence = in_pieces(ledger)
    ledger.begin(charge, 3, fence=fence)
    ledger.append(charge, 1, b"one", fence=fence)
    ledger.append(charge, 2, bytes(range(256)) * 300, fence=fence, size=10**9)
    ledger.suspend(charge, fence=fence)
    other = ledger.reserve(pure("0.1", "large"))
    ledger.execute(other)
    ledger.commit(other, b"large " * 30_000, size=10**9)
    return charge


def require_carried(ledger: Ledger, charge: str) -> None:
    """The other ledger has all of it, and goes on with it."""
    assert verify(ledger).problems == ()
    assert ledger.answer("large") == b"large " * 30_000
    assert ledger.instalments(charge) == [(1, b"one"), (2, bytes(range(256)) * 300)]
    assert ledger.suspended("q") == charge
    fence = ledger.resume(charge).fence
    ledger.begin(charge, 4, fence=fence)
    ledger.append(charge, 4, b"four", fence=fence)
    ledger.commit(charge, b"end", fence=fence)
    assert verify(ledger).problems == ()


@pytest.fixture
def small_bodies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bodies are large from 50,000 bytes on, in chunks of 20,000."""
    monkeypatch.setattr(bodies, "LARGEST", 50_000)
    monkeypatch.setattr("sfumato.ledger.store.postgres_rows._CHUNK", 20_000)
    monkeypatch.setattr("sfumato.ledger.archive._CHUNK", 20_001)


def test_an_archive_carries_instalments_and_large_bodies(
    ledger: Ledger, place: str, tmp_path: Path, small_bodies: None
) -> None:
    charge = instalment_ledger(ledger)
    head = ledger.store.read(
        lambda rows: Signer(tmp_path / "key").sign(ledger.store.identity, rows)
    )
    archive = ledger.store.read(lambda rows: list(lines(rows, head)))
    assert max(map(len, archive)) < 30_000
    for lost in (line for line in archive if line.startswith(('{"more"', '{"answer"'))):
        store = open_store(tmp_path / f"{archive.index(lost)}.db")
        with pytest.raises(LedgerCorrupt):
            load(store, [line for line in archive if line is not lost])
        store.close()
    store = open_store(tmp_path / "copy.db")
    load(store, archive)
    store.close()
    copy = Ledger.open(tmp_path / "copy.db")
    require_carried(copy, charge)
    copy.close()


def test_a_backup_carries_instalments_and_large_bodies(
    ledger: Ledger, place: str, tmp_path: Path, small_bodies: None
) -> None:
    charge, signer = instalment_ledger(ledger), Signer(tmp_path / "key")
    head = backup(place, tmp_path / "backup", signer)
    restore(tmp_path / "backup", tmp_path / "back.db", [head])
    assert not list(tmp_path.glob("*.new*")) + list(tmp_path.glob("*.restoring*"))
    back = Ledger.open(tmp_path / "back.db")
    require_carried(back, charge)
    back.close()


def test_a_migration_carries_instalments_and_large_bodies(
    ledger: Ledger, place: str, tmp_path: Path, small_bodies: None
) -> None:
    charge = instalment_ledger(ledger)
    ledger.close()
    migrate(place, tmp_path / "moved.db")
    moved = Ledger.open(tmp_path / "moved.db")
    require_carried(moved, charge)
    moved.close()


def test_a_file_moves_to_a_server_with_its_instalments(
    tmp_path: Path, database: str, small_bodies: None
) -> None:
    ledger = Ledger.open(tmp_path / "l.db")
    ledger.adopt(contract(Budget(1)), Budget(1))
    charge = instalment_ledger(ledger)
    ledger.close()
    migrate(tmp_path / "l.db", database)
    moved = Ledger.open(database)
    require_carried(moved, charge)
    moved.close()


def test_the_report_tells_kinds_lines_and_how_far_instalments_are(ledger: Ledger) -> None:
    request = pure("0.1", "marginals")
    named = type(request)(
        *(request.dataset, request.analyst, request.question, request.statement, request.event),
        kind="marginals",
        line="people by age, sex",
    )
    paid(ledger, named)
    charge, fence = in_pieces(ledger)
    ledger.begin(charge, 4, fence=fence)
    ledger.append(charge, 2, b"two", fence=fence)
    ledger.suspend(charge, fence=fence)
    found = summary(ledger, "d")
    told = page(found)
    assert "marginals: people by age, sex" in told
    # places 1, 3 and 4 were begun, and nothing of them is stored
    assert "(4 of 9 instalments begun) (3 begun and not stored)" in told
    assert "may go on" in told and "已暂停" in page(found, "zh")
    newest, older = found.released
    assert (newest.state, newest.places, newest.kind) == (SUSPENDED, (4, 9, 3), "sql")
    assert (older.kind, older.statement, older.places) == ("marginals", "people by age, sex", None)


def test_no_place_is_drawn_twice_whenever_its_worker_is_killed(place: str) -> None:
    # every point is in chaos
    found = [Found(**each) for each in killed(place=place, stride=4)]
    assert len(found) >= 6
    assert [each for each in found if each.wrong] == []
    assert {each.point.partition(": ")[2] for each in found} >= {
        "before put_charge",
        "before append",
    }


@pytest.mark.parametrize("mutant", [each for each in Mutant if each is not Mutant.NONE])
def test_the_witness_catches_a_place_that_is_drawn_twice_or_shown_too_early(
    tmp_path: Path, mutant: Mutant
) -> None:
    (tmp_path / "ledger").mkdir()
    found = [
        Found(**each)
        for each in killed(place=str(tmp_path / "ledger" / "l.db"), mutant=mutant.value)
    ]
    assert found[-1].wrong
