# SPDX-License-Identifier: Apache-2.0
"""Spark: the same plans and the same integers, where the data outgrows one machine.

It runs the SQL of ``emit``, translated construct by construct (``spark_statement``), in a
session of our own in the Spark application, so that no setting of anybody else's changes
what a statement means. The integers are collected once; no noise is ever in Spark.
Whatever goes wrong reaches the analyst as one constant message (RULES 24).
"""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, NoReturn, TypeVar

from sfumato.engines.base import Exact, UnitRows
from sfumato.engines.cube import Coded, coded
from sfumato.engines.declared import owner_columns
from sfumato.engines.emit import Statement, statements
from sfumato.engines.interruption import is_cancelled_job
from sfumato.engines.lanes import Lanes
from sfumato.engines.result_rows import Groups, Rows, columns, gather
from sfumato.engines.spark_cube import opened_cube
from sfumato.engines.spark_frame import frame_of, require_moments, require_plain
from sfumato.engines.spark_kind import identifier, largest_code
from sfumato.engines.spark_quiet import quiet
from sfumato.engines.spark_source import Read, declared, read
from sfumato.engines.spark_statement import translated
from sfumato.engines.stop import ENDLESS, Patience
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
from sfumato.plan.rows import BoundedRows
from sfumato.plan.stages import Bounded

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")

# The versions on which tests/contracts/conformance.py passed; what another one computes is not known.
PASSED = ("4.3.0",)
# What a statement means must not depend on how an application is set up: these are ours ...
_MEANING = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.caseSensitive": "true",
    "spark.sql.variable.substitute": "false",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    # it looks at a branch inside a branch twice, and so at a deep expression for ever
    "spark.sql.subexpressionElimination.enabled": "false",
    # of a union below a window it makes a plan that cannot be resolved (Spark 4.3.0)
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.RemoveRedundantAliases",
}
# ... these change how long it takes, and all else has Spark's default.
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
# For an application of our own: Spark's parser goes as deep as an expression does, and what
# Spark shows of its work, row counts and now and then a value, is shown to nobody.
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
# How often a statement that may be stopped is looked after, in seconds.
_LOOK = 0.2
# Of so few rows of a unit in a group it does not pay to add them up before they are sent.
_FEW = 16
# 2^40 rows, as many as a table may have, of numbers below 2^22 add up to less than 2^62.
_NARROW = 2**22


