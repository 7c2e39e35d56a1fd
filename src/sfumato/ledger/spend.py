# SPDX-License-Identifier: Apache-2.0
"""The life of a charge: reserve -> execute -> commit | forfeit; void only before execute.

Each step is one durable unit of work, so a crash at any moment leaves a state with a
declared meaning: reserved is voided when its lease has ended (nothing was read), executing
is forfeited at full cost. The state decides, never the clock: a lease only says from when
on others may close a charge. Proof: spend.proof.md.
"""

import hashlib
import json
import threading
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from datetime import timedelta
from functools import partial
from pathlib import Path

from sfumato.errors import (
    AccountFrozen,
    InProgress,
    LeaseExpired,
    LedgerError,
    LedgerUnavailable,
)
from sfumato.ledger.answers import Answers
from sfumato.ledger.balance import Balance, charge_from_text
from sfumato.ledger.books import Books, balance_of
from sfumato.ledger.owner import readable
from sfumato.ledger.recall import bind, bound_answer, own_answer
from sfumato.ledger.request import Ready, Request
from sfumato.ledger.seal import Beside, Head
from sfumato.ledger.standing import Standing, standing_of
from sfumato.ledger.store.base import (
    COMMITTED,
    EXECUTING,
    FORFEITED,
    RESERVED,
    VOIDED,
    AnswerRow,
    ChargeRow,
    PartRow,
    Rows,
    Store,
)
from sfumato.ledger.store.open import open_store
from sfumato.ledger.tally import Counts, entry_body
from sfumato.ledger.tree import Scope
from sfumato.metadata.contract import Contract
from sfumato.noise.entropy import token
from sfumato.privacy.budget import Budget
from sfumato.privacy.event import Json

LEASE = timedelta(hours=1)
EXPIRED = "expired"
_COUNTED = ("engine", "crash", EXPIRED)
_FAILURES_BEFORE_FREEZE = 3
# How many ended leases one unit of work closes.
_SWEEP = 64


