# SPDX-License-Identifier: Apache-2.0
"""The append-only chain: each entry carries the hash of all before it."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from sfumato.privacy.event import Json

GENESIS = "0" * 64


@dataclass(frozen=True, slots=True)
class Entry:
    """One act: ``kind`` is account, reserve, execute, commit, forfeit, void or thaw."""

    seq: int
    at: str
    kind: str
    body: str
    previous: str
    hash: str


def chained(seq: int, at: str, kind: str, body: Mapping[str, Json], previous: str) -> Entry:
    """The next entry of a chain that ends in ``previous``.

    >>> chained(1, "2026-01-01T00:00:00Z", "thaw", {}, GENESIS).seq
    1
    """
    text = canonical_json(body)
    return Entry(seq, at, kind, text, previous, _hash(seq, at, kind, text, previous))


def is_intact(entry: Entry, before: Entry | None) -> bool:
    """Whether an entry follows ``before`` and says what it said when it was written.

    Guarantees:
        an edited entry is noticed
        a removed entry is noticed
    """
    seq, previous = (before.seq + 1, before.hash) if before else (1, GENESIS)
    genuine = _hash(entry.seq, entry.at, entry.kind, entry.body, entry.previous)
    return entry.seq == seq and entry.previous == previous and entry.hash == genuine


def canonical_json(body: Json) -> str:
    """The same text for the same content, always."""
    return json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _hash(seq: int, at: str, kind: str, body: str, previous: str) -> str:
    return hashlib.sha256(canonical_json([seq, at, kind, body, previous]).encode()).hexdigest()
