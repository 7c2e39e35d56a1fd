# SPDX-License-Identifier: Apache-2.0
"""Verifies a ledger by replaying its journal.

Each chain must be whole, each charge must cost what the accountant computes from its event, each
account must be the sum of its charges, each answer must have the committed bytes, and the chains
must contain every known head.
"""

import hashlib
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from typing import TypeVar

from sfumato.errors import LedgerCorrupt, SfumatoError
from sfumato.ledger.binding import account_digest
from sfumato.ledger.digests import (
    DIGEST,
    answer_digest,
    instalment_digest,
    row_digest,
    stored_digest,
)
from sfumato.ledger.journal import LEGACY, Entry, canonical_json, is_genuine, is_intact
from sfumato.ledger.pins import Pin
from sfumato.ledger.replay import Replay
from sfumato.ledger.signed_heads import Head
from sfumato.ledger.spend import Ledger
from sfumato.ledger.store.base import AccountRow, AnswerRow, ChargeRow, Ends, Rows
from sfumato.ledger.verified import Verified, source_before

T = TypeVar("T")

# What parsing a tampered string can raise.
_UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, SfumatoError)
# Sorts after every chain.
_END = (chr(0x10FFFF), 0)


@dataclass(frozen=True, slots=True)
class Report:
    """The result of ``verify``; ``problems`` is empty for a sound ledger.

    ``head`` is one hash for all entries of all chains: equal heads mean equal histories.
    ``verified`` is the state from which the next ``verify`` can continue; None if there are
    problems. ``entries`` and ``charges`` count the entries that were replayed and their charges.

    >>> Report(entries=1, charges=0, problems=("an answer was edited",), head="").verified is None
    True
    """

    entries: int
    charges: int
    problems: tuple[str, ...]
    head: str
    verified: Verified | None = field(default=None, repr=False, compare=False)


def verify(
    ledger: Ledger, heads: Sequence[Head] = (), *, key: str = "", since: Verified | None = None
) -> Report:
    """Replays the journal and compares it with all stored rows, and with known heads.

    If the newest rows are removed from every table consistently, the result is a ledger that was
    once valid: only a head stored elsewhere detects this. Such a head must be of this ledger and
    signed with ``key`` (by default that of the first head). The head beside a file, signed with any
    key, is compared too, and what this user remembers of it on this machine. For a ledger in a
    file, charges wait until this ends. If the file was
    opened read-only, its pages are checked in parallel, on another core.

    ``since`` is the result of an earlier verification (``Report.verified``). Then only newer
    entries and rows are read, and all accounts; an edit of older rows is not detected.

    Guarantees:
        an edited row is found
        a deleted charge is found
        a swapped answer is found
        an older copy is found
        an edit after the earlier verification is found

    Raises:
        WrongUse: a key that is no Ed25519 public key in hexadecimal; a state of another ledger.

    >>> import tempfile
    >>> from sfumato.ledger import Signer
    >>> from sfumato.metadata.contract import Contract
    >>> from sfumato.privacy import Budget
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger.open(folder.name + "/ledger.db")
    >>> ledger.adopt(Contract("tiny", "add-remove", {"people": "id"}, "1", "0"), Budget(1))
    >>> signer = Signer(folder.name + "/key")
    >>> published = ledger.store.read(lambda rows: signer.sign(ledger.store.identity, rows))
    >>> report = verify(ledger, [published])
    >>> report.entries, report.problems
    (1, ())
    >>> ledger.close()
    >>> folder.cleanup()
    """
    replay = since.resume(ledger.store.identity) if since else Replay()
    if heads:
        replay.problems += Pin(ledger.store.identity, key or heads[0].public_key).differences(heads)
    try:
        heads = (*heads, *ledger.heads_beside())
    except LedgerCorrupt as error:
        replay.problems.append(f"the head beside the ledger: {error.problem}")
    missing = ledger.not_remembered()
    replay.problems += [missing] if missing else []
    damage = _beside(lambda: _damage(ledger, pages=since is None))
    try:
        report = ledger.store.read(lambda rows: _check(rows, replay, heads))
    except SfumatoError as error:
        failed = f"the store cannot be read ({type(error).__name__})"
        report = Report(0, 0, (*replay.problems, failed), "")
    report = replace(report, problems=(*damage.result(), *report.problems))
    if report.problems:
        return report
    return replace(report, verified=Verified.of(ledger.store.identity, replay))