class Ledger(Answers):
    """The ledger of one store. Safe to share between threads; the owner's acts are in ``Owner``.

    Guarantees:
        a charge is on disk before it can execute
        an answer is stored with its charge
        the same question has one answer
        an executing charge is never refunded
        three failures freeze the account
        an ended lease never gives back what was read
        a shared answer is paid by everybody but those who paid it
    """

    def __init__(self, store: Store, *, lease: timedelta = LEASE) -> None:
        super().__init__(store)
        self._lease = int(lease / timedelta(milliseconds=1))
        self._asking = threading.Lock()
        self._beside = Beside(store.place) if store.exclusive else None
        try:
            if not store.read_only:
                self.require_newest()
                self._recover()
        except BaseException:
            store.close()
            raise

    @classmethod
    def open(
        cls, place: str | Path, *, create: bool = True, lease: timedelta = LEASE, read_only: bool = False
    ) -> "Ledger":
        """The ledger in a file, or behind a postgresql:// address; made if it is not there.

        ``read_only``: for whoever may or will only look: it must be there, nothing of it is
        changed, and what would change it raises ``LedgerReadOnly``. A file needs no write
        access then, and a role of a server only SELECT. Only ``verify`` looks at the head that
        lies beside a file.
        """
        return cls(open_store(place, create=create, read_only=read_only), lease=lease)

    @property
    def store(self) -> Store:
        """The rows, for reading (``verify``)."""
        return self._store

    def one_at_a_time(self) -> AbstractContextManager[object]:
        """Held while a question is charged and answered, so that none is paid for twice."""
        return self._asking

    def close(self) -> None:
        """Signs what is there, and lets another process have it."""
        try:
            for dataset in self._tally.datasets():
                self._write_tally(dataset)
            if self._beside is not None and not self._store.read_only:
                self._beside.keep(self._store)
        except (LedgerError, OSError):
            pass  # closed before, a fork, or a full disk: the head that lies there stays true
        finally:
            self._store.close()

    def require_newest(self) -> None:
        """Refuses a ledger in a file that is behind the head that was left beside it.

        Raises:
            LedgerCorrupt: it is; says how the owner overrides.
        """
        if self._beside is not None:
            self._beside.require_not_older(self._store)

    def heads_beside(self) -> list[Head]:
        """The head that was left beside a file, if there is one.

        Raises:
            LedgerCorrupt: what lies there is none.
        """
        found = self._beside.head() if self._beside is not None else None
        return [found] if found else []

    def require_contract(self, contract: Contract) -> None:
        """Refuses if the dataset is known under another contract; writes nothing."""
        row = self._store.peek(Scope(contract.dataset).id)
        if row is not None:
            contract.require_same(json.loads(row.contract))

    def budget_of(self, dataset: str) -> Budget | None:
        """The budget that a dataset's account has."""
        row = self._store.peek(Scope(dataset).id)
        if row is None:
            return None
        form = json.loads(row.contract)
        return Budget(form["epsilon"], form["delta"])

    def balance(self, dataset: str) -> Balance:
        """What the account of a dataset has spent, reserved and left."""
        return readable(lambda: balance_of(self._row(dataset)))

    def standing(self, dataset: str, purpose: str = "", analyst: str = "") -> Standing:
        """How an account stands, and what all accounts above it leave to it."""
        lineage = Scope(dataset, purpose, analyst).lineage
        self._row(dataset)
        return readable(lambda: standing_of(lineage, self._store.peek))

    def accounts(self) -> list[Standing]:
        """Every account, parents first."""
        rows = self._store.read(lambda rows: {row.id: row for row in rows.accounts()})
        return readable(lambda: [standing_of(Scope.of(each).lineage, rows.get) for each in rows])

    def reserve(self, request: Request) -> str:
        """Takes the cost of a request from every account of its path; the id of the charge.

        Raises:
            BudgetExceeded: an account does not admit it; names what is left.
            AccountFrozen: frozen by the owner, or by three failures that nobody has looked at.
            InProgress: the same question is being answered, or has just been; ask again.
            KeyUsed: the idempotency key is bound to something else.
        """
        ready, charge_id = Ready.of(request), token()
        with self._counted(request):
            counts = self._tally.take(ready.dataset)
            try:
                return self._write(lambda rows: self._reserve(rows, ready, charge_id, counts))
            except BaseException:
                self._tally.give_back(ready.dataset, counts)
                raise

    def execute(self, charge_id: str) -> None:
        """The durable mark after which there is no refund; the data may be read now.

        Raises:
            AccountFrozen: the account was frozen meanwhile; the charge is voided.
            LeaseExpired: the charge was voided meanwhile.
        """

        def unit(rows: Rows) -> AccountFrozen | None:
            books, row = self._at(rows, charge_id, RESERVED, EXECUTING)
            try:
                books.require_open()
            except AccountFrozen as frozen:
                _void(rows, books, row, "frozen")
                return frozen
            rows.put_charge(row._replace(state=EXECUTING, lease_until=rows.now() + self._lease))
            books.note("execute", {"charge": charge_id})
            books.save()
            return None

        frozen = self._write(unit)
        if frozen is not None:
            raise frozen

    def commit(self, charge_id: str, body: bytes, *, released: Collection[str] = ()) -> None:
        """Stores the answer with its charge; only then may it be shown.

        ``released``: the keys of those of its parts that may be asked for again (``Ledger.released``).
        """
        digest, parts = hashlib.sha256(body).hexdigest(), list[Json](sorted(set(released)))

        def unit(rows: Rows) -> None:
            books, row = self._at(rows, charge_id, EXECUTING, COMMITTED)
            rows.put_charge(row._replace(state=COMMITTED))
            books.settle(charge_from_text(row.cost))
            rows.put_answer(AnswerRow(row.question, row.statement, row.shared, row.id, body))
            seq = books.note("commit", {"charge": charge_id, "answer": digest} | ({"parts": parts} if parts else {}))
            rows.put_parts([PartRow(str(part), charge_id, row.dataset, seq) for part in parts])
            books.save()

        self._write(unit)

    def forfeit(self, charge_id: str, reason: str) -> None:
        """Ends an executing charge without an answer, at full cost."""

        def unit(rows: Rows) -> None:
            books, row = self._at(rows, charge_id, EXECUTING, FORFEITED)
            _forfeit(rows, books, row, reason)

        self._write(unit)

    def void(self, charge_id: str) -> None:
        """Gives back a reserved charge: nothing was read."""

        def unit(rows: Rows) -> None:
            books, row = self._at(rows, charge_id, RESERVED, VOIDED)
            _void(rows, books, row, "")

        self._write(unit)

    def sweep(self) -> int:
        """Closes every charge whose lease has ended; how many there were."""
        return self._close_all(lambda rows: rows.now(), EXPIRED)

    def _recover(self) -> None:
        """What a dead process left behind: all that is open where only one process can be alive."""
        if self._store.exclusive:
            self._close_all(lambda _: None, "crash")
        else:
            self.sweep()

    def _close_all(self, until: Callable[[Rows], int | None], reason: str) -> int:
        closed = 0
        while found := self._store.read(lambda rows: rows.overdue(until(rows), 1)):
            closed += self._write(partial(_close, until, found[0].dataset, reason))
        return closed

    def _reserve(self, rows: Rows, ready: Ready, charge_id: str, counts: Counts) -> str:
        question = ready.request.question

        def ahead() -> None:
            rows.overdue(None, 1, ready.dataset), bound_answer(rows, ready), rows.answer(question)
            rows.under_way(question), rows.failures(ready.dataset)

        books = Books(rows, ready.account, ahead)
        if close_overdue(rows, rows.now(), ready.dataset, EXPIRED):
            books = Books(rows, ready.account)
        if bound_answer(rows, ready) or own_answer(rows, ready.request) or rows.under_way(question):
            raise InProgress(
                "The same question is being answered, or has just been.",
                remedy="Ask again in a moment: once stored, its answer is free.",
            )
        books.require_relation(ready.relations)
        books.require_listed()
        books.require_open()
        self._require_sound(rows, ready)
        books.require(ready.cost, books.lineage)
        books.hold(ready.cost)
        if counts:
            books.note("tally", entry_body(counts))
        seq = books.note("reserve", ready.body(charge_id))
        rows.put_charge(ready.row(charge_id, seq)._replace(lease_until=rows.now() + self._lease))
        bind(rows, ready, charge_id, seq)
        books.save()
        return charge_id

    def _require_sound(self, rows: Rows, ready: Ready) -> None:
        """Refuses an analyst whose questions have failed three times since the owner last looked."""
        analyst = ready.request.analyst
        failed = [row for row in rows.failures(ready.dataset) if row.analyst == analyst and row.reason in _COUNTED]
        if len(failed) >= _FAILURES_BEFORE_FREEZE:
            raise AccountFrozen(
                f"The account of {ready.request.dataset!r} is frozen for {analyst!r} after "
                f"{_FAILURES_BEFORE_FREEZE} failures.",
                remedy="The owner looks at the log 'sfumato.owner' and runs: sfumato ledger thaw",
            )

    def _at(self, rows: Rows, charge_id: str, before: str, after: str) -> tuple[Books, ChargeRow]:
        """The charge and its accounts, under lock, if it is where the step begins."""
        found = rows.charge(charge_id)
        if found is None:
            raise LedgerUnavailable(f"Charge {charge_id} is unknown, not {before}; it cannot become {after}.")
        books = Books(rows, found.account, lambda: rows.charge(charge_id))
        row = rows.charge(charge_id) or found
        if row.state == before:
            return books, row
        if row.reason == EXPIRED:
            raise LeaseExpired(
                f"Charge {charge_id} is {row.state}, not {before}: its lease had ended.",
                remedy="Ask again. What was computed meanwhile is not released.",
            )
        raise LedgerUnavailable(f"Charge {charge_id} is {row.state}, not {before}; it cannot become {after}.")


