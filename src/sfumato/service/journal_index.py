# SPDX-License-Identifier: Apache-2.0
"""Which answers an account has: an index of the journal, read forward, only what is new.

A stored question is a reservation and a commit, or a share of another account's answer.
"""

import json
import threading
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any

from sfumato.ledger.request import SQL
from sfumato.ledger.spend import Ledger
from sfumato.ledger.store.base import Rows
from sfumato.privacy.event import Json

# Entries that one transaction reads: a charge on a file waits no longer than that.
_PAGE = 2_000
_ENDS = ("forfeit", "void")
Entries = list[tuple[int, str, dict[str, Any]]]


@dataclass(slots=True)
class _Chain:
    """What was read of a dataset's chain: by account, the entries whose charges have answers."""

    read: int = 0
    answered: dict[str, list[int]] = field(default_factory=dict)
    open: dict[str, tuple[str, int]] = field(default_factory=dict)

    def add(self, page: Entries) -> None:
        for seq, kind, body in page:
            self.read = seq
            charge = str(body.get("charge", ""))
            if kind == "reserve":
                self.open[charge] = str(body["account"]), seq
            elif kind == "share":
                self.answered.setdefault(str(body["account"]), []).append(seq)
            elif kind in _ENDS:
                self.open.pop(charge, None)
            elif kind == "commit" and charge in self.open:
                account, reserved = self.open.pop(charge)
                self.answered.setdefault(account, []).append(reserved)


class JournalIndex:
    """An index of the stored answers of each account, read from the journal of one ledger."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._lock = threading.Lock()
        self._chains: dict[str, _Chain] = {}

    def answers(self, dataset: str, account: str, before: int, limit: int) -> list[Json]:
        """Returns an account's newest stored answers before a journal entry (0: newest of all)."""
        chain = self._up_to_date(dataset)
        numbers = chain.answered.get(account, [])
        chosen = [seq for seq in reversed(numbers) if not before or seq < before][:limit]
        entries = self._ledger.store.read(partial(_entries, dataset, chosen))
        return [_answer(seq, at, body) for seq, at, body in entries]

    def _up_to_date(self, dataset: str) -> _Chain:
        with self._lock:
            chain = self._chains.setdefault(dataset, _Chain())
            while page := self._ledger.store.read(partial(_page, dataset, chain.read)):
                chain.add(page)
            return chain


def _page(chain: str, after: int, rows: Rows) -> Entries:
    page: Entries = []
    for entry in islice(rows.entries(chain, after), _PAGE):
        is_read = entry.kind in ("reserve", "commit", "share", *_ENDS)
        page.append((entry.seq, entry.kind, json.loads(entry.body) if is_read else {}))
    return page


def _entries(chain: str, numbers: list[int], rows: Rows) -> Entries:
    read = [rows.entry(chain, number) for number in numbers]
    return [(entry.seq, entry.at, json.loads(entry.body)) for entry in read if entry is not None]


def _answer(seq: int, at: str, body: dict[str, Any]) -> Json:
    return {
        "seq": seq,
        "at": at,
        "charge": body["charge"],
        "kind": body.get("kind", SQL),
        "line": body.get("line", ""),
    }
