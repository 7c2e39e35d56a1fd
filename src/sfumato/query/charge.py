# SPDX-License-Identifier: Apache-2.0
"""Charges and runs a task: the only way from a question of any kind to private data.

The guarantee rests on the order of the steps: recall, reserve (durable), draw the noise, mark
executing (durable), run, commit the bytes (durable), return them. Proof: charge.proof.md.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import TypeVar

from sfumato.engines.base import Engine, Marginals, UnitRows
from sfumato.engines.stop import ENDLESS, Patience
from sfumato.errors import Cancelled, EngineFailed, InProgress, Refused, WrongUse
from sfumato.exact.values import copied
from sfumato.ledger.heartbeat import Heartbeat
from sfumato.ledger.request import Request
from sfumato.ledger.spend import Ledger
from sfumato.noise.entropy import token
from sfumato.plan.cube import BoundedCube
from sfumato.plan.graph import BoundedGraph
from sfumato.plan.levels import Levels
from sfumato.plan.open_cube import OpenCube
from sfumato.plan.open_rows import OpenRows
from sfumato.plan.rows import BoundedRows
from sfumato.plan.stages import Bounded
from sfumato.query.asker import Asker
from sfumato.query.claims import require_proved
from sfumato.query.curator import CANCELLED, ENGINE, Curator
from sfumato.query.payer import Payer, abandon
from sfumato.query.reserved import Reserved, drawn, stated
from sfumato.query.silence import SILENCE
from sfumato.query.statistic import NO_PLAN, Opened, Plan, Reads
from sfumato.query.task import Names, Stored, Task, named, sized

T = TypeVar("T")

_OWNER = logging.getLogger("sfumato.owner")
# The pause before a question that another process is asking is looked up again, in seconds.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.005, 0.25


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms on which a task is charged: an idempotency key, and how long the caller waits.

    ``payer`` pays instead of the ledger; ``names`` replaces the keys that ``Asker.names`` computes.
    Only modules of ``query`` set these two.
    """

    key: str = ""
    patience: Patience = ENDLESS
    payer: Payer | None = None
    names: Names | None = None


TERMS = Terms()


def charged(
    task: Task,
    asker: Asker,
    engine: Engine,
    ledger: Ledger,
    terms: Terms = TERMS,
) -> Stored:
    """Answers a task: returns the stored answer, or charges, runs and stores a new one.

    A stored answer is returned at once. If another caller is asking the same question, in any
    process, this call waits for that answer.

    Guarantees:
        the debit comes before the noise and the noise before the read
        the same question gives the same bytes
        a failure after the read is forfeited
        the answer is stored before it is returned
        who asks what is being answered gets the stored bytes
        a caller who waits no longer pays only for what may have been read
        a lease is renewed while its task runs

    Raises:
        BudgetExceeded, AccountFrozen: the account cannot pay; nothing was charged.
        InvalidNumber: the task has no events; nothing was charged.
        WrongUse: a member of the task has the wrong type; nothing was charged.
        KeyUsed: the idempotency key is bound to another question; nothing was charged.
        Cancelled: the caller cancelled, or its time limit ended.
        EngineFailed: the task or the engine failed; the charge is forfeited.
    """
    # each property is read once, and copied, so that what is charged is what is run
    event = copied(task.event)
    size = sized(task.size)
    names = terms.names or asker.names(*named(task), event)
    request = asker.request(event, names, terms.key, task.line)
    cells = stated(event, task.cells)
    order = _Order(task, cells, size, names, request, terms.payer or ledger, terms.patience)
    return persistently(lambda: _once(order, asker, engine, ledger), terms.patience)


def persistently(ask: Callable[[], T], patience: Patience) -> T:
    """Returns the result of ``ask``, which is called again as long as another process answers the
    same question.

    This ends: the other process stores an answer, fails, or loses its lease.

    Raises:
        Cancelled: the caller cancelled, or its time limit ended; nothing was charged.
    """
    pause = _FIRST_PAUSE
    while True:
        with suppress(InProgress):
            return ask()
        patience.pause(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)


@dataclass(frozen=True, slots=True)
class _Order:
    """A task with its ledger request, its payer and the caller's patience."""

    task: Task
    cells: tuple[int | None, ...]
    size: int | None
    names: Names
    request: Request
    payer: Payer
    patience: Patience