def close_overdue(rows: Rows, until: int | None, dataset: str, reason: str) -> int:
    """Ends charges of a dataset whose lease ended at ``until`` (None: all that are open).

    What was only reserved is voided, for nothing was read; the rest is forfeited.
    """
    oldest = rows.overdue(None, 1, dataset)
    if not oldest or (until is not None and oldest[0].lease_until > until):
        return 0
    # under the lock of the dataset nothing moves: what is still overdue then, stays so
    rows.lock([dataset])
    closed = rows.overdue(until, _SWEEP, dataset)
    for row in closed:
        books = Books(rows, row.account)
        if row.state == RESERVED:
            _void(rows, books, row, reason)
        else:
            _forfeit(rows, books, row, reason)
    return len(closed)


def _close(until: Callable[[Rows], int | None], dataset: str, reason: str, rows: Rows) -> int:
    return close_overdue(rows, until(rows), dataset, reason)


def _void(rows: Rows, books: Books, row: ChargeRow, reason: str) -> None:
    """reserved -> voided: every account gets the cost back."""
    rows.put_charge(row._replace(state=VOIDED, reason=reason))
    books.let_go(charge_from_text(row.cost))
    books.note("void", {"charge": row.id, "reason": reason} if reason else {"charge": row.id})
    books.save()


def _forfeit(rows: Rows, books: Books, row: ChargeRow, reason: str) -> None:
    """executing -> forfeited: every account has spent the cost."""
    rows.put_charge(row._replace(state=FORFEITED, reason=reason))
    books.settle(charge_from_text(row.cost))
    books.note("forfeit", {"charge": row.id, "reason": reason})
    books.save()
