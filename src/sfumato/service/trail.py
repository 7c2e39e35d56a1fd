# SPDX-License-Identifier: Apache-2.0
"""The trail: who signed in, whom the owner added, what was refused; a hash-chained table.

It has no statement, literal, token or value: questions and costs are in the journal of the ledger.
"""

import hashlib
import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime

from sfumato.ledger.journal import canonical_json
from sfumato.privacy.event import Json
from sfumato.service.state import State

_LOG = logging.getLogger("sfumato.service")
MOST = 1000


class Trail:
    """The audit trail of a service (sign-ins, people, refusals): a hash-chained table."""

    def __init__(self, state: State, clock: Callable[[], float] = time.time) -> None:
        self._state = state
        self._clock = clock

    def record(self, kind: str, who: str, about: str = "") -> None:
        """Appends an entry to the audit trail: ``kind``, the actor ``who``, and an explanation.

        Within a transaction of the state file it is durable together with that transaction.
        """
        with self._state.changing():
            last = self._state.rows("SELECT seq, hash FROM trail ORDER BY seq DESC LIMIT 1")
            seq, before = last[0] if last else (0, "")
            at = int(self._clock())
            entry = (seq + 1, at, kind, who, about)
            self._state.rows(
                "INSERT INTO trail VALUES (?, ?, ?, ?, ?, ?)", (*entry, _hash(before, *entry))
            )
        _LOG.info("%s %s %s", kind, who, about)

    def entries(self, after: int = 0, limit: int = MOST) -> list[dict[str, Json]]:
        """Returns at most 1,000 entries of the audit trail after an entry number, oldest first."""
        rows = self._state.rows(
            "SELECT seq, at, kind, who, about, hash FROM trail WHERE seq > ? ORDER BY seq LIMIT ?",
            (after, min(limit, MOST)),
        )
        return [
            {"seq": seq, "at": moment(at), "kind": kind, "who": who, "about": about, "hash": digest}
            for seq, at, kind, who, about, digest in rows
        ]

    def first_broken(self) -> int | None:
        """Returns the number of the first entry that breaks the hash chain; None if none does."""
        before, expected = "", 1
        while True:
            rows = self._state.rows(
                "SELECT seq, at, kind, who, about, hash FROM trail WHERE seq >= ? "
                "ORDER BY seq LIMIT ?",
                (expected, MOST),
            )
            if not rows:
                return None
            for seq, at, kind, who, about, digest in rows:
                if seq != expected or digest != _hash(before, seq, at, kind, who, about):
                    return int(seq)
                before, expected = digest, expected + 1


def moment(seconds: int) -> str:
    """Returns a time, given in seconds since 1970, as text in ISO 8601 (UTC).

    >>> moment(0)
    '1970-01-01T00:00:00Z'
    """
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _hash(before: str, seq: int, at: int, kind: str, who: str, about: str) -> str:
    form = canonical_json([before, seq, at, kind, who, about])
    return hashlib.sha256(form.encode()).hexdigest()
