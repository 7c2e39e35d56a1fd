# SPDX-License-Identifier: Apache-2.0
"""Counts re-reads of answers and refusals in memory, and writes them to the journal together.

A re-read needs no flush. The counts are written with the next charge of the dataset, when the
ledger is closed, or after a thousand events and ten minutes. An entry names at most 256 accounts,
answers and reasons and counts all others together, so that nobody can fill the disk by reading or
by being refused. A crash loses counts that were not written, and nothing that costs budget.
"""

import threading
import time
from collections import Counter
from collections.abc import Iterable
from typing import Any

from sfumato.privacy.event import Json

TALLY, READS, REFUSALS = "tally", "reads", "refusals"
OTHERS = "others"
_MOST_NAMED = 256
_ENOUGH = 1000
_SECONDS = 600.0

# By (account, reads or refusals, charge or kind of error).
Counts = Counter[tuple[str, str, str]]


class Tally:
    """Counts, by dataset, of re-read answers and refused questions not yet written to the journal.

    Safe to share between threads.

    Guarantees:
        an entry has a bounded size
        nothing that was counted is lost without a crash
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[str, Counts] = {}
        self._written: dict[str, float] = {}

    def read(self, dataset: str, account: str, charges: Iterable[str]) -> None:
        """Counts re-reads by an account of the answers that these charges paid for."""
        self._add(dataset, Counter({(account, READS, charge): 1 for charge in charges}))

    def refused(self, dataset: str, account: str, kind: str) -> None:
        """Counts a refused question of an account, by the ``kind`` of refusal."""
        self._add(dataset, Counter({(account, REFUSALS, kind): 1}))

    def is_due(self, dataset: str) -> bool:
        """Whether a dataset's counts should be written to the journal now, not with the next
        charge.
        """
        now = time.monotonic()
        with self._lock:
            since_written = now - self._written.setdefault(dataset, now)
            pending = self._counts.get(dataset, Counter()).total()
        return since_written >= _SECONDS and pending >= _ENOUGH

    def datasets(self) -> list[str]:
        """Returns the names of the datasets with counts not written to the journal yet."""
        with self._lock:
            return list(self._counts)

    def take(self, dataset: str) -> Counts:
        """Removes and returns the counts of a dataset; the caller writes them or gives them back."""
        with self._lock:
            self._written[dataset] = time.monotonic()
            return self._counts.pop(dataset, Counter())

    def give_back(self, dataset: str, counts: Counts) -> None:
        """Adds counts that could not be written to the journal back to those of a dataset."""
        self._add(dataset, counts)

    def _add(self, dataset: str, more: Counts) -> None:
        if not more:
            return
        with self._lock:
            counts = self._counts.setdefault(dataset, Counter())
            for (account, what, about), number in more.items():
                name = (account, what, about)
                if name not in counts and len(counts) >= _MOST_NAMED:
                    name = (dataset, what, OTHERS)
                counts[name] += number


def entry_body(counts: Counts) -> dict[str, Json]:
    """Returns the body of the journal entry with these counts of re-reads and refusals.

    >>> entry_body(Counter({("d/p/ann", "reads", "c1"): 2}))
    {'accounts': {'d/p/ann': {'reads': {'c1': 2}}}}
    """
    accounts: dict[str, Any] = {}
    for (account, what, about), number in sorted(counts.items()):
        of_account = accounts.setdefault(account, {})
        of_account.setdefault(what, {})[about] = number
    return {"accounts": accounts}
