# SPDX-License-Identifier: Apache-2.0
"""Short digests of rows, for ``replay`` and ``verify``: those of millions of charges fit into
memory.
"""

import hashlib

from sfumato.ledger.store.base import AnswerRow, ChargeRow, KeyRow, PartRow

DIGEST = 16
# The stored form of an answer: its digest and the number of its entry.
NUMBER = 8
PLACE = 2 * DIGEST + NUMBER


def charge_digest(
    row: ChargeRow, state: str, reason: str, acknowledged: int, pieces: str = "", failures: int = 0
) -> bytes:
    """Returns the digest of a charge's row in the given state: all columns except its lease."""
    text = (
        f"{row.id}\n{row.chain}\n{row.seq}\n{row.dataset}\n{row.account}\n{row.analyst}\n"
        f"{state}\n{row.question}\n"
        f"{row.statement}\n{row.shared}\n{row.cost}\n{row.source}\n{reason}\n{acknowledged}"
    )
    if pieces or failures:
        text = f"{text}\n{pieces}\n{failures}"
    return hashlib.sha256(text.encode()).digest()[:DIGEST]


def stored_digest(row: ChargeRow) -> bytes:
    """Returns the digest of a charge row as it is stored."""
    return charge_digest(row, row.state, row.reason, row.acknowledged, row.pieces, row.failures)


def answer_digest(row: ChargeRow, answer: AnswerRow | None) -> bytes:
    """Returns the digest of a stored answer's bytes, followed by the number of its journal entry.

    Zeros if there is no answer; empty if the answer's keys are not those of its charge.
    """
    if answer is None:
        return bytes(DIGEST + NUMBER)
    shared = "" if row.source else row.shared
    keys = (answer.charge, answer.question, answer.statement, answer.shared)
    if keys != (row.id, row.question, row.statement, shared):
        return b""
    return hashlib.sha256(answer.body).digest()[:DIGEST] + answer.seq.to_bytes(NUMBER)


def row_digest(row: KeyRow | PartRow) -> bytes:
    """Returns the digest of all columns of a row of idempotency keys or of answer parts."""
    return hashlib.sha256("\n".join(map(str, row)).encode()).digest()[:DIGEST]


def instalment_digest(charge: str, place: int, body: str, entry: tuple[str, int]) -> bytes:
    """Returns the digest of all columns of an instalment (part of an answer stored in several
    steps).
    """
    chain, seq = entry
    return hashlib.sha256(f"{charge}\n{place}\n{body}\n{chain}\n{seq}".encode()).digest()[:DIGEST]
