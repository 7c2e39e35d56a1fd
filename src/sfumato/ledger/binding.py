# SPDX-License-Identifier: Apache-2.0
"""Binds every account to the journal entry that last changed it, and every answer to its own entry.

An entry names each account that it changed, with the number of the entry that changed it before and
the digest of its new row; the row holds the number of the entry. So whoever edits an account's row
must rewrite the chain from that entry on, which a signed head detects. The same holds for an
answer, whose digest is in the entry that committed it.
"""

import hashlib
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any

from sfumato.errors import LedgerCorrupt
from sfumato.ledger.account_path import lineage_of
from sfumato.ledger.journal import Entry, chained, is_genuine, iso_time, read_json
from sfumato.ledger.store.base import AccountRow, AnswerRow, InstalmentRow, KeyRow, Rows
from sfumato.privacy.event import Json

# Without the end of the chain, which also changes with entries that change no account.
_BOUND = tuple(name for name in AccountRow._fields if name not in ("seq", "head"))
_bound = attrgetter(*_BOUND)
_DIGEST = 32
# The number of accounts that one entry of kind "bind" names; checking one account reads them all.
_TOGETHER = 100
_REMEDY = (
    "Run 'sfumato ledger verify', find out who edited it, and restore the newest copy that "
    "verifies."
)


def account_digest(row: AccountRow) -> str:
    """Returns the digest of an account's row, without the columns ``seq`` and ``head`` (chain
    end).
    """
    return hashlib.sha256("\n".join(map(str, _bound(row))).encode()).hexdigest()[:_DIGEST]


def accounts_digest(digests: Mapping[str, str]) -> str:
    """Returns one digest of all accounts, given the digest of each by its id."""
    text = "\n".join(f"{account_id} {digest}" for account_id, digest in sorted(digests.items()))
    return hashlib.sha256(text.encode()).hexdigest()


def moved_to(rows: Iterable[AccountRow], seq: int) -> tuple[list[AccountRow], dict[str, Json]]:
    """Returns changed account rows, bound to journal entry ``seq``, and their part of that entry.

    That part has, for each account, the number of the entry that changed it before, and the digest
    of its new row. By it an edit of the row outside the ledger is noticed.
    """
    after = [row._replace(moved=seq) for row in rows]
    said: dict[str, Json] = {
        new.id: [old.moved, account_digest(new)] for old, new in zip(rows, after, strict=True)
    }
    return after, said


def require_bound(rows: Iterable[AccountRow], entries: Sequence[Entry]) -> None:
    """Refuses account rows whose digests are not those in the journal entries that last changed
    them.

    ``entries`` has these entries, and the last entry of the chain.

    Guarantees:
        an edited account takes no charge
        an account in front of a chain that was cut takes no charge

    Raises:
        LedgerCorrupt: a row differs; the error names the account.
    """
    genuine = {entry.seq: entry for entry in entries if is_genuine(entry)}
    for row in rows:
        digest = _digest_in(genuine.get(row.moved), row.id)
        # the dataset's account also has the end of the chain
        is_end = bool(row.parent) or (row.seq in genuine and (row.seq, row.head) == _end(entries))
        if digest != account_digest(row) or not is_end:
            raise LedgerCorrupt(
                f"The account {row.id!r} is not as the entry that last moved it left it: it was "
                "edited.",
                remedy=_REMEDY,
            )


def require_answer(rows: Rows, answer: AnswerRow | None) -> AnswerRow | None:
    """Returns a stored answer, after checking its bytes against the digest in the journal.

    Guarantees:
        a forged answer is not given
        an answer to another question is not given

    Raises:
        LedgerCorrupt: the bytes or the keys differ from the committed ones.
    """
    if answer is None:
        return None
    proof = rows.proof(answer.charge)
    if proof is None or not all(map(is_genuine, proof)) or not _tells(*proof, answer):
        raise LedgerCorrupt(
            f"The stored answer of charge {answer.charge} is not the one that was committed: it "
            "was edited.",
            remedy=_REMEDY,
        )
    return answer


def require_key(rows: Rows, key: KeyRow) -> None:
    """Refuses an idempotency key whose row differs from the journal entry that stored it.

    Guarantees:
        a forged key is not taken

    Raises:
        LedgerCorrupt: the row differs from the entry.
    """
    entry = rows.entry(key.chain, key.seq)
    body: dict[str, Any] = {}
    if entry is not None and is_genuine(entry):
        body = read_json(entry.body)
    bound = tuple(body.get(name) for name in ("account", "key", "request", "charge"))
    if bound != (key.account, key.key, key.request, key.charge):
        raise LedgerCorrupt(
            f"The idempotency key {key.key!r} is not as it was bound: it was edited.",
            remedy=_REMEDY,
        )


