# SPDX-License-Identifier: Apache-2.0
"""Stored answers given again: under an idempotency key, to the account that paid, or to another one.

An answer is given to open accounts only. What is given again was released already, so the
dataset pays nothing; each account of the asker's path that has not paid for this answer pays
its full cost, so that what an account was told is bounded by its limit. Between purposes of one
analyst this is always so; between analysts only where the owner's policy shares answers.
"""

import hashlib

from sfumato.errors import AccountFrozen, InProgress, KeyUsed, LedgerUnavailable, WrongUse
from sfumato.ledger.balance import charge_to_json
from sfumato.ledger.binding import require_answer, require_key
from sfumato.ledger.books import Books
from sfumato.ledger.journal import canonical_json
from sfumato.ledger.policy import SHARING, decided
from sfumato.ledger.request import Ready, Request
from sfumato.ledger.store.base import (
    COMMITTED,
    COUNTED,
    FORFEITED,
    SUSPENDED,
    VOIDED,
    AnswerRow,
    ChargeRow,
    KeyRow,
    Rows,
)
from sfumato.ledger.tree import lineage_of, scope_of

_FAILURES_BEFORE_FREEZE = 3


def bound_answer(rows: Rows, ready: Ready) -> AnswerRow | None:
    """The answer that the idempotency key of a request is bound to, if it has one.

    Raises:
        KeyUsed: it is bound to another request, or to one that ended without an answer.
    """
    key = ready.request.key
    bound = rows.key(ready.account, key) if key else None
    if bound is None:
        return None
    if bound.request not in ready.hashes:
        raise KeyUsed(f"The key {key!r} belongs to another request.", remedy="One key for one request: make a new key.")
    require_key(rows, bound)
    charge = rows.charge(bound.charge)
    if charge is None:
        raise ValueError("a key without its charge")
    if charge.state in (FORFEITED, VOIDED):
        paid = "its cost stays spent" if charge.state == FORFEITED else "nothing was charged"
        raise KeyUsed(f"The request under key {key!r} ended without an answer; {paid}.", remedy="Ask with a new key.")
    return rows.answer(charge.question)


def bind(rows: Rows, ready: Ready, charge_id: str, seq: int) -> None:
    """Binds the idempotency key of a request, if it has one, to a charge."""
    request = ready.request
    if request.key:
        rows.put_key(KeyRow(ready.account, request.key, ready.hash, charge_id, ready.dataset, seq))


def own_answer(rows: Rows, request: Request) -> AnswerRow | None:
    """The answer that the asking account has paid for, under the keys of today or of an earlier format.

    Raises:
        WrongUse: the key of today is another account's.
    """
    account = request.scope.id
    for keys in request.named:
        found = rows.answer(keys.question)
        if found is None:
            continue
        if _paid(rows, found).account == account:
            return found
        if keys.question == request.question:
            raise WrongUse("One key of an answer for two accounts.", allowed="a key that names the account")
    return None


def require_unanswered(rows: Rows, ready: Ready) -> None:
    """Refuses a question that has an answer, or a charge under way."""
    request = ready.request
    under_way = rows.under_way(request.question)
    if under_way is not None and under_way.state == SUSPENDED:
        raise LedgerUnavailable(
            f"The same question was begun under charge {under_way.id}, which is suspended; nothing was charged now.",
            remedy="Resume that charge (Ledger.resume): it is paid for.",
        )
    if bound_answer(rows, ready) or own_answer(rows, request) or under_way:
        raise InProgress(
            "The same question is being answered, or has just been.",
            remedy="Ask again in a moment: once stored, its answer is free.",
        )


def shared_answer(rows: Rows, ready: Ready) -> AnswerRow | None:
    """The answer that another account paid for: of the same analyst, or of any where the owner shares them."""
    request, root = ready.request, rows.account(ready.dataset)
    if not request.shared or root is None:
        return None
    analyst = None if decided(root).get(SHARING) else request.analyst
    found = (rows.shared_answer(keys.shared, analyst) for keys in request.named if keys.shared)
    return next((row for row in found if row is not None), None)


def sharers(account: str, source: str) -> tuple[str, ...]:
    """The accounts of a path that have not paid for what another path paid for.

    >>> sharers("d/research/ann", "d/research/bob")
    ('d/research/ann',)
    """
    paid = lineage_of(source)
    return tuple(each for each in lineage_of(account) if each not in paid)


def give(rows: Rows, ready: Ready, charge_id: str) -> bytes | None:
    """The stored answer to a request: bound to its key, or paid for under a new charge."""
    books = Books(rows, ready.account)
    bound = bound_answer(rows, ready)
    own = require_answer(rows, bound or own_answer(rows, ready.request))
    if own is None:
        found = shared_answer(rows, ready)
        return _share(rows, books, ready, (charge_id, found)) if found else None
    books.require_open()
    if bound is None and ready.request.key:
        account, key = ready.account, ready.request.key
        seq = books.note("recall", {"account": account, "key": key, "request": ready.hash, "charge": own.charge})
        bind(rows, ready, own.charge, seq)
        books.save()
    return own.body


def _share(rows: Rows, books: Books, ready: Ready, answer: tuple[str, AnswerRow]) -> bytes:
    """Gives an answer to an account that has not paid for it."""
    charge_id, found = answer
    require_answer(rows, found)
    source = _paid(rows, found)
    if source.cost != canonical_json(charge_to_json(ready.cost)):
        raise WrongUse("One shared question with two costs.", allowed="one key of sharing for one question and price")
    books.require_open()
    books.require_listed()
    require_few_failures(rows, ready.dataset, ready.request.analyst)
    payers = sharers(ready.account, source.account)
    books.require(ready.cost, payers)
    books.spend(ready.cost, payers)
    digest = hashlib.sha256(found.body).hexdigest()
    seq = books.note("share", ready.body(charge_id, source=source.id, answer=digest))
    row = ready.row(charge_id, seq)._replace(state=COMMITTED, source=source.id)
    rows.put_charge(row)
    rows.put_answer(AnswerRow(row.question, row.statement, "", charge_id, found.body, seq))
    bind(rows, ready, charge_id, seq)
    books.save()
    return found.body


def require_few_failures(rows: Rows, root: str, analyst: str) -> None:
    """Refuses an analyst whose charges have failed three times since the owner last looked."""
    failed = rows.failed(root, analyst)
    if (
        sum(row.failures + (row.state == FORFEITED and row.reason in COUNTED) for row in failed)
        >= _FAILURES_BEFORE_FREEZE
    ):
        raise AccountFrozen(
            f"The account of {scope_of(root).dataset!r} is frozen for {analyst!r} after "
            f"{_FAILURES_BEFORE_FREEZE} failures.",
            remedy="The owner looks at the log 'sfumato.owner' and runs: sfumato ledger thaw",
        )


def _paid(rows: Rows, found: AnswerRow) -> ChargeRow:
    charge = rows.charge(found.charge)
    if charge is None:
        raise ValueError("an answer without its charge")
    return charge
