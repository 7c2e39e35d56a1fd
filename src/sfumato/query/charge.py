# SPDX-License-Identifier: Apache-2.0
"""The one door: the only way from a question of any kind to private data.

The order is the guarantee: recall, reserve (durable), draw the noise, mark executing (durable),
run, commit the bytes (durable), return them. Proof: charge.proof.md.
"""

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TypeVar

from sfumato.engines.base import Engine
from sfumato.engines.stop import ENDLESS, Patience
from sfumato.errors import Cancelled, EngineFailed, InProgress, Refused, WrongUse
from sfumato.ledger.heartbeat import Heartbeat
from sfumato.ledger.request import Request
from sfumato.ledger.spend import Ledger
from sfumato.noise.entropy import token
from sfumato.plan.cube import BoundedCube
from sfumato.plan.rows import BoundedRows
from sfumato.query.asker import Asker
from sfumato.query.claims import require_proved
from sfumato.query.curator import CANCELLED, ENGINE, Curator
from sfumato.query.payer import Payer, abandon
from sfumato.query.reserved import Reserved, drawn, stated
from sfumato.query.statistic import Opened
from sfumato.query.task import Names, Stored, Task, named, sized

T = TypeVar("T")

_OWNER = logging.getLogger("sfumato.owner")
# How long a caller waits before it asks again for what somebody else asks elsewhere, in seconds.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.005, 0.25


@dataclass(frozen=True, slots=True)
class Terms:
    """What a caller says beside the task: an idempotency key, and how long it waits.

    ``payer`` takes the cost, where it is not the ledger; ``names`` are the keys of the answer, where they
    are not ``Asker.names``. Neither is a caller's above this room to say.
    """

    key: str = ""
    patience: Patience = ENDLESS
    payer: Payer | None = None
    names: Names | None = None


TERMS = Terms()


def charged(
    task: Task, asker: Asker, engine: Engine, ledger: Ledger, terms: Terms = TERMS
) -> Stored:
    """The stored answer to a task, charged once.

    Nobody waits for a stored answer; who asks what is being answered waits for it, here and in other processes.

    Guarantees:
        the debit comes before the noise and the noise before the read
        the same question gives the same bytes
        a failure after the read is forfeited
        the answer is stored before it is returned
        who asks what is being answered gets the stored bytes
        a caller who waits no longer pays only for what may have been read
        a lease is renewed while its task runs

    Raises:
        BudgetExceeded, AccountFrozen: nothing was charged.
        InvalidNumber: a task without events; nothing was charged.
        WrongUse: a member of the task is not of the promised type; nothing was charged.
        KeyUsed: the idempotency key is bound to something else; nothing was charged.
        Cancelled: the caller waits no longer.
        EngineFailed: the charge is forfeited.
    """
    # each is asked for once: what is charged is what is run
    event, size = task.event, sized(task.size)
    names = terms.names or asker.names(*named(task), event)
    request = replace(asker.request(event, names, terms.key), line=task.line)
    cells = stated(event, task.cells)
    order = _Order(task, cells, size, names, request, terms.payer or ledger, terms.patience)
    return persistently(lambda: _once(order, asker, engine, ledger), terms.patience)


def persistently(ask: Callable[[], T], patience: Patience) -> T:
    """What a question gives, asked again and again while it is in progress elsewhere.

    It ends: who asks elsewhere has an answer, fails, or is gone when the lease ends.

    Raises:
        Cancelled: the caller waits no longer; nothing was charged.
    """
    pause = _FIRST_PAUSE
    while True:
        with suppress(InProgress):
            return ask()
        patience.pause(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)


@dataclass(frozen=True, slots=True)
class _Order:
    """A task, what the ledger is asked for, and who pays."""

    task: Task
    cells: tuple[int | None, ...]
    size: int | None
    names: Names
    request: Request
    payer: Payer
    patience: Patience


def _once(order: _Order, asker: Asker, engine: Engine, ledger: Ledger) -> Stored:
    """The stored answer, or a new one; nobody else asks the same here meanwhile.

    Raises:
        InProgress: somebody else does, in another process; nothing was charged.
    """
    request, payer, patience = order.request, order.payer, order.patience
    stored = payer.recall(request)
    if stored is None:
        with ledger.turns.of(
            request.question, None if patience.is_endless else patience.require
        ) as waited:
            # what somebody else has answered meanwhile is there now
            stored = payer.recall(request) if waited else None
            if stored is None:
                return _carried_out(order, opened_plan(order.task, asker, engine, patience), ledger)
    return Stored(stored, "", recalled=True)


def opened_plan(task: Task, asker: Asker, engine: Engine, patience: Patience) -> Opened:
    """What the task will read. What can fail without the data fails here, while it is free."""
    patience.require()
    plan = task.ready(asker.dataset)
    require_proved(plan, asker.dataset)
    engine.wait(patience)
    if isinstance(plan, BoundedCube):
        return Opened(plan, cube=engine.cube(plan, patience))
    if isinstance(plan, BoundedRows):
        return Opened(plan, rows=engine.rows(plan, token(), patience))
    return Opened(plan, engine.ready(plan, token(), patience))


def _carried_out(order: _Order, opened: Opened, ledger: Ledger) -> Stored:
    """Reserve, draw, execute, run, commit: in this order."""
    request = order.request
    # its id is known before it is taken: an interrupted caller does not see what it was given
    charge, taken = token(), False
    try:
        charge, taken = order.payer.reserve(request, charge), True
        noise = drawn(request.event, order.cells)
        order.patience.require()
        ledger.execute(charge)
        curator = Curator(charge, Reserved(request.event, noise), opened)
        with Heartbeat(ledger, charge):
            body, failed = run_task(order.task, order.size, curator, opened)
        if body is not None:
            ledger.commit(charge, body, released=order.names.released, size=order.size)
            return Stored(body, charge)
        ledger.forfeit(charge, failed)
    except BaseException as failure:
        # a refusal took nothing
        if taken or not isinstance(failure, Refused | WrongUse | InProgress):
            abandon(ledger, charge)
        raise
    raise Cancelled(paid=True) if failed == CANCELLED else EngineFailed()


def run_task(
    task: Task, size: int | None, curator: Curator, opened: Opened
) -> tuple[bytes | None, str]:
    """The answer of a task; without one, why. What it raised is not told: its text could quote anything."""
    body: bytes | None = None
    failed = ENGINE
    try:
        with opened:
            try:
                made = task.run(curator)
            finally:
                # what the curator did not answer is no answer, whatever the task made of it
                failed = curator.end()
        if type(made) is bytes and (size is None or len(made) <= size):
            body = made
    except Exception as failure:
        # of a step that failed the owner knows
        if not isinstance(failure, EngineFailed):
            _OWNER.error("charge %s: the task failed: %s", curator.charge, type(failure).__name__)
    return (None, failed or ENGINE) if failed or body is None else (body, "")