@dataclass(frozen=True, slots=True, repr=False)
class Spark:
    """Where Spark runs: for ``sf.connect(..., engine=sf.Spark("spark://host:7077"))``.

    ``options`` are settings of the application, such as ``{"spark.executor.memory": "8g"}``;
    ``time_limit``, in seconds, is for one question. The application ends with the session.

    Raises:
        InvalidDeclaration: no address, an option that is no text, or a limit that is none.

    What the settings are set to is not shown: a key of a store may be among them.

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
        given = self.options if isinstance(self.options, Mapping) else {"": None}
        if not all(isinstance(each, str) for pair in given.items() for each in pair):
            raise InvalidDeclaration(
                "options= with a setting that is no text.",
                allowed='texts: {"spark.executor.memory": "8g"}',
            )
        _require_limit(self.time_limit)

    def __repr__(self) -> str:
        options = ", ".join(f"{name!r}: ..." for name in self.options)
        return f"Spark({without_secrets(self.master)!r}, options={{{options}}}, time_limit={self.time_limit})"

    def __reduce__(self) -> NoReturn:
        raise WrongUse(
            "The settings of Spark are not pickled.", remedy="Give them again where they are used."
        )

    def open(self, tables: Mapping[str, Table]) -> "SparkEngine":
        """The engine over declared tables, in an application of its own.

        Raises:
            InvalidSource: Spark cannot be started, or runs in this process already; and as ``SparkEngine``.
        """
        session, failed, running = None, "", False
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
                remedy="Hand in its tables, sf.Table(spark.table(...)), without engine=; or end it.",
            )
        if session is None:
            raise InvalidSource(
                f"Spark at {shown(self.master)} cannot be started ({failed}).",
                remedy="It needs sfumato[spark], Java 17 or later, and the address of a master that answers.",
            )
        return SparkEngine(tables, session, time_limit=self.time_limit, own=True)


class SparkEngine:
    """The engine over declared tables, in the application of a session that is handed in.

    The settings of that session stay as they are, but for the application's log, which is
    switched off: Spark quotes values in it. ``own``: the application ends with the engine.

    Guarantees:
        an engine failure is one constant message
        a version that has not passed is refused
        a lost task changes nothing

    Raises:
        InvalidSource: a source that cannot be read, or whose rows another read may not find
            again; a version of Spark that has not passed the conformance suite.
        InvalidDeclaration: a declared column that the data does not have, or cannot hold.
    """

    def __init__(
        self,
        tables: Mapping[str, Table],
        session: "SparkSession",
        *,
        time_limit: float = _HOUR,
        own: bool = False,
    ) -> None:
        _require_limit(time_limit)
        self._time_limit, self._own, self._process = time_limit, own, os.getpid()
        self._session = session
        # one question at a time, and the tag of what it runs
        self._lane, self._running = Lanes([None]), ""
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
        """Forgets the tables; ends the application if it is the engine's own."""
        if os.getpid() != self._process:
            return
        try:
            for view in self._views:
                self._session.catalog.dropGlobalTempView(view)
            self._views.clear()
            if self._own:
                self._session.sparkContext.stop()
        except Exception as failure:
            # an application that is gone has no views
            _OWNER.warning("Spark did not close: %s", type(failure).__name__)

    def interrupt(self) -> None:
        """Ends what runs, and lets nothing begin: the engine is about to close."""
        self._lane.close()
        self._interrupt(self._running)

    def statement(self, plan: Bounded) -> str:
        """The SQL of a plan as the declarations alone make it: the same on any data (RULES 22)."""
        return ";\n\n".join(
            each.sql for each in _statements(plan, self._declared, "<sampling key>")
        )

    def wait(self, patience: Patience = ENDLESS) -> None:
        """Returns once no question runs.

        Raises:
            Cancelled: the caller waits no longer.
        """
        self._lane.wait(patience)

    def ready(
        self, plan: Bounded, sampling_key: str, patience: Patience = ENDLESS
    ) -> Callable[[], Exact]:
        """What computes the exact integers of a plan, once it is called.

        Raises:
            InvalidSource: the application has ended.
        """
        self._require_there()
        return partial(self._run, plan, _statements(plan, self._reads, sampling_key), patience)

    def cube(
        self, plan: BoundedCube, patience: Patience = ENDLESS
    ) -> AbstractContextManager[Coded]:
        """A table of codes that is made when it is entered, and gone when it is left (see ``Engine``).

        Raises:
            InvalidSource: the application has ended.
        """
        self._require_there()
        sources = {name: read.source for name, read in self._reads.items()}
        tables = {name: read.rows for name, read in self._reads.items()}
        sql = translated(
            coded(plan, sources, windows=True), tables, narrow=largest_code(plan) < _NARROW
        )

        def make(keep: Callable[["DataFrame"], None]) -> None:
            self._one(keep, sql, patience)

        return opened_cube(
            plan, self._session, make, lambda fetch, each: self._one(fetch, each, patience)
        )

    def rows(
        self, plan: BoundedRows, key: str, patience: Patience = ENDLESS
    ) -> AbstractContextManager[UnitRows]:
        """Refuses: rows stay where they are (WrongUse)."""
        raise WrongUse(
            "Spark gives no rows of units: they may not fit on one machine.",
            allowed="questions in SQL, and marginals",
            remedy="Open the data with DuckDB (engine=sf.Local()) where it fits.",
        )

    def run(self, plan: Bounded, sampling_key: str) -> Exact:
        """The exact integers of a plan."""
        return self.ready(plan, sampling_key)()

    def _run(self, plan: Bounded, asked: Sequence[Statement], patience: Patience) -> Exact:
        fetch, read = (_columns, columns) if plan.tracked.raw.is_open else (_rows, gather)
        found = self._found(fetch, [each.sql for each in asked], patience)
        parts: dict[int, Groups] = {}
        for each, given in zip(asked, found, strict=True):
            parts |= read(plan, each.places, given)
        return tuple(parts[place] for place in range(len(plan.parts)))

    def _one(self, fetch: Callable[["DataFrame"], T], text: str, patience: Patience) -> T:
        return self._found(fetch, [text], patience)[0]

    def _require_there(self) -> None:
        """The application can be asked at all: else nothing is charged."""
        there = False
        # its process may be gone
        with suppress(Exception), quiet():
            there = not self._session.sparkContext._jsc.sc().isStopped()
        if not there:
            raise InvalidSource(
                "The Spark application has ended.",
                remedy="Open another session, in another process.",
            )

    def _settle(self) -> None:
        """What statements mean, whatever the application is set to."""
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
        try:
            with self._lane.take(patience), quiet(), self._watched(patience):
                self._session.sparkContext.setLogLevel("OFF")
                return [fetch(self._session.sql(each)) for each in texts]
        except Exception as failure:
            ended = patience.is_over or self._lane.closed
            cancelled = isinstance(failure, Cancelled) or (ended and is_cancelled_job(failure))
            if not cancelled:
                _OWNER.error("the engine failed: %s", type(failure).__name__)
        # outside the handler, so that not even the context of our error holds its text
        if cancelled:
            raise Cancelled(paid=True)
        raise EngineFailed()

    @contextmanager
    def _watched(self, patience: Patience) -> Iterator[None]:
        """Interrupts what runs inside for too long, or when its caller is interrupted or waits no longer."""
        tag, done = f"sfumato_{token()}", threading.Event()
        watcher = threading.Thread(
            target=self._watch, args=(tag, done, patience), name=tag, daemon=True
        )
        self._session.sparkContext.addJobTag(tag)
        self._running = tag
        watcher.start()
        try:
            yield
        except KeyboardInterrupt:
            self._interrupt(tag)
            raise
        finally:
            self._running = ""
            done.set()
            watcher.join()
            self._session.sparkContext.removeJobTag(tag)

    def _watch(self, tag: str, done: threading.Event, patience: Patience) -> None:
        ends = time.monotonic() + self._time_limit
        pause = self._time_limit if patience.is_endless else min(self._time_limit, _LOOK)
        while not done.wait(pause):
            # again and again: one that falls between two jobs is lost
            if patience.is_over or time.monotonic() >= ends:
                self._interrupt(tag)
                pause = _LOOK

    def _interrupt(self, tag: str) -> None:
        with suppress(Exception):
            # an application that is gone has nothing to interrupt
            self._session.sparkContext.cancelJobsWithTag(tag)


