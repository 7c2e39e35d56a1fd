# SPDX-License-Identifier: Apache-2.0
"""The life of a charge: reserve -> execute -> commit | forfeit; void only before execute.

Each step is one durable transaction, so a crash at any time leaves a state with a defined meaning.
When its lease has ended, a reserved charge is voided (nothing was read) and an executing one is
forfeited at full cost, or suspended if it has instalments. The state decides, never the clock: a
lease only says when others may close a charge. Proof: spend.proof.md.
"""

import hashlib
import json
from collections.abc import Callable, Collection, Sequence
from datetime import timedelta
from fractions import Fraction
from functools import partial
from typing import TypeVar

from sfumato.accounting.budget_gates import NOTHING
from sfumato.errors import LedgerError
from sfumato.ledger.account_path import Scope, lineage_of
from sfumato.ledger.account_status import Standing, standing_of
from sfumato.ledger.account_transaction import LockedAccounts, balance_of
from sfumato.ledger.answers import write_tally
from sfumato.ledger.at_exit import interrupt_at_exit
from sfumato.ledger.balance import Balance, charge_from_text, gates_from_text
from sfumato.ledger.closing import (
    EXCHANGED,
    at_step,
    close,
    close_for,
    close_overdue,
    execute,
    forfeit,
    void,
)
from sfumato.ledger.head_watch import HeadWatch
from sfumato.ledger.heartbeat import Heartbeats
from sfumato.ledger.instalments import Instalments
from sfumato.ledger.liveness import lease_milliseconds, require_live
from sfumato.ledger.owner import readable
from sfumato.ledger.pieces import fence_of
from sfumato.ledger.remembered_head import RememberedHead
from sfumato.ledger.request import Ready, Request
from sfumato.ledger.signed_heads import Beside, Head, Key, forgetful
from sfumato.ledger.store.base import (
    COMMITTED,
    EXECUTING,
    EXPIRED,
    FORFEITED,
    RESERVED,
    VOIDED,
    AnswerRow,
    PartRow,
    Rows,
    Store,
)
from sfumato.ledger.store.open import Place, open_store
from sfumato.ledger.store.open_mark import WAY_OUT, WAY_OUT_ON_SERVER
from sfumato.ledger.stored_answers import (
    MANY_OPEN,
    bind,
    bound_answer,
    in_progress,
    require_few_failures,
    require_unanswered,
    share,
    shared_answer,
)
from sfumato.ledger.turns import Turns
from sfumato.metadata.contract import Contract
from sfumato.noise.entropy import token
from sfumato.privacy.budget import Budget
from sfumato.privacy.event import Json

T = TypeVar("T")

LEASE = timedelta(hours=1)
INTERRUPTED = "interrupted"


