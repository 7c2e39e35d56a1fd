# SPDX-License-Identifier: Apache-2.0
"""The accounts and charges of a replay, and the form in which ``verified`` stores them."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from operator import sub
from typing import Any

from sfumato.accounting.budget_gates import Charge, Orders, common
from sfumato.ledger.account_path import lineage_of
from sfumato.ledger.balance import Held, charge_from_text, charge_text, gates_from_text, held_text
from sfumato.ledger.digests import charge_digest
from sfumato.ledger.journal import canonical_json
from sfumato.ledger.names import folded
from sfumato.ledger.pieces import gone_on
from sfumato.ledger.store.base import COUNTED, EXECUTING, RESERVED, SUSPENDED, AccountRow, ChargeRow
from sfumato.privacy.event import Json

# the steps of a charge that is answered in instalments, each from a state to a state
GOING_ON = {
    "begin": (EXECUTING, EXECUTING),
    "append": (EXECUTING, EXECUTING),
    "suspend": (EXECUTING, SUSPENDED),
    "resume": (SUSPENDED, EXECUTING),
}


@dataclass(slots=True)
class Sum:
    """A mutable sum of charges during a replay of the journal.

    ``unbounded`` counts the charges without a finite epsilon, which ``epsilon`` cannot hold.
    ``orders`` are the Renyi orders that every charge so far has, as in ``Charge``.
    """

    epsilon: int = 0
    rho: int = 0
    delta: int = 0
    unbounded: int = 0
    orders: Orders = None

    @classmethod
    def of(cls, parts: Iterable[int]) -> "Sum":
        """Returns the sum with these four integers: epsilon, rho, delta and unbounded."""
        epsilon, rho, delta, unbounded = parts
        return cls(epsilon, rho, delta, unbounded)

    def move(self, charge: Charge, sign: int) -> None:
        """Adds a charge if ``sign`` is 1, subtracts it if it is -1."""
        if charge.epsilon is None:
            self.unbounded += sign
        else:
            self.epsilon += sign * charge.epsilon
        self.rho += sign * charge.rho
        self.delta += sign * charge.delta
        self.orders = common(self.orders, charge.orders)

    @property
    def parts(self) -> tuple[int, int, int, int]:
        """The four integers of the sum: epsilon, rho, delta and unbounded."""
        return self.epsilon, self.rho, self.delta, self.unbounded

    @property
    def charge(self) -> Charge:
        """The sum of charges as an immutable ``Charge``."""
        pure = None if self.unbounded else self.epsilon
        return Charge(pure, self.rho, self.delta, self.orders)


@dataclass(slots=True)
class Book:
    """The limit, spending and decisions of one account during a replay of the journal.

    ``taken`` is the sum of what is spent and what is reserved.
    """

    contract: str = ""
    limit: str = ""
    gates: str = ""
    spent: Sum = field(default_factory=Sum)
    taken: Sum = field(default_factory=Sum)
    frozen: str = ""
    policy: str = ""
    earlier: list[Json] = field(default_factory=list)
    moved: int = 0
    digest: str = ""

    @classmethod
    def from_json(cls, form: list[Any]) -> "Book":
        """Parses a stored account of a replay.

        Raises:
            TypeError, ValueError: ``form`` is no stored account.
        """
        book = cls(*form[:10])
        book.spent, book.taken = Sum.of(map(int, form[3])), Sum.of(map(int, form[4]))
        if len(form) > 10:
            book.taken.orders = frozenset(map(Fraction, form[10]))
        return book

    def to_json(self) -> list[Json]:
        """Returns the fields in a fixed order, for ``from_json``."""
        orders = self.taken.orders
        order_list: list[Json] = []
        if orders is not None:
            order_list = [[str(order) for order in sorted(orders)]]
        return [
            self.contract,
            self.limit,
            self.gates,
            list[Json](map(str, self.spent.parts)),
            list[Json](map(str, self.taken.parts)),
            self.frozen,
            self.policy,
            self.earlier,
            self.moved,
            self.digest,
            *order_list,
        ]

    @property
    def held(self) -> Sum:
        """The sum of the account's reserved charges."""
        return Sum.of(map(sub, self.taken.parts, self.spent.parts))

    @property
    def settled(self) -> Charge:
        """The sum of the account's spent charges, at the Renyi orders that all its charges
        share.
        """
        return replace(self.spent.charge, orders=self.taken.orders)

    def row(self, account_id: str, seq: int, head: str) -> AccountRow:
        """Returns the row that the ledger's table of accounts must have for this account."""
        parent, _, _ = account_id.rpartition("/")
        return AccountRow(
            account_id,
            parent,
            self.contract,
            self.limit,
            self.gates,
            charge_text(self.settled),
            held_text(Held(*self.held.parts)),
            self.frozen,
            self.policy,
            canonical_json(self.earlier),
            seq,
            head,
            folded(account_id),
            moved=self.moved,
        )

    def is_beyond(self) -> bool:
        """Whether what the account has spent and reserved exceeds its caps."""
        return bool(self.gates) and not gates_from_text(self.gates).admits(self.taken.charge)


@dataclass(slots=True)
class Open:
    """A charge that is not final yet during a replay of the journal, and its progress.

    ``answered`` is the digest of its answer and of the answer's entry.
    """

    place: int
    row: ChargeRow
    cost: Charge
    lineage: tuple[str, ...]
    state: str = RESERVED
    reason: str = ""
    pieces: str = ""
    failures: int = 0
    answered: bytes = b""

    @classmethod
    def from_json(cls, place: int, form: list[Any]) -> "Open":
        """Parses a stored charge. ``place`` is its position in the array of digests."""
        cells, state, reason, pieces, failures, answered = form
        row = ChargeRow._make(cells)
        return cls(
            place,
            row,
            charge_from_text(row.cost),
            lineage_of(row.account),
            state,
            reason,
            pieces,
            int(failures),
            bytes.fromhex(answered),
        )

    def to_json(self) -> list[Json]:
        """Returns the open charge and its progress as JSON, which ``from_json`` reads."""
        return [
            list[Json](self.row),
            self.state,
            self.reason,
            self.pieces,
            self.failures,
            self.answered.hex(),
        ]

    def digest(self, acknowledged: int = 0) -> bytes:
        """Returns the digest that the charge's row in the ledger's table must have."""
        return charge_digest(
            self.row, self.state, self.reason, acknowledged, self.pieces, self.failures
        )

    def go_on(self, kind: str, body: dict[str, Any]) -> bool:
        """Applies an entry that continues a charge with instalments.

        Returns False, and changes nothing, if no ledger would have written the entry.
        """
        before, after = GOING_ON[kind]
        if self.state != before or not self.pieces:
            return False
        self.pieces = gone_on(self.pieces, kind, body)
        self.state, self.reason = after, body.get("reason", "")
        if kind == "suspend":
            self.failures += self.reason in COUNTED
        return True