def _statements(plan: Bounded, reads: Mapping[str, Read], sampling_key: str) -> list[Statement]:
    """The statements of a plan on Spark."""
    if plan.tracked.kept is not None:
        # without it each row would count by itself, and nothing would bound a unit
        raise TypeError("a plan of a prepared layout, which Spark does not read")
    rows, limit = {name: each.rows for name, each in reads.items()}, plan.tracked.limits.rows
    narrow, gathered = largest_code(plan) < _NARROW, limit is not None and limit <= _FEW
    return [
        replace(each, sql=translated(each.sql, rows, narrow=narrow, gathered=gathered))
        for each in statements(
            plan, {name: read.source for name, read in reads.items()}, sampling_key, windows=True
        )
    ]


def _rows(frame: "DataFrame") -> Rows:
    """Rows; a wide integer comes as a decimal."""
    return [
        tuple(int(cell) if isinstance(cell, Decimal) else cell for cell in row)
        for row in frame.collect()
    ]


def _columns(frame: "DataFrame") -> "pyarrow.Table":
    return frame.toArrow()


def _require_limit(time_limit: object) -> None:
    if (
        isinstance(time_limit, bool)
        or not isinstance(time_limit, int | float)
        or not 0 < time_limit < 1e9
    ):
        raise InvalidDeclaration(f"time_limit={shown(time_limit)}.", allowed="seconds, more than 0")


def _require_passed(session: "SparkSession") -> None:
    if session.version not in PASSED:
        raise InvalidSource(
            f"Spark {session.version} has not passed the conformance suite: what it computes is not known.",
            allowed=f"Spark {', '.join(PASSED)}",
        )
