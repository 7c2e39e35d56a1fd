# SPDX-License-Identifier: Apache-2.0
"""The rows of a ledger in SQL that SQLite and PostgreSQL both understand, so that they cannot
differ.

A backend adds how a statement is sent, how a long result is streamed, its clock and its locks.
``?`` is a parameter; statements contain no other question mark.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any, TypeAlias

from sfumato.ledger.journal import Entry
from sfumato.ledger.store.base import (
    ACTS,
    COUNTED,
    EXECUTING,
    FORFEITED,
    RESERVED,
    UNENDED,
    AccountRow,
    AnswerRow,
    ChargeRow,
    Counts,
    Ends,
    InstalmentRow,
    KeyRow,
    PartRow,
)
from sfumato.ledger.store.bodies import Packed, pack, unpack

Cell: TypeAlias = int | str | bytes


def _columns(
    kind: type[AccountRow | ChargeRow | AnswerRow | InstalmentRow | KeyRow | PartRow],
) -> list[str]:
    """The column names of a row, in order.

    ``limit`` is an SQL keyword and gets another name; a body has its coding last.
    """
    renamed = {"limit": '"limit"', "packed": "coding"}
    return [renamed.get(name, name) for name in kind._fields]


def _add(table: str, columns: list[str], changed: Iterable[str] = ()) -> str:
    """The statement that inserts a row, or updates the columns ``changed`` of a row with the same
    id.
    """
    sql = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' for _ in columns)})"
    taken = ", ".join(f"{name} = excluded.{name}" for name in changed)
    return f"{sql} ON CONFLICT (id) DO UPDATE SET {taken}" if taken else sql


_ACCOUNT, _CHARGE, _ANSWER, _KEY, _PART = map(
    _columns, (AccountRow, ChargeRow, AnswerRow, KeyRow, PartRow)
)
_INSTALMENT = _columns(InstalmentRow)
_ENTRY = list(Entry._fields)
PUT_ACCOUNT = _add("account", _ACCOUNT, _ACCOUNT[2:])
CHANGEABLE = ("state", "reason", "lease_until", "acknowledged", "pieces", "failures")
PUT_CHARGE = _add("charge", _CHARGE, CHANGEABLE)
_PUT_ANSWER, _PUT_KEY, APPEND = _add("answer", _ANSWER), _add("key", _KEY), _add("journal", _ENTRY)
PUT_PART, _PUT_INSTALMENT = _add("part", _PART), _add("instalment", _INSTALMENT)

ACCOUNTS, CHARGES, _ANSWERS, _KEYS, _PARTS, _INSTALMENTS, _ENTRIES = (
    f"SELECT {', '.join(columns)} FROM {table}"
    for columns, table in (
        (_ACCOUNT, "account"),
        (_CHARGE, "charge"),
        (_ANSWER, "answer"),
        (_KEY, "key"),
        (_PART, "part"),
        (_INSTALMENT, "instalment"),
        (_ENTRY, "journal"),
    )
)
_HISTORY = (
    f"SELECT {', '.join(f'charge.{name}' for name in _CHARGE)}, "
    f"{', '.join(f'answer.{name}' for name in _ANSWER)} "
    "FROM charge LEFT JOIN answer ON answer.charge = charge.id"
)
_TWINS = "SELECT id FROM account WHERE folded = ? ORDER BY id"
_PAID = (
    f"SELECT {', '.join(f'answer.{name}' for name in _ANSWER)} FROM answer JOIN charge ON "
    "charge.id = answer.charge"
)
_RELEASED = (
    f"{_PAID} JOIN part ON part.charge = answer.charge WHERE part.part = ? AND charge.account = ? "
    "ORDER BY part.chain, part.seq"
)
# Steps from each chain to the next one, so the index is never scanned.
_CHAINS = (
    "WITH RECURSIVE name (chain) AS (SELECT min(chain) FROM {0} UNION ALL "
    "SELECT (SELECT min(chain) FROM {0} WHERE {0}.chain > name.chain) FROM name WHERE name.chain "
    "IS NOT NULL) "
    "SELECT chain FROM name WHERE chain IS NOT NULL"
)
_COUNTS = "SELECT " + ", ".join(
    f"(SELECT count(*) FROM {table})"
    for table in ("account", "charge", "answer", "key", "part", "journal", "instalment")
)
_PUT_ABOUT = (
    "INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = "
    "excluded.value"
)
_MOVERS = (
    f"{_ENTRIES} WHERE chain = ? AND seq IN (SELECT moved FROM account WHERE id IN ({{}})) "
    f"UNION ALL {_ENTRIES} WHERE chain = ? AND seq = (SELECT max(seq) FROM journal WHERE chain = ?)"
)
_PROOF = (
    f"SELECT {', '.join(f'{entry}.{name}' for entry in ('opened', 'ended') for name in _ENTRY)} "
    "FROM answer "
    "JOIN charge ON charge.id = answer.charge "
    "JOIN journal opened ON opened.chain = charge.chain AND opened.seq = charge.seq "
    "JOIN journal ended ON ended.chain = charge.chain AND ended.seq = answer.seq WHERE "
    "answer.charge = ?"
)
_APPENDED = (
    f"SELECT {', '.join(f'instalment.{name}' for name in _INSTALMENT)}, "
    f"{', '.join(f'journal.{name}' for name in _ENTRY)} "
    "FROM instalment JOIN journal ON journal.chain = instalment.chain AND journal.seq = "
    "instalment.seq "
    "WHERE instalment.charge = ? AND instalment.place > ? ORDER BY instalment.place LIMIT ?"
)
# The conditions of the partial indexes, word for word, so that the optimizer uses them.
_OPEN = f"state IN ('{RESERVED}', '{EXECUTING}')"
_UNENDED = "state IN (" + ", ".join(f"'{state}'" for state in UNENDED) + ")"
_UNSEEN = f"state = '{FORFEITED}' AND acknowledged = 0"
_COUNTED = "reason IN (" + ", ".join(f"'{reason}'" for reason in COUNTED) + ")"
_WENT_ON = "failures > 0"
# since format 5
WENT_ON_INDEX = f"CREATE INDEX charge_went_on ON charge (dataset, analyst) WHERE {_WENT_ON};"
UNENDED_INDEX = f"charge_question ON charge (question) WHERE {_UNENDED};"
# since format 4
FAILED_INDEX = (
    f"CREATE INDEX charge_counted ON charge (dataset, analyst) WHERE {_UNSEEN} AND {_COUNTED};"
)


class SqlRows(ABC):
    """The transaction methods of ``Rows`` as SQL that both SQLite and PostgreSQL understand.

    Each backend adds how a statement is run, the time (``now``) and the locks (``lock``).
    """

    @abstractmethod
    def _run(self, sql: str, values: tuple[Cell, ...] = ()) -> None:
        """Runs a statement without a result."""

    @abstractmethod
    def _all(self, sql: str, values: tuple[Cell, ...] = ()) -> list[tuple[Any, ...]]:
        """The whole result of a query, for short ones."""

    @abstractmethod
    def _stream(self, sql: str, values: tuple[Cell, ...] = ()) -> Iterator[tuple[Any, ...]]:
        """The streamed result of a query."""

    @abstractmethod
    def keep(self, name: str, body: bytes) -> None:
        """Stores a large body under a name, outside of the row that it belongs to."""

    @abstractmethod
    def _kept(self, name: str, size: int) -> bytes:
        """A large body; empty if it is missing."""

    def _packed(self, row: AnswerRow | InstalmentRow) -> Packed:
        """Returns the stored form of a row's body; if it is not packed yet, its length is its
        bound.
        """
        return row.packed or pack(row.body, len(row.body), self.keep)

    def _answer(self, row: tuple[Any, ...]) -> AnswerRow:
        """An answer from its columns."""
        question, statement, shared, charge, body, seq, coding = row
        if coding:
            body = unpack(Packed(body, coding), self._kept)
        return AnswerRow(question, statement, shared, charge, body, seq)

    def _instalment(self, row: tuple[Any, ...]) -> InstalmentRow:
        """An instalment from its columns."""
        charge, place, data, chain, seq, coding = row
        body = unpack(Packed(data, coding), self._kept)
        return InstalmentRow(charge, place, body, chain, seq)

    def _one(self, sql: str, values: tuple[Cell, ...] = ()) -> tuple[Any, ...] | None:
        rows = self._all(sql, values)
        return rows[0] if rows else None

    def about(self, name: str) -> str:
        row = self._one("SELECT value FROM meta WHERE name = ?", (name,))
        return str(row[0]) if row else ""

    def put_about(self, name: str, value: str) -> None:
        self._run(_PUT_ABOUT, (name, value))

    def account(self, account_id: str) -> AccountRow | None:
        row = self._one(f"{ACCOUNTS} WHERE id = ?", (account_id,))
        return AccountRow._make(row) if row else None

    def movers(self, ids: Sequence[str]) -> tuple[Sequence[str], list[Entry]]:
        chain = ids[0]
        places = ", ".join("?" for _ in ids)
        rows = self._all(_MOVERS.format(places), (chain, *ids, chain, chain))
        return ids, [Entry._make(row) for row in rows]

    def accounts(self) -> Iterator[AccountRow]:
        return map(AccountRow._make, self._stream(f"{ACCOUNTS} ORDER BY id"))

    def twins(self, folded: str) -> list[str]:
        return [str(row[0]) for row in self._all(_TWINS, (folded,))]

    def put_account(self, row: AccountRow) -> None:
        self._run(PUT_ACCOUNT, row)

    def charge(self, charge_id: str) -> ChargeRow | None:
        row = self._one(f"{CHARGES} WHERE id = ?", (charge_id,))
        return ChargeRow._make(row) if row else None

    def put_charge(self, row: ChargeRow) -> None:
        self._run(PUT_CHARGE, row)

    def under_way(self, question: str) -> ChargeRow | None:
        row = self._one(f"{CHARGES} WHERE question = ? AND {_UNENDED}", (question,))
        return ChargeRow._make(row) if row else None

    def overdue(self, until: int | None, limit: int, dataset: str | None = None) -> list[ChargeRow]:
        conditions: list[tuple[str, Cell]] = []
        if until is not None:
            conditions.append((" AND lease_until <= ?", until))
        if dataset is not None:
            conditions.append((" AND dataset = ?", dataset))
        where = "".join(condition for condition, _ in conditions)
        values = [value for _, value in conditions]
        sql = f"{CHARGES} WHERE {_OPEN}{where} ORDER BY lease_until, id LIMIT ?"
        rows = self._all(sql, (*values, limit))
        return [ChargeRow._make(row) for row in rows]

    def failed(self, dataset: str, analyst: str) -> list[ChargeRow]:
        ended = f"{_UNSEEN} AND {_COUNTED}"
        went_on = f"{_WENT_ON} AND NOT ({_UNSEEN} AND {_COUNTED})"
        return self._failing(ended, went_on, "dataset = ? AND analyst = ?", (dataset, analyst))

    def failures(self, dataset: str) -> list[ChargeRow]:
        return self._failing(_UNSEEN, f"{_WENT_ON} AND NOT ({_UNSEEN})", "dataset = ?", (dataset,))

    def _failing(
        self, ended: str, went_on: str, whose: str, values: tuple[str, ...]
    ) -> list[ChargeRow]:
        """The charges of two kinds, which a partial index finds, in the order of the chains."""
        # two statements, each prefetched by itself
        rows = self._all(f"{CHARGES} WHERE {whose} AND {ended}", values)
        more = self._all(f"{CHARGES} WHERE {whose} AND {went_on}", values)
        charges = [ChargeRow._make(row) for row in (*rows, *more)]
        return sorted(charges, key=attrgetter("chain", "seq"))

    def answer(self, question: str) -> AnswerRow | None:
        row = self._one(f"{_ANSWERS} WHERE question = ?", (question,))
        return self._answer(row) if row else None

    def first_answer(self, statement: str, account: str) -> AnswerRow | None:
        return self._paid("answer.statement = ? AND charge.account = ?", statement, account)

    def shared_answer(self, shared: str, analyst: str | None = None) -> AnswerRow | None:
        condition = "answer.shared = ? AND answer.shared <> ''"
        if analyst is None:
            return self._paid(condition, shared)
        return self._paid(f"{condition} AND charge.analyst = ?", shared, analyst)

    def _paid(self, condition: str, *values: str) -> AnswerRow | None:
        row = self._one(f"{_PAID} WHERE {condition} ORDER BY answer.rowid LIMIT 1", values)
        return self._answer(row) if row else None

    def proof(self, charge_id: str) -> tuple[Entry, Entry] | None:
        row = self._one(_PROOF, (charge_id,))
        width = len(_ENTRY)
        return (Entry._make(row[:width]), Entry._make(row[width:])) if row else None

    def put_answer(self, row: AnswerRow) -> None:
        packed = self._packed(row)
        self._run(_PUT_ANSWER, (*row[:4], packed.data, row.seq, packed.coding))

    def put_instalment(self, row: InstalmentRow) -> None:
        packed = self._packed(row)
        values = (row.charge, row.place, packed.data, row.chain, row.seq, packed.coding)
        self._run(_PUT_INSTALMENT, values)

    def instalments(
        self, charge_id: str, after: int, limit: int
    ) -> list[tuple[InstalmentRow, Entry]]:
        width = len(_INSTALMENT)
        rows = self._all(_APPENDED, (charge_id, after, limit))
        return [(self._instalment(row[:width]), Entry._make(row[width:])) for row in rows]

    def stored_instalments(self, charge_id: str) -> int:
        counted = self._one("SELECT count(*) FROM instalment WHERE charge = ?", (charge_id,))
        return int(counted[0]) if counted else 0

    def all_instalments(self, after: Ends | None = None) -> Iterator[InstalmentRow]:
        return map(self._instalment, self._ordered(_INSTALMENTS, "instalment", "seq", after))

    def key(self, account: str, key: str) -> KeyRow | None:
        row = self._one(f"{_KEYS} WHERE account = ? AND key = ?", (account, key))
        return KeyRow._make(row) if row else None

    def put_key(self, row: KeyRow) -> None:
        self._run(_PUT_KEY, row)

    def put_parts(self, rows: Sequence[PartRow]) -> None:
        for row in rows:
            self._run(PUT_PART, row)

    def released(self, part: str, account: str) -> list[AnswerRow]:
        return [self._answer(row) for row in self._all(_RELEASED, (part, account))]

    def append(self, entry: Entry) -> None:
        self._run(APPEND, entry)

    def last_entry(self, chain: str) -> Entry | None:
        row = self._one(f"{_ENTRIES} WHERE chain = ? ORDER BY seq DESC LIMIT 1", (chain,))
        return Entry(*row) if row else None

    def entry(self, chain: str, seq: int) -> Entry | None:
        row = self._one(f"{_ENTRIES} WHERE chain = ? AND seq = ?", (chain, seq))
        return Entry(*row) if row else None

    def chains(self) -> list[str]:
        return self._chains("journal")

    def entries(self, chain: str, after: int = 0) -> Iterator[Entry]:
        rows = self._stream(f"{_ENTRIES} WHERE chain = ? AND seq > ? ORDER BY seq", (chain, after))
        return map(Entry._make, rows)

    def acts(self, chain: str) -> list[Entry]:
        kinds = ", ".join(f"'{kind}'" for kind in ACTS)
        sql = f"{_ENTRIES} WHERE chain = ? AND kind IN ({kinds}) ORDER BY seq"
        return [Entry(*row) for row in self._all(sql, (chain,))]

    def history(self, after: Ends | None = None) -> Iterator[tuple[ChargeRow, AnswerRow | None]]:
        width = len(_CHARGE)
        for row in self._ordered(_HISTORY, "charge", "seq", after):
            charge = ChargeRow._make(row[:width])
            if row[width] is None:
                yield charge, None
            else:
                yield charge, self._answer(row[width:])

    def keys(self, after: Ends | None = None) -> Iterator[KeyRow]:
        return map(KeyRow._make, self._ordered(_KEYS, "key", "seq", after))

    def parts(self, after: Ends | None = None) -> Iterator[PartRow]:
        return map(PartRow._make, self._ordered(_PARTS, "part", "seq, part.part", after))

    def _chains(self, table: str) -> list[str]:
        return [str(row[0]) for row in self._all(_CHAINS.format(table))]

    def _ordered(
        self, sql: str, table: str, order: str, after: Ends | None
    ) -> Iterator[tuple[Any, ...]]:
        """The rows of a table by chain and ``order``: all, or those after the end of each chain."""
        if after is None:
            yield from self._stream(f"{sql} ORDER BY {table}.chain, {table}.{order}")
            return
        later = f"{sql} WHERE {table}.chain = ? AND {table}.seq > ? ORDER BY {table}.{order}"
        for chain in self._chains(table):
            yield from self._stream(later, (chain, after.get(chain, 0)))

    def counts(self) -> Counts:
        return Counts(*self._all(_COUNTS)[0])
