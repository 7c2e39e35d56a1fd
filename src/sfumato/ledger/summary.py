# SPDX-License-Identifier: Apache-2.0
"""Collects the history of a dataset in a ledger, for the report page (``report``)."""

import json
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sfumato.accounting.budget_gates import Charge
from sfumato.ledger.account_path import Scope, lineage_of
from sfumato.ledger.account_status import Standing, standing_of
from sfumato.ledger.account_transaction import unknown_account
from sfumato.ledger.balance import balance_admits, charge_from_json
from sfumato.ledger.pieces import Pieces
from sfumato.ledger.request import SQL
from sfumato.ledger.spend import Ledger
from sfumato.ledger.store.base import COMMITTED, FORFEITED, SUSPENDED, AccountRow, ChargeRow, Rows
from sfumato.ledger.stored_answers import sharers
from sfumato.ledger.tally import READS, REFUSALS, TALLY
from sfumato.ledger.verify import Report, check
from sfumato.privacy.budget import Budget

# The number of answers, and of acts of the owner, that a page shows.
_SHOWN = 40
_ACCOUNTS_SHOWN = 400
_ENDINGS = ("commit", "share", "forfeit", "suspend")
_ACTS = ("account", "allocate", "refresh", "freeze", "thaw", "policy", "move", "arrive", "recover")


@dataclass(frozen=True, slots=True)
class Released:
    """A question of a dataset's history that was paid for: its account, statement and cost.

    ``statement`` is its SQL or a line that describes it, empty if there is none.

    ``kind`` is the kind of question. ``places``: for an answer in instalments, how many were begun,
    how many were paid for, and how many were begun and not stored. ``shared``: an existing answer
    was given to accounts that had not paid for it.
    """

    at: str
    scope: Scope
    statement: str
    cost: Charge
    state: str
    shared: bool = False
    kind: str = SQL
    places: tuple[int, int, int] | None = None


@dataclass(frozen=True, slots=True)
class Act:
    """A command of the owner in a dataset's history, from its journal entry."""

    at: str
    kind: str
    account: str
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Summary:
    """The history of one dataset for a report: its accounts, charges, releases and owner's
    commands.

    ``standings`` are the accounts that a page shows, ``accounts`` the number of all.

    ``paid`` counts the charges that each account paid in all its periods; re-reading an answer
    costs it nothing. ``charges`` are all charges of the dataset, ``shared`` those for existing
    answers. ``rereads`` counts re-reads by account, and ``refusals`` refused questions by account
    and reason, both as far as the journal has them. ``bound`` is the guarantee by the limits over
    the lifetime of the rows. ``released`` and ``acts`` are the latest, newest first.
    """

    contract: Mapping[str, Any]
    standings: tuple[Standing, ...]
    accounts: int
    paid: Mapping[str, int]
    charges: int
    shared: int
    bound: Budget
    released: tuple[Released, ...]
    acts: tuple[Act, ...]
    report: Report
    at: str
    rereads: Mapping[str, int] = field(default_factory=dict)
    refusals: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


def summary(ledger: Ledger, dataset: str) -> Summary:
    """Returns the history of one dataset, with the result of verifying the ledger.

    Raises:
        LedgerUnavailable: the ledger has no account of the dataset.
    """
    damage = [f"the store is damaged: {problem}" for problem in ledger.store.damage()]
    return ledger.store.read(lambda rows: _gathered(rows, Scope(dataset).id, damage))


def asked_statements(ledger: Ledger, dataset: str) -> list[str]:
    """Returns the SQL statements for which a dataset was charged, each once, the oldest first."""

    def statements_in(rows: Rows) -> list[str]:
        root = Scope(dataset).id
        mine = [row for row, _ in rows.history() if row.dataset == root and row.state == COMMITTED]
        released = [_released(rows, "", row) for row in mine]
        texts = [each.statement for each in released if each.kind == SQL and each.statement]
        return list(dict.fromkeys(texts))

    return ledger.store.read(statements_in)


def _gathered(rows: Rows, root: str, damage: list[str]) -> Summary:
    from_journal = _Latest(root)
    for chain in rows.chains():
        for entry in rows.entries(chain):
            if entry.kind in _ENDINGS or entry.kind in _ACTS:
                from_journal.see(entry.at, entry.kind, json.loads(entry.body), rows)
            elif entry.kind == TALLY and chain == root:
                from_journal.count(json.loads(entry.body))
    accounts = {row.id: row for row in rows.accounts() if lineage_of(row.id)[0] == root}
    if root not in accounts:
        raise unknown_account(root)
    paid, charges, shared = _paid(rows, root)
    # accounts without a row of their own are listed if an account below them is stored
    mine = sorted({above for account in accounts for above in lineage_of(account)})
    return Summary(
        json.loads(accounts[root].contract),
        tuple(
            standing_of(lineage_of(account_id), accounts.get) for account_id in _shown(mine, paid)
        ),
        len(mine),
        paid,
        charges,
        shared,
        from_journal.bound(accounts[root]),
        tuple(_released(rows, at, row) for at, row in reversed(from_journal.charges)),
        tuple(reversed(from_journal.acts)),
        check(rows, damage),
        from_journal.at,
        from_journal.rereads,
        from_journal.refusals,
    )


