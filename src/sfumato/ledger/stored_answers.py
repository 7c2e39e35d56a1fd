# SPDX-License-Identifier: Apache-2.0
"""Returns stored answers: by idempotency key, to the account that paid, or to another one.

``answers`` and ``spend`` run these steps within a transaction. Frozen accounts get no answer. A
stored answer is already released, so the dataset pays nothing; each account of the asker's path
that has not paid for it pays its full cost, so that what an account has learnt is bounded by its
limit. Answers are always shared between purposes of one analyst, and between analysts only if the
owner's policy allows it.
"""

import hashlib

from sfumato.errors import AccountFrozen, InProgress, KeyUsed, LedgerUnavailable, WrongUse
from sfumato.ledger.account_path import lineage_of, scope_of
from sfumato.ledger.account_transaction import LockedAccounts, ways_to_thaw
from sfumato.ledger.balance import charge_to_json
from sfumato.ledger.binding import require_answer, require_key
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

_FAILURES_BEFORE_FREEZE = 3
# The most open charges of a dataset that are compared; with more, a question may be paid for twice.
MANY_OPEN = 1024


def bound_answer(rows: Rows, ready: Ready) -> AnswerRow | None:
    """Returns the answer to which the idempotency key of a request is bound; None if it is unbound.

    Raises:
        KeyUsed: the key is bound to another request, or to one that ended without an answer.
    """
    key = ready.request.key
    bound = rows.key(ready.account, key) if key else None
    if bound is None:
        return None
    if bound.request not in ready.hashes:
        raise KeyUsed(
            f"The key {key!r} belongs to another request.",
            remedy="One key for one request: make a new key.",
        )
    require_key(rows, bound)
    charge = rows.charge(bound.charge)
    if charge is None:
        raise ValueError("a key without its charge")
    if charge.state in (FORFEITED, VOIDED):
        paid = "its cost stays spent" if charge.state == FORFEITED else "nothing was charged"
        raise KeyUsed(
            f"The request under key {key!r} ended without an answer; {paid}.",
            remedy="Ask with a new key.",
        )
    # a request that reuses parts has no stored answer; its key is bound to the charge of a part
    is_own = charge.question in {keys.question for keys in ready.request.named}
    return rows.answer(charge.question) if is_own else None


def bind(rows: Rows, ready: Ready, charge_id: str, seq: int) -> None:
    """Binds the idempotency key of a request, if any, to a charge, so that a retry finds its
    answer.
    """
    request = ready.request
    if request.key:
        rows.put_key(KeyRow(ready.account, request.key, ready.hash, charge_id, ready.dataset, seq))


def bind_stored(rows: Rows, ready: Ready, charge_id: str) -> None:
    """Binds the idempotency key of a request, if any and unbound, to the charge of a stored answer.

    Raises:
        KeyUsed: as ``bound_answer``.
        AccountFrozen: an account of the path is frozen.
    """
    locked = LockedAccounts(rows, ready.account)
    locked.require_open()
    bound_answer(rows, ready)
    account, key = ready.account, ready.request.key
    if key and rows.key(account, key) is None:
        seq = locked.record(
            "recall", {"account": account, "key": key, "request": ready.hash, "charge": charge_id}
        )
        bind(rows, ready, charge_id, seq)
        locked.save()


def own_answer(rows: Rows, request: Request) -> AnswerRow | None:
    """Returns the answer that the asking account paid for, found by current or earlier keys; or
    None.

    Raises:
        WrongUse: another account has an answer under the present key.
    """
    account = request.scope.id
    for keys in request.named:
        answer = rows.answer(keys.question)
        if answer is None:
            continue
        if _paid(rows, answer).account == account:
            return answer
        if keys.question == request.question:
            raise WrongUse(
                "One key of an answer for two accounts.", allowed="a key that names the account"
            )
    return None


def require_unanswered(rows: Rows, ready: Ready) -> None:
    """Raises an error if the account has an answer to the question, or the question is being
    answered.

    It may be in progress for this account, or for an account with which it shares answers.
    """
    request = ready.request
    under_way = rows.under_way(request.question)
    if under_way is not None and under_way.state == SUSPENDED:
        raise LedgerUnavailable(
            f"The same question was begun under charge {under_way.id}, which is suspended; "
            "nothing was charged now.",
            remedy="Resume that charge (Ledger.resume): it is paid for.",
        )
    if (
        bound_answer(rows, ready)
        or own_answer(rows, request)
        or under_way
        or _is_shared_soon(rows, ready)
    ):
        raise in_progress()


