# SPDX-License-Identifier: Apache-2.0
"""What a question is charged through, and how a charge ends whose caller was interrupted."""

from contextlib import suppress
from typing import Protocol

from sfumato.errors import LedgerError
from sfumato.ledger.request import Request
from sfumato.ledger.spend import Ledger

# How often it is tried to end a charge.
_ENDINGS = 3


class Payer(Protocol):
    """What a question is charged through: the ledger, or charges that it holds for the question."""

    def recall(self, request: Request) -> bytes | None:
        """As ``Ledger.recall``."""
        ...

    def reserve(self, request: Request, charge_id: str) -> str:
        """As ``Ledger.reserve``."""
        ...


def abandon(ledger: Ledger, charge: str, fence: int = 0) -> None:
    """Ends a charge, also where the caller is interrupted a second time meanwhile.

    ``fence``: of the worker, where the charge is answered in pieces.

    If it cannot be ended it is closed when its lease ends, or at the next opening.
    """
    for _ in range(_ENDINGS):
        with suppress(LedgerError, KeyboardInterrupt):
            ledger.abandon(charge, fence=fence)
            return
