# SPDX-License-Identifier: Apache-2.0
"""Remembers the last entry of each chain that a server has acknowledged to this process.

A server may lose acknowledged entries: a standby was promoted before it had received everything, or
a disk or virtual machine was restored to an older state. A process that saw such an entry detects
it.
"""

import threading
from collections.abc import Iterable, Mapping
from typing import TypeAlias

# The last entry of each chain: its number and hash.
Ends: TypeAlias = Mapping[str, tuple[int, str]]


class Acknowledged:
    """The last acknowledged journal entry of each chain, in memory; safe to share between threads.

    Guarantees:
        a chain that ends before an acknowledged entry is noticed
        a chain that does not pass through an acknowledged entry is noticed

    >>> known = Acknowledged()
    >>> known.note({"d": (2, "b")})
    >>> known.missing_from({"d": (1, "a")})
    "the chain of 'd' ends before entry 2, which was acknowledged"
    >>> known.missing_from({"d": (3, "c")})
    ''
    """

    def __init__(self) -> None:
        self._ends: dict[str, tuple[int, str]] = {}
        self._change = threading.Lock()

    def note(self, ends: Ends) -> None:
        """Records the last durable journal entries: a number and hash by chain."""
        with self._change:
            for chain, end in ends.items():
                self._ends[chain] = max(end, self._ends.get(chain, end))

    def ends(self) -> dict[str, tuple[int, str]]:
        """Returns the number and hash of the last acknowledged journal entry of each chain."""
        with self._change:
            return dict(self._ends)

    def missing_from(self, ends: Ends) -> str:
        """Returns a description of a chain that has lost an acknowledged entry; "" if none has.

        ``ends`` has the current last entry of each chain.
        """
        with self._change:
            known = {chain: self._ends[chain] for chain in ends if chain in self._ends}
        for chain, (seq, last) in known.items():
            if ends[chain][0] < seq:
                return f"the chain of {chain!r} ends before entry {seq}, which was acknowledged"
            if ends[chain][0] == seq and ends[chain][1] != last:
                return _rewritten(chain, seq)
        return ""


def not_passed(ends: Ends, entries: Iterable[tuple[str, int, str]]) -> str:
    """Returns a description of a chain that lacks the journal entry in ``ends``; "" if none does.

    ``entries`` are the stored entries with these numbers, as (chain, number, hash).
    """
    places = {chain: (seq, last) for chain, seq, last in entries}
    for chain, (seq, last) in ends.items():
        if chain not in places:
            return f"entry {seq} of the chain of {chain!r} was acknowledged, and is not there"
        if places[chain] != (seq, last):
            return _rewritten(chain, seq)
    return ""


def _rewritten(chain: str, seq: int) -> str:
    return f"entry {seq} of the chain of {chain!r} is not the one that was acknowledged"