class Ledger(Instalments):
    """The ledger of a store: reserves, commits and closes charges, and looks up answers.

    Safe to share between threads. ``Owner`` has the owner's commands.

    Guarantees:
        a charge is on disk before it can execute
        an answer is stored with its charge
        the same question has one answer
        an executing charge is never refunded
        three failures freeze the account
        an ended lease never gives back what was read
        a process that ends in order leaves no failure
        a shared answer is paid by everybody but those who paid it
        several charges are taken together or not at all
        a charge is exchanged for a dearer one only if that is admitted

    >>> import tempfile
    >>> from fractions import Fraction
    >>> from sfumato.privacy import PureEvent
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger.open(folder.name + "/ledger.db")
    >>> ledger.adopt(Contract("tiny", "add-remove", {"people": "id"}, "1", "0"), Budget(1))
    >>> half = PureEvent(Fraction(1, 2))
    >>> charge = ledger.reserve(Request("tiny", "ann", "key", "statement", half))
    >>> ledger.execute(charge)
    >>> ledger.commit(charge, b"the answer")
    >>> ledger.answer("key"), str(ledger.balance("tiny").left.epsilon)
    (b'the answer', '1/2')
    >>> ledger.close()
    >>> folder.cleanup()
    """

    def __init__(self, store: Store, *, lease: timedelta = LEASE, key: Key = None) -> None:
        self._beside = Beside(store.place, key) if store.exclusive else None
        self.remembered = RememberedHead(store.identity, shared=not store.exclusive)
        super().__init__(store, HeadWatch(store, self._beside.key if self._beside else key))
        self._lease = lease_milliseconds(lease)
        # a lock for each question, held from its charge to its answer
        self.turns = Turns()
        # renews the leases of charges that take long to answer
        self.heartbeats = Heartbeats(self.lease)
        try:
            if not store.read_only:
                require_live(store)
                self.require_newest()
                store.remember(self.remembered.note)
                self._recover()
                interrupt_at_exit(self)
        except BaseException:
            store.close()
            raise

    @classmethod
    def open(
        cls,
        place: Place,
        *,
        create: bool = True,
        lease: timedelta = LEASE,
        read_only: bool = False,
        key: Key = None,
    ) -> "Ledger":
        """Opens the ledger in a file or at a postgresql:// address; creates it if there is none.

        ``read_only``: the ledger must exist and is not changed; what would change it raises
        ``LedgerReadOnly``. It needs no write access, and only ``verify`` reads the head beside it.
        ``key`` signs that head (``Signer``); by default one in a file beside the ledger.
        """
        return cls(open_store(place, create=create, read_only=read_only), lease=lease, key=key)

    @property
    def store(self) -> Store:
        """The storage of the ledger's rows (a ``Store``), for ``verify``."""
        return self._store

    def close(self) -> None:
        """Signs the present head and releases the ledger for other processes."""
        try:
            self.write_down()
            self.heads.close()
            if self._beside is not None and not self._store.read_only:
                self._beside.keep(self._store)
        except (LedgerError, OSError):
            pass  # closed before, a fork, or a full disk: the head that lies there stays true
        finally:
            self._store.close()

    def require_newest(self) -> None:
        """Refuses a ledger older than the head beside its file, or than this user has seen it.

        Raises:
            LedgerIncomplete: it lacks an entry of the head, or one remembered on this machine.
        """
        if self._beside is not None:
            self._beside.require_not_older(self._store)
        missing = self.not_remembered()
        if missing:
            way_out = WAY_OUT if self._store.exclusive else WAY_OUT_ON_SERVER
            raise forgetful(self._store.place, missing, way_out)

    def not_remembered(self) -> str:
        """Returns a description of entries seen on this machine that the ledger lacks; "" if
        none.
        """
        return self._store.read(self.remembered.missing_from)

    def heads_beside(self) -> list[Head]:
        """Returns a list of the head beside the ledger's file; empty if there is none.

        Raises:
            LedgerCorrupt: the head cannot be parsed.
        """
        head = self._beside.head() if self._beside is not None else None
        return [head] if head else []

    def require_contract(self, contract: Contract) -> None:
        """Refuses a dataset whose stored contract differs from this one; writes nothing."""
        row = self._store.peek(Scope(contract.dataset).id)
        if row is not None:
            contract.require_same(json.loads(row.contract))

    def budget_of(self, dataset: str) -> Budget | None:
        """Returns the limit of a dataset's account; None if it has none."""
        row = self._store.peek(Scope(dataset).id)
        if row is None:
            return None
        form = json.loads(row.contract)
        return Budget(form["epsilon"], form["delta"])

    def balance(self, dataset: str) -> Balance:
        """Returns what a dataset's account has spent and reserved, and its caps."""
        return readable(lambda: balance_of(self._row(dataset)))

    def balances(self, dataset: str, purpose: str = "", analyst: str = "") -> list[Balance]:
        """Returns the balances of the accounts of a path that have a limit, the dataset's first.

        Each of them must admit a charge.
        """
        below = Scope(dataset, purpose, analyst).lineage[1:]
        rows = [self._row(dataset), *map(self._store.peek, below)]
        return readable(lambda: [balance_of(row) for row in rows if row is not None and row.gates])

    def orders(self, scope: Scope) -> frozenset[Fraction]:
        """Returns the Renyi orders at which the accounts of a path convert rho to (epsilon, delta)."""
        orders: set[Fraction] = set()
        for row in filter(None, map(self._store.peek, scope.lineage)):
            order = gates_from_text(row.gates).order if row.gates else None
            if order is not None:
                orders.add(order)
        return frozenset(orders)

    def standing(self, dataset: str, purpose: str = "", analyst: str = "") -> Standing:
        """Returns the status of an account: its limit, what is spent, and what it can still spend."""
        lineage = Scope(dataset, purpose, analyst).lineage
        self._row(dataset)
        return readable(lambda: standing_of(lineage, self._store.peek))

    def accounts(self) -> list[Standing]:
        """The status of every account, parents first."""
        rows = self._store.read(lambda rows: {row.id: row for row in rows.accounts()})
        return readable(lambda: [standing_of(lineage_of(row), rows.get) for row in rows])

    def reserve(self, request: Request, charge_id: str = "") -> str:
        """Reserves the cost of a request on every account of its path; returns the id of the
        charge.

        ``charge_id`` is a fresh ``token()`` with which an interrupted caller can ``abandon`` the
        charge.

        Raises:
            BudgetExceeded: an account does not admit the cost; the error names what is left.
            AccountFrozen: an account is frozen by the owner, or the analyst has three failures that
                the owner has not acknowledged.
            InProgress: the same question is being answered, or has just been; ask again.
            KeyUsed: the idempotency key is bound to another request.
        """
        ready, name = self._ready(request), charge_id or token()
        return self._taken(request, lambda rows: self._reserve(rows, ready, name))

    def reserve_all(self, requests: Sequence[Request], charge_ids: Sequence[str] = ()) -> list[str]:
        """Reserves the costs of several requests of one account, all or none; returns the ids of
        the charges.

        If another account has paid for an answer that this account may share, the request is paid
        for as a share, and its answer belongs to the account afterwards.

        Raises:
            As ``reserve``; then nothing was reserved. The cost that a refusal names is the sum.
        """
        names = charge_ids or [token() for _ in requests]
        ready = [self._ready(request) for request in requests]

        def transaction(rows: Rows) -> list[str]:
            self._require_together(rows, ready)
            new: list[tuple[Ready, str]] = []
            for request, name in zip(ready, names, strict=True):
                if share(rows, request, name) is None:
                    new.append((request, name))
            return [self._reserve(rows, request, name) for request, name in new]

        return self._taken(requests[0], transaction)

    def _ready(self, request: Request) -> Ready:
        """A request with its cost; the orders of its path are read only if that depends on them."""
        ready = Ready.of(request)
        if ready.cost.orders is None:
            return ready
        return Ready.of(request, self.orders(request.scope))

    def _taken(self, request: Request, take: Callable[[Rows], T]) -> T:
        """Runs a transaction that charges, together with the pending counts."""
        root = request.scope.root

        def transaction(rows: Rows) -> T:
            taken = take(rows)
            write_tally(rows, root, counts)
            return taken

        with self._counted(request):
            counts = self._tally.take(root)
            try:
                return self._write(transaction)
            except BaseException:
                self._tally.give_back(root, counts)
                raise

    def exchange(self, charge_id: str, request: Request, new_id: str = "") -> str:
        """Voids a reserved charge and reserves the cost of a request in one transaction; returns
        the new id.

        ``new_id`` is as in ``reserve``. A cost that is at most the voided one, in epsilon, rho and
        delta, always fits.

        Raises:
            As ``reserve``; then the charge stays as it was.
            LeaseExpired: the charge was voided meanwhile.
        """
        ready, other = self._ready(request), new_id or token()

        def transaction(rows: Rows) -> str:
            locked, row = at_step(rows, charge_id, RESERVED, VOIDED)
            void(rows, locked, row, EXCHANGED)
            return self._reserve(rows, ready, other)

        return self._write(transaction)

    def execute(self, charge_id: str) -> None:
        """Marks a charge as executing, durably, before data is read; from then on it is not
        refunded.

        Raises:
            AccountFrozen: the account was frozen meanwhile; the charge is voided.
            LeaseExpired: the charge was voided meanwhile.
        """

        frozen = self._write(lambda rows: execute(rows, charge_id, self._lease))
        if frozen is not None:
            raise frozen

    def commit(
        self,
        charge_id: str,
        body: bytes,
        *,
        released: Collection[str] = (),
        fence: int = 0,
        size: int | None = None,
    ) -> None:
        """Stores the answer with its charge; only then may it be shown.

        ``body`` is the answer. ``released`` are the keys of its parts that can be reused
        (``Ledger.released``). ``fence`` is the number of the worker, for a charge with instalments.
        ``size`` is a public bound of the length of ``body`` in bytes (by default its length); above
        64 MiB it is stored outside the ledger's tables.

        Raises:
            LeaseExpired: the charge was closed when its lease had ended, or another worker has it.
            WrongUse: the answer is longer than ``size``.
        """
        packed = self._store.pack(body, len(body) if size is None else size)
        digest, parts = hashlib.sha256(body).hexdigest(), list[Json](sorted(set(released)))

        def transaction(rows: Rows) -> None:
            locked, row = at_step(rows, charge_id, EXECUTING, COMMITTED, fence)
            rows.put_charge(row._replace(state=COMMITTED))
            locked.settle(charge_from_text(row.cost))
            seq = locked.record(
                "commit",
                {"charge": charge_id, "answer": digest} | ({"parts": parts} if parts else {}),
            )
            rows.put_answer(
                AnswerRow(row.question, row.statement, row.shared, row.id, body, seq, packed)
            )
            rows.put_parts([PartRow(str(part), charge_id, row.dataset, seq) for part in parts])
            locked.save()

        self._write(transaction)

    def forfeit(self, charge_id: str, reason: str, *, fence: int = 0) -> None:
        """Ends an executing charge without an answer, at full cost; its stored instalments
        remain.
        """

        def transaction(rows: Rows) -> None:
            locked, row = at_step(rows, charge_id, EXECUTING, FORFEITED, fence)
            forfeit(rows, locked, row, reason)

        self._write(transaction)

    def void(self, charge_id: str) -> None:
        """Ends a reserved charge, for which no data was read, and refunds its cost."""

        def transaction(rows: Rows) -> None:
            locked, row = at_step(rows, charge_id, RESERVED, VOIDED)
            void(rows, locked, row, "")

        self._write(transaction)

    def abandon(self, charge_id: str, *, fence: int = 0) -> None:
        """Ends the work on a charge, whatever its state, after an error or interruption.

        A reserved charge is voided. An executing one is forfeited, or suspended if it has
        instalments and this is still its worker. Other states are left unchanged.
        """

        def transaction(rows: Rows) -> None:
            unlocked = rows.charge(charge_id)
            if unlocked is None:
                return
            locked = LockedAccounts(rows, unlocked.account, lambda: rows.charge(charge_id))
            row = rows.charge(charge_id) or unlocked
            if row.state in (RESERVED, EXECUTING) and fence_of(row.pieces) in (0, fence):
                close(rows, locked, row, INTERRUPTED if row.state == EXECUTING else "")

        self._write(transaction)

    def interrupt(self) -> None:
        """Closes the charges that this process works on, at the end of the process.

        They are paid for, and do not count as failures of the analyst, since the process ends in
        order (for example after a signal). A process that is killed closes nothing, so at the next
        opening its charges count as failures.
        """
        if self._store.exclusive:
            self._close_all(lambda _: None, INTERRUPTED)
        else:
            for charge_id, fence in self.heartbeats.charges():
                self.abandon(charge_id, fence=fence)

    def sweep(self) -> int:
        """Ends every charge whose lease has expired; returns how many."""
        return self._close_all(lambda rows: rows.now(), EXPIRED)

    def _recover(self) -> None:
        """Closes all open charges of a dead process, where only one process can use the ledger."""
        if self._store.exclusive:
            self._close_all(lambda _: None, "crash")
        else:
            self.sweep()

    def _close_all(self, until: Callable[[Rows], int | None], reason: str) -> int:
        closed = 0
        while overdue := self._store.read(lambda rows: rows.overdue(until(rows), 1)):
            closed += self._write(partial(close_for, until, overdue[0].dataset, reason))
        return closed

    def _reserve(self, rows: Rows, ready: Ready, charge_id: str) -> str:
        question = ready.request.question

        def ahead() -> None:
            # prefetched with the locks; all of it is read again below
            rows.overdue(None, 1, ready.dataset)
            bound_answer(rows, ready)
            rows.answer(question)
            rows.under_way(question)
            rows.failed(ready.dataset, ready.request.analyst)
            if ready.request.shared:
                rows.overdue(None, MANY_OPEN, ready.dataset)
                rows.shared_answer(ready.request.shared, ready.request.analyst)

        locked = LockedAccounts(rows, ready.account, ahead)
        if close_overdue(rows, rows.now(), ready.dataset, EXPIRED):
            locked = LockedAccounts(rows, ready.account)
        require_unanswered(rows, ready)
        if shared_answer(rows, ready) is not None:
            raise in_progress()
        locked.require_relation(ready.relations)
        locked.require_listed()
        locked.require_open()
        require_few_failures(rows, ready.dataset, ready.request.analyst)
        locked.require(ready.cost, locked.lineage)
        locked.hold(ready.cost)
        seq = locked.record("reserve", ready.body(charge_id))
        rows.put_charge(ready.row(charge_id, seq)._replace(lease_until=rows.now() + self._lease))
        bind(rows, ready, charge_id, seq)
        locked.save()
        return charge_id

    def _require_together(self, rows: Rows, ready: Sequence[Ready]) -> None:
        """Refuses requests of one account whose sum it does not admit, or of which one has an
        answer.

        Accounts that do not pay for a shared answer need to admit only the new ones.
        """
        account, dataset = ready[0].account, ready[0].dataset
        close_overdue(rows, rows.now(), dataset, EXPIRED)
        locked = LockedAccounts(rows, account)
        for request in ready:
            require_unanswered(rows, request)
        new = [request.cost for request in ready if shared_answer(rows, request) is None]
        if new:
            locked.require(sum(new, NOTHING), locked.lineage)
        costs = [request.cost for request in ready]
        locked.require(sum(costs, NOTHING), [account])
