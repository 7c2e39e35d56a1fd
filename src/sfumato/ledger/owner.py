# SPDX-License-Identifier: Apache-2.0
"""The owner's commands: set limits, freeze, share answers, start periods; each a journal entry."""

import copy
import json
import os
import pwd
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Self, TypeVar

from sfumato.accounting.budget_gates import NOTHING, Gates
from sfumato.errors import LedgerCorrupt, WrongUse
from sfumato.ledger.account_path import LONGEST_NAME, Scope, lineage_of, require_storable
from sfumato.ledger.account_transaction import LockedAccounts, child, unknown_account
from sfumato.ledger.balance import (
    balance_admits,
    charge_from_text,
    charge_text,
    gates_to_json,
)
from sfumato.ledger.binding import moved_to
from sfumato.ledger.head_watch import HeadWatch
from sfumato.ledger.journal import canonical_json, chained, genesis, iso_time
from sfumato.ledger.liveness import require_not_moved
from sfumato.ledger.names import folded, require_new
from sfumato.ledger.policy import (
    CLOSED,
    LISTED,
    PAST,
    SHARING,
    SOURCES,
    decided,
    earlier_acts,
    limited_accounts,
    past_limits,
    same_people,
    shared_sources,
    to_list,
    with_policy,
)
from sfumato.ledger.store.base import FORFEITED, AccountRow, ChargeRow, Rows, Store
from sfumato.metadata.contract import Contract
from sfumato.privacy.budget import Budget
from sfumato.privacy.event import Json

T = TypeVar("T")

# In bytes of UTF-8.
LONGEST_REASON = 1000
# The number of accounts that ``allocate_all`` sets in one transaction.
_TOGETHER = 250


