# SPDX-License-Identifier: Apache-2.0
"""What only the owner does: limits, freezing, sharing, new periods. Each act is in the journal."""

import json
from collections.abc import Callable
from typing import TypeVar

from sfumato.accounting.filter import NOTHING, Gates
from sfumato.errors import LedgerCorrupt, WrongUse
from sfumato.ledger.balance import balance_admits, charge_text, gates_to_json
from sfumato.ledger.binding import moved_to
from sfumato.ledger.books import Books, child, unknown_account
from sfumato.ledger.journal import canonical_json, chained, genesis, iso_time
from sfumato.ledger.store.base import AccountRow, ChargeRow, Rows, Store
from sfumato.ledger.tree import Scope, lineage_of
from sfumato.metadata.contract import Contract
from sfumato.privacy.budget import Budget
from sfumato.privacy.event import Json

T = TypeVar("T")


class Owner:
    """The owner's acts on the ledger of a store. ``reason`` is for whoever reads the journal."""

    _store: Store

    def adopt(self, contract: Contract, budget: Budget) -> None:
        """Opens the account of a dataset, or checks that it is the same one."""
        scope = Scope(contract.dataset)
        form = contract.to_json()

        def unit(rows: Rows) -> bool:
            known = rows.lock([scope.id]).get(scope.id)
            if known is not None:
                contract.require_same(json.loads(known.contract))
                return False
            limit, gates = _limit_to_json(budget), gates_to_json(Gates.of(budget))
            fresh = child(scope.id)._replace(contract=canonical_json(form), policy="{}")
            (row,), said = moved_to([_limited(fresh, limit, gates)], 1)
            body: dict[str, Json] = {"account": scope.id, "contract": form, "limit": limit, "gates": gates}
            entry = chained(scope.id, 1, iso_time(rows.now()), "account", {**body, "moved": said}, genesis(scope.id))
            rows.append(entry)
            rows.put_account(row._replace(seq=entry.seq, head=entry.hash))
            return True

        if self._write(unit):
            self._store.checkpoint()

    def allocate(self, dataset: str, budget: Budget | None, *, purpose: str = "", analyst: str = "") -> None:
        """Sets the limit of an account; None takes it away, where an account above bounds it.

        A limit below what is spent admits nothing more and takes nothing back. The limit of
        a dataset is part of its contract: sessions then open it with the new budget.
        """
        scope = Scope(dataset, purpose, analyst)
        if budget is None and not scope.parent:
            raise WrongUse("A dataset without a limit.", allowed="a budget; None only below a dataset")
        limit = None if budget is None else _limit_to_json(budget)
        gates = None if budget is None else gates_to_json(Gates.of(budget))

        def unit(rows: Rows) -> None:
            books = Books(rows, scope.id)
            books.put(_limited(books.own, limit, gates))
            books.note("allocate", {"account": scope.id, "limit": limit, "gates": gates})
            books.save()

        self._write(unit)

    def refresh(self, dataset: str, budget: Budget, *, purpose: str = "", analyst: str = "", reason: str) -> None:
        """Closes an account's period and begins the next with a limit of its own.

        The rows have been there all the time: over their lifetime they are protected by the
        sum of the limits of all periods, which ``Standing.lifetime`` gives. Refreshing an
        account below a dataset leaves the dataset's limit as it is.

        Raises:
            WrongUse: more is spent than the limit in force allows; raise it to what was spent first.
        """
        scope = Scope(dataset, purpose, analyst)
        _require_reason(reason)
        limit, gates = _limit_to_json(budget), gates_to_json(Gates.of(budget))

        def unit(rows: Rows) -> None:
            books = Books(rows, scope.id)
            own = books.own
            if own.gates and not balance_admits(own.gates, own.spent, own.held):
                raise WrongUse(
                    f"The account {scope.id!r} has spent more than its limit, which was lowered.",
                    remedy="Raise the limit to what was spent first: the period then closes with a limit that it kept.",
                )
            closed = {"limit": json.loads(own.limit) if own.limit else None, "spent": json.loads(own.spent)}
            earlier = canonical_json([*json.loads(own.earlier), closed])
            books.put(_limited(own._replace(spent=charge_text(NOTHING), earlier=earlier), limit, gates))
            books.note("refresh", {"account": scope.id, "limit": limit, "gates": gates, "reason": reason})
            books.save()

        self._write(unit)

    def freeze(
        self, dataset: str, *, purpose: str = "", analyst: str = "", reason: str = "frozen by the owner"
    ) -> None:
        """Refuses every new charge on an account and below it.

        A charge that executes already is completed: it is paid, and its answer is stored.
        """
        scope = Scope(dataset, purpose, analyst)
        _require_reason(reason)

        def unit(rows: Rows) -> None:
            books = Books(rows, scope.id)
            books.put(books.own._replace(frozen=reason))
            books.note("freeze", {"account": scope.id, "reason": reason})
            books.save()

        self._write(unit)

    def thaw(self, dataset: str, *, purpose: str = "", analyst: str = "") -> int:
        """Undoes ``freeze``, and acknowledges the failures on an account and below it: how many."""
        scope = Scope(dataset, purpose, analyst)

        def unit(rows: Rows) -> int:
            books = Books(rows, scope.id)
            seen = [row for row in rows.failures(scope.root) if is_below(row, scope.id)]
            for row in seen:
                rows.put_charge(row._replace(acknowledged=1))
            books.put(books.own._replace(frozen=""))
            books.note("thaw", {"account": scope.id, "failures": len(seen)})
            books.save()
            return len(seen)

        return self._write(unit)

    def share_answers(self, dataset: str, *, allowed: bool) -> None:
        """Whether an answer that one analyst paid for is given to another, who pays for it too."""
        scope = Scope(dataset)

        def unit(rows: Rows) -> None:
            books = Books(rows, scope.id)
            books.put(books.root._replace(policy=canonical_json({"sharing": allowed})))
            books.note("policy", {"account": scope.id, "sharing": allowed})
            books.save()

        self._write(unit)

    def _row(self, dataset: str) -> AccountRow:
        row = self._store.peek(Scope(dataset).id)
        if row is None:
            raise unknown_account(Scope(dataset).id)
        return row

    def _write(self, unit: Callable[[Rows], T]) -> T:
        return readable(lambda: self._store.write(unit))


def readable(work: Callable[[], T]) -> T:
    """What a row that says nothing sensible raises, as ours."""
    try:
        return work()
    except (ValueError, KeyError, TypeError) as error:
        raise LedgerCorrupt(f"A row of the ledger cannot be read ({type(error).__name__}).") from None


def is_below(row: ChargeRow, account_id: str) -> bool:
    """Whether a charge was on an account or below it."""
    return account_id in lineage_of(row.account)


def _require_reason(reason: str) -> None:
    if not isinstance(reason, str) or not reason or not reason.isprintable():
        raise WrongUse(f"reason={reason!r}.", allowed="a text of printable characters, for whoever reads the journal")


def _limited(row: AccountRow, limit: Json, gates: Json) -> AccountRow:
    """An account with another limit; a dataset's is in its contract too."""
    contract = row.contract
    if contract:
        assert isinstance(limit, dict), "a dataset has a limit"
        contract = canonical_json({**json.loads(contract), **limit})
    return row._replace(
        contract=contract,
        limit="" if limit is None else canonical_json(limit),
        gates="" if gates is None else canonical_json(gates),
    )


def _limit_to_json(budget: Budget) -> dict[str, Json]:
    return {"epsilon": str(budget.epsilon), "delta": str(budget.delta)}
