# SPDX-License-Identifier: Apache-2.0
"""What the entries of the journal say of a charge: how it was opened, and how far it has come."""

from dataclasses import dataclass
from typing import Any

from sfumato.accounting.filter import Charge
from sfumato.ledger.digests import charge_digest
from sfumato.ledger.journal import LEGACY, Entry
from sfumato.ledger.pieces import gone_on
from sfumato.ledger.store.base import COUNTED, EXECUTING, RESERVED, SUSPENDED, ChargeRow
from sfumato.ledger.tree import UNSTATED, Scope, lineage_of, scope_of

# the steps of a charge that is answered in instalments, each from a state to a state
GOING_ON = {
    "begin": (EXECUTING, EXECUTING),
    "append": (EXECUTING, EXECUTING),
    "suspend": (EXECUTING, SUSPENDED),
    "resume": (SUSPENDED, EXECUTING),
}


@dataclass(slots=True)
class Open:
    """A charge, as it was opened, and how far it has come."""

    place: int
    row: ChargeRow
    cost: Charge
    lineage: tuple[str, ...]
    state: str = RESERVED
    reason: str = ""
    pieces: str = ""
    failures: int = 0

    def digest(self, acknowledged: int = 0) -> bytes:
        """Of the row that must be stored."""
        return charge_digest(self.row, self.state, self.reason, acknowledged, self.pieces, self.failures)

    def go_on(self, kind: str, body: dict[str, Any]) -> bool:
        """A charge in instalments goes on; whether a ledger would have done it."""
        before, after = GOING_ON[kind]
        if self.state != before or not self.pieces:
            return False
        self.pieces = gone_on(self.pieces, kind, body)
        self.state, self.reason = after, body.get("reason", "")
        if kind == "suspend":
            self.failures += self.reason in COUNTED
        return True


def opened_row(entry: Entry, body: dict[str, Any], cost: str) -> ChargeRow:
    """The charge that a ``reserve`` or ``share`` entry opens, whose cost is given as text."""
    account_id = body["account"] if "account" in body else Scope(body["dataset"], UNSTATED, body["analyst"]).id
    scope = scope_of(account_id)
    return ChargeRow(
        *(body["charge"], entry.chain, entry.seq, lineage_of(account_id)[0], account_id, scope.analyst, RESERVED),
        *(body["question"], body["statement"], body.get("shared", ""), cost, body.get("source", ""), "", 0),
    )


def named(entry: Entry) -> str:
    """An entry, for a message."""
    return f"entry {entry.seq}" if entry.chain == LEGACY else f"entry {entry.seq} of {entry.chain!r}"
