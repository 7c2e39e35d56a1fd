# SPDX-License-Identifier: Apache-2.0
"""The DuckDB engine: it runs the SQL of a bounded plan in this process.

The connection can read the declared files and nothing else. It loads no extension, and its settings
are locked. Every run-time error reaches the analyst as the same message (RULES 24); the owner's log
gets the class of the error, never its text, which may quote values.
"""

import logging
import os
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import duckdb

from sfumato.engines.base import Exact, Graph, UnitRows
from sfumato.engines.cube import Coded, coded
from sfumato.engines.declared import fitting_sources, held, held_again
from sfumato.engines.duckdb_printer import printed, quote
from sfumato.engines.edges import edge_statements, numbered, read_columns
from sfumato.engines.emit import Statement, queries
from sfumato.engines.interruption import is_stopped
from sfumato.engines.lane import Lane
from sfumato.engines.lanes import Lanes
from sfumato.engines.layout import layout_statements
from sfumato.engines.leftovers import spill_prefix
from sfumato.engines.local import Local
from sfumato.engines.lock_down import lock_down, set_limits
from sfumato.engines.prepared import Prepared, kept_tables, read_tables
from sfumato.engines.relation import Tables, stored_columns
from sfumato.engines.remote import fill
from sfumato.engines.result_rows import Groups, Rows, columns, gather, is_read_in_columns
from sfumato.engines.rows import listed, mapped, write
from sfumato.engines.served import Served, ServerFailed
from sfumato.engines.sources import Opened, opened
from sfumato.engines.stop import ENDLESS, Patience
from sfumato.engines.time_limit import Watch
from sfumato.engines.value_sql import Source
from sfumato.errors import Cancelled, EngineFailed, InvalidSource
from sfumato.metadata.table import Table
from sfumato.noise.entropy import token
from sfumato.noise.law import Integers
from sfumato.plan.cube import BoundedCube
from sfumato.plan.graph import BoundedGraph
from sfumato.plan.relation import Scan
from sfumato.plan.rows import BoundedRows
from sfumato.plan.stages import Bounded

if TYPE_CHECKING:
    import pyarrow

T = TypeVar("T")

# The versions on which tests/contracts/conformance.py passed; others are not known to be right.
PASSED = ("2.0.0",)

_OWNER = logging.getLogger("sfumato.owner")
# Nothing is printed unless the owner adds a handler: the analyst may see stderr.
_OWNER.addHandler(logging.NullHandler())