class Owner:
    """The owner's commands on a ledger. The journal records the actor and ``reason`` of each
    command.

    Guarantees:
        every act of the owner names its actor
        a list of names closes a dataset
    """

    _store: Store
    # publishes heads outside of the ledger
    heads: HeadWatch
    _actor: str = ""

    @property
    def actor(self) -> str:
        """The name that the journal records for the owner's commands; by default the user's."""
        return self._actor or _user(os.getuid())

    def acting_as(self, actor: str) -> Self:
        """Returns this ledger with another actor in its journal; closing either closes both."""
        require_storable("actor", actor, LONGEST_NAME)
        if not actor:
            raise WrongUse(
                "An actor without a name.", allowed="who does it, for whoever reads the journal"
            )
        other = copy.copy(self)
        other._actor = actor
        return other

    def adopt(
        self,
        contract: Contract,
        budget: Budget,
        *,
        sources: Collection[str] = (),
        other_people: str = "",
    ) -> None:
        """Opens the account of a dataset, or checks that it has the same privacy contract.

        ``sources`` name the places of its data. ``other_people`` is the owner's reason why a source
        that another dataset of this ledger also has is about other people here.

        Raises:
            ContractMismatch: the dataset has another contract, or another dataset has one of its
                sources.
        """
        scope = Scope(contract.dataset)
        require_reason(other_people)

        def transaction(rows: Rows) -> bool:
            account = rows.lock([scope.id]).get(scope.id)
            require_not_moved(rows, self._store.place)
            if account is None:
                # so that of two spellings of a name that are opened at once, the second is refused
                rows.lock([f"name {folded(scope.id)}"])
                self._open(
                    rows, contract, budget, _places(rows, scope.id, [], sources, other_people)
                )
                return True
            contract.require_same(json.loads(account.contract))
            self._bring_forward(rows, account)
            places = _places(
                rows, scope.id, decided(account).get(SOURCES, []), sources, other_people
            )
            if places:
                locked = LockedAccounts(rows, scope.id)
                locked.put(with_policy(locked.root, {SOURCES: places[SOURCES]}))
                self._tell(locked, "policy", {"account": scope.id, **places}, "")
            return False

        if self._write(transaction):
            self._store.checkpoint()

    def _open(
        self, rows: Rows, contract: Contract, budget: Budget, places: dict[str, Json]
    ) -> None:
        """Creates a dataset's account and the first entry of its chain."""
        scope, form = Scope(contract.dataset), contract.to_json()
        require_new(rows, scope.id)
        limit, gates = _limit_to_json(budget), gates_to_json(Gates.of(budget))
        decisions: dict[str, Json] = {
            PAST: list[Json](),
            SOURCES: places.pop(SOURCES, list[Json]()),
        }
        fresh = with_policy(child(scope.id), decisions)._replace(contract=canonical_json(form))
        (row,), digests = moved_to([_limited(fresh, limit, gates)], 1)
        body: dict[str, Json] = {
            "account": scope.id,
            "contract": form,
            "limit": limit,
            "gates": gates,
            "policy": decisions,
            "actor": self.actor,
            "moved": digests,
            **places,
        }
        at, start = iso_time(rows.now()), genesis(scope.id)
        entry = chained(scope.id, 1, at, "account", body, start)
        rows.append(entry)
        rows.put_account(row._replace(seq=entry.seq, head=entry.hash))

    def _bring_forward(self, rows: Rows, root: AccountRow) -> None:
        """Records once what format 4 stores of a dataset that was opened by an earlier format."""
        if PAST in decided(root):
            return
        acts = earlier_acts(rows, root.id)
        parents: set[str] = set()
        for account in limited_accounts(acts):
            parents.update(lineage_of(account)[:-1])
        above = sorted(parents)
        past: dict[str, Json] = {PAST: list[Json](past_limits(acts))}
        locked = LockedAccounts(rows, root.id)
        locked.take(above)
        for account_id in above:
            locked.put(with_policy(locked.accounts[account_id], {LISTED: True}))
        locked.put(with_policy(locked.root, past))
        locked.record(
            "policy", {"account": root.id, **past, "lists": list[Json](above), "actor": self.actor}
        )
        locked.save()

    def past_limits(self, dataset: str) -> tuple[tuple[str, str], ...]:
        """Returns the (epsilon, delta) limits under which formats before 4 stored answers."""
        return tuple(
            (epsilon, delta) for epsilon, delta in decided(self._row(dataset)).get(PAST, ())
        )

    def allocate(
        self,
        dataset: str,
        budget: Budget | None,
        *,
        purpose: str = "",
        analyst: str = "",
        reason: str = "",
    ) -> None:
        """Sets the limit of an account. None removes it, if an account above has one.

        A limit below what is spent admits nothing more and refunds nothing. The limit of a dataset
        is part of its contract: sessions then open it with the new budget. A limit of an account
        below it also opens that account: unopened names beside it are refused from then on, unless
        ``restrict`` has decided otherwise.
        """
        scope = Scope(dataset, purpose, analyst)
        limit, gates = _limit_of(scope, budget)
        require_reason(reason)
        self._write(lambda rows: self._allocate(rows, scope, limit, gates, reason))

    def allocate_all(self, limits: Mapping[Scope, Budget | None], *, reason: str = "") -> int:
        """Sets the limits of many accounts of a dataset, as ``allocate`` does; returns how many
        changed.

        Many accounts share one transaction. Accounts that already have the limit are skipped, so an
        interrupted call is completed by repeating it.

        Raises:
            WrongUse: accounts of several datasets; or as ``allocate``.

        >>> from sfumato.ledger import Ledger, Scope
        >>> from sfumato.privacy import Budget
        >>> def open_for(ledger: Ledger, analysts: list[str]) -> int:
        ...     scopes = [Scope("acs", "research", analyst) for analyst in analysts]
        ...     return ledger.allocate_all({scope: Budget(1) for scope in scopes})
        """
        require_reason(reason)
        if len({scope.root for scope in limits}) > 1:
            raise WrongUse(
                "Limits of several datasets.", remedy="Set those of one dataset after the other."
            )
        limited_scopes = [(scope, *_limit_of(scope, budget)) for scope, budget in limits.items()]

        def transaction(rows: Rows, some: Sequence[tuple[Scope, Json, Json]]) -> int:
            changed = 0
            for scope, limit, gates in some:
                known = rows.account(scope.id)
                stored = "" if limit is None else canonical_json(limit)
                if known is None or known.limit != stored:
                    self._allocate(rows, scope, limit, gates, reason)
                    changed += 1
            return changed

        changed = 0
        for start in range(0, len(limited_scopes), _TOGETHER):
            some = limited_scopes[start : start + _TOGETHER]
            changed += self._write(partial(transaction, some=some))
        return changed

    def _allocate(self, rows: Rows, scope: Scope, limit: Json, gates: Json, reason: str) -> None:
        locked = LockedAccounts(rows, scope.id)
        gates = _at_orders(locked.own, limit, gates)
        locked.put(_limited(locked.own, limit, gates))
        body: dict[str, Json] = {"account": scope.id, "limit": limit, "gates": gates}
        self._tell(locked, "allocate", body | _listed(locked), reason)

    def restrict(self, dataset: str, *, closed: bool, reason: str = "") -> None:
        """Decides whether any account may spend, or only those that the owner has opened.

        Existing accounts stay open. The decision holds until it is changed.
        """
        self._decide(dataset, {CLOSED: closed}, reason)

    def is_closed(self, dataset: str) -> bool | None:
        """Whether only accounts opened by the owner may spend; None if not decided."""
        closed: bool | None = decided(self._row(dataset)).get(CLOSED)
        return closed

    def share_answers(self, dataset: str, *, allowed: bool, reason: str = "") -> None:
        """Decides whether analysts may get, at full cost, an answer that another one paid for."""
        self._decide(dataset, {SHARING: allowed}, reason)

    def go_without_heads(self, dataset: str, *, silence: str, reason: str) -> None:
        """Records the owner's consent to charge though no sink replied; ``silence`` says why not."""
        scope = Scope(dataset)
        require_reason(reason, needed=True)

        def transaction(rows: Rows) -> None:
            self._tell(
                LockedAccounts(rows, scope.id),
                "policy",
                {"account": scope.id, "without_heads": silence},
                reason,
            )

        self._write(transaction)

    def refresh(
        self, dataset: str, budget: Budget, *, purpose: str = "", analyst: str = "", reason: str
    ) -> None:
        """Closes the current period of an account and starts a new one with its own limit.

        The same rows are exposed in all periods: over their lifetime they are protected by the sum
        of the limits of all periods, ``Standing.lifetime``. Refreshing an account below a dataset
        leaves the dataset's limit unchanged.

        Raises:
            WrongUse: more is spent than the present limit; raise the limit to that first.
        """
        scope = Scope(dataset, purpose, analyst)
        require_reason(reason, needed=True)
        limit, best = _limit_to_json(budget), gates_to_json(Gates.of(budget))

        def transaction(rows: Rows) -> None:
            locked = LockedAccounts(rows, scope.id)
            own = locked.own
            gates = _at_orders(own, limit, best)
            # what is reserved stays reserved, at its orders
            fresh = replace(NOTHING, orders=charge_from_text(own.spent).orders)
            if own.gates and not balance_admits(own.gates, own.spent, own.held):
                raise WrongUse(
                    f"The account {scope.id!r} has spent more than its limit, which was lowered.",
                    remedy="Raise the limit to what was spent first: the period then closes with "
                    "a limit that it kept.",
                )
            closed = {
                "limit": json.loads(own.limit) if own.limit else None,
                "spent": json.loads(own.spent),
            }
            earlier = canonical_json([*json.loads(own.earlier), closed])
            locked.put(
                _limited(own._replace(spent=charge_text(fresh), earlier=earlier), limit, gates)
            )
            body: dict[str, Json] = {"account": scope.id, "limit": limit, "gates": gates}
            self._tell(locked, "refresh", body | _listed(locked), reason)

        self._write(transaction)

    def freeze(
        self,
        dataset: str,
        *,
        purpose: str = "",
        analyst: str = "",
        reason: str = "frozen by the owner",
    ) -> None:
        """Freezes an account: every new charge on it or on an account below it is refused.

        A charge that is already executing is completed: it is paid and its answer stored.
        """
        scope = Scope(dataset, purpose, analyst)
        require_reason(reason, needed=True)

        def transaction(rows: Rows) -> None:
            locked = LockedAccounts(rows, scope.id)
            locked.put(locked.own._replace(frozen=reason))
            self._tell(locked, "freeze", {"account": scope.id}, reason)

        self._write(transaction)

    def thaw(self, dataset: str, *, purpose: str = "", analyst: str = "", reason: str = "") -> int:
        """Unfreezes an account; acknowledges failures on it and below it, and returns their number."""
        scope = Scope(dataset, purpose, analyst)
        require_reason(reason)

        def transaction(rows: Rows) -> int:
            locked = LockedAccounts(rows, scope.id)
            require_not_moved(rows, self._store.place)
            failures = [row for row in rows.failures(scope.root) if is_below(row, scope.id)]
            for row in failures:
                rows.put_charge(row._replace(acknowledged=int(row.state == FORFEITED), failures=0))
            locked.put(locked.own._replace(frozen=""))
            self._tell(locked, "thaw", {"account": scope.id, "failures": len(failures)}, reason)
            return len(failures)

        return self._write(transaction)

    def _decide(self, dataset: str, decision: dict[str, Json], reason: str) -> None:
        scope = Scope(dataset)
        require_reason(reason)

        def transaction(rows: Rows) -> None:
            locked = LockedAccounts(rows, scope.id)
            locked.put(with_policy(locked.root, decision))
            self._tell(locked, "policy", {"account": scope.id, **decision}, reason)

        self._write(transaction)

    def _tell(self, locked: LockedAccounts, kind: str, body: dict[str, Json], reason: str) -> None:
        """Records a command with its actor and reason."""
        why: dict[str, Json] = {"reason": reason} if reason else {}
        locked.record(kind, {**body, "actor": self.actor, **why})
        locked.save()

    def _row(self, dataset: str) -> AccountRow:
        row = self._store.peek(Scope(dataset).id)
        if row is None:
            raise unknown_account(Scope(dataset).id)
        return row

    def _write(self, transaction: Callable[[Rows], T]) -> T:
        self.heads.require()
        done = readable(lambda: self._store.write(transaction))
        self.heads.step()
        return done


