# SPDX-License-Identifier: Apache-2.0
"""The life of a charge: reserve -> execute -> commit | forfeit; void only before execute.

Each step is one durable transaction, so a crash at any moment leaves a state with a
declared meaning: reserved is voided at the next opening (nothing was read), executing is
forfeited at full cost. Proof: spend.proof.md.
"""

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from sfumato.accounting.account import account
from sfumato.accounting.filter import NOTHING, Charge, Gates, charge_for
from sfumato.errors import AccountFrozen, LedgerCorrupt, LedgerUnavailable
from sfumato.ledger.balance import Balance, charge_from_json, charge_to_json, gates_from_json, gates_to_json
from sfumato.ledger.journal import GENESIS, canonical_json, chained
from sfumato.ledger.store.base import (
    COMMITTED,
    EXECUTING,
    FORFEITED,
    RESERVED,
    VOIDED,
    AccountRow,
    ChargeRow,
    Store,
)
from sfumato.ledger.store.sqlite import SQLite
from sfumato.metadata.contract import Contract
from sfumato.noise.entropy import token
from sfumato.privacy.budget import Budget
from sfumato.privacy.event import Event, Json, event_to_json

_FAILURES_BEFORE_FREEZE = 3


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be charged: whose account, for which question, for what done to the data."""

    dataset: str
    analyst: str
    question: str
    statement: str
    event: Event


class Ledger:
    """The ledger of one file. Safe to share between threads.

    Guarantees:
        a charge is on disk before it can execute
        an answer is stored with its charge
        the same question has one answer
        an executing charge is never refunded
        three failures freeze the account
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.RLock()
        self._asking = threading.Lock()
        try:
            self._recover()
        except BaseException:
            store.close()
            raise

    @classmethod
    def open(cls, path: str | Path, *, create: bool = True) -> "Ledger":
        """The ledger in a file, made if it is not there."""
        return cls(SQLite(path, create=create))

    @property
    def store(self) -> Store:
        """The rows, for reading (``verify``)."""
        return self._store

    def one_at_a_time(self) -> AbstractContextManager[object]:
        """Held while a question is charged and answered, so that none is paid for twice."""
        return self._asking

    def close(self) -> None:
        """Lets another process have the file."""
        with self._lock:
            self._store.close()

    def adopt(self, contract: Contract, budget: Budget) -> None:
        """Opens the account of a dataset, or checks that it is the same one."""
        with self._write():
            self.require_contract(contract)
            if self._store.account(contract.dataset) is not None:
                return
            form = contract.to_json()
            gates = gates_to_json(Gates.of(budget))
            self._store.put_account(
                AccountRow(contract.dataset, canonical_json(form), canonical_json(gates), _charge_text(NOTHING))
            )
            self._note("account", {"contract": form, "gates": gates})
        with self._lock:
            self._store.checkpoint()

    def require_contract(self, contract: Contract) -> None:
        """Refuses if the dataset is known under another contract; writes nothing."""
        with self._lock:
            row = self._store.account(contract.dataset)
        if row is not None:
            contract.require_same(json.loads(row.contract))

    def budget_of(self, dataset: str) -> Budget | None:
        """The budget that a dataset's account was opened with."""
        with self._lock:
            row = self._store.account(dataset)
        if row is None:
            return None
        form = json.loads(row.contract)
        return Budget(form["epsilon"], form["delta"])

    def balance(self, dataset: str) -> Balance:
        """What the account has spent, reserved and left."""
        with self._lock:
            row = self._account(dataset)
            pending = [
                charge_from_json(json.loads(each.cost))
                for each in self._store.charges(RESERVED, EXECUTING)
                if each.dataset == dataset
            ]
        return Balance(
            gates_from_json(json.loads(row.gates)), charge_from_json(json.loads(row.spent)), sum(pending, NOTHING)
        )

    def answer(self, question: str) -> bytes | None:
        """The stored answer to a question; free."""
        with self._lock:
            return self._store.answer(question)

    def first_answer(self, statement: str) -> bytes | None:
        """The earliest stored answer to a statement, at any cost; free."""
        with self._lock:
            return self._store.first_answer(statement)

    def reserve(self, request: Request) -> str:
        """Takes the cost of a request from its account; the id of the charge.

        Raises:
            BudgetExceeded: no gate admits it; names what is left.
            AccountFrozen: three failures that the owner has not looked at.
        """
        charge = charge_for(account(request.event))
        with self._write():
            if self._store.failures(request.dataset, request.analyst) >= _FAILURES_BEFORE_FREEZE:
                raise AccountFrozen(
                    f"The account of {request.dataset!r} is frozen for {request.analyst!r} after "
                    f"{_FAILURES_BEFORE_FREEZE} failures.",
                    remedy="The owner looks at the log 'sfumato.owner' and runs: sfumato ledger thaw",
                )
            self.balance(request.dataset).require(charge)
            row = ChargeRow(
                token(),
                request.dataset,
                request.analyst,
                RESERVED,
                request.question,
                request.statement,
                _charge_text(charge),
                canonical_json(event_to_json(request.event)),
                "",
            )
            self._store.put_charge(row)
            self._note(
                "reserve",
                {
                    "charge": row.id,
                    "dataset": row.dataset,
                    "analyst": row.analyst,
                    "question": row.question,
                    "statement": row.statement,
                    "cost": charge_to_json(charge),
                    "event": event_to_json(request.event),
                },
            )
        return row.id

    def execute(self, charge_id: str) -> None:
        """The durable mark after which there is no refund; the data may be read now."""
        with self._write():
            self._step(charge_id, RESERVED, EXECUTING, "execute")

    def commit(self, charge_id: str, body: bytes) -> None:
        """Stores the answer with its charge; only then may it be shown."""
        with self._write():
            row = self._step(charge_id, EXECUTING, COMMITTED, "commit", answer=hashlib.sha256(body).hexdigest())
            self._spend(row)
            self._store.put_answer(row, body)

    def forfeit(self, charge_id: str, reason: str) -> None:
        """Ends an executing charge without an answer, at full cost."""
        with self._write():
            self._spend(self._step(charge_id, EXECUTING, FORFEITED, "forfeit", reason=reason))

    def void(self, charge_id: str) -> None:
        """Gives back a reserved charge: nothing was read."""
        with self._write():
            self._step(charge_id, RESERVED, VOIDED, "void")

    def thaw(self, dataset: str) -> int:
        """The owner has looked: how many failures were acknowledged."""
        with self._write():
            self._account(dataset)
            seen = self._store.acknowledge(dataset)
            self._note("thaw", {"dataset": dataset, "failures": seen})
        return seen

    def _recover(self) -> None:
        """What a crashed process left behind: the exclusive lock says that it is gone."""
        with self._lock:
            left = list(self._store.charges(RESERVED, EXECUTING))
        for row in left:
            if row.state == EXECUTING:
                self.forfeit(row.id, "crash")
            else:
                self.void(row.id)

    def _step(self, charge_id: str, before: str, after: str, kind: str, **details: str) -> ChargeRow:
        row = self._store.charge(charge_id)
        if row is None or row.state != before:
            state = row.state if row else "unknown"
            raise LedgerUnavailable(f"Charge {charge_id} is {state}, not {before}; it cannot become {after}.")
        self._store.put_charge(replace(row, state=after, reason=details.get("reason", "")))
        self._note(kind, {"charge": charge_id, **details})
        return row

    def _spend(self, row: ChargeRow) -> None:
        """Moves a charge from reserved to spent."""
        held = self._account(row.dataset)
        spent: Charge = charge_from_json(json.loads(held.spent)) + charge_from_json(json.loads(row.cost))
        self._store.put_account(replace(held, spent=_charge_text(spent)))

    def _account(self, dataset: str) -> AccountRow:
        row = self._store.account(dataset)
        if row is None:
            raise LedgerUnavailable(f"The ledger has no account of dataset {dataset!r}.")
        return row

    def _note(self, kind: str, body: Mapping[str, Json]) -> None:
        last = self._store.last_entry()
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        self._store.append(chained(last.seq + 1 if last else 1, at, kind, body, last.hash if last else GENESIS))

    @contextmanager
    def _write(self) -> Iterator[None]:
        try:
            with self._lock, self._store.transaction():
                yield
        except (ValueError, KeyError, TypeError) as error:
            raise LedgerCorrupt(f"A row of the ledger cannot be read ({type(error).__name__}).") from None


def _charge_text(charge: Charge) -> str:
    return canonical_json(charge_to_json(charge))
