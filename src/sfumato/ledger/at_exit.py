# SPDX-License-Identifier: Apache-2.0
"""Interrupts the open ledgers when their process ends in order, after a signal that it caught, say.

A process that is killed does not come here: at the next opening its charges are failures.
"""

import atexit
import weakref
from contextlib import suppress
from functools import cache
from typing import Protocol

from sfumato.errors import LedgerError


class _Interruptible(Protocol):
    """A ledger with charges in progress."""

    def interrupt(self) -> None:
        """Closes them as interrupted."""
        ...


_OPEN: "weakref.WeakSet[_Interruptible]" = weakref.WeakSet()


def interrupt_at_exit(ledger: _Interruptible) -> None:
    """Has a ledger interrupted at the end of the process, if it still exists.

    Call it after its store was opened, so that it is interrupted before the store closes itself.
    """
    _OPEN.add(ledger)
    _register()


@cache
def _register() -> None:
    atexit.register(_interrupt_all)


def _interrupt_all() -> None:
    """Interrupts every ledger that is still open."""
    for ledger in list(_OPEN):
        # closed before, or of the parent of a fork
        with suppress(LedgerError):
            ledger.interrupt()
