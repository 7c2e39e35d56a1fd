# SPDX-License-Identifier: Apache-2.0
"""Debits the accounts of a path: locks them, changes them, and writes the journal entry.

A charge is debited from every account from its dataset down to its analyst. Each account with a
limit of its own must admit it; the others are bounded by those above. ``spend``, ``closing`` and
``owner`` use it within a transaction of the store. Proof: account_transaction.proof.md.
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache

from sfumato.accounting.budget_gates import NOTHING, Charge
from sfumato.errors import AccountFrozen, BudgetExceeded, ContractMismatch, LedgerUnavailable
from sfumato.ledger.account_path import lineage_of, scope_of
from sfumato.ledger.balance import (
    Balance,
    Held,
    charge_from_text,
    charge_text,
    gates_from_text,
    held_from_text,
    held_text,
)
from sfumato.ledger.binding import moved_to, require_bound
from sfumato.ledger.journal import chained, genesis, iso_time
from sfumato.ledger.names import folded, require_new
from sfumato.ledger.policy import require_listed
from sfumato.ledger.store.base import AccountRow, Rows
from sfumato.privacy.event import Json


class LockedAccounts:
    """The accounts that a charge debits, locked until the transaction ends, and changes to them.

    They are those of a path: the dataset's, the purpose's and the analyst's.

    ``save`` writes the changes to the store. ``ahead`` is passed to ``Rows.lock``.

    Guarantees:
        a charge debits every account of its path
        a charge that one account of its path does not admit is refused
        the accounts move by exactly the cost
        a name that is not listed opens no account of a closed dataset
    """

    def __init__(
        self, rows: Rows, account_id: str, ahead: Callable[[], object] | None = None
    ) -> None:
        self._rows = rows
        self.lineage = lineage_of(account_id)

        def beforehand() -> None:
            rows.movers(self.lineage)
            if ahead is not None:
                ahead()

        stored = rows.lock(self.lineage, beforehand)
        if self.lineage[0] not in stored:
            raise unknown_account(self.lineage[0])
        asked, entries = rows.movers(self.lineage)
        require_bound([stored[account_id] for account_id in asked if account_id in stored], entries)
        self._stored = stored
        self.accounts = {
            account_id: stored.get(account_id) or child(account_id) for account_id in self.lineage
        }
        self._changed: set[str] = set()
        self._moved: set[str] = set()

    @property
    def root(self) -> AccountRow:
        """The stored row of the dataset's account, the first of the path."""
        return self.accounts[self.lineage[0]]

    @property
    def own(self) -> AccountRow:
        """The row of the charged account, the last of the path."""
        return self.accounts[self.lineage[-1]]

    def take(self, ids: Sequence[str]) -> None:
        """Locks further accounts of the same dataset, by their ids."""
        stored = self._rows.lock(ids)
        asked, entries = self._rows.movers([self.lineage[0], *ids])
        require_bound([stored[account_id] for account_id in asked if account_id in stored], entries)
        self._stored = {**self._stored, **stored}
        self.accounts = {
            account_id: stored.get(account_id) or child(account_id) for account_id in ids
        } | self.accounts

    def require_relation(self, relations: Collection[str]) -> None:
        """Refuses a charge whose event holds for neighbour relations other than the dataset's
        (RULES 2).
        """
        relation = _relation(self.root.contract)
        for other in sorted(set(relations) - {relation}):
            raise ContractMismatch(
                f"A cost for {other} neighbours cannot be charged to {self.root.id!r}.",
                allowed=f"what is proved for {relation} neighbours",
                remedy="Convert it first, by name: sf.privacy.Group.",
            )

    def require_open(self) -> None:
        """Raises AccountFrozen if an account of the path (the charged one, or one above it) is
        frozen.
        """
        require_open(self.accounts.values())

    def require_listed(self) -> None:
        """Refuses an account that the owner has not opened, if the dataset is closed."""
        require_listed(self.lineage, self._stored)

    def require(self, cost: Charge, payers: Collection[str]) -> None:
        """Raises BudgetExceeded if an account among ``payers`` (ids) has less budget left than a
        cost.

        The error names the account with the least budget left.
        """
        limited = {
            payer: balance_of(self.accounts[payer])
            for payer in payers
            if self.accounts[payer].gates
        }
        refusing = [
            account_id
            for account_id, balance in limited.items()
            if not balance.gates.admits(balance.taken + cost)
        ]
        if not refusing:
            return
        tightest = min(
            refusing,
            key=lambda account_id: (limited[account_id].left.epsilon, limited[account_id].left.rho),
        )
        try:
            limited[tightest].require(cost)
        except BudgetExceeded as refused:
            if tightest == self.lineage[0]:
                raise
            raise BudgetExceeded(
                f"{refused.problem} (account {tightest!r})",
                allowed=refused.allowed,
                remedy=refused.remedy,
            ) from None

    def hold(self, cost: Charge) -> None:
        """Reserves the cost of a charge on every account of the path.

        A cost known only at single Renyi orders binds each account to these orders for good, even
        if the cost is released.
        """
        bound = Charge(0, 0, 0, cost.orders)
        for row in list(self.accounts.values()):
            if cost.orders is not None:
                row = row._replace(spent=charge_text(charge_from_text(row.spent) + bound))
            self.put(row._replace(held=held_text(held_from_text(row.held).plus(cost))))

    def release(self, cost: Charge) -> None:
        """Releases a reserved cost on every account of the path."""
        for row in list(self.accounts.values()):
            self.put(row._replace(held=held_text(held_from_text(row.held).minus(cost))))

    def settle(self, cost: Charge) -> None:
        """Converts a reserved cost into a spent one on every account of the path."""
        for row in list(self.accounts.values()):
            held, spent = held_from_text(row.held).minus(cost), charge_from_text(row.spent) + cost
            self.put(row._replace(held=held_text(held), spent=charge_text(spent)))

    def spend(self, cost: Charge, payers: Collection[str]) -> None:
        """Adds a cost to the spending of the accounts ``payers`` (ids in the path), permanently."""
        for payer in payers:
            row = self.accounts[payer]
            self.put(row._replace(spent=charge_text(charge_from_text(row.spent) + cost)))

    def record(self, kind: str, body: Mapping[str, Json]) -> int:
        """Appends an entry to the dataset's journal chain; returns the entry's number."""
        seq = self.root.seq + 1
        moved = [self.accounts[account_id] for account_id in sorted(self._moved)]
        after, digests = moved_to(moved, seq)
        self.accounts |= {row.id: row for row in after}
        self._moved = set()
        whole = dict(body)
        if digests:
            whole["moved"] = digests
        root = self.root
        previous = root.head if root.seq else genesis(root.id)
        entry = chained(root.id, seq, iso_time(self._rows.now()), kind, whole, previous)
        self._rows.append(entry)
        self.accounts[root.id] = root._replace(seq=entry.seq, head=entry.hash)
        self._changed.add(root.id)
        return entry.seq

    def put(self, row: AccountRow) -> None:
        """Replaces the row of an account of the dataset; the next ``record`` adds its digest to the
        journal.

        The name of a new account is checked (``names``).
        """
        if row.id not in self._stored and row.id not in self._changed:
            require_new(self._rows, row.id)
        self.accounts[row.id] = row
        self._changed.add(row.id)
        self._moved.add(row.id)

    def save(self) -> None:
        """Writes the changed accounts to the store, parents first."""
        assert not self._moved, "an account moves with the entry that says so"
        for account_id in sorted(self._changed):
            self._rows.put_account(self.accounts[account_id])


