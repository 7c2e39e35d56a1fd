# SPDX-License-Identifier: Apache-2.0
"""What the journal implies, entry by entry, and what no ledger would have written."""

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sfumato.ledger import Ledger
from sfumato.ledger.digests import answer_digest, row_digest, stored_digest
from sfumato.ledger.journal import Entry, chained, genesis
from sfumato.ledger.replay import Replay
from sfumato.privacy import Budget
from tests.contracts.charges import charges, entries, in_state, opened, paid, pure


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    ledger = opened(tmp_path / "l.db")
    ledger.share_answers("d", allowed=True)
    paid(ledger, replace(pure("0.1"), shared="any", key="k"))
    ledger.recall(replace(pure("0.1", "r", analyst="bob"), shared="any"))
    in_state(ledger, "forfeited", "s")
    in_state(ledger, "executing", "t")
    return ledger


def replayed(found: list[Entry]) -> Replay:
    """The state after some entries, whose chain nobody checks here."""
    replay = Replay()
    for entry in found:
        replay.apply(entry)
    return replay


def test_the_journal_implies_every_row(ledger: Ledger) -> None:
    replay = replayed(entries(ledger))
    assert replay.problems == []
    assert replay.rows() == ledger.store.read(lambda rows: list(rows.accounts()))
    history = ledger.store.read(lambda rows: list(rows.history()))
    said = [
        ((row.chain, row.seq), stored_digest(row), answer_digest(row, answer))
        for row, answer in history
    ]
    assert list(replay.ended()) == said
    assert replay.keys == b"".join(
        map(row_digest, ledger.store.read(lambda rows: list(rows.keys())))
    )
    assert (replay.charges, replay.answers) == (4, 2)


def edited(
    found: list[Entry], kind: str, change: Callable[[dict[str, Any]], object]
) -> list[Entry]:
    """The entries with the body of the first of a kind changed, each chained anew: a forger at
    work.
    """
    forged: list[Entry] = []
    done = False
    for entry in found:
        body = json.loads(entry.body)
        if entry.kind == kind and not done:
            change(body)
            done = True
        previous = forged[-1].hash if forged else genesis("d")
        forged.append(chained("d", entry.seq, entry.at, entry.kind, body, previous))
    assert done
    return forged


FORGERIES = {
    "a cheaper cost": (
        "reserve",
        lambda body: body["cost"].update(epsilon="1"),
        "does not cost what its event costs",
    ),
    "a cheaper event": (
        "reserve",
        lambda body: body["event"]["noise"].update(scale="1000"),
        "does not cost what its event costs",
    ),
    "a cheaper share": (
        "share",
        lambda body: body["cost"].update(epsilon="1"),
        "does not cost what its event costs",
    ),
    "another answer shared": (
        "share",
        lambda body: body.update(answer="00" * 32),
        "is not the answer of",
    ),
    "a source that is none": (
        "share",
        lambda body: body.update(source="x"),
        "is not the answer of",
    ),
    "another chain's account": ("reserve", lambda body: body.update(account="e/p/a"), None),
    "a charge that nobody reserved": (
        "commit",
        lambda body: body.update(charge="x"),
        "that was not executing",
    ),
    "a smaller limit": (
        "account",
        lambda body: body["gates"].update(epsilon="1"),
        "has spent beyond its gates",
    ),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_what_no_ledger_would_have_written_is_told(ledger: Ledger, forgery: str) -> None:
    kind, change, problem = FORGERIES[forgery]
    forged = edited(entries(ledger), kind, change)
    if problem is None:
        with pytest.raises(KeyError):
            replayed(forged)
        return
    assert any(problem in each for each in replayed(forged).problems)


@pytest.mark.parametrize(
    ("kind", "body", "problem"),
    [
        ("miracle", {}, "is of an unknown kind"),
        ("continue", {"continues": 1, "head": "x"}, "does not continue the chain of format 1"),
        ("execute", {"charge": "x"}, "takes a charge to executing that was not reserved"),
        ("void", {"charge": "x"}, "takes a charge to voided that was not reserved"),
    ],
)
def test_an_act_out_of_place_is_told(
    ledger: Ledger, kind: str, body: dict[str, Any], problem: str
) -> None:
    found = entries(ledger)
    last = found[-1]
    replay = replayed([*found, chained("d", last.seq + 1, last.at, kind, body, last.hash)])
    assert [each for each in replay.problems if problem in each]


def test_an_account_is_opened_once_and_on_its_own_chain(ledger: Ledger) -> None:
    found = entries(ledger)
    assert "where it cannot be opened" in replayed([*found, found[0]]).problems[0]
    assert "where it cannot be opened" in replayed([found[0]._replace(chain="e")]).problems[0]


def test_a_step_on_another_chain_is_told(ledger: Ledger) -> None:
    found = entries(ledger)
    executing = charges(ledger)[-1].id
    moved = chained("e", 1, "now", "forfeit", {"charge": executing, "reason": "x"}, genesis("e"))
    assert "that was not executing" in replayed([*found, moved]).problems[0]


def test_a_charge_reserved_twice_is_told(ledger: Ledger) -> None:
    found = entries(ledger)
    again = next(entry for entry in reversed(found) if entry.kind == "reserve")
    assert "a second time" in replayed([*found, again]).problems[0]


def test_a_cost_is_computed_once_for_equal_events(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[object] = []
    module = sys.modules[Replay.__module__]
    price = module.price
    monkeypatch.setattr(
        module, "price", lambda event, orders: seen.append(event) or price(event, orders)
    )
    replayed(entries(ledger))
    assert len(seen) == 1


def test_a_limit_that_was_lowered_does_not_condemn_what_was_spent_before(tmp_path: Path) -> None:
    ledger = opened(tmp_path / "l.db")
    paid(ledger, pure("0.5"))
    ledger.allocate("d", Budget("0.1"))
    assert replayed(entries(ledger)).problems == []
