# SPDX-License-Identifier: Apache-2.0
"""A ledger that moves: never two that charge, whenever the move is killed."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from sfumato.errors import LedgerCorrupt, LedgerError, LedgerMoved, LedgerUnavailable, WrongUse
from sfumato.ledger import Ledger, verify
from sfumato.ledger import migrate as room
from sfumato.ledger.migrate import migrate
from sfumato.ledger.store.base import SUCCEEDED_BY, Store
from sfumato.ledger.store.open import open_store
from sfumato.privacy import Budget
from tests.contracts.charges import contract, entries, in_state, opened, paid, pure


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A closed ledger with two datasets, one of them frozen, and a charge that was left open."""
    ledger = opened(tmp_path / "source.db", 3)
    ledger.adopt(contract(Budget(2), "e"), Budget(2))
    paid(ledger, pure("0.1", "a"), b"first")
    paid(ledger, pure("0.2", "b", dataset="e"), b"second")
    ledger.freeze("e", reason="an audit")
    in_state(ledger, "executing", "c")
    ledger.close()
    return tmp_path / "source.db"


def require_moved(source: Path, target: object) -> None:
    """Everything is there, and only there."""
    with pytest.raises(LedgerMoved, match="has moved to"):
        Ledger.open(source)
    ledger = Ledger.open(target)  # type: ignore[arg-type]
    assert (ledger.answer("a"), ledger.answer("b")) == (b"first", b"second")
    assert (ledger.standing("d").frozen, ledger.standing("e").frozen) == ("", "e: an audit")
    assert ledger.balance("d").spent.epsilon == 2 * 10**11
    paid(ledger, pure("0.1", "more"))
    assert verify(ledger).problems == ()
    ledger.close()
    old = Ledger.open(source, read_only=True)
    assert verify(old).problems == ()
    old.close()


def test_a_ledger_moves_with_all_that_it_holds(source: Path, place: str) -> None:
    count = migrate(source, place)
    ledger = Ledger.open(place)
    assert len(entries(ledger)) == count
    assert {each.kind for each in entries(ledger)} >= {"move", "arrive"}
    ledger.close()
    require_moved(source, place)


def test_a_ledger_moves_back_as_a_new_one(source: Path, tmp_path: Path) -> None:
    migrate(source, tmp_path / "there.db")
    migrate(tmp_path / "there.db", tmp_path / "back.db")
    require_moved(tmp_path / "there.db", tmp_path / "back.db")
    with pytest.raises(LedgerMoved):
        migrate(source, tmp_path / "third.db")
    with pytest.raises(LedgerMoved):
        migrate(tmp_path / "there.db", source)


class Killed(BaseException):
    """The process dies here."""


def die(*_: object) -> None:
    raise Killed


def dying(at: int) -> Callable[..., Store]:
    """Stores that die around their write number ``at``: before it if the number is even, else after
    it.
    """
    steps = iter(range(10**6))

    def step() -> None:
        if next(steps) == at:
            raise Killed

    def wrapped(*arguments: object, **options: object) -> Store:
        store = open_store(*arguments, **options)  # type: ignore[arg-type]
        write = store.write

        def writing(transaction: object) -> object:
            step()
            done = write(transaction)  # type: ignore[arg-type, var-annotated]
            step()
            return done

        store.write = writing  # type: ignore[method-assign, assignment]
        return store

    return wrapped


def live(place: Path) -> bool:
    """Whether a ledger with accounts can be opened, and so charges."""
    try:
        ledger = Ledger.open(place, create=False)
    except LedgerError:
        return False
    found = bool(ledger.accounts())
    ledger.close()
    return found


def kill_everywhere(source: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Kills at every write in turn; how many there were."""
    for at in range(100):
        here, there = folder / f"source {at}.db", folder / f"target {at}.db"
        shutil.copy(source, here)
        with monkeypatch.context() as patch:
            patch.setattr(room, "open_store", dying(at))
            try:
                migrate(here, there)
            except Killed:
                pass
            else:
                require_moved(here, there)
                return at
        assert live(here) + (there.exists() and live(there)) <= 1
        if not live(here) and not live(there):
            with pytest.raises(LedgerUnavailable, match="a migration from"):
                Ledger.open(there)
        migrate(here, there)
        require_moved(here, there)
    raise AssertionError("no end")


def test_a_migration_that_was_killed_is_finished_by_the_next(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # before and after: the note in the target, what closes the open charge, the move, the arrival
    assert kill_everywhere(source, tmp_path, monkeypatch) >= 8


def test_a_source_and_its_target_never_both_charge(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mutant: a source that is not told of its successor goes on charging."""
    monkeypatch.setattr(room, "SUCCESSOR", "nobody reads this")
    with pytest.raises((AssertionError, pytest.fail.Exception, LedgerError)):
        kill_everywhere(source, tmp_path, monkeypatch)


def test_a_target_that_holds_another_ledger_leaves_the_source_alive(
    source: Path, tmp_path: Path
) -> None:
    opened(tmp_path / "other.db").close()
    with pytest.raises(WrongUse, match="is not empty"):
        migrate(source, tmp_path / "other.db")
    assert live(source)


def test_a_source_that_does_not_verify_is_not_moved(source: Path, tmp_path: Path) -> None:
    store = open_store(source)
    store._connection.execute("UPDATE answer SET body = x'00' WHERE question = 'a'")  # type: ignore[attr-defined]
    store.close()
    with pytest.raises(LedgerCorrupt, match="so it is not moved"):
        migrate(source, tmp_path / "target.db")
    assert live(source)


def test_an_empty_ledger_moves_too(tmp_path: Path) -> None:
    Ledger.open(tmp_path / "empty.db").close()
    assert migrate(tmp_path / "empty.db", tmp_path / "target.db") == 0
    with pytest.raises(LedgerMoved):
        Ledger.open(tmp_path / "empty.db")


@pytest.mark.parametrize(
    "fate", ["renamed", "replaced by an empty one", "lost before it was filled"]
)
def test_a_source_whose_successor_was_lost_or_renamed_fills_no_second_one(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fate: str
) -> None:
    target = tmp_path / "target.db"
    if fate == "lost before it was filled":
        with monkeypatch.context() as patch, pytest.raises(Killed):
            patch.setattr(room, "_arrive", die)
            migrate(source, target)
    else:
        migrate(source, target)
    for each in list(tmp_path.glob("target.db*")):
        each.rename(tmp_path / each.name.replace("target", "renamed"))
    if fate == "replaced by an empty one":
        Ledger.open(target).close()
    with pytest.raises(LedgerMoved, match="is not that ledger"):
        migrate(source, target)
    assert not live(target)


def test_without_the_successors_identity_two_ledgers_would_charge(
    source: Path, tmp_path: Path
) -> None:
    """The mutant: a source that takes any ledger at the place for its successor."""
    target = tmp_path / "target.db"
    migrate(source, target)
    for each in list(tmp_path.glob("target.db*")):
        each.rename(tmp_path / each.name.replace("target", "renamed"))
    fresh = open_store(target)
    fresh.close()
    store = open_store(source)
    store.write(lambda rows: rows.put_about(SUCCEEDED_BY, fresh.identity))
    store.close()
    migrate(source, target)
    assert live(target)
    assert live(tmp_path / "renamed.db")