def in_progress() -> InProgress:
    """Returns the error for a question that another caller asks now or has just asked."""
    return InProgress(
        "The same question is being answered, or has just been.",
        remedy="Ask again in a moment: once stored, its answer is free, or shared.",
    )


def shared_answer(rows: Rows, ready: Ready) -> AnswerRow | None:
    """Returns the answer to a request that another account has paid for and may share; or None.

    That is an account of the same analyst, or of any analyst if the owner shares answers.
    """
    request = ready.request
    if not request.shared or rows.account(ready.dataset) is None:
        return None
    analyst = _shares_with(rows, ready)
    answers = (rows.shared_answer(keys.shared, analyst) for keys in request.named if keys.shared)
    return next((row for row in answers if row is not None), None)


def _is_shared_soon(rows: Rows, ready: Ready) -> bool:
    """Whether a charge is in progress whose answer this account would share."""
    shared, analyst = ready.request.shared, _shares_with(rows, ready)
    return bool(shared) and any(
        row.shared == shared and analyst in (None, row.analyst)
        for row in rows.overdue(None, MANY_OPEN, ready.dataset)
    )


def _shares_with(rows: Rows, ready: Ready) -> str | None:
    """Returns the analyst whose answers an account may share; None if it may share everybody's."""
    root = rows.account(ready.dataset)
    return None if root is not None and decided(root).get(SHARING) else ready.request.analyst


def sharers(account: str, source: str) -> tuple[str, ...]:
    """Returns the account ids of a path that have not paid for what the path ``source`` paid for.

    >>> sharers("d/research/ann", "d/research/bob")
    ('d/research/ann',)
    """
    paid = lineage_of(source)
    return tuple(account_id for account_id in lineage_of(account) if account_id not in paid)


def give(rows: Rows, ready: Ready, charge_id: str) -> bytes | None:
    """Returns the stored answer to a request; None if there is none that the account may get.

    Binds the request's idempotency key to the answer. For an answer of another account, adds a new
    charge with the id ``charge_id`` that pays for it.
    """
    locked = LockedAccounts(rows, ready.account)
    bound = bound_answer(rows, ready)
    own = require_answer(rows, bound or own_answer(rows, ready.request))
    if own is None:
        return share(rows, ready, charge_id)
    locked.require_open()
    if bound is None:
        bind_stored(rows, ready, own.charge)
    return own.body


def share(rows: Rows, ready: Ready, charge_id: str) -> bytes | None:
    """Opens a charge by which an account pays for another account's stored answer.

    Returns the bytes of the answer; None if there is none to share.
    """
    locked = LockedAccounts(rows, ready.account)
    shared = shared_answer(rows, ready)
    if shared is None:
        return None
    require_answer(rows, shared)
    source = _paid(rows, shared)
    if source.cost != canonical_json(charge_to_json(ready.cost)):
        raise WrongUse(
            "One shared question with two costs.",
            allowed="one key of sharing for one question and price",
        )
    locked.require_open()
    locked.require_listed()
    require_few_failures(rows, ready.dataset, ready.request.analyst)
    payers = sharers(ready.account, source.account)
    locked.require(ready.cost, payers)
    locked.spend(ready.cost, payers)
    digest = hashlib.sha256(shared.body).hexdigest()
    seq = locked.record("share", ready.body(charge_id, source=source.id, answer=digest))
    row = ready.row(charge_id, seq)._replace(state=COMMITTED, source=source.id)
    rows.put_charge(row)
    rows.put_answer(AnswerRow(row.question, row.statement, "", charge_id, shared.body, seq))
    bind(rows, ready, charge_id, seq)
    locked.save()
    return shared.body


def require_few_failures(rows: Rows, root: str, analyst: str) -> None:
    """Refuses an analyst with three failed charges that the owner has not acknowledged."""
    failed = rows.failed(root, analyst)
    if (
        sum(row.failures + (row.state == FORFEITED and row.reason in COUNTED) for row in failed)
        >= _FAILURES_BEFORE_FREEZE
    ):
        raise AccountFrozen(
            f"The account of {scope_of(root).dataset!r} is frozen for {analyst!r} after "
            f"{_FAILURES_BEFORE_FREEZE} failures.",
            remedy=f"The owner looks at the log 'sfumato.owner', then: {ways_to_thaw(root)}",
        )


def _paid(rows: Rows, answer: AnswerRow) -> ChargeRow:
    charge = rows.charge(answer.charge)
    if charge is None:
        raise ValueError("an answer without its charge")
    return charge
