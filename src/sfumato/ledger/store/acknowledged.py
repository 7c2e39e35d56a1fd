# SPDX-License-Identifier: Apache-2.0
"""What a process has been told is kept: the last entry of each chain that a server has acknowledged to it.

A server may come back with less than it has acknowledged: a standby that took its place before it
had everything, a disk or a virtual machine set back. Whoever was told of an entry finds out.
"""

import threading
from collections.abc import Iterable, Mapping
from typing import TypeAlias

# The last entry of each chain: its number and hash.
Ends: TypeAlias = Mapping[str, tuple[int, str]]


class Acknowledged:
    """The last acknowledged entry of each chain. Safe to share between threads.

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
        """Entries that are durable now."""
        with self._change:
            for chain, end in ends.items():
                self._ends[chain] = max(end, self._ends.get(chain, end))

    def ends(self) -> dict[str, tuple[int, str]]:
        """The last acknowledged entry of each chain."""
        with self._change:
            return dict(self._ends)

    def missing_from(self, found: Ends) -> str:
        """Which chain among these ends before what was acknowledged, or with another entry; empty if none does."""
        with self._change:
            known = {chain: self._ends[chain] for chain in found if chain in self._ends}
        for chain, (seq, last) in known.items():
            if found[chain][0] < seq:
                return f"the chain of {chain!r} ends before entry {seq}, which was acknowledged"
            if found[chain][0] == seq and found[chain][1] != last:
                return _rewritten(chain, seq)
        return ""


def not_passed(ends: Ends, entries: Iterable[tuple[str, int, str]]) -> str:
    """Which chain does not pass through its end, given the entries (chain, number, hash) found at these
    places; empty if all do."""
    found = {chain: (seq, last) for chain, seq, last in entries}
    for chain, (seq, last) in ends.items():
        if chain not in found:
            return f"entry {seq} of the chain of {chain!r} was acknowledged, and is not there"
        if found[chain] != (seq, last):
            return _rewritten(chain, seq)
    return ""


def _rewritten(chain: str, seq: int) -> str:
    return f"entry {seq} of the chain of {chain!r} is not the one that was acknowledged"
