# SPDX-License-Identifier: Apache-2.0
"""Looks up stored answers by their keys, shares them between accounts, and counts re-reads.

``Ledger`` inherits these methods. ``stored_answers`` has the steps within a transaction. Proof:
stored_answers.proof.md.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial

from sfumato.errors import AccountFrozen, BudgetExceeded, LedgerError, Refused, WrongUse
from sfumato.ledger.account_path import Scope
from sfumato.ledger.account_transaction import LockedAccounts, require_open
from sfumato.ledger.binding import require_answer
from sfumato.ledger.closing import EXCHANGED, give_up
from sfumato.ledger.head_watch import HeadWatch
from sfumato.ledger.liveness import require_not_moved
from sfumato.ledger.owner import Owner, readable
from sfumato.ledger.request import Ready, Request
from sfumato.ledger.store.base import AnswerRow, Rows, Store
from sfumato.ledger.stored_answers import bind_stored, bound_answer, give, own_answer, shared_answer
from sfumato.ledger.tally import TALLY, Counts, Tally, entry_body
from sfumato.noise.entropy import token


class Answers(Owner):
    """The ledger's lookups of stored answers; reading an answer again costs no budget.

    Guarantees:
        a frozen account is given no stored answer
        what is read again and what is refused is in the journal
    """

    def __init__(self, store: Store, heads: HeadWatch) -> None:
        self._store, self.heads = store, heads
        self._tally = Tally()

    def answer(self, question: str) -> bytes | None:
        """Returns the stored answer to a question, by its cache key; None if there is none."""
        return self._given(lambda rows: rows.answer(question))

    def first_answer(self, statements: Sequence[str], account: str) -> bytes | None:
        """Returns the earliest answer of an account to a statement, at whatever cost it was
        paid for; costs no budget.

        ``statements`` are the keys of the statement, in the present and in earlier formats. None if
        there is no answer.
        """

        def find(rows: Rows) -> AnswerRow | None:
            for statement in statements:
                answer = rows.first_answer(statement, account)
                if answer is not None:
                    return answer
            return None

        return self._given(find)

    def released(self, parts: Sequence[str], account: str) -> dict[str, list[bytes]]:
        """Returns an account's stored answers that contain each of the ``parts``, oldest first.

        A part is an aggregate that later questions can reuse by its own key. Costs no budget.
        """

        def find(rows: Rows) -> dict[str, list[bytes]]:
            released: dict[str, list[bytes]] = {}
            checked: set[str] = set()
            for part in parts:
                answers = rows.released(part, account)
                for answer in answers:
                    if answer.charge not in checked:
                        require_answer(rows, answer)
                        checked.add(answer.charge)
                released[part] = [answer.body for answer in answers]
            return released

        return readable(lambda: self._store.read(find))

    def _given(self, find: Callable[[Rows], AnswerRow | None]) -> bytes | None:
        """The bytes of an answer, checked against the journal."""

        def checked(rows: Rows) -> AnswerRow | None:
            return require_answer(rows, find(rows))

        return _body(readable(lambda: self._store.read(checked)))

    def holds(self, request: Request) -> bool:
        """Whether the account of a request has paid for its answer already."""
        return self.own_answer(request) is not None

    def own_answer(self, request: Request) -> bytes | None:
        """Returns the stored answer to a request if its account has paid for it, else None."""
        return _body(readable(lambda: self._store.read(lambda rows: own_answer(rows, request))))

    def charge_of(self, request: Request) -> str:
        """Returns the id of the charge by which the account paid for an answer; "" if it has none."""
        row = readable(lambda: self._store.read(lambda rows: own_answer(rows, request)))
        return "" if row is None else row.charge

    def answer_of(self, charge_id: str, scope: Scope) -> bytes | None:
        """Returns the answer that a charge of this account paid for; None if there is none.

        Raises:
            AccountFrozen: an account of the path is frozen.
        """

        def find(rows: Rows) -> AnswerRow | None:
            require_open(filter(None, map(rows.account, scope.lineage)))
            charge = rows.charge(charge_id)
            if charge is None or charge.account != scope.id:
                return None
            answer = rows.answer(charge.question)
            if answer is None or answer.charge != charge_id:
                return None
            return answer

        return self._given(find)

    def to_share(self, request: Request) -> bytes | None:
        """Returns another account's answer that ``recall`` would share with this account for a
        cost.

        The caller may use its size to compute the cost, but must not show it before it is paid for.
        """
        ready = Ready.of(request)
        return self._given(lambda rows: shared_answer(rows, ready))

    def require_key(self, request: Request) -> None:
        """Refuses a request whose idempotency key was used for another request; costs no budget.

        Raises:
            KeyUsed: the key is bound to another request.
        """
        ready = Ready.of(request)
        readable(lambda: self._store.read(lambda rows: bound_answer(rows, ready)))

    def recall(self, request: Request, *, held: str = "") -> bytes | None:
        """Returns the stored answer to a request, or None if the answer must be computed.

        The answer costs no budget for an account that has paid for it. An answer that the same
        analyst paid for in another account, or any analyst if the owner's policy shares answers, is
        returned for its full cost. That cost is charged to those accounts between the dataset and
        the analyst that have not paid for it, not to the dataset. ``held`` is the id of a reserved
        charge that this payment replaces.

        Raises:
            KeyUsed: the idempotency key is bound to something else.
            AccountFrozen: an account of the path is frozen: it is given no stored answer either.
            BudgetExceeded: an account that has not paid for the answer does not admit its cost.
        """
        ready = Ready.of(request)

        def find(rows: Rows) -> tuple[AnswerRow | None, bool]:
            bound = bound_answer(rows, ready)
            own = bound or own_answer(rows, request)
            if own is None:
                return None, shared_answer(rows, ready) is not None
            require_open(filter(None, map(rows.account, request.scope.lineage)))
            return require_answer(rows, own), bool(request.key) and bound is None

        def pay(rows: Rows, charge_id: str) -> bytes | None:
            if held:
                give_up(rows, held, EXCHANGED)
            return give(rows, ready, charge_id)

        with self._counted(request):
            answer, to_write = readable(lambda: self._store.read(find))
            if to_write:
                return self._write(partial(pay, charge_id=token()))
            if answer is not None:
                self._tally.read(ready.dataset, ready.account, [answer.charge])
            return _body(answer)

    def reread(self, request: Request, charges: Collection[str]) -> None:
        """Counts that a request was answered again from stored answers, paid for by ``charges``.

        Binds the request's idempotency key to it, so that a retry returns the same answer.

        Raises:
            KeyUsed: the idempotency key is bound to something else.
            AccountFrozen: an account of the path is frozen: it is given no stored answer either.
        """
        lineage = request.scope.lineage
        with self._counted(request):
            self._store.read(lambda rows: require_open(filter(None, map(rows.account, lineage))))
            if request.key:
                ready = Ready.of(request)
                self._write(lambda rows: bind_stored(rows, ready, min(charges)))
            self._tally.read(lineage[0], lineage[-1], charges)

    @contextmanager
    def _counted(self, request: Request) -> Iterator[None]:
        """A context manager that counts a refusal raised in it, and writes pending counts to the
        journal once enough have accumulated.
        """
        root, account = request.scope.root, request.scope.id
        try:
            yield
        except (Refused, WrongUse) as refused:
            # a refusal of an account that does not exist is counted for its dataset
            whose = account if isinstance(refused, BudgetExceeded | AccountFrozen) else root
            self._tally.refused(root, whose, type(refused).__name__)
            raise
        finally:
            if self._tally.is_due(root):
                # a failed write keeps the counts
                with suppress(LedgerError):
                    self._write_tally(root)

    def write_down(self) -> None:
        """Writes the counts of re-read answers and refused questions of all datasets to the
        journal.

        Counts that could not be written are kept for the next attempt.
        """
        for dataset in self._tally.datasets():
            with suppress(LedgerError):
                self._write_tally(dataset)

    def _write_tally(self, dataset: str) -> None:
        """Writes the counts of a dataset in an entry of their own."""
        counts = self._tally.take(dataset)

        def transaction(rows: Rows) -> None:
            require_not_moved(rows, self._store.place)
            write_tally(rows, dataset, counts)

        try:
            self._write(transaction)
        except BaseException:
            self._tally.give_back(dataset, counts)
            raise


def write_tally(rows: Rows, dataset: str, counts: Counts) -> None:
    """Appends a journal entry with a dataset's counts of re-reads and refusals, unless all are
    zero.
    """
    if counts:
        locked = LockedAccounts(rows, dataset)
        locked.record(TALLY, entry_body(counts))
        locked.save()


def _body(row: AnswerRow | None) -> bytes | None:
    return None if row is None else row.body
