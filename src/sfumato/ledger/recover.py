# SPDX-License-Identifier: Apache-2.0
"""Recovery of a ledger whose newest files were lost.

The remaining ledger is opened, with every dataset frozen until the owner has decided.
"""

from collections.abc import Sequence
from pathlib import Path

from sfumato.errors import LedgerCorrupt, LedgerError, WrongUse
from sfumato.ledger.account_transaction import LockedAccounts
from sfumato.ledger.head_sinks import Sink
from sfumato.ledger.head_watch import behind, replace_heads
from sfumato.ledger.liveness import recovered_reason, require_live
from sfumato.ledger.owner import require_reason
from sfumato.ledger.remembered_head import RememberedHead
from sfumato.ledger.signed_heads import Beside, Key
from sfumato.ledger.store.base import LOSS, SUCCESSOR, UNFINISHED, Rows
from sfumato.ledger.store.sqlite import SQLite
from sfumato.ledger.verify import check


def recover(place: str | Path, *, reason: str, sinks: Sequence[Sink] = (), key: Key = None) -> str:
    """Opens a ledger file that may lack spending, and freezes its datasets; returns why it may.

    Everything unknown counts as spent: an entry of the journal freezes every dataset until the
    owner unfreezes it. By doing so the owner accepts that more may have been spent than the ledger
    says; lower the limit first (``allocate``) by what may be missing. ``sinks`` (``head_sinks``)
    are compared too, and get the new head; ``key`` signs it (``Ledger.open``).

    Guarantees:
        a recovered ledger charges nothing before the owner has decided

    Raises:
        WrongUse: nothing is missing, or no reason is given.
        LedgerCorrupt: the remaining files are damaged.
        LedgerError: the ledger cannot be opened.
    """
    require_reason(reason, needed=True)
    store = SQLite(place, create=False, accept_loss=True)
    try:
        beside = Beside(store.place, key)
        loss, unfinished, successor = store.read(
            lambda rows: [
                rows.about(property_name) for property_name in (LOSS, UNFINISHED, SUCCESSOR)
            ]
        )
        if unfinished or successor:
            require_live(store)
        remembered = RememberedHead(store.identity)
        forgotten = store.read(remembered.missing_from)
        why = (
            loss
            or _behind(beside, store)
            or forgotten
            or store.read(lambda rows: behind(sinks, rows))
        )
        if not why:
            raise WrongUse(f"The ledger {store.place!r} lacks nothing.", remedy="Open it.")
        store.write(lambda rows: _freeze(rows, why, reason))
        if forgotten:
            # every dataset is frozen on disk: what was remembered is accepted as lost
            store.read(remembered.accept)
        beside.keep(store)
        head = beside.head()
        if head is not None:
            replace_heads(sinks, head)
        return why
    finally:
        store.close()


def _behind(beside: Beside, store: SQLite) -> str:
    """Describes what the ledger lacks of the head beside its file."""
    try:
        beside.require_not_older(store)
    except LedgerError as error:
        return error.problem
    return ""


def _freeze(rows: Rows, why: str, reason: str) -> None:
    problems = list(check(rows, []).problems)
    if problems:
        raise LedgerCorrupt(
            "What is left of the ledger is damaged besides:\n" + "\n".join(problems[:50]),
            remedy="Restore the newest backup that verifies.",
        )
    for root in [row.id for row in rows.accounts() if not row.parent]:
        locked = LockedAccounts(rows, root)
        frozen = recovered_reason(reason)
        locked.put(locked.root._replace(frozen=frozen))
        locked.record("recover", {"account": root, "reason": frozen, "missing": why})
        locked.save()
    rows.put_about(LOSS, "")
