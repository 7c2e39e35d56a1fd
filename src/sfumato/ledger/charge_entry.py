# SPDX-License-Identifier: Apache-2.0
"""Reads the journal entry that opens a charge, for ``replay`` and ``archive``."""

from typing import Any

from sfumato.ledger.account_path import UNSTATED, Scope, lineage_of, scope_of
from sfumato.ledger.journal import LEGACY, Entry
from sfumato.ledger.store.base import RESERVED, ChargeRow


def opened_row(entry: Entry, body: dict[str, Any], cost: str) -> ChargeRow:
    """Returns the row of the charge that a ``reserve`` or ``share`` entry of the journal creates.

    ``body`` is the parsed body of the entry, ``cost`` the stored string of the cost.
    """
    account_id = (
        body["account"]
        if "account" in body
        else Scope(body["dataset"], UNSTATED, body["analyst"]).id
    )
    scope = scope_of(account_id)
    return ChargeRow(
        *(
            body["charge"],
            entry.chain,
            entry.seq,
            lineage_of(account_id)[0],
            account_id,
            scope.analyst,
            RESERVED,
        ),
        *(
            body["question"],
            body["statement"],
            body.get("shared", ""),
            cost,
            body.get("source", ""),
            "",
            0,
        ),
    )


def named(entry: Entry) -> str:
    """Returns a description of a journal entry (its number and chain) for messages."""
    return (
        f"entry {entry.seq}" if entry.chain == LEGACY else f"entry {entry.seq} of {entry.chain!r}"
    )
