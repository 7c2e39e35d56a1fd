# SPDX-License-Identifier: Apache-2.0
"""The status of an account: its limit, what is spent, and what it can still spend.

Owners and analysts see it (``Ledger.standing``, the report, the command line). What an account can
still spend also depends on the accounts above it.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from sfumato.accounting.budget_gates import Charge, Left
from sfumato.ledger.account_path import Scope, scope_of
from sfumato.ledger.account_transaction import child
from sfumato.ledger.balance import (
    Balance,
    charge_from_json,
    charge_from_text,
    gates_from_text,
    held_from_text,
)
from sfumato.ledger.policy import SHARING
from sfumato.ledger.store.base import AccountRow
from sfumato.privacy.budget import Budget


@dataclass(frozen=True, slots=True)
class Period:
    """A past budget period of an account: its limit (None if it had no limit), and the total spent.

    >>> Period(Budget(1), Charge(10**12, 0, 0)).limit
    Budget(epsilon=1, delta=0)
    """

    limit: Budget | None
    spent: Charge


@dataclass(frozen=True, slots=True)
class Standing:
    """The budget status of one account of the ledger: its limit, spending, and what is left.

    ``spent`` and ``reserved`` are sums of charges, in multiples of 1e-12 (delta: of 1e-24).
    ``left`` is the largest next charge that every account of the path admits. A frozen account
    (``frozen`` has the reason) admits none, whatever is left. ``sharing``: the dataset's answers
    are shared. ``earlier``: the periods before the last refresh, oldest first.

    >>> import tempfile
    >>> from sfumato.ledger import Ledger
    >>> from sfumato.metadata.contract import Contract
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger.open(folder.name + "/ledger.db")
    >>> ledger.adopt(Contract("tiny", "add-remove", {"people": "id"}, "1", "0"), Budget(1))
    >>> ledger.allocate("tiny", Budget("0.25"), purpose="research")
    >>> research = ledger.standing("tiny", "research")
    >>> research.limit, str(research.left.epsilon), research.frozen
    (Budget(epsilon=0.25, delta=0), '1/4', '')
    >>> ledger.close()
    >>> folder.cleanup()
    """

    scope: Scope
    limit: Budget | None
    spent: Charge
    reserved: Charge
    left: Left
    frozen: str
    sharing: bool
    earlier: tuple[Period, ...]

    @property
    def lifetime(self) -> tuple[Fraction, Fraction] | None:
        """The sum of the limits of all periods: a bound on the total privacy loss of the rows."""
        epsilon = delta = Fraction(0)
        for limit in [*(period.limit for period in self.earlier), self.limit]:
            if limit is None:
                return None
            epsilon += limit.epsilon
            delta += limit.delta
        return epsilon, delta


def standing_of(lineage: Sequence[str], find: Callable[[str], AccountRow | None]) -> Standing:
    """Returns the budget status of the last account of a path, whose row may not be stored yet.

    ``lineage`` has the account ids of the path, the dataset's first. ``find`` reads a stored
    account by its id, or returns None; the dataset's account must exist.
    """
    rows = [find(account_id) or child(account_id) for account_id in lineage]
    own = rows[-1]
    remaining = _left_by_all(tuple((row.gates, row.spent, row.held) for row in rows if row.gates))
    return Standing(
        scope_of(own.id),
        limit_of(own.limit),
        charge_from_text(own.spent),
        _reserved(own.held),
        remaining,
        next((f"{row.id}: {row.frozen}" for row in rows if row.frozen), ""),
        _shares(rows[0].policy),
        _periods(own.earlier) if own.earlier != "[]" else (),
    )


# Cached, since most accounts have the same limits and many have spent nothing yet.
@lru_cache(maxsize=4096)
def _left_by_all(balances: tuple[tuple[str, str, str], ...]) -> Left:
    """The largest charge that the gates of every account of a path admit."""
    lefts = [_left(*balance) for balance in balances]
    return Left(
        min(left.epsilon for left in lefts),
        min(left.rho for left in lefts),
        min(left.delta for left in lefts),
    )


@lru_cache(maxsize=4096)
def _left(gates: str, spent: str, reserved: str) -> Left:
    """The largest charge that the gates of one account admit."""
    return Balance(
        gates_from_text(gates), charge_from_text(spent), held_from_text(reserved).charge
    ).left


@lru_cache(maxsize=4096)
def _reserved(text: str) -> Charge:
    """The reserved charges of an account, as one charge."""
    return held_from_text(text).charge


@lru_cache(maxsize=64)
def _shares(policy: str) -> bool:
    return bool(json.loads(policy or "{}").get(SHARING))


def _periods(earlier: str) -> tuple[Period, ...]:
    return tuple(
        Period(limit_of(json.dumps(load["limit"])), charge_from_json(load["spent"]))
        for load in json.loads(earlier)
    )


@lru_cache(maxsize=4096)
def limit_of(text: str) -> Budget | None:
    """Parses the stored string of a limit; returns None for an empty string, which means no limit."""
    form = json.loads(text) if text else None
    return Budget(form["epsilon"], form["delta"]) if form else None