def _damage(ledger: Ledger, *, pages: bool) -> tuple[str, ...]:
    """Describes the damage that the store finds in its own file."""
    try:
        problems = list(ledger.store.damage(pages=pages))
    except LedgerCorrupt as error:
        problems = [error.problem]
    return tuple(f"the store is damaged: {problem}" for problem in problems)


def _beside(work: Callable[[], T]) -> "Future[T]":
    """The result of work on another thread; an interrupted caller does not wait for it."""
    result: Future[T] = Future()

    def run() -> None:
        try:
            result.set_result(work())
        except BaseException as error:  # noqa: BLE001 - raised again where the result is awaited
            result.set_exception(error)

    threading.Thread(target=run, name="sfumato-verify", daemon=True).start()
    return result


def check(rows: Rows, problems: list[str], heads: Sequence[Head] = ()) -> Report:
    """Appends to ``problems`` what is wrong with a ledger, by the checks of ``verify``."""
    return _check(rows, Replay(problems), heads)


def _check(rows: Rows, replay: Replay, heads: Sequence[Head]) -> Report:
    ends = {chain: seq for chain, (seq, _) in replay.heads.items()} or None
    compares = [
        _compare_accounts,
        _compare_charges,
        _compare_keys,
        _compare_parts,
        _compare_instalments,
    ]
    if ends is None:
        compares.append(_compare_counts)
    else:
        compares.append(_compare_older)
        replay.find_source = partial(source_before, rows, ends)
    chains = sorted({*rows.chains(), *replay.heads})
    entries = sum(_replayed(rows, chain, replay) for chain in chains)
    for compare in compares:
        try:
            compare(rows, replay, ends)
        except _UNREADABLE as error:
            replay.problems.append(f"a row cannot be read ({type(error).__name__})")
    for head in heads:
        replay.problems += head.differences(rows, since=ends)
    return Report(entries, replay.charges, tuple(replay.problems), _head_digest(replay.heads))


def _head_digest(heads: dict[str, tuple[int, str]]) -> str:
    """Returns one hash for the heads of all chains; "" for an empty ledger."""
    if not heads:
        return ""
    form = canonical_json({chain: [seq, last] for chain, (seq, last) in heads.items()})
    return hashlib.sha256(form.encode()).hexdigest()


def _replayed(rows: Rows, chain: str, replay: Replay) -> int:
    before = _end_before(rows, chain, replay)
    for entry in rows.entries(chain, before.seq if before else 0):
        if not is_intact(entry, before):
            replay.problems.append(f"the chain is broken at entry {entry.seq}{_of(chain)}")
        try:
            replay.apply(entry)
        except _UNREADABLE as error:
            replay.problems.append(
                f"entry {entry.seq} of {chain!r} cannot be read ({type(error).__name__})"
            )
        before = entry
    return before.seq if before else 0


def _end_before(rows: Rows, chain: str, replay: Replay) -> Entry | None:
    """The last entry of a chain at the earlier verification, with its hash then."""
    if chain not in replay.heads:
        return None
    seq, last = replay.heads[chain]
    entry = rows.entry(chain, seq)
    if entry is None or entry.hash != last or not is_genuine(entry):
        replay.problems.append(
            f"the chain{_of(chain)} does not pass through entry {seq} that was verified before: "
            "it was cut or rewritten, or this is an older copy"
        )
    return Entry(chain, seq, "", "", "", "", last)


def _of(chain: str) -> str:
    return "" if chain == LEGACY else f" of {chain!r}"


def _compare_accounts(rows: Rows, replay: Replay, ends: Ends | None) -> None:
    stored = {row.id: row for row in rows.accounts()}
    said = {row.id: row for row in replay.rows()}
    for account_id in sorted(stored.keys() | said.keys()):
        mine, theirs = stored.get(account_id), said.get(account_id)
        if mine is None or theirs is None:
            replay.problems.append(
                f"account {account_id!r} is in only one of the journal and the table"
            )
        else:
            replay.problems += [
                f"account {account_id!r} {what}" for what in _account_differences(mine, theirs)
            ]
            if account_digest(theirs) != replay.books[account_id].digest:
                replay.problems.append(
                    f"account {account_id!r} is not bound by the entry that last moved it"
                )


