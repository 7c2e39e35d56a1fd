# SPDX-License-Identifier: Apache-2.0
"""What a store owes the ledger: rows, and units of work that are durable when they end.

A store knows nothing of privacy. It keeps seven kinds of rows (accounts, charges, answers,
instalments, keys, parts, journal entries), runs a *unit of work* over them as a whole or not at all, and never
tells anybody of a row that a crash could still take back. What a charge costs, whether an
account admits it, and which steps exist is decided in ``spend``, the same for every store.

One shared suite holds every store to this page: ``tests/contracts/ledger_store.py``. Rows are
tuples, in the order of their columns: a charge makes a dozen of them, and verify reads millions.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

from sfumato.ledger.journal import Entry
from sfumato.ledger.store.bodies import Packed

T = TypeVar("T")

# By chain, the number of an entry.
Ends: TypeAlias = Mapping[str, int]

# The kinds of entries that tell of an act of the owner.
ACTS = ("account", "allocate", "refresh", "freeze", "thaw", "policy")

# The states of a charge. Only these steps exist: reserved -> executing | voided;
# executing -> committed | forfeited | suspended; suspended -> executing.
RESERVED, EXECUTING, COMMITTED, FORFEITED, VOIDED = (
    "reserved",
    "executing",
    "committed",
    "forfeited",
    "voided",
)
SUSPENDED = "suspended"
# A charge that has not ended; all but a suspended one have a worker and a lease.
UNENDED = (RESERVED, EXECUTING, SUSPENDED)
# The reasons of failures that count towards the freeze of an analyst: an interruption does not.
EXPIRED = "expired"
COUNTED = ("engine", "crash", EXPIRED)

# What a store notes of itself (``Rows.about``). While it is UNFINISHED (being filled), or has a LOSS that
# the owner accepted and that is not in the journal yet, nobody charges in it; never again once it
# has a SUCCESSOR, the place of the ledger whose identity is SUCCEEDED_BY.
UNFINISHED, LOSS, SUCCESSOR, PREDECESSOR = "unfinished", "loss", "successor", "predecessor"
SUCCEEDED_BY = "succeeded_by"


class AccountRow(NamedTuple):
    """An account as stored. Texts are canonical JSON, or empty where there is none.

    ``id`` is its path (``dataset``, ``dataset/purpose``, ``dataset/purpose/analyst``) and
    ``parent`` the path above, empty for a dataset. A dataset has a ``contract``, a
    ``policy`` and the head of its chain (``seq`` entries, the last with hash ``head``).
    ``gates`` is empty where only the parent bounds it. ``spent`` and ``held`` are this
    period's; ``earlier`` lists the periods that a refresh has closed. ``folded`` is the id
    without what spellings of one name differ in; ``twins`` finds accounts by it. ``moved`` is the
    entry of the chain that last moved it, which holds the digest of this row (``binding``).
    """

    id: str
    parent: str
    contract: str
    limit: str
    gates: str
    spent: str
    held: str
    frozen: str
    policy: str
    earlier: str
    seq: int
    head: str
    folded: str
    moved: int = 0


class ChargeRow(NamedTuple):
    """A charge as stored; its event is in the journal entry ``seq`` of ``chain``, which opened it.

    ``account`` is the analyst's, ``dataset`` the root above it. ``cost`` is canonical JSON.
    ``source`` is the charge whose answer is shared, empty otherwise. ``lease_until`` is in
    milliseconds of the store's clock. ``pieces`` says how far one has come that is answered in
    instalments (``Pieces``), empty for all others. ``failures`` counts how often its worker died and
    the charge went on, since the owner last looked.
    """

    id: str
    chain: str
    seq: int
    dataset: str
    account: str
    analyst: str
    state: str
    question: str
    statement: str
    shared: str
    cost: str
    source: str
    reason: str
    lease_until: int
    acknowledged: int = 0
    pieces: str = ""
    failures: int = 0


class AnswerRow(NamedTuple):
    """An answer as stored: its three keys, the charge that paid for it, its bytes, and the entry of the
    charge's chain that committed it. ``packed`` is given where a body was packed before the unit."""

    question: str
    statement: str
    shared: str
    charge: str
    body: bytes
    seq: int = 0
    packed: Packed | None = None


class InstalmentRow(NamedTuple):
    """An instalment as stored: its charge, its place, its bytes, and the entry that appended it; ``packed`` as above."""

    charge: str
    place: int
    body: bytes
    chain: str
    seq: int
    packed: Packed | None = None


