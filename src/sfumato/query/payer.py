# SPDX-License-Identifier: Apache-2.0
"""The interface of what pays for a question, and how an interrupted charge is ended.

``charge`` and ``series`` use both; ``together`` has the other payer.
"""

from contextlib import suppress
from typing import Protocol

from sfumato.errors import LedgerError
from sfumato.ledger.request import Request
from sfumato.ledger.spend import Ledger

# The number of attempts to end a charge.
_ENDINGS = 3


class Payer(Protocol):
    """The interface of what pays for a question: the ledger, or charges reserved beforehand
    (``together``).
    """

    def recall(self, request: Request) -> bytes | None:
        """Returns the stored answer to a request, or None, as ``Ledger.recall`` does."""
        ...

    def reserve(self, request: Request, charge_id: str) -> str:
        """Reserves the cost of a request and returns the id of the charge, as ``Ledger.reserve``
        does.
        """
        ...


def abandon(ledger: Ledger, charge: str, fence: int = 0) -> None:
    """Abandons the charge of a caller that was interrupted, even if a second interrupt comes
    meanwhile.

    ``fence`` is the worker's fence if the charge is answered in pieces. A charge that cannot be
    ended is closed when its lease ends, or when the ledger is opened next.
    """
    for _ in range(_ENDINGS):
        with suppress(LedgerError, KeyboardInterrupt):
            ledger.abandon(charge, fence=fence)
            return
