# SPDX-License-Identifier: Apache-2.0
"""Replays the journal: computes every account, charge and key from the entries alone.

The cost of each charge is recomputed from its event. A finished charge is kept as two digests of
sixteen bytes, its own and its answer's, and a number, so that millions fit into memory.
"""

import json
import marshal
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from operator import itemgetter
from typing import Any, TypeAlias

from sfumato.accounting.budget_gates import Charge
from sfumato.accounting.order_price import price
from sfumato.ledger.account_path import Scope, lineage_of
from sfumato.ledger.balance import charge_from_json, charge_to_json
from sfumato.ledger.charge_entry import named, opened_row
from sfumato.ledger.digests import DIGEST, NUMBER, PLACE, instalment_digest, row_digest
from sfumato.ledger.journal import LEGACY, Entry, canonical_json, read_json
from sfumato.ledger.liveness import moved_reason
from sfumato.ledger.pieces import opened_pieces
from sfumato.ledger.policy import DECISIONS, LISTED, PAST, merged
from sfumato.ledger.replayed import GOING_ON, Book, Open, Sum
from sfumato.ledger.store.base import (
    COMMITTED,
    EXECUTING,
    FORFEITED,
    RESERVED,
    UNENDED,
    VOIDED,
    AccountRow,
    KeyRow,
    PartRow,
)
from sfumato.ledger.stored_answers import sharers
from sfumato.privacy.event import Json, event_from_json

_STEPS = {
    "execute": (RESERVED, EXECUTING),
    "commit": (EXECUTING, COMMITTED),
    "forfeit": (EXECUTING, FORFEITED),
    "void": (RESERVED, VOIDED),
}
# An answer that may be shared: the account that paid for it, its cost and its digest.
Source: TypeAlias = tuple[str, str, str]
NO_SOURCE: Source = ("", "", "")
# Cached costs, one for each event; a ledger has few different ones.
_COSTS_KEPT = 100_000


