# SPDX-License-Identifier: Apache-2.0
"""What a store owes the ledger: rows, and transactions that are durable when they end."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from sfumato.ledger.journal import Entry

# The states of a charge. Only these steps exist: reserved -> executing | voided;
# executing -> committed | forfeited.
RESERVED, EXECUTING, COMMITTED, FORFEITED, VOIDED = "reserved", "executing", "committed", "forfeited", "voided"


@dataclass(frozen=True, slots=True)
class AccountRow:
    """An account as stored; ``contract``, ``gates`` and ``spent`` are canonical JSON."""

    dataset: str
    contract: str
    gates: str
    spent: str


@dataclass(frozen=True, slots=True)
class ChargeRow:
    """A charge as stored; ``cost`` and ``event`` are canonical JSON."""

    id: str
    dataset: str
    analyst: str
    state: str
    question: str
    statement: str
    cost: str
    event: str
    reason: str
    acknowledged: int = 0


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """An answer as stored: the charge that paid for it, its keys, its bytes."""

    charge: str
    question: str
    statement: str
    body: bytes


class Store(Protocol):
    """Rows of a ledger. Every write happens inside ``transaction``."""

    def transaction(self) -> AbstractContextManager[None]:
        """All or nothing; on disk when it ends."""
        ...

    def last_entry(self) -> Entry | None: ...
    def append(self, entry: Entry) -> None: ...
    def entries(self) -> Iterator[Entry]: ...
    def account(self, dataset: str) -> AccountRow | None: ...
    def accounts(self) -> list[AccountRow]: ...
    def put_account(self, row: AccountRow) -> None: ...
    def charge(self, charge_id: str) -> ChargeRow | None: ...
    def charges(self, *states: str) -> Iterator[ChargeRow]: ...
    def put_charge(self, row: ChargeRow) -> None: ...
    def failures(self, dataset: str, analyst: str) -> int:
        """Forfeited charges of an analyst that the owner has not looked at."""
        ...

    def acknowledge(self, dataset: str) -> int: ...
    def answer(self, question: str) -> bytes | None: ...
    def first_answer(self, statement: str) -> bytes | None:
        """The earliest answer to a statement, at any cost."""
        ...

    def answers(self) -> Iterator[AnswerRow]: ...
    def put_answer(self, row: ChargeRow, body: bytes) -> None: ...
    def damage(self) -> list[str]:
        """What the store itself finds wrong with its pages."""
        ...

    def checkpoint(self) -> None:
        """Brings everything into the main file, so that a copy of it alone knows the account."""
        ...

    def close(self) -> None: ...