def _account_differences(stored: AccountRow, replayed: AccountRow) -> Iterator[str]:
    fixed = attrgetter("parent", "contract", "limit", "gates", "folded")
    if fixed(stored) != fixed(replayed):
        yield "does not have the contract and the limit of the journal"
    if (stored.spent, stored.held, stored.earlier) != (
        replayed.spent,
        replayed.held,
        replayed.earlier,
    ):
        yield "is not the sum of its charges"
    if (stored.frozen, stored.policy) != (replayed.frozen, replayed.policy):
        yield "does not have the state that the owner gave it"
    if (stored.seq, stored.head) != (replayed.seq, replayed.head):
        yield "does not end its chain where the journal does"
    if stored.moved != replayed.moved:
        yield "does not name the entry that last moved it"


def _compare_charges(rows: Rows, replay: Replay, ends: Ends | None) -> None:
    """Compares charges in the order of the entries that opened them, so that a gap is found at its
    place.
    """
    replayed, stored = replay.ended(), rows.history(ends)
    theirs, mine = next(replayed, None), next(stored, None)
    while theirs or mine:
        there, here = theirs[0] if theirs else _END, (mine[0].chain, mine[0].seq) if mine else _END
        if theirs and mine and there == here:
            replay.problems += _charge_differences(*mine, *theirs[1:])
        else:
            chain, seq = min(there, here)
            replay.problems.append(
                f"the charge of entry {seq} of {chain!r} is in only one of the journal and the "
                "table"
            )
        if here >= there:
            theirs = next(replayed, None)
        if here <= there:
            mine = next(stored, None)


def _charge_differences(
    row: ChargeRow, answer: AnswerRow | None, digest: bytes, answered: bytes
) -> Iterator[str]:
    if stored_digest(row) != digest:
        yield f"charge {row.id} is not the one of the journal"
    if answer_digest(row, answer) != answered:
        yield f"the answer of charge {row.id} is not the one that was committed"


def _compare_older(rows: Rows, replay: Replay, ends: Ends | None) -> None:
    """Compares the charges that were not final at the earlier verification."""
    for charge_id, digest, answered in replay.older_ended():
        row = rows.charge(charge_id)
        if row is None:
            replay.problems.append(f"charge {charge_id} is gone")
            continue
        answer = rows.answer(row.question)
        mine = answer if answer is not None and answer.charge == charge_id else None
        replay.problems += _charge_differences(row, mine, digest, answered)


def _compare_keys(rows: Rows, replay: Replay, ends: Ends | None) -> None:
    stored = map(row_digest, rows.keys(ends))
    if b"".join(stored) != replay.keys:
        replay.problems.append("the idempotency keys are not those of the journal")


def _compare_parts(rows: Rows, replay: Replay, ends: Ends | None) -> None:
    stored = map(row_digest, rows.parts(ends))
    if b"".join(stored) != replay.parts:
        replay.problems.append("the parts of answers are not those of the journal")


def _compare_instalments(rows: Rows, replay: Replay, ends: Ends | None) -> None:
    place, digests = 0, replay.instalments
    for row in rows.all_instalments(ends):
        digest = hashlib.sha256(row.body).hexdigest()
        if (
            instalment_digest(row.charge, row.place, digest, (row.chain, row.seq))
            != digests[place : place + DIGEST]
        ):
            replay.problems.append(
                f"instalment {row.place} of charge {row.charge} is not the one that was appended"
            )
            return
        place += DIGEST
    if place != len(digests):
        replay.problems.append("an instalment is missing")


def _compare_counts(rows: Rows, replay: Replay, ends: Ends | None) -> None:
    counts = rows.counts()
    many = (len(digests) // DIGEST for digests in (replay.keys, replay.parts, replay.instalments))
    stored = (
        counts.accounts,
        counts.charges,
        counts.answers,
        counts.keys,
        counts.parts,
        counts.instalments,
    )
    if stored != (len(replay.books), replay.charges, replay.answers, *many):
        replay.problems.append("there are rows that the journal does not know, or too few")