def readable(work: Callable[[], T]) -> T:
    """Runs ``work``, which parses stored rows, and returns its result.

    A row that does not parse raises LedgerCorrupt.
    """
    try:
        return work()
    except (ValueError, KeyError, TypeError) as error:
        raise LedgerCorrupt(
            f"A row of the ledger cannot be read ({type(error).__name__})."
        ) from None


def is_below(row: ChargeRow, account_id: str) -> bool:
    """Whether a charge was made on this account or on one below it."""
    return account_id in lineage_of(row.account)


def _places(
    rows: Rows, dataset: str, recorded: Sequence[str], sources: Collection[str], other_people: str
) -> dict[str, Json]:
    """The members of an entry that adds places of a dataset's data; empty if none is new.

    If another dataset has a new place too, they contain the owner's reason.

    Raises:
        ContractMismatch: another dataset has a new place, and the owner gave no reason.
    """
    new = sorted(set(sources) - set(recorded))
    if not new:
        return {}
    # so that of two datasets with one source that are opened at once, the second sees the first
    rows.lock([f"source {place}" for place in new])
    others = shared_sources(rows, dataset, new)
    if others and not other_people:
        raise same_people(dataset, others)
    body: dict[str, Json] = {SOURCES: [*recorded, *new]}
    if others:
        body |= {"other_people": list[Json](sorted(others)), "reason": other_people}
    return body


