# SPDX-License-Identifier: Apache-2.0
"""Closes the charges of open ledgers when the process ends in order, for example after a signal.

A process that is killed runs nothing of this: at the next opening of the ledger its charges count
as failures.
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
    """Registers ``ledger.interrupt`` to run at the end of the process, if the ledger still exists.

    Call it after the ledger's store was opened: exit functions run in reverse order, so the ledger
    is interrupted before its store is closed.
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
