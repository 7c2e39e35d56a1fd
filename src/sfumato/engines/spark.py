# SPDX-License-Identifier: Apache-2.0
"""The Spark engine: the same plans and integers, for data that outgrows one machine.

It runs the queries of ``emit`` as ``spark_printer`` prints them, in its own session of the Spark
application, so that settings of other sessions cannot change the meaning of a statement. The
integers are collected once; no noise is ever in Spark. Every run-time error reaches the analyst as
the same message (RULES 24).
"""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from sfumato.engines.base import Exact, Graph, UnitRows
from sfumato.engines.cube import Coded, coded
from sfumato.engines.declared import owner_columns
from sfumato.engines.emit import Statement, queries
from sfumato.engines.interruption import is_cancelled_job, is_interrupt
from sfumato.engines.lanes import Lanes
from sfumato.engines.result_rows import Groups, Rows, columns, gather, is_read_in_columns
from sfumato.engines.spark_cube import opened_cube
from sfumato.engines.spark_frame import frame_of, require_moments, require_plain
from sfumato.engines.spark_kind import identifier, largest_code
from sfumato.engines.spark_printer import printed
from sfumato.engines.spark_quiet import quiet
from sfumato.engines.spark_source import Read, declared, read
from sfumato.engines.stop import ENDLESS, Patience, is_duration
from sfumato.errors import (
    Cancelled,
    EngineFailed,
    InvalidDeclaration,
    InvalidSource,
    WrongUse,
    shown,
    without_secrets,
)
from sfumato.metadata.table import Table
from sfumato.noise.entropy import token
from sfumato.plan.cube import BoundedCube
from sfumato.plan.graph import BoundedGraph
from sfumato.plan.rows import BoundedRows
from sfumato.plan.stages import Bounded

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")