def _once(
    order: _Order,
    asker: Asker,
    engine: Engine,
    ledger: Ledger,
) -> Stored:
    """Returns the stored answer, or a new one; other threads with the same question wait meanwhile.

    Raises:
        InProgress: another process is answering the same question; nothing was charged.
    """
    request = order.request
    payer = order.payer
    patience = order.patience
    stored = payer.recall(request)
    if stored is None:
        require = None if patience.is_endless else patience.require
        with ledger.turns.of(request.question, require) as waited:
            # another thread may have stored the answer meanwhile
            stored = payer.recall(request) if waited else None
            if stored is None:
                return _carried_out(order, opened_plan(order.task, asker, engine, patience), ledger)
    return Stored(stored, "", recalled=True)


def opened_plan(
    task: Task,
    asker: Asker,
    engine: Engine,
    patience: Patience,
) -> Opened:
    """Returns the data opened for the plan of a task, before the charge.

    Whatever can fail without reading the data fails here, at no cost.
    """
    patience.require()
    ready_plan = task.ready(asker.dataset)
    if ready_plan is NO_PLAN:
        return Opened(NO_PLAN)
    plan = copied(ready_plan)
    require_proved(plan, asker.dataset)
    engine.wait(patience)
    if isinstance(plan, BoundedCube):
        return Opened(plan, cube=engine.cube(plan, patience), given=ready_plan)
    if isinstance(plan, BoundedRows):
        return Opened(plan, rows=engine.rows(plan, token(), patience), given=ready_plan)
    if isinstance(plan, BoundedGraph):
        return Opened(plan, graph=engine.edges(plan, token(), patience), given=ready_plan)
    if isinstance(plan, OpenCube):
        return _opened_cube(plan, ready_plan, engine, patience)
    if isinstance(plan, OpenRows):
        return _opened_rows(plan, ready_plan, engine, patience)
    if isinstance(plan, Levels):
        return Opened(plan, reads=_reads(plan.questions, engine, patience), given=ready_plan)
    return Opened(plan, engine.ready(plan, token(), patience), given=ready_plan)


def _reads(
    questions: Sequence[Bounded],
    engine: Engine,
    patience: Patience,
) -> Reads:
    """For each question of a plan with several, the function that reads its exact integers."""
    return {each: engine.ready(each, token(), patience) for each in questions}


def _opened_cube(
    plan: OpenCube,
    ready_plan: Plan,
    engine: Engine,
    patience: Patience,
) -> Opened:
    """Opens an ``OpenCube``: a cube whose axes the task chooses while it runs."""
    reads = _reads(plan.questions, engine, patience)
    # what is wrong with the tables themselves is found here, before the charge
    engine.cube(plan.cube, patience)

    def opener(cube: BoundedCube) -> AbstractContextManager[Marginals]:
        return engine.cube(cube, patience)

    return Opened(plan, reads=reads, cubes=opener, given=ready_plan)


def _opened_rows(
    plan: OpenRows,
    ready_plan: Plan,
    engine: Engine,
    patience: Patience,
) -> Opened:
    """Opens an ``OpenRows``: rows whose columns the task chooses while it runs.

    The same rows of a unit are kept each time.
    """
    reads = _reads(plan.questions, engine, patience)
    key = token()
    # what is wrong with the tables themselves is found here, before the charge
    engine.rows(plan.rows, key, patience)

    def opener(rows: BoundedRows) -> AbstractContextManager[UnitRows]:
        return engine.rows(rows, key, patience)

    return Opened(plan, reads=reads, listed=opener, given=ready_plan)


def _carried_out(order: _Order, opened: Opened, ledger: Ledger) -> Stored:
    """Runs a task: reserve, draw, execute, run, commit, in this order."""
    request = order.request
    # the id is chosen here: a caller that is interrupted does not see what ``reserve`` returns
    charge = token()
    taken = False
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
        # a refusal reserved nothing
        if taken or not isinstance(failure, Refused | WrongUse | InProgress):
            abandon(ledger, charge)
        raise
    raise Cancelled(paid=True) if failed == CANCELLED else EngineFailed()


def run_task(
    task: Task,
    size: int | None,
    curator: Curator,
    opened: Opened,
) -> tuple[bytes | None, str]:
    """Returns the bytes that a task computes on opened data, or None and the reason of the failure.

    No warning, log line or setting of the process shows a row (``silence``). The text of an
    exception is dropped, since it could quote exact integers.
    """
    body: bytes | None = None
    failed = ENGINE
    try:
        with SILENCE, opened:
            try:
                made = task.run(curator)
            finally:
                # a step that failed fails the whole run, even if the task caught the error
                failed = curator.end()
        if type(made) is bytes and (size is None or len(made) <= size):
            body = made
    except Exception as failure:
        # the curator has logged a step that failed
        if not isinstance(failure, EngineFailed):
            _OWNER.error("charge %s: the task failed: %s", curator.charge, type(failure).__name__)
    if failed or body is None:
        return (None, failed or ENGINE)
    return (body, "")