def is_instalment_of(entry: Entry, row: InstalmentRow) -> bool:
    """Whether a journal entry has its correct hash and contains the digest of exactly this
    instalment.
    """
    if entry.kind != "append" or not is_genuine(entry):
        return False
    body = read_json(entry.body)
    digest = hashlib.sha256(row.body).hexdigest()
    stored = (body.get("charge"), body.get("place"), body.get("instalment"))
    return stored == (row.charge, row.place, digest)


def binding_entries(rows: Iterable[AccountRow]) -> Iterator[tuple[Entry, list[AccountRow]]]:
    """Yields the journal entries that an upgrade adds to bind the accounts of an older ledger
    format.

    Each entry comes with the account rows that it binds. The row of a dataset's own account, which
    stores the end of the chain, is in the dataset's last entry.
    """

    def dataset(row: AccountRow) -> str:
        return lineage_of(row.id)[0]

    unbound = [row for row in rows if not row.moved]
    unbound.sort(key=lambda row: (dataset(row), row.id))
    for _, accounts in groupby(unbound, key=dataset):
        root, *below = accounts
        for start in range(0, len(below), _TOGETHER):
            entry, after = _binding(root, below[start : start + _TOGETHER])
            root = root._replace(seq=entry.seq, head=entry.hash)
            yield entry, after
        entry, (root,) = _binding(root, [root])
        yield entry, [root._replace(seq=entry.seq, head=entry.hash)]


def digests_at(rows: Rows, ends: Mapping[str, int]) -> dict[str, str]:
    """Returns the digest of each account's row at an earlier time, when the chains had these
    ``ends``.

    An entry names, for each account that it changed, the entry that changed the account before. So
    the digest is read from the entry before the first later one; from the present row if no later
    entry changed the account.

    Raises:
        LedgerCorrupt: an account that was changed since differs from its last entry.
    """
    now = {row.id: account_digest(row) for row in rows.accounts()}
    then = dict(now)
    for chain in rows.chains():
        last: dict[str, str] = {}
        for entry in rows.entries(chain, ends.get(chain, 0)):
            moved = read_json(entry.body).get("moved", {})
            for account_id, (previous, digest) in moved.items():
                if account_id not in last:
                    then[account_id] = _digest_by(rows, chain, previous, account_id)
                last[account_id] = digest
        for account_id, digest in last.items():
            if now.get(account_id) != digest:
                raise LedgerCorrupt(
                    f"The account {account_id!r} is not as its last entry left it.",
                    remedy=_REMEDY,
                )
    return {account_id: digest for account_id, digest in then.items() if digest}


def _digest_by(rows: Rows, chain: str, seq: int, account_id: str) -> str:
    """The digest of an account in entry ``seq``; "" if the account did not exist yet."""
    if not seq:
        return ""
    return _digest_in(rows.entry(chain, seq), account_id) or ""


def _digest_in(entry: Entry | None, account_id: str) -> str | None:
    """The digest of an account in the entry that changed it; None if the entry did not."""
    if entry is None:
        return None
    move = read_json(entry.body).get("moved", {}).get(account_id)
    return str(move[1]) if move else None


def _binding(root: AccountRow, rows: Sequence[AccountRow]) -> tuple[Entry, list[AccountRow]]:
    after, said = moved_to(rows, root.seq + 1)
    at = iso_time(time.time_ns() // 10**6)
    return chained(root.id, root.seq + 1, at, "bind", {"moved": said}, root.head), after


def _end(entries: Sequence[Entry]) -> tuple[int, str]:
    last = max(entries, key=attrgetter("seq"))
    return last.seq, last.hash


def _tells(opened: Entry, ended: Entry, answer: AnswerRow) -> bool:
    """Whether the entries that opened and ended a charge match this answer."""
    if opened.kind not in ("reserve", "share") or ended.kind not in ("commit", "share"):
        return False
    opening_body, commit_body = read_json(opened.body), read_json(ended.body)
    shared = "" if opened.kind == "share" else opening_body.get("shared", "")
    digest = hashlib.sha256(answer.body).hexdigest()
    opened_for = (
        opening_body["charge"],
        opening_body["question"],
        opening_body["statement"],
        shared,
    )
    ended_with = (commit_body["charge"], commit_body["answer"])
    return opened_for == (
        answer.charge,
        answer.question,
        answer.statement,
        answer.shared,
    ) and ended_with == (answer.charge, digest)
