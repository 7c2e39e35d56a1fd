# SPDX-License-Identifier: Apache-2.0
"""The interface of a store: rows, and transactions that are durable when they return.

A store knows nothing of privacy. It stores seven kinds of rows (accounts, charges, answers,
instalments, keys, parts, journal entries), runs transactions over them atomically, and never
returns a row that a crash could still undo. What a charge costs, whether an account admits it, and
which transitions exist is decided in ``spend``, for every store alike.

One test suite holds every store to this interface: ``tests/contracts/ledger_store.py``. Rows are
tuples in the order of their columns, for speed: a charge creates a dozen of them, and verification
reads millions.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

from sfumato.ledger.journal import Entry
from sfumato.ledger.store.bodies import Packed

T = TypeVar("T")

# By chain, the number of an entry.
Ends: TypeAlias = Mapping[str, int]

# The kinds of entries that record an act of the owner.
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

# Names of values in ``Rows.about``. A store that is UNFINISHED (being filled), or has a LOSS that
# the owner accepted and that is not in the journal yet, admits no charge. With a SUCCESSOR (the
# place of the ledger whose identity is SUCCEEDED_BY) it never will again.
UNFINISHED, LOSS, SUCCESSOR, PREDECESSOR = "unfinished", "loss", "successor", "predecessor"
SUCCEEDED_BY = "succeeded_by"


class AccountRow(NamedTuple):
    """A row of the ledger's table of accounts; strings are canonical JSON, or empty.

    ``id`` is its path (``dataset``, ``dataset/purpose``, ``dataset/purpose/analyst``) and
    ``parent`` the path above, empty for a dataset. A dataset has a ``contract``, a ``policy`` and
    the head of its chain (``seq`` entries, the last with hash ``head``). ``gates`` is empty if only
    the parent bounds the account. ``spent`` and ``held`` are those of the current period;
    ``earlier`` lists the periods that ``refresh`` has closed. ``folded`` is the id normalised for
    comparison of names; ``twins`` finds accounts by it. ``moved`` is the entry of the chain that
    last changed the account and contains the digest of this row (``binding``).
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
    """A row of the ledger's table of charges; its privacy event is in journal entry ``seq`` of
    ``chain``.

    ``account`` is the analyst's, ``dataset`` the root above it. ``cost`` is canonical JSON.
    ``source`` is the charge whose answer is shared, else empty. ``lease_until`` is in milliseconds
    of the store's clock. ``pieces`` is the progress of a charge with instalments (``Pieces``), else
    empty. ``failures`` counts how often its worker died and the charge was resumed, since the owner
    last acknowledged failures.
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
    """A row of the table of answers: a stored answer, its cache keys, and the charge that paid for
    it.

    It has the answer's three keys, the charge that paid for it, its bytes, and the number of the
    journal entry that committed it (in the charge's chain). ``packed`` is set if the body was
    packed before the transaction.
    """

    question: str
    statement: str
    shared: str
    charge: str
    body: bytes
    seq: int = 0
    packed: Packed | None = None


class InstalmentRow(NamedTuple):
    """A row of the table of instalments: charge, place, bytes, and the journal entry that stored
    it.

    ``packed`` is as in ``AnswerRow``.
    """

    charge: str
    place: int
    body: bytes
    chain: str
    seq: int
    packed: Packed | None = None


class KeyRow(NamedTuple):
    """A row of idempotency keys: a key bound to one request's hash by journal entry ``seq``."""

    account: str
    key: str
    request: str
    charge: str
    chain: str
    seq: int


class PartRow(NamedTuple):
    """A row of the table of reusable answer parts: an aggregate's key and the charge whose answer
    has it.

    Journal entry ``seq`` of ``chain`` committed it.
    """

    part: str
    charge: str
    chain: str
    seq: int


@dataclass(frozen=True, slots=True)
class Counts:
    """The number of rows in each table of a ledger, for its verification."""

    accounts: int
    charges: int
    answers: int
    keys: int
    parts: int
    entries: int
    instalments: int = 0


class Rows(Protocol):
    """The interface of a transaction on a store: reads and writes of its rows.

    It sees its own writes, and no uncommitted writes of others. A transaction first calls ``lock``
    with every account that it will change; a charge read before that is read again after it.
    Writers of one dataset always lock its root, so that under the lock its accounts, charges,
    answers, keys and chain do not change.
    """

    def now(self) -> int:
        """Milliseconds of the store's clock, which all users of the store share.

        It never goes back while the store is open.
        """
        ...

    def lock(
        self, ids: Iterable[str], ahead: Callable[[], object] | None = None
    ) -> dict[str, AccountRow]:
        """Locks accounts until the transaction ends, in the order of their ids (code points).

        Returns the rows of those that exist. Nobody else can create one that does not.

        ``ahead`` makes reads that the transaction will repeat once it has the locks; their results
        are to be ignored. A remote store sends them together with the locks, to save a round trip.
        """
        ...

    def about(self, name: str) -> str:
        """Returns a property of the store itself, by name; "" if it is not set."""
        ...

    def put_about(self, name: str, value: str) -> None:
        """Sets a property of the store itself; "" deletes it."""
        ...

    def account(self, account_id: str) -> AccountRow | None: ...

    def movers(self, ids: Sequence[str]) -> tuple[Sequence[str], list[Entry]]:
        """Returns accounts that must still be compared with the journal entries that last changed
        them.

        The result is a pair: those accounts of ``ids`` (of one dataset) that were read but not
        compared yet; and their entries, with the last entry of their chain. A store that caches
        accounts returns each account only once.
        """
        ...

    def accounts(self) -> Iterator[AccountRow]:
        """Returns all account rows, ordered by id (code points), so that parents come first."""
        ...

    def twins(self, folded: str) -> list[str]:
        """Returns the ids of the accounts whose normalised name is ``folded``, to find confusable
        names.
        """
        ...

    def put_account(self, row: AccountRow) -> None:
        """Inserts an account, or updates everything but ``id`` and ``parent``."""
        ...

    def charge(self, charge_id: str) -> ChargeRow | None: ...

    def put_charge(self, row: ChargeRow) -> None:
        """Inserts a charge, or updates its mutable columns (``rows.CHANGEABLE``)."""
        ...

    def under_way(self, question: str) -> ChargeRow | None:
        """Returns the unfinished charge for a question, of which there is at most one; or None."""
        ...

    def overdue(self, until: int | None, limit: int, dataset: str | None = None) -> list[ChargeRow]:
        """Returns the open charges whose lease ended by ``until`` (None: all), oldest lease first.

        Open means reserved or executing. At most ``limit`` are returned. A partial index finds
        them, whatever the number of finished charges.
        """
        ...

    def failed(self, dataset: str, analyst: str) -> list[ChargeRow]:
        """Returns an analyst's failed charges that count towards freezing (states ``COUNTED``).

        Failures that the owner acknowledged are left out. The lookup takes the same time however
        many other charges there are.
        """
        ...

    def failures(self, dataset: str) -> list[ChargeRow]:
        """Returns the failed charges of a dataset that the owner has not acknowledged."""
        ...

    def answer(self, question: str) -> AnswerRow | None: ...

    def first_answer(self, statement: str, account: str) -> AnswerRow | None:
        """Returns the earliest answer to a statement, at any cost, that an account paid for."""
        ...

    def shared_answer(self, shared: str, analyst: str | None = None) -> AnswerRow | None:
        """Returns the earliest answer stored under a question's key for sharing; None if there is
        none.

        With ``analyst``, only answers that this analyst paid for.
        """
        ...

    def proof(self, charge_id: str) -> tuple[Entry, Entry] | None:
        """Returns two journal entries: the one that opened a charge and the one that committed its
        answer.

        None if the charge has no committed answer.
        """
        ...

    def put_answer(self, row: AnswerRow) -> None:
        """Inserts an answer; ``question`` and ``charge`` are each unique (a duplicate:
        LedgerCorrupt).
        """
        ...

    def put_instalment(self, row: InstalmentRow) -> None:
        """Inserts an instalment; (charge, place) and (chain, seq) are each unique."""
        ...

    def instalments(
        self, charge_id: str, after: int, limit: int
    ) -> list[tuple[InstalmentRow, Entry]]:
        """Returns a charge's instalments after number ``after``, with the entries that stored
        them.
        """
        ...

    def stored_instalments(self, charge_id: str) -> int:
        """Returns the number of stored instalments of a charge."""
        ...

    def all_instalments(self, after: Ends | None = None) -> Iterator[InstalmentRow]:
        """Yields all instalments by ``chain`` and ``seq``; ``after`` as in ``history``."""
        ...

    def keep(self, name: str, body: bytes) -> None:
        """Stores the bytes of a large answer outside its row, under ``name``, their SHA-256."""
        ...

    def key(self, account: str, key: str) -> KeyRow | None: ...

    def put_key(self, row: KeyRow) -> None:
        """Inserts an idempotency key; (account, key) is unique."""
        ...

    def put_parts(self, rows: Sequence[PartRow]) -> None:
        """Inserts reusable parts of answers; (part, chain, seq) is unique."""
        ...

    def released(self, part: str, account: str) -> list[AnswerRow]:
        """Returns an account's answers that contain a reusable part, ordered by ``chain`` and
        ``seq``.
        """
        ...

    def append(self, entry: Entry) -> None:
        """Appends an entry to a chain; (chain, seq) is unique. Entries are never changed."""
        ...

    def last_entry(self, chain: str) -> Entry | None: ...

    def entry(self, chain: str, seq: int) -> Entry | None: ...

    def chains(self) -> list[str]:
        """Returns the names of all journal chains, sorted, without reading the entries."""
        ...

    def entries(self, chain: str, after: int = 0) -> Iterator[Entry]:
        """Yields the journal entries of a chain after number ``after``, in order."""
        ...

    def acts(self, chain: str) -> list[Entry]:
        """Returns the journal entries of a chain that are commands of the owner (``ACTS``), in
        order.
        """
        ...

    def history(self, after: Ends | None = None) -> Iterator[tuple[ChargeRow, AnswerRow | None]]:
        """Yields every charge with its answer, ordered by journal ``chain`` and ``seq``.

        ``after`` has the number of an entry for some chains: of these chains only later rows are
        returned.
        """
        ...

    def keys(self, after: Ends | None = None) -> Iterator[KeyRow]:
        """Yields all idempotency keys by ``chain`` and ``seq``; ``after`` as in ``history``."""
        ...

    def parts(self, after: Ends | None = None) -> Iterator[PartRow]:
        """Yields all parts by ``chain``, ``seq`` and ``part``; ``after`` as in ``history``."""
        ...

    def counts(self) -> Counts: ...


class Store(Protocol):
    """The interface of a ledger's storage: runs transactions, durably. Safe to share between
    threads.

    Every method raises a ``LedgerError`` for I/O errors of any kind. An exception of the
    transaction itself is raised unchanged, after a rollback.
    """

    @property
    def identity(self) -> str:
        """A random id of the ledger, created with it and never changed; signed heads contain it."""
        ...

    @property
    def place(self) -> str:
        """The address of the store for messages, without passwords."""
        ...

    @property
    def exclusive(self) -> bool:
        """Whether no other process can have the store open.

        If so, charges that an earlier process left open have no worker any more.
        """
        ...

    @property
    def read_only(self) -> bool:
        """Whether the store was opened for reading: ``write`` raises ``LedgerReadOnly``."""
        ...

    def write(self, transaction: Callable[[Rows], T]) -> T:
        """Runs a transaction atomically and returns its result once it is on disk.

        It may be rerun from its beginning after a rollback (a deadlock), and be combined with
        others into one transaction, so it may have no effects except through its rows. After
        ``LedgerUnavailable`` it is unknown whether it took effect (the connection may have been
        lost after the commit); the caller must show nothing and ask again.
        """
        ...

    def read(self, transaction: Callable[[Rows], T]) -> T:
        """Runs a read-only transaction over one durable state of the store.

        Its result must not be an iterator over rows.
        """
        ...

    def pack(self, body: bytes, size: int) -> Packed:
        """Encodes a body of at most ``size`` bytes for its row, before the row is inserted.

        If ``size`` is above ``bodies.LARGEST``, the body itself is on disk when this returns.

        Raises:
            WrongUse: the body is longer than ``size``.
        """
        ...

    def peek(self, account_id: str) -> AccountRow | None:
        """Returns an account's row after the last durable transaction, without waiting for a
        running one.
        """
        ...

    def remember(self, listener: Callable[[int, str], None]) -> None:
        """Registers a listener, called with the number and the hash of the last entry of a
        transaction.

        It is called after each transaction that added entries is on disk, and before ``write``
        returns. It must not raise.
        """
        ...

    def damage(self, *, pages: bool = True) -> list[str]:
        """Returns descriptions of damage in the database: broken pages, indexes, constraints or
        log.

        ``pages`` False leaves out checks that read the whole file.
        """
        ...

    def size(self) -> int:
        """The approximate size of the store in bytes."""
        ...

    def checkpoint(self) -> None:
        """Moves the write-ahead log into the main file, if the store has one."""
        ...

    def close(self) -> None:
        """Waits for submitted transactions, refuses new ones and releases the store. Idempotent."""
        ...