class KeyRow(NamedTuple):
    """An idempotency key, bound for ever to the hash of one request by entry ``seq`` of ``chain``."""

    account: str
    key: str
    request: str
    charge: str
    chain: str
    seq: int


class PartRow(NamedTuple):
    """Part of an answer that may be asked for again by its own key: committed by entry ``seq`` of ``chain``."""

    part: str
    charge: str
    chain: str
    seq: int


@dataclass(frozen=True, slots=True)
class Counts:
    """How many rows there are of each kind; verify compares."""

    accounts: int
    charges: int
    answers: int
    keys: int
    parts: int
    entries: int
    instalments: int = 0


class Rows(Protocol):
    """The rows as one unit of work sees them: its own writes, and no unfinished one of others.

    The unit first calls ``lock`` with every account that it will change; a charge read
    before that is read again after it. Writers of one dataset always lock its root, so that
    under the lock its accounts, charges, answers, keys and chain stand still.
    """

    def now(self) -> int:
        """Milliseconds of the store's clock, the same for all who share the store; it never steps back
        while the store is open."""
        ...

    def lock(
        self, ids: Iterable[str], ahead: Callable[[], object] | None = None
    ) -> dict[str, AccountRow]:
        """Holds these accounts until the unit ends, taken in the order of their ids (code points);
        the rows of those that exist. Nobody else can create one that does not.

        ``ahead`` makes reads that the unit will make again once it has the locks, and what it is
        given says nothing yet: a store that is far away asks for them together with the locks.
        """
        ...

    def about(self, name: str) -> str:
        """What the store notes of itself under a name; empty if nothing."""
        ...

    def put_about(self, name: str, value: str) -> None:
        """Notes something; empty: nothing any more."""
        ...

    def account(self, account_id: str) -> AccountRow | None: ...

    def movers(self, ids: Sequence[str]) -> tuple[Sequence[str], list[Entry]]:
        """Which of these accounts of one dataset were read and not yet compared with the entries that last
        moved them; those entries, and the last one of their chain. A store that keeps accounts in
        memory names each once."""
        ...

    def accounts(self) -> Iterator[AccountRow]:
        """By id (code points), so that parents come first."""
        ...

    def twins(self, folded: str) -> list[str]:
        """The ids of the accounts that have this ``folded``, by id."""
        ...

    def put_account(self, row: AccountRow) -> None:
        """Adds it, or replaces everything but ``id`` and ``parent``."""
        ...

    def charge(self, charge_id: str) -> ChargeRow | None: ...

    def put_charge(self, row: ChargeRow) -> None:
        """Adds it, or replaces what changes in a charge's life (``rows.CHANGEABLE``), nothing else."""
        ...

    def under_way(self, question: str) -> ChargeRow | None:
        """The charge of a question that has not ended (``UNENDED``); there is at most one."""
        ...

    def overdue(self, until: int | None, limit: int, dataset: str | None = None) -> list[ChargeRow]:
        """Reserved or executing charges whose lease ended at ``until`` or before (None: all of them),
        oldest lease first; a partial index finds them, whatever the number of finished charges."""
        ...

    def failed(self, dataset: str, analyst: str) -> list[ChargeRow]:
        """The charges of an analyst with failures that count towards a freeze (``COUNTED``) and that the owner
        has not acknowledged; as quick however many others there are."""
        ...

    def failures(self, dataset: str) -> list[ChargeRow]:
        """Charges of a dataset that failed, which the owner has not acknowledged, through partial indexes."""
        ...

    def answer(self, question: str) -> AnswerRow | None: ...

    def first_answer(self, statement: str, account: str) -> AnswerRow | None:
        """The earliest answer to a statement, at any cost, that an account paid for."""
        ...

    def shared_answer(self, shared: str, analyst: str | None = None) -> AnswerRow | None:
        """The earliest answer to a question whoever asked, or of those that an analyst paid for."""
        ...

    def proof(self, charge_id: str) -> tuple[Entry, Entry] | None:
        """The entries that opened a charge and committed its answer."""
        ...

    def put_answer(self, row: AnswerRow) -> None:
        """Adds it; ``question`` and ``charge`` are each unique (a second one: LedgerCorrupt)."""
        ...

    def put_instalment(self, row: InstalmentRow) -> None:
        """Adds it; (charge, place) and (chain, seq) are each unique."""
        ...

    def instalments(
        self, charge_id: str, after: int, limit: int
    ) -> list[tuple[InstalmentRow, Entry]]:
        """Those of a charge from behind a place on, in the order of their places, with the entries that appended
        them."""
        ...

    def stored_instalments(self, charge_id: str) -> int:
        """How many instalments of a charge are stored."""
        ...

    def all_instalments(self, after: Ends | None = None) -> Iterator[InstalmentRow]:
        """By ``chain`` and ``seq``; streamed. ``after`` as in ``history``."""
        ...

    def keep(self, name: str, body: bytes) -> None:
        """Keeps a large body under its SHA-256, outside its row."""
        ...

    def key(self, account: str, key: str) -> KeyRow | None: ...

    def put_key(self, row: KeyRow) -> None:
        """Adds it; (account, key) is unique."""
        ...

    def put_parts(self, rows: Sequence[PartRow]) -> None:
        """Adds them; (part, chain, seq) is unique."""
        ...

    def released(self, part: str, account: str) -> list[AnswerRow]:
        """The answers of an account that a part was released in, by ``chain`` and ``seq``."""
        ...

    def append(self, entry: Entry) -> None:
        """Adds to a chain; (chain, seq) is unique. Entries are never changed."""
        ...

    def last_entry(self, chain: str) -> Entry | None: ...

    def entry(self, chain: str, seq: int) -> Entry | None: ...

    def chains(self) -> list[str]:
        """The names of all chains, by code points, found without a scan of the entries."""
        ...

    def entries(self, chain: str, after: int = 0) -> Iterator[Entry]:
        """In order of ``seq``, beginning after one; streamed, never all in memory."""
        ...

    def acts(self, chain: str) -> list[Entry]:
        """What the owner did: the entries of ``ACTS``, in order of ``seq``; they are few."""
        ...

    def history(self, after: Ends | None = None) -> Iterator[tuple[ChargeRow, AnswerRow | None]]:
        """Every charge with its answer, by ``chain`` and ``seq``; streamed.

        ``after``: only the rows of later entries than these; of a chain without one, all.
        """
        ...

    def keys(self, after: Ends | None = None) -> Iterator[KeyRow]:
        """By ``chain`` and ``seq``; streamed. ``after`` as in ``history``."""
        ...

    def parts(self, after: Ends | None = None) -> Iterator[PartRow]:
        """By ``chain``, ``seq`` and ``part`` (code points); streamed. ``after`` as in ``history``."""
        ...

    def counts(self) -> Counts: ...


