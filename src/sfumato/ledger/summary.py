# SPDX-License-Identifier: Apache-2.0
"""What a ledger has done with a dataset, gathered for people."""

import json
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sfumato.accounting.filter import Charge
from sfumato.ledger.balance import charge_from_json
from sfumato.ledger.books import unknown_account
from sfumato.ledger.spend import Ledger
from sfumato.ledger.standing import Standing, standing_of
from sfumato.ledger.store.base import COMMITTED, FORFEITED, ChargeRow, Rows
from sfumato.ledger.tree import Scope, lineage_of
from sfumato.ledger.verify import Report, check

# How many releases, and how many acts of the owner, a page shows.
_SHOWN = 40
_ENDINGS = ("commit", "share", "forfeit")
_ACTS = ("account", "allocate", "refresh", "freeze", "thaw", "policy", "move", "arrive", "recover")


@dataclass(frozen=True, slots=True)
class Released:
    """A question that was paid for. ``statement`` is its SQL, empty where the answer tells none."""

    at: str
    scope: Scope
    statement: str
    cost: Charge
    state: str


@dataclass(frozen=True, slots=True)
class Act:
    """Something that the owner did."""

    at: str
    kind: str
    account: str
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Summary:
    """One dataset. ``states`` counts charges by account and state; ``released`` and ``acts`` are
    the latest, newest first."""

    contract: Mapping[str, Any]
    standings: tuple[Standing, ...]
    states: Mapping[tuple[str, str], int]
    released: tuple[Released, ...]
    acts: tuple[Act, ...]
    report: Report
    at: str


def summary(ledger: Ledger, dataset: str) -> Summary:
    """What happened to a dataset, and whether the ledger still says so.

    Raises:
        LedgerUnavailable: the ledger has no account of the dataset.
    """
    damage = [f"the store is damaged: {found}" for found in ledger.store.damage()]
    return ledger.store.read(lambda rows: _gathered(rows, Scope(dataset).id, damage))


def _gathered(rows: Rows, root: str, damage: list[str]) -> Summary:
    from_journal = _Latest(root)
    for chain in rows.chains():
        for entry in rows.entries(chain):
            if entry.kind in _ENDINGS or entry.kind in _ACTS:
                from_journal.see(entry.at, entry.kind, json.loads(entry.body), rows)
    accounts = {row.id: row for row in rows.accounts()}
    if root not in accounts:
        raise unknown_account(root)
    mine = [each for each in accounts if each.split("/")[0] == root]
    states: Counter[tuple[str, str]] = Counter()
    for row, _ in rows.history():
        if row.dataset == root:
            states[row.account, row.state] += 1
    released = [_released(rows, at, row) for at, row in reversed(from_journal.charges)]
    return Summary(
        json.loads(accounts[root].contract),
        tuple(standing_of(Scope.of(each).lineage, accounts.get) for each in mine),
        states,
        tuple(released),
        tuple(reversed(from_journal.acts)),
        check(rows, damage),
        from_journal.at,
    )


class _Latest:
    """The latest of a journal, as it goes by."""

    def __init__(self, root: str) -> None:
        self.charges: deque[tuple[str, ChargeRow]] = deque(maxlen=_SHOWN)
        self.acts: deque[Act] = deque(maxlen=_SHOWN)
        self.at = ""
        self._root = root

    def see(self, at: str, kind: str, body: Mapping[str, Any], rows: Rows) -> None:
        if kind in _ENDINGS:
            row = rows.charge(body["charge"])
            if row is not None and row.dataset == self._root:
                self.charges.append((at, row))
                self.at = at
            return
        named = body.get("account") or Scope(body["contract"]["dataset"] if "contract" in body else body["dataset"]).id
        if Scope.of(named).root == self._root:
            self.acts.append(Act(at, kind, named, body))
            self.at = at


def _released(rows: Rows, at: str, row: ChargeRow) -> Released:
    answer = rows.answer(row.question) if row.state == COMMITTED else None
    statement = _statement(answer.body) if answer else ""
    return Released(at, Scope.of(row.account), statement, charge_from_json(json.loads(row.cost)), row.state)


def _statement(body: bytes) -> str:
    """The SQL that an answer tells, if it is one of ours."""
    try:
        form = json.loads(body)
    except ValueError:
        return ""
    return str(form.get("statement", "")) if isinstance(form, dict) else ""


def paid(found: Summary, account: str) -> int:
    """How many charges an account and those below it have paid."""
    return sum(
        count
        for (each, state), count in found.states.items()
        if state in (COMMITTED, FORFEITED) and account in lineage_of(each)
    )
