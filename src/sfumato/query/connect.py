# SPDX-License-Identifier: Apache-2.0
"""Opens a session: checks the tables and the contract, and opens the ledger and the engine.

``sf.connect`` is the user's entry point; ``config.load`` calls it for a ``sfumato.toml``.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeAlias

from sfumato.engines.base import Engine
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.local import Local
from sfumato.engines.prepared import Prepared
from sfumato.engines.spark import Spark, SparkEngine
from sfumato.engines.spark_frame import shared_session
from sfumato.errors import InvalidDeclaration, LedgerIncomplete, WrongUse, shown
from sfumato.ledger.account_path import UNSTATED
from sfumato.ledger.head_sinks import ALLOWED, Sink, sink_at
from sfumato.ledger.process import borrow, give_back, wait_for
from sfumato.ledger.signed_heads import Key
from sfumato.ledger.spend import Ledger
from sfumato.ledger.waiting import WAIT, require_wait
from sfumato.metadata.contract import Contract
from sfumato.metadata.dataset import Dataset
from sfumato.metadata.server import is_address
from sfumato.metadata.table import Table
from sfumato.privacy.budget import Budget
from sfumato.privacy.unit import AddRemove, Relation
from sfumato.query.pipeline import UNPREPARED
from sfumato.query.session import Session, require_names

# The path of a folder, if there is one; where a ledger is; what reads the tables.
Folder: TypeAlias = str | Path | None
LedgerPlace: TypeAlias = str | Path | Ledger
Reader: TypeAlias = Spark | Local | None
# The analyst who is the owner of the data.
OWNER = "owner"


def connect(
    tables: Mapping[str, Table],
    *,
    dataset: str,
    ledger: LedgerPlace,
    budget: Budget | None = None,
    relation: Relation = AddRemove,
    version: str = "1",
    analyst: str = OWNER,
    purpose: str = UNSTATED,
    prepared: Folder = None,
    states: Folder = None,
    engine: Reader = None,
    closed: bool | None = None,
    other_people: str = "",
    ledger_key: Key = None,
    ledger_heads: Sequence[str] = (),
    without_heads: str = "",
    wait: float = WAIT,
) -> Session:
    """Opens a session over declared tables.

    Args:
        tables: the tables by the names that questions use.
        dataset: the name of the data in the ledger; it cannot change later.
        ledger: the path of the SQLite file that records what is spent, created if it does not
            exist, or a postgresql:// address. Sessions of one process over one file share it. An
            open ``sfumato.ledger.Ledger`` stays open when the session is closed.
        budget: the limit; optional if the ledger already has one for the dataset.
        relation: ``sf.AddRemove`` or ``sf.ReplaceOne``.
        version: the owner's version of the data; answers about another version are not reused.
        analyst: who asks. Analysts do not share answers unless the owner's policy allows it.
        purpose: what the questions are for; the analyst's account lies below it.
        prepared: the folder of ``sf.prepare``; its layouts are used if a question permits.
        states: the folder of the secret states of streams, which are personal data; by default
            beside the ledger, if that is a file.
        engine: with ``sf.Spark("spark://host:7077")``, Spark reads the paths. Spark DataFrames
            are always read by their own Spark session. Otherwise DuckDB runs in this process,
            within the limits of ``sf.Local(memory_limit="8GB", threads=4)``, which can also
            report progress.
        closed: whether only accounts that the owner has opened may spend. By default this holds
            for accounts beside one that has a limit, below the dataset.
        other_people: the owner's reason why a source that another dataset of this ledger also
            reads is about other people here; it is written to the journal.
        ledger_key: the key that signs heads: a file, created if it does not exist, or a function
            that returns the key in PEM. By default a file beside the ledger; it is required for
            heads of a ledger on a server.
        ledger_heads: where signed heads are published, away from the ledger:
            ``file:///folder/name``, ``https://host/path`` or ``syslog:``. A ledger that is older
            than one of these heads is refused.
        without_heads: the owner's reason to continue although no published head can be read; it
            is written to the journal.
        wait: how many seconds to wait for a ledger file that another process has open. Nothing is
            held meanwhile, and Ctrl-C ends it. A file that this process has opened otherwise is
            refused at once.

    Raises:
        InvalidDeclaration, InvalidSource: a table is not as declared, or a layout is stale.
        ContractMismatch: the ledger has another contract for the dataset, or has the data under
            another name.
        LedgerIncomplete: the ledger is older than a published head, or no head can be read.
        LedgerError: the ledger cannot be used.
    """
    require_names(analyst=analyst, purpose=purpose)
    _require_kinds(tables, budget, prepared, ledger, ledger_key)
    sinks = _sinks(ledger_heads)
    declared = _require_public_apart(Dataset(dataset, tables, relation, version))
    # before the data is opened, so that nothing is held meanwhile
    _wait(ledger, wait)
    with ExitStack() as failed:
        opened_engine, layouts = _engine(declared, engine, prepared)
        failed.callback(opened_engine.close)
        opened, let_go = _open_ledger(ledger, ledger_key, wait)
        failed.callback(let_go, opened)
        with _publishing_heads(opened, dataset, sinks, without_heads):
            limit = _open_account(
                opened, declared, budget, closed=closed, other_people=other_people
            )
        session = Session(
            declared,
            limit,
            opened_engine,
            opened,
            analyst=analyst,
            purpose=purpose,
            kept=layouts,
            let_go=let_go,
            states=_states(states, ledger),
            is_owners=_is_owners(analyst, ledger),
        )
        # from here on the session closes them
        failed.pop_all()
    return session


def _require_public_apart(declared: Dataset) -> Dataset:
    """Refuses a public table at the same source as a private one: it would show the private rows."""
    private = [table for table in declared.tables.values() if not table.public]
    for name, table in declared.tables.items():
        if table.public and any(_is_same(table, other) for other in private):
            raise InvalidDeclaration(
                f"The public table {shown(name)} is the same data as a private one.",
                allowed="a public table that is about nobody",
                remedy="Drop public=True, or give it data of its own.",
            )
    return declared


def _is_same(one: Table, other: Table) -> bool:
    """Whether two tables have the same source: one place, or the same object in memory."""
    if one.place:
        return (one.place, one.sheet) == (other.place, other.sheet)
    return one.source is other.source


def _wait(ledger: LedgerPlace, seconds: float) -> None:
    """Waits for a ledger file that another process has open (WrongUse for an invalid time)."""
    require_wait(seconds)
    if not isinstance(ledger, Ledger):
        wait_for(ledger, seconds)


def _limit(ledger: Ledger, dataset: str, budget: Budget | None) -> Budget:
    """The limit of a dataset: the given budget, or the one that the ledger has."""
    limit = budget or ledger.budget_of(dataset)
    if limit is None:
        raise WrongUse(
            f"The ledger does not know {shown(dataset)} yet, and no budget is given.",
            remedy="budget=sf.Budget(epsilon=1)",
        )
    return limit


def _open_ledger(
    ledger: str | Path | Ledger, key: Key, wait: float
) -> tuple[Ledger, Callable[[Ledger], object]]:
    """The open ledger, and the function that closes it at the end of the session."""
    if isinstance(ledger, Ledger):
        return ledger, _leave_open
    return borrow(ledger, key, wait=wait), give_back


def _states(folder: str | Path | None, ledger: str | Path | Ledger) -> Path | None:
    """The folder of the secret states of streams; None if it is neither stated nor implied."""
    if folder is not None:
        if not isinstance(folder, str | Path) or not str(folder) or is_address(folder):
            raise WrongUse(f"states={shown(folder)}.", allowed="the path of a folder")
        return Path(folder).absolute()
    if isinstance(ledger, Ledger) or is_address(ledger):
        return None
    return Path(f"{ledger}.streams").absolute()


def _is_owners(analyst: str, ledger: str | Path | Ledger) -> bool:
    """Whether the owner asks, over a ledger file that belongs to the user of this process.

    An open ``Ledger``, and one on a server, may serve others too.
    """
    if analyst != OWNER:
        return False
    if isinstance(ledger, Ledger) or is_address(ledger):
        return False
    return Path(ledger).stat().st_uid == os.geteuid()


def _open_account(
    ledger: Ledger,
    declared: Dataset,
    budget: Budget | None,
    *,
    closed: bool | None,
    other_people: str,
) -> Budget:
    """Opens the account of a dataset, or checks that its contract is the stored one.

    Returns its limit.
    """
    limit = _limit(ledger, declared.name, budget)
    if closed is not None and not isinstance(closed, bool):
        raise WrongUse(f"closed={shown(closed)}.", allowed="True, False, or None")
    contract = Contract.of(declared, limit)
    ledger.adopt(contract, limit, sources=declared.places, other_people=other_people)
    if closed is not None and ledger.is_closed(declared.name) != closed:
        ledger.restrict(declared.name, closed=closed, reason="declared with the dataset")
    return limit


def _sinks(addresses: object) -> list[Sink]:
    """Opens the sinks at a list of addresses (WrongUse unless it is a list)."""
    if isinstance(addresses, str) or not isinstance(addresses, Sequence):
        raise WrongUse(f"ledger_heads={shown(addresses)}.", allowed=f"a list of {ALLOWED}")
    return [sink_at(address) for address in addresses]


def _compare_heads(ledger: Ledger, sinks: Sequence[Sink], without: str) -> str:
    """Compares a ledger with its published heads.

    Returns why no head can be read, if the owner accepts that with a reason; else "".
    """
    silence = ledger.heads.compare(sinks)
    if silence and not without:
        raise LedgerIncomplete(
            f"No head of the ledger can be read ({silence}).",
            remedy="Make one of ledger_heads readable. If that cannot be: "
            "without_heads= with a reason, which the journal keeps.",
        )
    return silence


@contextmanager
def _publishing_heads(
    ledger: Ledger, dataset: str, sinks: Sequence[Sink], reason: str
) -> Iterator[None]:
    """Compares a ledger with its published heads; when the block ends, starts to publish.

    If no head could be read, the owner's reason is written to the journal.
    """
    silence = _compare_heads(ledger, sinks, reason)
    yield
    if silence:
        ledger.go_without_heads(dataset, silence=silence, reason=reason)
    ledger.heads.begin(sinks)


def _leave_open(ledger: Ledger) -> None:
    """Does nothing: a ledger that the caller opened stays open."""


def _require_kinds(
    tables: object,
    budget: object,
    prepared: object,
    ledger: object,
    key: Key,
) -> None:
    """Raises WrongUse for arguments that would fail later or be misunderstood."""
    if not isinstance(tables, Mapping):
        raise InvalidDeclaration(
            f"tables={type(tables).__name__}.", allowed='{"people": sf.Table(...)}'
        )
    if budget is not None and not isinstance(budget, Budget):
        raise WrongUse(f"budget={shown(budget)}.", allowed="sf.Budget(epsilon=1, delta=1e-6)")
    if prepared is not None and not isinstance(prepared, str | Path):
        raise WrongUse(
            f"prepared={shown(prepared)}.", allowed="the folder that sf.prepare returned, or None"
        )
    if ledger == ":memory:":
        raise WrongUse(
            "A ledger in memory would forget what was spent.", allowed="the path of a file"
        )
    if key is not None and isinstance(ledger, Ledger):
        raise WrongUse(
            "ledger_key, and a ledger that is open.", remedy="Ledger.open(place, key=...)"
        )


def _engine(
    declared: Dataset, engine: Spark | Local | None, prepared: str | Path | None
) -> tuple[Engine, Mapping[str, int]]:
    """The engine that reads all the tables, and the rows that the prepared layouts keep."""
    if prepared is None:
        return _opened_engine(declared.tables, engine, None), UNPREPARED
    layouts = Prepared.open(prepared, declared)
    return _opened_engine(declared.tables, engine, layouts), layouts.kept


def _opened_engine(
    tables: Mapping[str, Table], engine: Spark | Local | None, layouts: Prepared | None
) -> Engine:
    """The engine that reads all the tables."""
    if engine is not None and not isinstance(engine, Spark | Local):
        raise WrongUse(
            f"engine={shown(engine)}.",
            allowed='sf.Spark("spark://host:7077"), sf.Local(threads=4), or None',
        )
    session = shared_session(tables)
    if layouts is not None and (isinstance(engine, Spark) or session is not None):
        raise WrongUse(
            "A prepared layout, and Spark.", allowed="one of them", remedy="Leave prepared= out."
        )
    if isinstance(engine, Spark):
        return engine.open(tables)
    if session is not None:
        if engine is not None:
            raise WrongUse(
                "DataFrames of Spark, and sf.Local.",
                allowed="one of them",
                remedy="Leave engine= out.",
            )
        return SparkEngine(tables, session)
    return DuckDB(tables, limits=engine, prepared=layouts)
