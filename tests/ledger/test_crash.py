# SPDX-License-Identifier: Apache-2.0
"""Processes killed (SIGKILL) while they charge, and what the next opening finds; ``chaos`` does it
for longer.

The outside witness holds every byte that was released before the kill.
"""

from pathlib import Path

import pytest

from sfumato.errors import AccountFrozen
from sfumato.ledger import Ledger, closing, verify
from sfumato.ledger.account_transaction import LockedAccounts
from sfumato.ledger.store.base import COMMITTED, EXECUTING, FORFEITED, VOIDED, ChargeRow, Rows
from tests.contracts.charges import in_state, opened, pure
from tests.contracts.crashes import Mutant, crashed
from tests.contracts.kill_points import WRITES, killed

SEVERAL = {"processes": 4, "threads": 2, "lease_ms": 200, "longest_ms": 400}


def test_a_kill_at_every_few_points_leaves_a_declared_state(tmp_path: Path) -> None:
    (tmp_path / "ledger").mkdir()
    kills = killed(place=str(tmp_path / "ledger" / "l.db"), lease_ms=1, stride=6)
    assert [kill for kill in kills if not kill.sound] == []
    assert len(kills) >= 6


@pytest.mark.long
def test_a_kill_at_every_point_leaves_a_declared_state(place: str) -> None:
    kills = killed(place=place, lease_ms=1)
    assert [kill for kill in kills if not kill.sound] == []
    # every kind of point was met, and every state was left
    assert {kill.point.partition(": ")[2] for kill in kills} >= {
        f"before {name}" for name in WRITES
    }
    assert {kill.state for kill in kills} == {"none", VOIDED, FORFEITED, COMMITTED}
    assert {kill.begun for kill in kills} == {
        "reserve",
        "execute",
        "commit",
        "forfeit",
        "void",
        "share",
        "bind",
    }


@pytest.mark.parametrize("mutant", [Mutant.BEFORE_RESERVE, Mutant.BEFORE_COMMIT])
def test_the_witness_catches_who_answers_too_early_at_some_point(
    tmp_path: Path, mutant: Mutant
) -> None:
    (tmp_path / "ledger").mkdir()
    place = str(tmp_path / "ledger" / "l.db")
    assert [
        kill
        for kill in killed(place=place, lease_ms=1, mutant=mutant.value, lives=["answered"])
        if not kill.sound
    ]


def test_kills_at_random_lose_nothing(place: str) -> None:
    several = SEVERAL if place.startswith("postgresql:") else {}
    rounds = 4 if several else 8
    found = crashed(place=place, rounds=rounds, seed=1, **several)
    assert found.sound, found
    assert found.rounds == rounds
    assert found.released > 0


@pytest.mark.long
@pytest.mark.parametrize("mutant", [Mutant.BEFORE_RESERVE, Mutant.BEFORE_COMMIT])
def test_the_witness_catches_who_answers_too_early_at_random(
    tmp_path: Path, mutant: Mutant
) -> None:
    assert not crashed(place=str(tmp_path / "l.db"), rounds=60, seed=2, mutant=mutant.value).sound


def left_open(path: Path, state: str) -> str:
    """A charge in a state, in a ledger whose process is gone; its id."""
    ledger = opened(path)
    charge = in_state(ledger, state)
    ledger.store.close()
    return charge


def test_three_crashes_freeze_the_account_too(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    for _ in range(3):
        left_open(path, EXECUTING)
    ledger = opened(path)
    with pytest.raises(AccountFrozen, match="after 3 failures"):
        ledger.reserve(pure("0.1", "more"))
    assert ledger.balance("d").spent.epsilon == 3 * 10**11


def forgiving(rows: Rows, locked: LockedAccounts, row: ChargeRow, reason: str) -> None:
    """A broken recovery: what was executing is given back."""
    closing.void(rows, locked, row, reason)


def test_a_recovery_that_gives_back_what_was_read_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "l.db"
    left_open(path, EXECUTING)
    monkeypatch.setattr(closing, "forfeit", forgiving)
    ledger = Ledger.open(path)
    assert verify(ledger).problems != ()
    ledger.close()