class Store(Protocol):
    """Where the rows lie. Safe to share between threads.

    Raises, from every method, a ``LedgerError`` for whatever the medium does; what a unit
    itself raises comes out unchanged, after everything that it wrote is undone.
    """

    @property
    def identity(self) -> str:
        """A random name made with the store, never changed: what a signed head speaks of."""
        ...

    @property
    def place(self) -> str:
        """Where it lies, for messages; without passwords."""
        ...

    @property
    def exclusive(self) -> bool:
        """Whether one process holds it, so that charges left open by an earlier one are dead."""
        ...

    @property
    def read_only(self) -> bool:
        """Whether it was opened to be read: ``write`` raises ``LedgerReadOnly``."""
        ...

    def write(self, unit: Callable[[Rows], T]) -> T:
        """Runs a unit of work, all or nothing, and returns what it returns once that is on disk.

        A unit may be run again from its beginning where the store undid it (a deadlock), and
        beside others in one transaction: it has no effect but through its rows. When this
        raises ``LedgerUnavailable`` nobody knows whether the unit took effect (the connection
        may have been cut after the commit); the caller tells nobody anything and asks again.
        """
        ...

    def read(self, unit: Callable[[Rows], T]) -> T:
        """Runs a unit that writes nothing over one state of the store, which is on disk already.

        What it returns must not be an iterator over rows.
        """
        ...

    def pack(self, body: bytes, size: int) -> Packed:
        """A body of at most ``size`` bytes as its row will hold it, ready before the unit that writes the row.

        Where ``size`` is above ``bodies.LARGEST`` the body itself is on disk when this returns.

        Raises:
            WrongUse: it is longer than ``size``.
        """
        ...

    def peek(self, account_id: str) -> AccountRow | None:
        """An account as of the last durable unit, without waiting for one that is under way."""
        ...

    def damage(self, *, pages: bool = True) -> list[str]:
        """What the medium itself finds wrong: broken pages, indexes, constraints, a lost log.

        Not ``pages``: without reading the whole file.
        """
        ...

    def size(self) -> int:
        """How many bytes it takes, about."""
        ...

    def checkpoint(self) -> None:
        """Brings everything to where a copy of the main file alone finds it, if that means anything."""
        ...

    def close(self) -> None:
        """Waits for units that were handed in, refuses new ones, lets go. Twice is once."""
        ...
