# SPDX-License-Identifier: Apache-2.0
"""DuckDB, embedded and locked down: it runs the SQL emitted from a bounded plan.

The connection reads the declared files and nothing else, loads no extension, and its
settings cannot be changed. Whatever goes wrong while it runs reaches the analyst as one
constant message (RULES 24); the owner's log gets the kind of failure, never its text,
which may quote values.
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

from sfumato.engines.base import Exact, UnitRows
from sfumato.engines.cube import Coded, coded
from sfumato.engines.declared import fitting_sources, held, held_again, owner_columns
from sfumato.engines.emit import Statement, statements
from sfumato.engines.interruption import is_stopped
from sfumato.engines.lane import Lane
from sfumato.engines.lanes import Lanes
from sfumato.engines.layout import layout_statements
from sfumato.engines.leftovers import spill_prefix
from sfumato.engines.local import Local
from sfumato.engines.postgres import ServerFailed, fill
from sfumato.engines.prepared import Prepared, kept_tables, read_tables
from sfumato.engines.relation import Tables, stored_columns
from sfumato.engines.result_rows import Groups, Rows, columns, gather
from sfumato.engines.rows import listed, mapped, write
from sfumato.engines.sources import Opened, opened
from sfumato.engines.stop import ENDLESS, Patience
from sfumato.engines.time_limit import Watch
from sfumato.engines.value_sql import Source, column_text, quote, text
from sfumato.errors import Cancelled, EngineFailed, InvalidSource
from sfumato.metadata.table import Table
from sfumato.noise.entropy import token
from sfumato.noise.law import Integers
from sfumato.plan.cube import BoundedCube
from sfumato.plan.relation import Scan
from sfumato.plan.rows import BoundedRows
from sfumato.plan.stages import Bounded

if TYPE_CHECKING:
    import pyarrow

T = TypeVar("T")

# The versions on which tests/contracts/conformance.py passed; what another one computes is not known.
PASSED = ("2.0.0",)

_OWNER = logging.getLogger("sfumato.owner")
# Without a handler of the owner nothing is printed: stderr may be what the analyst sees.
_OWNER.addHandler(logging.NullHandler())


class DuckDB:
    """The engine over declared tables.

    ``limits``: what it may use, how many questions run at once, and who is told how far it is; what needs more fails.
    ``prepared``: layouts that plans may read in place of their table. ``spill``: the folder in
    which it makes its own for what does not fit into memory.

    Guarantees:
        an engine failure is one constant message
        a version that has not passed is refused

    Raises:
        InvalidSource: a file or frame that cannot be read, or a version of DuckDB that has
            not passed the conformance suite.
        InvalidDeclaration: a declared column that the data does not have, or cannot hold.
    """

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
        # spilled rows are personal data: a folder of our own, closed to others, gone with us
        self._spill = tempfile.mkdtemp(prefix=spill_prefix(), dir=spill)
        self._process = os.getpid()
        self._drop_spill = weakref.finalize(self, _drop, self._spill, self._process)
        self._lock = threading.Lock()
        # opens and describes sources; questions run in lanes
        self._connection = duckdb.connect(":memory:")
        self._lanes = Lanes(
            [Lane(self._connection, self._limits) for _ in range(self._limits.lanes)]
        )
        self._tables, self._declared = dict(tables), fitting_sources(tables)
        self._prepared = prepared
        self._opened: dict[str, Opened] = {}
        self._sources: dict[str, Source] = {}
        try:
            self._limit()
            for name, table in tables.items():
                self._opened[name] = opened(self._connection, name, table)
                self._sources[name] = held(self._connection, tables, name, self._opened[name])
            files = [path for item in self._opened.values() for path in item.paths]
            for lane in self._lanes.all:
                lane.show(self._opened)
            layouts = (
                [] if prepared is None else [prepared.path(table) for table in prepared.layouts]
            )
            self._lock_down([*files, *layouts])
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Drops the connection and everything it spilled."""
        if os.getpid() == self._process:
            try:
                with suppress(duckdb.Error):
                    for lane in self._lanes.all:
                        lane.close()
                    self._connection.close()
            finally:
                self._drop_spill()

    def interrupt(self) -> None:
        """Ends what runs, and lets nothing begin: the engine is about to close."""
        self._lanes.close()
        for lane in self._lanes.all:
            lane.connection.interrupt()

    def read_through(self, tables: Mapping[str, Table]) -> None:
        """Reads every declared column once: a damaged page or text shows here, to the owner.

        Raises:
            InvalidSource: a column cannot be read to its end.
        """
        for name, table in tables.items():
            source = self._sources[name]
            for column in dict.fromkeys([*table.columns, *owner_columns(tables, name)]):
                item = f"SELECT count(*) FROM {source.sql} WHERE length({column_text(column, source)}) < 0"
                if self._found(_rows, [item], {name: {column}}) is None:
                    raise InvalidSource(
                        f"Table {name!r}: column {column!r} cannot be read to its end.",
                        remedy="Write the file again. Until then a question about the column fails, and is charged.",
                    )

    def statement(self, plan: Bounded) -> str:
        """The SQL of a plan as the declarations alone make it: the same on any data (RULES 22).

        What runs differs from it by how the data happens to be stored: text that has to be
        read as numbers, whole numbers stored as floats.

        Raises:
            InvalidSource: a prepared layout that the plan reads is stale.
        """
        self._require_current(plan)
        kept = {
            table: Source(quote(f"{table} prepared"), {}, coded=True) for table in kept_tables(plan)
        }
        return ";\n\n".join(
            each.sql for each in statements(plan, self._declared | kept, "<sampling key>")
        )

    def wait(self, patience: Patience = ENDLESS) -> None:
        """Returns once a lane is free.

        Raises:
            Cancelled: the caller waits no longer.
        """
        self._lanes.wait(patience)

    def ready(
        self, plan: Bounded, sampling_key: str, patience: Patience = ENDLESS
    ) -> Callable[[], Exact]:
        """What computes the exact integers of a plan, once it is called.

        Raises:
            InvalidSource: a prepared layout that the plan reads is stale, or a file has changed and cannot be read.
            InvalidDeclaration: a file has changed and is not what is declared.
        """
        self._require_current(plan)
        self._look_again(read_tables(plan))
        return partial(
            self._run, plan, statements(plan, self._sources_of(plan), sampling_key), patience
        )

    def run(self, plan: Bounded, sampling_key: str) -> Exact:
        """The exact integers of a plan."""
        return self.ready(plan, sampling_key)()

    def _run(self, plan: Bounded, emitted: Sequence[Statement], patience: Patience) -> Exact:
        raw = plan.tracked.raw
        fetch, read = (_columns, columns) if raw.is_open else (_rows, gather)
        found = self._found(
            fetch, [each.sql for each in emitted], stored_columns(raw.relation), patience
        )
        if found is None or not self._is_unchanged(plan):
            # outside the handler, so that not even the context of our error holds its text
            raise EngineFailed()
        parts: dict[int, Groups] = {}
        for each, given in zip(emitted, found, strict=True):
            parts |= read(plan, each.places, given)
        return tuple(parts[place] for place in range(len(plan.parts)))

    def cube(
        self, plan: BoundedCube, patience: Patience = ENDLESS
    ) -> AbstractContextManager[Coded]:
        """A table of codes that is made when it is entered, and gone when it is left; raises as ``ready`` does."""
        asked = stored_columns(plan.cube.relation)
        self._look_again(asked)
        return self._coded(plan, coded(plan, self._sources), asked, patience)

    def rows(
        self, plan: BoundedRows, key: str, patience: Patience = ENDLESS
    ) -> AbstractContextManager[UnitRows]:
        """Rows in a file that is made when it is entered, and gone when it is left; raises as ``ready`` does."""
        asked = stored_columns(plan.rows.relation)
        self._look_again(asked)
        return self._listed(plan, listed(plan, self._sources, key), asked, patience)

    @contextmanager
    def _listed(
        self, plan: BoundedRows, sql: str, asked: Mapping[str, Collection[str]], patience: Patience
    ) -> Iterator[UnitRows]:
        with tempfile.TemporaryFile(dir=self._spill) as file:
            starts = self._one(partial(write, file), sql, asked, patience)
            yield mapped(file, len(plan.rows.values), starts)

    @contextmanager
    def _coded(
        self, plan: BoundedCube, sql: str, asked: Mapping[str, Collection[str]], patience: Patience
    ) -> Iterator[Coded]:
        # of no lane: others are answered between two marginals
        table = quote(f"codes {token()}")
        try:
            self._one(_rows, f"CREATE TABLE {table} AS {sql}", asked, patience)
            yield Coded(plan, table, lambda each: self._one(_arrays, each, {}, patience))
        finally:
            with suppress(duckdb.Error), self._lock:
                self._connection.execute(f"DROP TABLE IF EXISTS {table}")

    def _one(
        self,
        fetch: Callable[[duckdb.DuckDBPyConnection, str], T],
        statement: str,
        asked: Mapping[str, Collection[str]],
        patience: Patience,
    ) -> T:
        """What one statement gives."""
        found = self._found(fetch, [statement], asked, patience)
        if found is None:
            # outside the handler, so that not even the context of our error holds its text
            raise EngineFailed()
        return found[0]

    def _sources_of(self, plan: Bounded) -> Mapping[str, Source]:
        kept = kept_tables(plan)
        if not kept:
            return self._sources
        if self._prepared is None:
            raise TypeError("a plan of a prepared layout, on an engine that was opened without one")
        return self._sources | {table: self._prepared.source(table) for table in kept}

    def _look_again(self, names: Collection[str]) -> None:
        """Opens anew the tables whose files have changed since they were opened."""
        for name in names:
            if self._opened[name].has_changed:
                with self._lock:
                    item, source = held_again(
                        self._connection, self._tables, name, self._opened[name]
                    )
                    self._opened[name] = item
                    # anew: another question may be reading those that there are
                    self._sources = self._sources | {name: source}

    def _require_current(self, plan: Bounded) -> None:
        if self._prepared is not None:
            for table in kept_tables(plan):
                self._prepared.require_current(table)

    def _is_unchanged(self, plan: Bounded) -> bool:
        """Whether the layouts are, after they were read, still those that the plan was made for."""
        changed = [
            table
            for table in kept_tables(plan)
            if self._prepared is not None and not self._prepared.is_current(table)
        ]
        for table in changed:
            _OWNER.error(
                "the data of table %s, or its prepared layout, changed while it was read", table
            )
        return not changed

    def _found(
        self,
        fetch: Callable[[duckdb.DuckDBPyConnection, str], T],
        texts: list[str],
        asked: Mapping[str, Collection[str]] | None = None,
        patience: Patience = ENDLESS,
    ) -> list[T] | None:
        """What statements give; None: they failed, and the owner was told why.

        Raises:
            Cancelled: they were interrupted for a caller who waits no longer.
        """
        cancelled = stopped = False
        try:
            with self._lanes.take(patience) as lane:
                return self._fetched(
                    lane, partial(fetch, lane.connection), texts, asked or {}, patience
                )
        except (duckdb.Error, MemoryError, OSError, RuntimeError) as failure:
            ended = patience.is_over or self._lanes.closed
            cancelled = isinstance(failure, duckdb.InterruptException | ServerFailed) and ended
            # DuckDB swallows the signal of Ctrl-C and raises one of these for it
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
        asked: Mapping[str, Collection[str]],
        patience: Patience,
    ) -> list[T]:
        """What statements give in a lane, while its watcher looks."""
        with (
            lane.watcher.over(len(texts), patience) as watch,
            self._copied(lane.connection, asked, watch),
        ):
            found = []
            for each in texts:
                found.append(fetch(each))
                watch.next()
            return found

    def write_layout(self, scan: Scan, key: str, most: int) -> Path:
        """The layout of a table (see ``layout``), as a file in the engine's own folder.

        Raises:
            InvalidSource: it cannot be computed or written.
        """
        path = Path(self._spill) / f"{scan.table}.parquet"
        tables = Tables.of(scan, self._sources)
        if self._found(_rows, layout_statements(scan, tables, key, most, str(path))) is None:
            raise InvalidSource(
                f"Table {scan.table!r} could not be prepared.",
                remedy="The log 'sfumato.owner' has the kind of failure: most often too little memory or disk.",
            )
        return path

    @contextmanager
    def _copied(
        self,
        connection: duckdb.DuckDBPyConnection,
        asked: Mapping[str, Collection[str]],
        watch: Watch,
    ) -> Iterator[None]:
        """Tables of servers are there while they are read, and then they are not."""
        served = {
            name: item.served for name, item in self._opened.items() if item.served is not None
        }
        copied = [(served[name], columns) for name, columns in asked.items() if name in served]
        try:
            fill(connection, copied, lambda: not watch.is_over)
            yield
        finally:
            for table, _ in copied:
                connection.execute(table.empty)

    def _limit(self) -> None:
        if self._limits.memory_limit is not None:
            self._connection.execute(f"SET memory_limit = {text(self._limits.memory_limit)}")
        if self._limits.threads is not None:
            self._connection.execute(f"SET threads = {self._limits.threads}")

    def _lock_down(self, sources: list[Path]) -> None:
        paths = ", ".join(text(str(source)) for source in sources)
        for setting in (
            f"SET temp_directory = {text(self._spill)}",
            f"SET allowed_paths = [{paths}]",
            f"SET allowed_directories = [{text(self._spill)}]",
            "SET autoinstall_known_extensions = false",
            "SET autoload_known_extensions = false",
            "SET allow_community_extensions = false",
            "SET enable_external_access = false",
            # declared files lie on this machine, whose system reads ahead already
            "SET disable_parquet_prefetching = true",
            "SET lock_configuration = true",
        ):
            self._connection.execute(setting)


def _rows(connection: duckdb.DuckDBPyConnection, statement: str) -> Rows:
    return connection.execute(statement).fetchall()


def _columns(connection: duckdb.DuckDBPyConnection, statement: str) -> "pyarrow.Table":
    return connection.sql(statement).to_arrow_table()


def _arrays(connection: duckdb.DuckDBPyConnection, statement: str) -> list[Integers]:
    return [*connection.execute(statement).fetchnumpy().values()]


def _drop(folder: str, process: int) -> None:
    """Removes a spill folder, in the process that made it."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


def _require_passed() -> None:
    if duckdb.__version__ not in PASSED:
        raise InvalidSource(
            f"DuckDB {duckdb.__version__} has not passed the conformance suite: what it computes is not known.",
            allowed=f"DuckDB {', '.join(PASSED)}",
            remedy=f"Install duckdb=={PASSED[-1]}.",
        )