def _paid(rows: Rows, root: str) -> tuple[Counter[str], int, int]:
    """The charges that each account has paid, the number of charges, and that of shared answers."""
    paid, charges, shared = Counter[str](), 0, 0
    for row, _ in rows.history():
        if row.dataset != root or row.state not in (COMMITTED, FORFEITED):
            continue
        charges += 1
        shared += bool(row.source)
        source = rows.charge(row.source) if row.source else None
        if source is None:
            paid.update(lineage_of(row.account))
        else:
            paid.update(sharers(row.account, source.account))
    return paid, charges, shared


def _shown(accounts: Sequence[str], paid: Mapping[str, int]) -> list[str]:
    """The accounts that fit on a page: the dataset, its purposes and the analysts who paid most."""

    def rank(account_id: str) -> tuple[bool, int, str]:
        is_analyst = account_id.count("/") > 1
        return is_analyst, -paid.get(account_id, 0), account_id

    first = sorted(accounts, key=rank)[:_ACCOUNTS_SHOWN]
    return sorted({above for account_id in first for above in lineage_of(account_id)})


class _Latest:
    """Collects the latest entries of a journal while it is read."""

    def __init__(self, root: str) -> None:
        self.charges: deque[tuple[str, ChargeRow]] = deque(maxlen=_SHOWN)
        self.acts: deque[Act] = deque(maxlen=_SHOWN)
        self.at = ""
        self.rereads = Counter[str]()
        self.refusals: dict[str, Counter[str]] = {}
        self._root = root
        # the limits of the dataset, by period
        self._limits: list[list[Budget]] = [[]]

    def see(self, at: str, kind: str, body: Mapping[str, Any], rows: Rows) -> None:
        """Adds the end of a charge, or an act of the owner."""
        if kind in _ENDINGS:
            row = rows.charge(body["charge"])
            is_over = row is not None and (kind != "suspend" or row.state == SUSPENDED)
            if row is not None and is_over and row.dataset == self._root:
                self._see_charge(at, row)
            return
        account_id = body.get("account")
        if not account_id:
            account_id = Scope(body.get("contract", body)["dataset"]).id
        if lineage_of(account_id)[0] == self._root:
            self.acts.append(Act(at, kind, account_id, body))
            self.at = at
        limit = body.get("limit") or body.get("contract")
        if account_id == self._root and limit:
            if kind == "refresh":
                self._limits.append([])
            self._limits[-1].append(Budget(limit["epsilon"], limit["delta"]))

    def _see_charge(self, at: str, row: ChargeRow) -> None:
        if row.pieces:
            # it may be listed already, as suspended
            others = [charge for charge in self.charges if charge[1].id != row.id]
            self.charges = deque(others, maxlen=_SHOWN)
        self.charges.append((at, row))
        self.at = at

    def count(self, body: Mapping[str, Any]) -> None:
        """Adds the counts of re-reads and refusals of an entry."""
        for account, counted in body["accounts"].items():
            if READS in counted:
                self.rereads[account] += sum(counted[READS].values())
            if REFUSALS in counted:
                self.refusals.setdefault(account, Counter()).update(counted[REFUSALS])

    def bound(self, root: AccountRow) -> Budget:
        """The guarantee over the lifetime of the rows: the sum of the limits of all periods.

        A closed period counts with its last limit. In the present one, lowering a limit below what
        is spent refunds nothing, so the largest limit that was in force counts.
        """
        *closed, present = self._limits
        if balance_admits(root.gates, root.spent, root.held):
            present = present[-1:]
        bounds = [limits[-1] for limits in closed]
        epsilon = max(limit.epsilon for limit in present)
        delta = max(limit.delta for limit in present)
        bounds.append(Budget(epsilon, delta))
        return Budget(sum(limit.epsilon for limit in bounds), sum(limit.delta for limit in bounds))


def _released(rows: Rows, at: str, row: ChargeRow) -> Released:
    body: dict[str, Any] = {}
    opened = rows.entry(row.chain, row.seq)
    if opened is not None:
        body = json.loads(opened.body)
    statement = body.get("line", "")
    if not statement and row.state == COMMITTED:
        answer = rows.answer(row.question)
        statement = _statement(answer.body) if answer else ""
    places: tuple[int, int, int] | None = None
    if row.pieces:
        pieces = Pieces.from_text(row.pieces)
        lost = pieces.begun - rows.stored_instalments(row.id)
        places = pieces.begun, pieces.places, lost
    return Released(
        at,
        Scope.of(row.account),
        str(statement),
        charge_from_json(json.loads(row.cost)),
        row.state,
        shared=bool(row.source),
        kind=str(body.get("kind", SQL)),
        places=places,
    )


def _statement(body: bytes) -> str:
    """The SQL in an answer, if it is one of sfumato's."""
    try:
        form = json.loads(body)
    except ValueError:
        return ""
    if not isinstance(form, dict):
        return ""
    return str(form.get("statement", ""))
