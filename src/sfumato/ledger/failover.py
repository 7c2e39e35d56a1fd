# SPDX-License-Identifier: Apache-2.0
"""Records the owner's consent to charge on another database server than before.

Needed after a failover to a standby, or after a restore of an older state of the server.
"""

from collections.abc import Sequence
from typing import Protocol, cast

from sfumato.errors import WrongUse
from sfumato.ledger.backup import freeze_all, incomplete_copy, lacks
from sfumato.ledger.liveness import require_live
from sfumato.ledger.remembered_head import RememberedHead
from sfumato.ledger.signed_heads import Head
from sfumato.ledger.store.base import Store
from sfumato.ledger.store.open import open_store
from sfumato.metadata.server import is_postgres

_LOST = (
    "kept on a server that may lack charges; whoever thaws it has decided that they count as "
    "nothing"
)


class _OnServer(Store, Protocol):
    """A ledger on a server; ``shortfall`` says why it may lack spending."""

    shortfall: str

    def accept_server(self) -> None: ...


def accept_server(place: str, heads: Sequence[Head], *, accept_loss: bool = False) -> list[str]:
    """Permits charges to a ledger on its present (new) server; returns descriptions of lost
    entries.

    The ledger is compared with ``heads`` kept elsewhere, and with the entries that this user
    remembers on this machine (``remembered_head``).

    Guarantees:
        a server that lacks what a head knows is not accepted
        an accepted loss freezes every dataset first

    Raises:
        LedgerIncomplete: the server lacks entries that a head covers or this user remembers, or
            there is no head, and the loss is not accepted.
        WrongUse: the ledger is not on a server.
    """
    if not is_postgres(place):
        raise WrongUse(
            "The ledger lies in a file, not on a server.",
            remedy="sfumato ledger restore, or recover",
        )
    store = cast(_OnServer, open_store(place, create=False, accept_loss=True))
    try:
        require_live(store)
        remembered = RememberedHead(store.identity)
        forgotten = store.read(remembered.missing_from)
        if not store.shortfall and not heads and not forgotten:
            return []
        lacking = store.read(lambda rows: lacks(rows, heads)) + ([forgotten] if forgotten else [])
        if lacking and not accept_loss:
            raise incomplete_copy(f"The ledger {store.place}", lacking)
        if lacking:
            freeze_all(store, _LOST)
        if forgotten:
            # every dataset is frozen on disk: what was remembered is accepted as lost
            store.read(remembered.accept)
        store.accept_server()
        return lacking
    finally:
        store.close()