def require_open(path: Iterable[AccountRow]) -> None:
    """Raises AccountFrozen if one of these accounts is frozen."""
    for row in path:
        if row.frozen:
            raise AccountFrozen(
                f"The account {row.id!r} is frozen: {row.frozen}.",
                remedy=f"Only the owner can thaw it: {ways_to_thaw(row.id)}",
            )


def ways_to_thaw(account_id: str) -> str:
    """Returns the commands by which the owner unfreezes an account: in the shell, and in Python.

    >>> ways_to_thaw("acs/research")
    "sfumato ledger thaw --purpose 'research', or Ledger.open(path).thaw('acs', purpose='research')"
    """
    scope = scope_of(account_id)
    below = {"purpose": scope.purpose, "analyst": scope.analyst}
    named = {option: name for option, name in below.items() if name}
    shell = "".join(f" --{option} {name!r}" for option, name in named.items())
    python = "".join(f", {option}={name!r}" for option, name in named.items())
    return f"sfumato ledger thaw{shell}, or Ledger.open(path).thaw({scope.dataset!r}{python})"


def child(account_id: str) -> AccountRow:
    """Returns a new row for an account below a dataset's: nothing spent, without a limit of its
    own.
    """
    parent = account_id.rpartition("/")[0]
    nothing = charge_text(NOTHING), held_text(Held())
    return AccountRow(
        account_id, parent, "", "", "", *nothing, "", "", "[]", 0, "", folded(account_id)
    )


def balance_of(row: AccountRow) -> Balance:
    """Returns what an account has spent and reserved, and its caps; it must have a limit of its
    own.
    """
    return Balance(
        gates_from_text(row.gates), charge_from_text(row.spent), held_from_text(row.held).charge
    )


@lru_cache(maxsize=64)
def _relation(contract: str) -> str:
    """The neighbour relation of a stored contract."""
    return str(json.loads(contract)["relation"])


def unknown_account(account_id: str) -> LedgerUnavailable:
    """Returns the error for an account that does not exist. Reading an account never creates it."""
    return LedgerUnavailable(f"The ledger has no account of dataset {account_id!r}.")
