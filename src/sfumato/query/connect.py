# SPDX-License-Identifier: Apache-2.0
"""The way in: declared tables, a ledger and an engine become a session."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from sfumato.engines.duckdb import DuckDB
from sfumato.engines.local import Local
from sfumato.engines.prepared import Prepared
from sfumato.engines.spark import Spark, SparkEngine
from sfumato.engines.spark_frame import shared_session
from sfumato.errors import InvalidDeclaration, LedgerIncomplete, WrongUse, shown
from sfumato.ledger.account_path import UNSTATED
from sfumato.ledger.head_sinks import ALLOWED, Sink, sink_at
from sfumato.ledger.process import borrow, give_back
from sfumato.ledger.signed_heads import Key
from sfumato.ledger.spend import Ledger
from sfumato.metadata.contract import Contract
from sfumato.metadata.dataset import Dataset
from sfumato.metadata.table import Table
from sfumato.privacy.budget import Budget
from sfumato.privacy.unit import AddRemove, Relation
from sfumato.query.pipeline import UNPREPARED
from sfumato.query.session import Session, require_names


def connect(
    tables: Mapping[str, Table],
    *,
    dataset: str,
    ledger: str | Path | Ledger,
    budget: Budget | None = None,
    relation: Relation = AddRemove,
    version: str = "1",
    analyst: str = "owner",
    purpose: str = UNSTATED,
    prepared: str | Path | None = None,
    engine: Spark | Local | None = None,
    closed: bool | None = None,
    other_people: str = "",
    ledger_key: Key = None,
    ledger_heads: Sequence[str] = (),
    without_heads: str = "",
) -> Session:
    """A session over declared tables.

    Args:
        tables: the tables, by the names that questions use.
        dataset: the name under which the ledger knows the data, for ever.
        ledger: the file that keeps what was spent, made if it is not there, or a postgresql://
            address. Sessions of one process over one file share it. An ``sfumato.ledger.Ledger``
            that is open already stays so when the session is closed.
        budget: the limit; may be left out where the ledger already has it.
        relation: ``sf.AddRemove`` or ``sf.ReplaceOne``.
        version: the owner's version of the content; another version is asked anew.
        analyst: who asks; answers are not shared between analysts unless the owner's policy says so.
        purpose: what for; the analyst's account lies below it.
        prepared: the folder of ``sf.prepare``; its layouts are read where a question permits.
        engine: ``sf.Spark("spark://host:7077")`` has Spark read the paths; DataFrames of Spark
            are asked where they are without it; all else is DuckDB's, here, within the
            limits of ``sf.Local(memory_limit="8GB", threads=4)``, which may also tell how far it is.
        closed: whether only accounts that the owner has opened may spend. By default it is so
            beside each account below the dataset that was given a limit.
        other_people: the owner's reason why data that another dataset of this ledger has too is
            about other people here; the journal keeps it.
        ledger_key: what signs heads: a file, made if it is not there, or a function that gives the key in
            PEM. By default a file beside the ledger; for heads of a ledger on a server it must be given.
        ledger_heads: where signed heads are published, away from the ledger: ``file:///folder/name``,
            ``https://host/path`` or ``syslog:``. A ledger that is behind one of them is refused.
        without_heads: the owner's reason to go on although none of them can be read; the journal
            keeps it.

    Raises:
        InvalidDeclaration, InvalidSource: a table that is not as declared; a layout that is stale.
        ContractMismatch: the ledger knows the dataset under another contract, or its data under
            another name.
        LedgerIncomplete: the ledger is behind a head that was published, or none can be read.
        LedgerError: the ledger cannot be used.
    """
    if not isinstance(tables, Mapping):
        raise InvalidDeclaration(
            f"tables={type(tables).__name__}.", allowed='{"people": sf.Table(...)}'
        )
    require_names(analyst=analyst, purpose=purpose)
    _require_kinds(budget, prepared, ledger)
    if ledger_key is not None and isinstance(ledger, Ledger):
        raise WrongUse(
            "ledger_key, and a ledger that is open.", remedy="Ledger.open(place, key=...)"
        )
    sinks = _sinks(ledger_heads)
    declared = Dataset(dataset, dict(tables), relation, version)
    layouts = None if prepared is None else Prepared.open(prepared, declared)
    opened_engine = _engine(declared.tables, engine, layouts)
    let_go: Callable[[Ledger], object] = _keep if isinstance(ledger, Ledger) else give_back
    try:
        opened = ledger if isinstance(ledger, Ledger) else borrow(ledger, ledger_key)
    except BaseException:
        opened_engine.close()
        raise
    try:
        silence = _compared(opened, sinks, without_heads)
        limit = budget or opened.budget_of(dataset)
        if limit is None:
            raise WrongUse(
                f"The ledger does not know {shown(dataset)} yet, and no budget is given.",
                remedy="budget=sf.Budget(epsilon=1)",
            )
        _adopt(opened, declared, limit, closed=closed, other_people=other_people)
        if silence:
            opened.go_without_heads(dataset, silence=silence, reason=without_heads)
        opened.heads.begin(sinks)
        kept = UNPREPARED if layouts is None else layouts.kept
        asker = {"analyst": analyst, "purpose": purpose}
        return Session(declared, limit, opened_engine, opened, kept=kept, let_go=let_go, **asker)
    except BaseException:
        let_go(opened)
        opened_engine.close()
        raise


def _adopt(
    ledger: Ledger, declared: Dataset, limit: Budget, *, closed: bool | None, other_people: str
) -> None:
    """Opens the account of a dataset, or checks that it is the same one."""
    if closed is not None and not isinstance(closed, bool):
        raise WrongUse(f"closed={shown(closed)}.", allowed="True, False, or None")
    ledger.adopt(
        Contract.of(declared, limit), limit, sources=declared.places, other_people=other_people
    )
    if closed is not None and ledger.is_closed(declared.name) != closed:
        ledger.restrict(declared.name, closed=closed, reason="declared with the dataset")


def _sinks(addresses: object) -> list[Sink]:
    if isinstance(addresses, str) or not isinstance(addresses, Sequence):
        raise WrongUse(f"ledger_heads={shown(addresses)}.", allowed=f"a list of {ALLOWED}")
    return [sink_at(each) for each in addresses]


def _compared(ledger: Ledger, sinks: Sequence[Sink], without: str) -> str:
    """Compares a ledger with the heads kept elsewhere; why none replied, which the owner accepts."""
    silence = ledger.heads.compare(sinks)
    if silence and not without:
        raise LedgerIncomplete(
            f"No head of the ledger can be read ({silence}).",
            remedy="Make one of ledger_heads readable. If that cannot be: without_heads= with a reason, which the "
            "journal keeps.",
        )
    return silence


def _keep(ledger: Ledger) -> None:
    """Leaves a ledger open that the caller has opened."""


def _require_kinds(budget: object, prepared: object, ledger: object) -> None:
    """Refuses what would fail later, or mean something else than it says."""
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


def _engine(
    tables: Mapping[str, Table], engine: Spark | Local | None, layouts: Prepared | None
) -> DuckDB | SparkEngine:
    """The one engine that reads all the tables."""
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