# The versions on which tests/contracts/conformance.py passed; others are not known to be right.
PASSED = ("4.3.0",)
# The meaning of a statement must not depend on the application's settings: these are set, ...
_MEANING = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.caseSensitive": "true",
    "spark.sql.variable.substitute": "false",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    # this optimization visits nested branches twice each: exponential time for deep ones
    "spark.sql.subexpressionElimination.enabled": "false",
    # this rule makes a union below a window a plan that cannot be resolved (Spark 4.3.0)
    "spark.sql.optimizer.excludedRules": (
        "org.apache.spark.sql.catalyst.optimizer.RemoveRedundantAliases"
    ),
}
# ... these affect speed only and are kept, and all others are reset to Spark's defaults.
_SPEED = (
    "spark.sql.adaptive.",
    "spark.sql.autoBroadcastJoinThreshold",
    "spark.sql.broadcastTimeout",
    "spark.sql.codegen.",
    "spark.sql.files.maxPartition",
    "spark.sql.files.minPartition",
    "spark.sql.leafNodeDefaultParallelism",
    "spark.sql.shuffle.partitions",
)
# For an application of our own: the recursion of Spark's parser needs a deep stack, and logs and
# the web UI, which show row counts and sometimes a value, are switched off.
_QUIET = {
    "spark.driver.extraJavaOptions": "-Xss16m",
    "spark.executor.extraJavaOptions": "-Xss16m",
    "spark.log.level": "OFF",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
_OWNER = logging.getLogger("sfumato.owner")
_OWNER.addHandler(logging.NullHandler())
_HOUR = 3600.0
# How often a statement that can be stopped is checked, in seconds.
_LOOK = 0.2
# With at most this many rows of a unit in a group, adding up before the shuffle does not pay.
_FEW = 16
# A table has at most 2^40 rows; 2^40 numbers below 2^22 add up to less than 2^62.
_NARROW = 2**22


@dataclass(frozen=True, slots=True, repr=False)
class Spark:
    """Where Spark runs: for ``sf.connect(..., engine=sf.Spark("spark://host:7077"))``.

    ``options`` are settings of the application, such as ``{"spark.executor.memory": "8g"}``;
    ``time_limit`` is in seconds, for one question. The application ends with the session.

    Raises:
        InvalidDeclaration: no address, a wrong option, or a time limit that is not valid.

    The values of options are not shown, because a key of a store may be among them.

    >>> Spark("local[2]", options={"spark.executor.memory": "8g"})
    Spark('local[2]', options={'spark.executor.memory': ...}, time_limit=3600.0)
    """

    master: str
    options: Mapping[str, str] = field(default_factory=dict)
    time_limit: float = _HOUR

    def __post_init__(self) -> None:
        if not isinstance(self.master, str) or not self.master:
            raise InvalidDeclaration(
                f"sf.Spark({shown(self.master)}).", allowed='"spark://host:7077", "local[2]"'
            )
        if not _are_strings(self.options):
            raise InvalidDeclaration(
                "options= with a setting that is no text.",
                allowed='texts: {"spark.executor.memory": "8g"}',
            )
        _require_limit(self.time_limit)

    def __repr__(self) -> str:
        options = ", ".join(f"{name!r}: ..." for name in self.options)
        master = without_secrets(self.master)
        return f"Spark({master!r}, options={{{options}}}, time_limit={self.time_limit})"

    def __reduce__(self) -> NoReturn:
        raise WrongUse(
            "The settings of Spark are not pickled.", remedy="Give them again where they are used."
        )

    def open(self, tables: Mapping[str, Table]) -> "SparkEngine":
        """Opens the engine over declared tables, in an application of its own.

        Raises:
            InvalidSource: Spark cannot be started, or already runs in this process; and as for
                ``SparkEngine``.
        """
        session = None
        failed = ""
        running = False
        try:
            from pyspark import SparkContext
            from pyspark.sql import SparkSession

            running = SparkContext._active_spark_context is not None
            if not running:
                builder = SparkSession.builder.master(self.master)
                for name, value in (_QUIET | dict(self.options)).items():
                    builder = builder.config(name, value)
                session = builder.getOrCreate()
        except Exception as failure:
            failed = type(failure).__name__
        if running:
            raise InvalidSource(
                "This process runs Spark already.",
                allowed="one application a process",
                remedy="Hand in its tables, sf.Table(spark.table(...)), without engine=; "
                "or end it.",
            )
        if session is None:
            raise InvalidSource(
                f"Spark at {shown(self.master)} cannot be started ({failed}).",
                remedy="It needs sfumato[spark], Java 17 or later, "
                "and the address of a master that answers.",
            )
        return SparkEngine(tables, session, time_limit=self.time_limit, own=True)


def _are_strings(options: object) -> bool:
    """Whether a value is a mapping from strings to strings."""
    if not isinstance(options, Mapping):
        return False
    return all(isinstance(part, str) for part in chain.from_iterable(options.items()))


class SparkEngine:
    """The Spark engine over declared tables, in the application of a given session.

    The settings of that session are not changed, except that the application's log is switched off,
    because Spark quotes values in it. ``own``: the application ends with the engine.

    Guarantees:
        an engine failure is one constant message
        a version that has not passed is refused
        a lost task changes nothing

    Raises:
        InvalidSource: a source cannot be read, or a second read may return other rows; or this
            version of Spark has not passed the conformance suite.
        InvalidDeclaration: a declared column is missing from the data, or has another type there.
    """

    collects_codes = False

    def __init__(
        self,
        tables: Mapping[str, Table],
        session: "SparkSession",
        *,
        time_limit: float = _HOUR,
        own: bool = False,
    ) -> None:
        _require_limit(time_limit)
        self._time_limit = time_limit
        self._own = own
        self._process = os.getpid()
        self._session = session
        # one question at a time, and the tag of its jobs
        self._lane = Lanes([None])
        self._running = ""
        self._views: list[str] = []
        self._declared = {name: declared(tables, name) for name in tables}
        try:
            _require_passed(session)
            with quiet():
                self._session = session.newSession()
                self._settle()
                self._reads = {name: self._open(tables, name) for name in tables}
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Drops the views of the tables; ends the application if it is the engine's own."""
        if os.getpid() != self._process:
            return
        try:
            for view in self._views:
                self._session.catalog.dropGlobalTempView(view)
            self._views.clear()
            if self._own:
                self._session.sparkContext.stop()
        except Exception as failure:
            # an application that has ended has no views
            _OWNER.warning("Spark did not close: %s", type(failure).__name__)

    def interrupt(self) -> None:
        """Interrupts running statements and refuses new ones; called before ``close``."""
        self._lane.close()
        self._interrupt(self._running)

    def statement(self, plan: Bounded) -> str:
        """Returns the SQL of a plan, which depends on declarations alone (RULES 22)."""
        emitted = _statements(plan, self._declared, "<sampling key>")
        return ";\n\n".join(statement.sql for statement in emitted)

    def wait(self, patience: Patience = ENDLESS) -> None:
        """Blocks until no question runs.

        Raises:
            Cancelled: the caller stopped waiting.
        """
        self._lane.wait(patience)

    def ready(
        self, plan: Bounded, sampling_key: str, patience: Patience = ENDLESS
    ) -> Callable[[], Exact]:
        """Returns a function that computes the exact integers of a plan.

        Raises:
            InvalidSource: the application has ended.
        """
        self._require_there()
        emitted = _statements(plan, self._reads, sampling_key)
        return partial(self._run, plan, emitted, patience)

    def cube(
        self, plan: BoundedCube, patience: Patience = ENDLESS
    ) -> AbstractContextManager[Coded]:
        """Opens a bounded cube as a table of codes, dropped on exit (see ``Engine``).

        Raises:
            InvalidSource: the application has ended.
        """
        self._require_there()
        sources = {name: read.source for name, read in self._reads.items()}
        tables = {read.source.sql: read.rows for read in self._reads.values()}
        narrow = largest_code(plan) < _NARROW
        sql = printed(coded(plan, sources, windows=True), tables, narrow=narrow)

        def make(keep: Callable[["DataFrame"], None]) -> None:
            self._one(keep, sql, patience)

        return opened_cube(
            plan, self._session, make, lambda fetch, query: self._one(fetch, query, patience)
        )

    def rows(
        self, plan: BoundedRows, key: str, patience: Patience = ENDLESS
    ) -> AbstractContextManager[UnitRows]:
        """Refuses: rows of units are not collected from Spark.

        Raises:
            WrongUse: always.
        """
        raise WrongUse(
            "Spark gives no rows of units: they may not fit on one machine.",
            allowed="questions in SQL, and marginals",
            remedy="Open the data with DuckDB (engine=sf.Local()) where it fits.",
        )

    def edges(
        self, plan: BoundedGraph, key: str, patience: Patience = ENDLESS
    ) -> Callable[[], Graph]:
        """Refuses: edges are not collected from Spark.

        Raises:
            WrongUse: always.
        """
        raise WrongUse(
            "Spark gives no edges of graphs: they may not fit on one machine.",
            allowed="questions in SQL, and marginals",
            remedy="Open the data with DuckDB (engine=sf.Local()) where it fits.",
        )

    def run(self, plan: Bounded, sampling_key: str) -> Exact:
        """Computes the exact integers of a plan."""
        return self.ready(plan, sampling_key)()

    def _run(self, plan: Bounded, emitted: Sequence[Statement], patience: Patience) -> Exact:
        fetch, read = (_columns, columns) if is_read_in_columns(plan) else (_rows, gather)
        texts = [statement.sql for statement in emitted]
        results = self._found(fetch, texts, patience)
        parts: dict[int, Groups] = {}
        for statement, result in zip(emitted, results, strict=True):
            parts |= read(plan, statement.places, result)
        return tuple(parts[place] for place in range(len(plan.parts)))

    def _one(self, fetch: Callable[["DataFrame"], T], text: str, patience: Patience) -> T:
        """Runs one statement and returns what ``fetch`` returns for it."""
        (result,) = self._found(fetch, [text], patience)
        return result

    def _require_there(self) -> None:
        """Checks that the application runs, before anything is charged.

        Raises:
            InvalidSource: it has ended.
        """
        there = False
        # the call fails if its process has ended
        with suppress(Exception), quiet():
            there = not self._session.sparkContext._jsc.sc().isStopped()
        if not there:
            raise InvalidSource(
                "The Spark application has ended.",
                remedy="Open another session, in another process.",
            )

    def _settle(self) -> None:
        """Sets the settings that decide the meaning of statements, and resets all others."""
        self._session.sparkContext.setLogLevel("OFF")
        settings = self._session.conf
        for name in [name for name in settings.getAll if not name.startswith(_SPEED)]:
            if settings.isModifiable(name):
                settings.unset(name)
        for name, value in _MEANING.items():
            settings.set(name, value)

    def _open(self, tables: Mapping[str, Table], name: str) -> Read:
        frame = frame_of(self._session, name, tables[name])
        require_plain(name, frame)
        require_moments(name, frame, [*tables[name].columns, *owner_columns(tables, name)])
        view = f"sfumato_{token()}"
        frame.createGlobalTempView(view)
        self._views.append(view)
        folder = self._session.conf.get("spark.sql.globalTempDatabase")
        return read(tables, name, f"{folder}.{identifier(view)}", frame.schema)

    def _found(
        self, fetch: Callable[["DataFrame"], T], texts: list[str], patience: Patience
    ) -> list[T]:
        """Runs statements and returns their results.

        Raises:
            Cancelled: they were interrupted because the caller stopped waiting.
            EngineFailed: they failed; the owner's log has the class of the error.
        """
        try:
            with self._lane.take(patience), quiet(), self._watched(patience):
                self._session.sparkContext.setLogLevel("OFF")
                return [fetch(self._session.sql(text)) for text in texts]
        except Exception as failure:
            ended = patience.is_over or self._lane.closed
            cancelled = isinstance(failure, Cancelled) or (ended and is_cancelled_job(failure))
            if not cancelled:
                _OWNER.error("the engine failed: %s", type(failure).__name__)
        # outside the handler, so that not even the context of our error quotes its text
        if cancelled:
            raise Cancelled(paid=True)
        raise EngineFailed()

    @contextmanager
    def _watched(self, patience: Patience) -> Iterator[None]:
        """Cancels the jobs of the ``with`` block after the timeout, on Ctrl-C, or if the caller
        stops waiting.
        """
        tag = f"sfumato_{token()}"
        done = threading.Event()
        watcher = threading.Thread(
            target=self._watch, args=(tag, done, patience), name=tag, daemon=True
        )
        self._session.sparkContext.addJobTag(tag)
        self._running = tag
        watcher.start()
        try:
            yield
        except BaseException as failure:
            if not is_interrupt(failure):
                raise
            self._interrupt(tag)
            raise KeyboardInterrupt from None
        finally:
            self._running = ""
            done.set()
            watcher.join()
            with suppress(Exception):
                # Ctrl-C may have closed the connection; what ended the block matters more
                self._session.sparkContext.removeJobTag(tag)

    def _watch(self, tag: str, done: threading.Event, patience: Patience) -> None:
        ends = time.monotonic() + self._time_limit
        pause = self._time_limit if patience.is_endless else min(self._time_limit, _LOOK)
        while not done.wait(pause):
            # repeatedly: an interrupt between two jobs is lost
            if patience.is_over or time.monotonic() >= ends:
                self._interrupt(tag)
                pause = _LOOK

    def _interrupt(self, tag: str) -> None:
        with suppress(Exception):
            # an application that has ended has nothing to interrupt
            self._session.sparkContext.cancelJobsWithTag(tag)


def _statements(plan: Bounded, reads: Mapping[str, Read], sampling_key: str) -> list[Statement]:
    """Returns the statements of a plan in Spark SQL."""
    if plan.tracked.kept is not None:
        # such a plan counts each row by itself; without its layout nothing would bound a unit
        raise TypeError("a plan of a prepared layout, which Spark does not read")
    sources = {name: read.source for name, read in reads.items()}
    tables = {read.source.sql: read.rows for read in reads.values()}
    limit = plan.tracked.limits.rows
    narrow = largest_code(plan) < _NARROW
    gathered = limit is not None and limit <= _FEW
    written = []
    for part in queries(plan, sources, sampling_key, windows=True):
        sql = printed(part.query, tables, narrow=narrow, gathered=gathered)
        written.append(Statement(sql, part.places))
    return written


def _rows(frame: "DataFrame") -> Rows:
    """Collects rows; a wide integer, which Spark has as a decimal, becomes an int."""
    return [tuple(map(_cell, row)) for row in frame.collect()]


def _cell(cell: Any) -> Any:
    if isinstance(cell, Decimal):
        return int(cell)
    return cell


def _columns(frame: "DataFrame") -> "pyarrow.Table":
    return frame.toArrow()


def _require_limit(time_limit: object) -> None:
    if not is_duration(time_limit):
        raise InvalidDeclaration(f"time_limit={shown(time_limit)}.", allowed="seconds, more than 0")


def _require_passed(session: "SparkSession") -> None:
    if session.version not in PASSED:
        raise InvalidSource(
            f"Spark {session.version} has not passed the conformance suite: "
            "what it computes is not known.",
            allowed=f"Spark {', '.join(PASSED)}",
        )