@dataclass(slots=True)
class Replay:
    """The state of a ledger computed from its journal alone, to compare with the stored tables.

    ``apply`` takes each entry, chain by chain. ``problems`` lists entries that no ledger would have
    written. A replay that continues an earlier verification (``verified``) starts with ``before``
    charges, of which those in ``older`` were not final; ``find_source`` looks up a shared answer of
    that time.
    """

    problems: list[str] = field(default_factory=list)
    books: dict[str, Book] = field(default_factory=dict)
    heads: dict[str, tuple[int, str]] = field(default_factory=dict)
    open: dict[str, Open] = field(default_factory=dict)
    keys: bytearray = field(default_factory=bytearray)
    parts: bytearray = field(default_factory=bytearray)
    instalments: bytearray = field(default_factory=bytearray)
    answers: int = 0
    before: int = 0
    older: list[Open] = field(default_factory=list)
    find_source: Callable[[str], Source] = lambda _: NO_SOURCE
    # by place: the failures that the owner has not acknowledged yet
    failed: dict[int, Open] = field(default_factory=dict)
    # by dataset: every limit that it has had, as in the answer keys of formats before 4
    limits: dict[str, list[list[str]]] = field(default_factory=dict)
    _ended: bytearray = field(default_factory=bytearray)
    _opened_by: dict[str, "array[int]"] = field(
        default_factory=lambda: defaultdict(partial(array, "q"))
    )
    _costs: dict[bytes, tuple[Charge, dict[str, Json], str]] = field(default_factory=dict)
    # by charge: the answers that can be shared
    _sources: dict[str, Source] = field(default_factory=dict)

    @property
    def charges(self) -> int:
        """The number of charges replayed so far."""
        return self.before + len(self._ended) // PLACE - len(self.older)

    def apply(self, entry: Entry) -> None:
        """Updates the state by the next journal entry."""
        act = _ACTS.get(entry.kind)
        if act is None:
            self.problems.append(f"{named(entry)} is of an unknown kind")
        else:
            body = read_json(entry.body)
            act(self, entry, body)
            self._move(entry, body.get("moved", {}))
        self.heads[entry.chain] = (entry.seq, entry.hash)

    def go_on(self, unfinished: Iterable[Open]) -> None:
        """Adds the charges that were still open at the end of an earlier verification, in its
        order.

        They come first, in the order in which that verification stored them.
        """
        for charge in unfinished:
            assert charge.place == len(self._ended), "they have the first places"
            self.older.append(charge)
            self._ended += charge.digest() + charge.answered.ljust(PLACE - DIGEST, b"\0")
            if charge.state == FORFEITED or charge.failures:
                self.failed[charge.place] = charge
            if charge.state in UNENDED:
                self.open[charge.row.id] = charge

    def ended(self) -> Iterator[tuple[tuple[str, int], bytes, bytes]]:
        """Yields, for each charge, its (chain, entry number), its digest, and its answer's digest.

        They are in the order of chains and entries.
        """
        content, place = self._contents(), len(self.older) * PLACE
        for chain, entries in self._opened_by.items():
            for seq in entries:
                middle, end = place + DIGEST, place + PLACE
                yield (chain, seq), content[place:middle], content[middle:end]
                place = end

    def older_ended(self) -> Iterator[tuple[str, bytes, bytes]]:
        """Yields, for each charge of ``older``, its id, its digest, and its answer's digest."""
        content = self._contents()
        for charge in self.older:
            middle, end = charge.place + DIGEST, charge.place + PLACE
            yield charge.row.id, content[charge.place : middle], content[middle:end]

    def rows(self) -> list[AccountRow]:
        """Returns the account rows that a sound ledger must have after these journal entries."""
        rows: list[AccountRow] = []
        for account_id, book in sorted(self.books.items(), key=itemgetter(0)):
            # only the account of a dataset has the end of a chain
            seq, head = 0, ""
            if "/" not in account_id:
                seq, head = self.heads.get(account_id, (0, ""))
            rows.append(book.row(account_id, seq, head))
        return rows

    def book(self, account_id: str) -> Book:
        """Returns the replayed state of an account; creates it for an account below a dataset."""
        if account_id not in self.books:
            scope = Scope.of(account_id)
            if not scope.parent or scope.root not in self.books:
                raise KeyError(account_id)
            self.books[account_id] = Book()
        return self.books[account_id]

    def account(self, entry: Entry, body: dict[str, Any]) -> None:
        """Replays an entry that opens the account of a dataset."""
        contract = body["contract"]
        limit = body.get("limit") or {"epsilon": contract["epsilon"], "delta": contract["delta"]}
        root = Scope(contract["dataset"]).id
        if root in self.books or entry.chain not in (root, LEGACY):
            self.problems.append(
                f"{named(entry)} opens the account {root!r} where it cannot be opened"
            )
        self.books[root] = Book(
            contract=canonical_json(contract),
            limit=canonical_json(limit),
            gates=canonical_json(body["gates"]),
            policy=canonical_json(body.get("policy", {})),
        )
        self.limits[root] = [[limit["epsilon"], limit["delta"]]]

    def proceed(self, entry: Entry, body: dict[str, Any]) -> None:
        """Replays the first entry of a dataset's own chain, after the single chain of format 1."""
        if self.heads.get(LEGACY) != (body["continues"], body["head"]) or entry.seq != 1:
            self.problems.append(f"{named(entry)} does not continue the chain of format 1")

    def reserve(self, entry: Entry, body: dict[str, Any]) -> None:
        """Replays the reservation of a charge on every account of its path, within their caps."""
        charge = self._opened(entry, body)
        for account_id in charge.lineage:
            book = self.book(account_id)
            book.taken.move(charge.cost, 1)
            if book.is_beyond():
                self.problems.append(
                    f"account {account_id!r} has spent beyond its gates at {named(entry)}"
                )
        if charge.row.id in self.open:
            self.problems.append(f"{named(entry)} reserves charge {charge.row.id} a second time")
        self.open[charge.row.id] = charge

    def step(self, entry: Entry, body: dict[str, Any]) -> None:
        """Replays a charge's change of state: to executing, committed, voided or forfeited."""
        before, after = _STEPS[entry.kind]
        charge = self.open.get(body["charge"])
        if (
            charge is None
            or charge.state != before
            or entry.chain not in (LEGACY, charge.row.dataset)
        ):
            self.problems.append(f"{named(entry)} takes a charge to {after} that was not {before}")
            return
        charge.state, charge.reason = after, body.get("reason", "")
        if after == EXECUTING:
            charge.pieces = opened_pieces(body)
            return
        del self.open[charge.row.id]
        for account_id in charge.lineage:
            book = self.books[account_id]
            if after == VOIDED:
                book.taken.move(charge.cost, -1)
            else:
                book.spent.move(charge.cost, 1)
        if after == FORFEITED:
            self.failed[charge.place] = charge
        answer = ""
        if after == COMMITTED:
            answer = body["answer"]
        self._end(charge, answer, entry.seq)
        for part in body.get("parts", ()):
            self.parts += row_digest(PartRow(part, charge.row.id, entry.chain, entry.seq))
        if answer and charge.row.shared:
            self._sources[charge.row.id] = (charge.row.account, charge.row.cost, answer)

    def append(self, entry: Entry, body: dict[str, Any]) -> None:
        """Replays an entry on a charge's instalments: begun, stored, suspended or resumed."""
        charge = self.open.get(body["charge"])
        if (
            charge is None
            or entry.chain != charge.row.dataset
            or not charge.go_on(entry.kind, body)
        ):
            self.problems.append(f"{named(entry)} goes on with a charge that was elsewhere")
            return
        if charge.failures:
            self.failed[charge.place] = charge
        if entry.kind == "append":
            place, digest = body["place"], body["instalment"]
            self.instalments += instalment_digest(
                charge.row.id, place, digest, (entry.chain, entry.seq)
            )

    def share(self, entry: Entry, body: dict[str, Any]) -> None:
        """Replays a charge for another account's answer, paid by the accounts that have not
        paid.
        """
        charge = self._opened(entry, body)
        source, paid, answer = self._sources.get(body["source"]) or self.find_source(body["source"])
        if (paid, answer) != (charge.row.cost, body["answer"]):
            self.problems.append(
                f"{named(entry)} shares what is not the answer of {body['source']}"
            )
            return
        for sharer in sharers(charge.row.account, source):
            book = self.book(sharer)
            book.taken.move(charge.cost, 1)
            book.spent.move(charge.cost, 1)
            if book.is_beyond():
                self.problems.append(
                    f"account {sharer!r} has spent beyond its gates at {named(entry)}"
                )
        charge.state = COMMITTED
        self._end(charge, body["answer"], entry.seq)

    def recall(self, entry: Entry, body: dict[str, Any]) -> None:
        """Replays an entry that binds an idempotency key to a stored answer."""
        self._bind(entry, body)

    def allocate(self, entry: Entry, body: dict[str, Any]) -> None:
        """Replays the owner's change of an account's limit."""
        book = self.book(body["account"])
        limit, gates = body["limit"], body["gates"]
        if book.contract:
            book.contract = canonical_json({**json.loads(book.contract), **limit})
        book.limit = "" if limit is None else canonical_json(limit)
        book.gates = "" if gates is None else canonical_json(gates)
        had = self.limits.get(body["account"])
        if had is not None and limit is not None:
            new = [limit["epsilon"], limit["delta"]]
            if new not in had:
                had.append(new)
        self._list(body)

    def refresh(self, entry: Entry, body: dict[str, Any]) -> None:
        """Replays the start of a new budget period of an account."""
        book = self.book(body["account"])
        limit = json.loads(book.limit) if book.limit else None
        book.earlier.append({"limit": limit, "spent": charge_to_json(book.settled)})
        orders = book.taken.orders
        book.spent, book.taken = Sum(), book.held
        book.taken.orders = orders
        self.allocate(entry, body)

    def freeze(self, entry: Entry, body: dict[str, Any]) -> None:
        """Replays the freezing of an account."""
        self.book(body["account"]).frozen = body["reason"]

    def thaw(self, entry: Entry, body: dict[str, Any]) -> None:
        """Replays the unfreezing of an account, which acknowledges its failures."""
        account_id = body["account"] if "account" in body else Scope(body["dataset"]).id
        self.book(account_id).frozen = ""
        for place, charge in list(self.failed.items()):
            if account_id in charge.lineage:
                del self.failed[place]
                charge.failures = 0
                self._end(charge, "", entry.seq, acknowledged=int(charge.state == FORFEITED))

    def arrive(self, entry: Entry, body: dict[str, Any]) -> None:
        """Replays the arrival of a migrated ledger: restores the accounts as they were at the old
        place.
        """
        book = self.book(body["account"])
        if not book.frozen.startswith(moved_reason("")):
            self.problems.append(f"{named(entry)} lets arrive what was not moved")
        book.frozen = body["frozen"]

    def policy(self, entry: Entry, body: dict[str, Any]) -> None:
        """Replays the owner's change of decisions about an account besides its limit."""
        limits = self.limits[body["account"]]
        if body.get(PAST, limits) != limits:
            self.problems.append(f"{named(entry)} does not tell the limits that there were")
        book = self.book(body["account"])
        decisions = {name: body[name] for name in DECISIONS if name in body}
        book.policy = merged(book.policy, decisions)
        self._list(body)

    def _list(self, body: dict[str, Any]) -> None:
        for account_id in body.get("lists", ()):
            book = self.book(account_id)
            book.policy = merged(book.policy, {LISTED: True})

    def _move(self, entry: Entry, digests: dict[str, list[Any]]) -> None:
        """Checks the accounts that an entry names, each with the entry that changed it before."""
        for account_id, (previous, digest) in digests.items():
            book = self.book(account_id)
            if book.moved != previous:
                self.problems.append(
                    f"{named(entry)} moves account {account_id!r} from an older state"
                )
            book.moved, book.digest = entry.seq, digest

    def _cost(self, entry: Entry, body: dict[str, Any]) -> tuple[Charge, dict[str, Json], str]:
        """The cost of an entry's event, which must be the one in the entry."""
        event, orders = body["event"], body["cost"].get("orders", [])
        # version 0 of marshal: equal values give equal bytes
        content = marshal.dumps((event, orders), 0)
        priced = self._costs.get(content)
        if priced is None:
            cost = price(event_from_json(event), frozenset(map(Fraction, orders)))
            form = charge_to_json(cost)
            priced = cost, form, canonical_json(form)
            if len(self._costs) < _COSTS_KEPT:
                self._costs[content] = priced
        if priced[1] != body["cost"]:
            self.problems.append(f"charge {body['charge']} does not cost what its event costs")
            return charge_from_json(body["cost"]), body["cost"], canonical_json(body["cost"])
        return priced

    def _opened(self, entry: Entry, body: dict[str, Any]) -> Open:
        """The charge that an entry opens, with a slot for its digest."""
        cost, _, text = self._cost(entry, body)
        row = opened_row(entry, body, text)
        lineage = lineage_of(row.account)
        if entry.chain not in (LEGACY, row.dataset):
            self.problems.append(f"{named(entry)} is about an account of another chain")
        place = len(self._ended)
        self._ended += bytes(PLACE)
        self._opened_by[entry.chain].append(entry.seq)
        if "key" in body:
            self._bind(entry, body)
        return Open(place, row, cost, lineage)

    def _contents(self) -> bytes:
        last = bytearray(self._ended)
        for charge in self.open.values():
            last[charge.place : charge.place + DIGEST] = charge.digest()
        return bytes(last)

    def _end(self, charge: Open, answer: str, seq: int, *, acknowledged: int = 0) -> None:
        place = charge.place
        self._ended[place : place + DIGEST] = charge.digest(acknowledged)
        if answer:
            self.answers += 1
            charge.answered = bytes.fromhex(answer)[:DIGEST] + seq.to_bytes(NUMBER)
            self._ended[place + DIGEST : place + PLACE] = charge.answered

    def _bind(self, entry: Entry, body: dict[str, Any]) -> None:
        row = KeyRow(
            body["account"], body["key"], body["request"], body["charge"], entry.chain, entry.seq
        )
        self.keys += row_digest(row)


_ACTS: dict[str, Callable[[Replay, Entry, dict[str, Any]], None]] = {
    "account": Replay.account,
    "continue": Replay.proceed,
    "reserve": Replay.reserve,
    "share": Replay.share,
    "recall": Replay.recall,
    "allocate": Replay.allocate,
    "refresh": Replay.refresh,
    "freeze": Replay.freeze,
    "thaw": Replay.thaw,
    "policy": Replay.policy,
    "move": Replay.freeze,
    "arrive": Replay.arrive,
    "recover": Replay.freeze,
    **dict.fromkeys(("bind", "tally"), lambda *_: None),
    **dict.fromkeys(_STEPS, Replay.step),
    **dict.fromkeys(GOING_ON, Replay.append),
}