def require_reason(reason: str, *, needed: bool = False) -> None:
    """Refuses a reason that is no string or has more than 1,000 bytes; an empty one if ``needed``."""
    if not isinstance(reason, str) or not reason.isprintable() or (needed and not reason):
        raise WrongUse(
            f"reason={reason!r}.", allowed="printable characters, for whoever reads the journal"
        )
    if len(reason.encode()) > LONGEST_REASON:
        raise WrongUse(
            f"A reason of {len(reason.encode())} bytes.",
            allowed=f"at most {LONGEST_REASON} bytes in UTF-8",
        )


def _listed(locked: LockedAccounts) -> dict[str, Json]:
    """Remembers that names below the accounts above are listed; of which it is the first."""
    above = to_list(locked.accounts[account_id] for account_id in locked.lineage[:-1])
    for account_id in above:
        locked.put(with_policy(locked.accounts[account_id], {LISTED: True}))
    return {"lists": list[Json](above)} if above else {}


@lru_cache(maxsize=8)
def _user(uid: int) -> str:
    """The name of a user of the operating system."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"


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


def _at_orders(own: AccountRow, limit: Json, gates: Json) -> Json:
    """Returns the caps of a new limit, converted at an order at which earlier spending has a price."""
    orders = charge_from_text(own.spent).orders
    if orders is None or not isinstance(limit, dict):
        return gates
    epsilon = str(limit["epsilon"])
    delta = str(limit["delta"])
    return gates_to_json(Gates.of(Budget(epsilon, delta), orders))


def _limit_of(scope: Scope, budget: Budget | None) -> tuple[Json, Json]:
    """The stored forms of a limit and its gates; None for none."""
    if budget is None and not scope.parent:
        raise WrongUse("A dataset without a limit.", allowed="a budget; None only below a dataset")
    return (
        (None, None)
        if budget is None
        else (_limit_to_json(budget), gates_to_json(Gates.of(budget)))
    )


def _limit_to_json(budget: Budget) -> dict[str, Json]:
    return {"epsilon": str(budget.epsilon), "delta": str(budget.delta)}