class DuckDB:
    """The engine that runs plans as SQL in DuckDB, inside this process.

    ``limits``: its memory, threads, time, and how many questions run at once; a question that needs
    more fails. ``prepared``: the layouts that plans may read in place of their tables. ``spill``:
    the folder in which it makes its own folder for data that does not fit into memory.

    Guarantees:
        an engine failure is one constant message
        a version that has not passed is refused

    Raises:
        InvalidSource: a file or frame cannot be read, or this version of DuckDB has not passed the
            conformance suite.
        InvalidDeclaration: a declared column is missing from the data, or has another type there.
    """

    collects_codes = True

    def __init__(
        self,
        tables: Mapping[str, Table],
        *,
        limits: Local | None = None,
        prepared: Prepared | None = None,
        spill: Path | None = None,
    ) -> None:
        _require_passed()
        self._limits = limits or Local()
        # spilled rows are personal data: the folder is ours, closed to others, deleted on close
        self._spill = tempfile.mkdtemp(prefix=spill_prefix(), dir=spill)
        self._process = os.getpid()
        self._drop_spill = weakref.finalize(self, _drop, self._spill, self._process)
        self._lock = threading.Lock()
        # opens and describes sources; questions run in lanes
        self._connection = duckdb.connect(":memory:")
        lanes = [Lane(self._connection, self._limits) for _ in range(self._limits.lanes)]
        self._lanes = Lanes(lanes)
        self._tables = dict(tables)
        self._declared = fitting_sources(tables)
        self._prepared = prepared
        self._opened: dict[str, Opened] = {}
        self._sources: dict[str, Source] = {}
        try:
            set_limits(self._connection, self._limits)
            self._open_sources()
            lock_down(self._connection, self._spill, self._readable_files())
        except BaseException:
            self.close()
            raise

    def _open_sources(self) -> None:
        """Opens every table, and makes its rows visible in all lanes."""
        for name, table in self._tables.items():
            self._opened[name] = opened(self._connection, name, table, folder=Path(self._spill))
            self._sources[name] = held(
                self._connection,
                self._tables,
                name,
                self._opened[name],
            )
        for lane in self._lanes.all:
            lane.show(self._opened)

    def _readable_files(self) -> list[Path]:
        """Returns the files of the tables and of their prepared layouts."""
        files: list[Path] = []
        for source in self._opened.values():
            files += source.paths
        if self._prepared is not None:
            files += [self._prepared.path(table) for table in self._prepared.layouts]
        return files

    def close(self) -> None:
        """Closes the connection and deletes its spill files."""
        if os.getpid() == self._process:
            try:
                with suppress(duckdb.Error):
                    for lane in self._lanes.all:
                        lane.close()
                    self._connection.close()
            finally:
                self._drop_spill()

    def interrupt(self) -> None:
        """Interrupts running statements and refuses new ones; called before ``close``."""
        self._lanes.close()
        for lane in self._lanes.all:
            lane.connection.interrupt()

    def served(self, table: str) -> Served | None:
        """Returns how a remote table is copied, for the owner's check; None for a local one."""
        return self._opened[table].served

    def unprotected(
        self,
        columns: Mapping[str, Collection[str]],
        query: Callable[[Mapping[str, Source]], str],
    ) -> Rows:
        """Returns the exact rows of a query for the owner's data check, or of a public table.

        ``columns`` are the columns that the query reads, by table. This is not a method of
        ``Engine``, so no question, task or curator can call it.

        Raises:
            InvalidSource: a column cannot be read to its end.
        """
        self._look_again(columns)
        results = self._found(_rows, [query(self._sources)], columns)
        if results is None:
            names = [f"{table}.{column}" for table in columns for column in sorted(columns[table])]
            raise InvalidSource(
                f"{', '.join(names)} cannot be read to its end.",
                remedy="The log 'sfumato.owner' has the kind of failure. "
                "Write a damaged file again, or give more memory or time (sf.Local). "
                "Until then a question about the column fails, and is charged.",
            )
        return results[0]

    def statement(self, plan: Bounded) -> str:
        """Returns the SQL of a plan given the declarations alone: the same for any data (RULES 22).

        The statement that runs differs by how the data happens to be stored: a string that is read
        as a number, an integer that is stored as a float.

        Raises:
            InvalidSource: a prepared layout that the plan reads is stale.
        """
        self._require_current(plan)
        kept = {
            table: Source(quote(f"{table} prepared"), {}, coded=True) for table in kept_tables(plan)
        }
        emitted = _statements(plan, self._declared | kept, "<sampling key>")
        return ";\n\n".join(statement.sql for statement in emitted)

    def wait(self, patience: Patience = ENDLESS) -> None:
        """Blocks until the engine can run one more question; reserves nothing.

        Raises:
            Cancelled: the caller stopped waiting.
        """
        self._lanes.wait(patience)

    def ready(
        self, plan: Bounded, sampling_key: str, patience: Patience = ENDLESS
    ) -> Callable[[], Exact]:
        """Returns a function that computes the exact integers of a plan.

        Raises:
            InvalidSource: a prepared layout that the plan reads is stale, or a file has changed and
                cannot be read.
            InvalidDeclaration: a file has changed and no longer fits its declaration.
        """
        self._require_current(plan)
        self._look_again(read_tables(plan))
        emitted = _statements(plan, self._sources_of(plan), sampling_key)
        return partial(self._run, plan, emitted, patience)

    def run(self, plan: Bounded, sampling_key: str) -> Exact:
        """Runs a plan and returns its exact integers, without noise."""
        return self.ready(plan, sampling_key)()

    def _run(
        self,
        plan: Bounded,
        emitted: Sequence[Statement],
        patience: Patience,
    ) -> Exact:
        fetch, read = (_columns, columns) if is_read_in_columns(plan) else (_rows, gather)
        texts = [statement.sql for statement in emitted]
        results = self._found(fetch, texts, stored_columns(plan.tracked.raw.relation), patience)
        if results is None or not self._is_unchanged(plan):
            # outside the handler, so that not even the context of our error quotes its text
            raise EngineFailed()
        parts: dict[int, Groups] = {}
        for statement, result in zip(emitted, results, strict=True):
            parts |= read(plan, statement.places, result)
        return tuple(parts[place] for place in range(len(plan.parts)))

    def cube(
        self, plan: BoundedCube, patience: Patience = ENDLESS
    ) -> AbstractContextManager[Coded]:
        """Opens a bounded cube as a table of codes, deleted on exit; raises as ``ready`` does."""
        asked = stored_columns(plan.cube.relation)
        self._look_again(asked)
        return self._coded(plan, printed(coded(plan, self._sources)), asked, patience)

    def rows(
        self, plan: BoundedRows, key: str, patience: Patience = ENDLESS
    ) -> AbstractContextManager[UnitRows]:
        """Opens bounded rows in a temporary file, deleted on exit; raises as ``ready`` does."""
        asked = stored_columns(plan.rows.relation)
        self._look_again(asked)
        return self._listed(
            plan,
            listed(plan, self._sources, key),
            asked,
            patience,
        )

    def edges(
        self, plan: BoundedGraph, key: str, patience: Patience = ENDLESS
    ) -> Callable[[], Graph]:
        """Prepares a bounded graph; raises as ``ready`` does."""
        asked = read_columns(plan)
        self._look_again(asked)
        statements = edge_statements(plan, self._sources, key)
        return lambda: numbered(self._all(_columns, statements, asked, patience))

    @contextmanager
    def _listed(
        self,
        plan: BoundedRows,
        sql: str,
        columns: Mapping[str, Collection[str]],
        patience: Patience,
    ) -> Iterator[UnitRows]:
        with tempfile.TemporaryFile(dir=self._spill) as file:
            fetch = partial(write, file, plan.rows)
            starts, names, tokens = self._one(fetch, sql, columns, patience)
            yield mapped(file, plan, starts, names, tokens)

    @contextmanager
    def _coded(
        self,
        plan: BoundedCube,
        sql: str,
        columns: Mapping[str, Collection[str]],
        patience: Patience,
    ) -> Iterator[Coded]:
        # visible in every lane: other questions are answered between two marginals
        table = quote(f"codes {token()}")
        try:
            self._one(_rows, f"CREATE TABLE {table} AS {sql}", columns, patience)
            yield Coded(plan, table, lambda query: self._one(_arrays, printed(query), {}, patience))
        finally:
            with suppress(duckdb.Error), self._lock:
                self._connection.execute(f"DROP TABLE IF EXISTS {table}")

    def _one(
        self,
        fetch: Callable[[duckdb.DuckDBPyConnection, str], T],
        statement: str,
        columns: Mapping[str, Collection[str]],
        patience: Patience,
    ) -> T:
        """Runs one statement and returns what ``fetch`` returns for it."""
        return self._all(fetch, [statement], columns, patience)[0]

    def _all(
        self,
        fetch: Callable[[duckdb.DuckDBPyConnection, str], T],
        statements: list[str],
        columns: Mapping[str, Collection[str]],
        patience: Patience,
    ) -> list[T]:
        """Runs statements and returns what ``fetch`` returns for each."""
        results = self._found(fetch, statements, columns, patience)
        if results is None:
            # outside the handler, so that not even the context of our error quotes its text
            raise EngineFailed()
        return results

    def _sources_of(self, plan: Bounded) -> Mapping[str, Source]:
        kept = kept_tables(plan)
        if not kept:
            return self._sources
        if self._prepared is None:
            raise TypeError("a plan of a prepared layout, on an engine that was opened without one")
        return self._sources | {table: self._prepared.source(table) for table in kept}

    def _look_again(self, names: Collection[str]) -> None:
        """Reopens the tables whose files have changed since they were opened."""
        for name in names:
            if self._opened[name].has_changed:
                with self._lock:
                    item, source = held_again(
                        self._connection, self._tables, name, self._opened[name]
                    )
                    self._opened[name] = item
                    # a new mapping: another question may be reading the old one
                    self._sources = self._sources | {name: source}

    def _require_current(self, plan: Bounded) -> None:
        if self._prepared is not None:
            for table in kept_tables(plan):
                self._prepared.require_current(table)

    def _is_unchanged(self, plan: Bounded) -> bool:
        """Whether the layouts are, after they were read, still those that the plan was made for."""
        unchanged = True
        for table in kept_tables(plan):
            if self._prepared is not None and not self._prepared.is_current(table):
                _OWNER.error(
                    "the data of table %s, or its prepared layout, changed while it was read", table
                )
                unchanged = False
        return unchanged

    def _found(
        self,
        fetch: Callable[[duckdb.DuckDBPyConnection, str], T],
        texts: list[str],
        columns: Mapping[str, Collection[str]] | None = None,
        patience: Patience = ENDLESS,
    ) -> list[T] | None:
        """Runs statements in a lane and returns their results.

        Returns None if they failed; the owner's log then has the class of the error.

        Raises:
            Cancelled: they were interrupted because the caller stopped waiting.
        """
        cancelled = stopped = False
        try:
            with self._lanes.take(patience) as lane:
                fetch_here = partial(fetch, lane.connection)
                return self._fetched(
                    lane,
                    fetch_here,
                    texts,
                    columns or {},
                    patience,
                )
        except (duckdb.Error, MemoryError, OSError, RuntimeError) as failure:
            ended = patience.is_over or self._lanes.closed
            cancelled = isinstance(failure, duckdb.InterruptException | ServerFailed) and ended
            # DuckDB swallows the signal of Ctrl-C and raises one of these errors instead
            stopped = is_stopped(failure)
            if not (stopped or cancelled):
                _OWNER.error("the engine failed: %s", type(failure).__name__)
        if cancelled:
            raise Cancelled(paid=True)
        if stopped:
            raise KeyboardInterrupt
        return None

    def _fetched(
        self,
        lane: Lane,
        fetch: Callable[[str], T],
        texts: list[str],
        columns: Mapping[str, Collection[str]],
        patience: Patience,
    ) -> list[T]:
        """Runs statements in a lane under its watcher and returns their results."""
        with (
            lane.watcher.over(len(texts), patience) as watch,
            self._copied(lane.connection, columns, watch),
        ):
            results = []
            for statement in texts:
                results.append(lane.worker.run(partial(fetch, statement)))
                watch.next()
            return results

    def write_layout(
        self,
        scan: Scan,
        key: str,
        most: int,
    ) -> Path:
        """Writes the prepared layout of a table to a Parquet file in the engine's own folder.

        ``most`` is the largest number of rows of a unit in it; see ``layout``.

        Raises:
            InvalidSource: it cannot be computed or written.
        """
        path = Path(self._spill) / f"{scan.table}.parquet"
        tables = Tables.of(scan, self._sources)
        if self._found(_rows, layout_statements(scan, tables, key, most, str(path))) is None:
            raise InvalidSource(
                f"Table {scan.table!r} could not be prepared.",
                remedy="The log 'sfumato.owner' has the kind of failure: "
                "most often too little memory or disk.",
            )
        return path

    @contextmanager
    def _copied(
        self,
        connection: duckdb.DuckDBPyConnection,
        columns: Mapping[str, Collection[str]],
        watch: Watch,
    ) -> Iterator[None]:
        """Materialises the remote tables among those asked for, and empties them on exit."""
        copied = []
        for name, names in columns.items():
            source = self._opened.get(name)
            if source is not None and source.served is not None:
                copied.append((source.served, names))
        try:
            fill(connection, copied, lambda: not watch.is_over)
            yield
        finally:
            for table, _ in copied:
                connection.execute(table.empty)


def _statements(plan: Bounded, sources: Mapping[str, Source], sampling_key: str) -> list[Statement]:
    """Returns the statements of a plan in DuckDB SQL."""
    emitted = queries(plan, sources, sampling_key)
    return [Statement(printed(part.query), part.places) for part in emitted]


def _rows(connection: duckdb.DuckDBPyConnection, statement: str) -> Rows:
    return connection.execute(statement).fetchall()


def _columns(connection: duckdb.DuckDBPyConnection, statement: str) -> "pyarrow.Table":
    return connection.sql(statement).to_arrow_table()


def _arrays(connection: duckdb.DuckDBPyConnection, statement: str) -> list[Integers]:
    return [*connection.execute(statement).fetchnumpy().values()]


def _drop(folder: str, process: int) -> None:
    """Deletes a spill folder, if called in the process that made it."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


def _require_passed() -> None:
    if duckdb.__version__ not in PASSED:
        raise InvalidSource(
            f"DuckDB {duckdb.__version__} has not passed the conformance suite: "
            "what it computes is not known.",
            allowed=f"DuckDB {', '.join(PASSED)}",
            remedy=f"Install duckdb=={PASSED[-1]}.",
        )
