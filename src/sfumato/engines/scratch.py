# SPDX-License-Identifier: Apache-2.0
"""A DuckDB of its own in which an outer statement runs over answers; it never sees the data.

It holds nothing but tables of released answers and public tables, so whatever runs there is
post-processing. What is limited here protects the host: memory, time, rows, files, extensions and settings.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import duckdb

from sfumato.engines.interruption import is_stopped
from sfumato.engines.stop import ENDLESS, Patience
from sfumato.engines.time_limit import Watcher
from sfumato.engines.worker import Worker
from sfumato.errors import Cancelled
from sfumato.metadata.table import Table

if TYPE_CHECKING:
    import pyarrow

MEMORY = "256MB"
SECONDS = 10.0
MOST_ROWS = 100_000

# In this order: each takes away the means to undo those before it.
_SETTINGS = (
    "threads = 1",
    f"memory_limit = '{MEMORY}'",
    "max_temp_directory_size = '0B'",
    "temp_directory = ''",
    "python_enable_replacements = false",
    "autoinstall_known_extensions = false",
    "autoload_known_extensions = false",
    "allow_community_extensions = false",
    "enable_external_access = false",
    "lock_configuration = true",
)
# The type of a column of row numbers, which are always small.
ROW_NUMBER = "row number"
# The type in DuckDB of a column of an answer.
_TYPES = {
    "integer": "HUGEINT",
    "real": "DOUBLE",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "local time": "TIMESTAMP",
    "text": "VARCHAR",
    ROW_NUMBER: "BIGINT",
}
# The type of a column of a result, by the name of its type in DuckDB without parameters.
_KINDS = {
    "BOOLEAN": "boolean",
    "DATE": "date",
    "TIMESTAMP": "local time",
    "VARCHAR": "text",
    "DOUBLE": "real",
    "FLOAT": "real",
    "DECIMAL": "real",
    "HUGEINT": "integer",
    "UHUGEINT": "integer",
    "BIGINT": "integer",
    "UBIGINT": "integer",
    "INTEGER": "integer",
    "UINTEGER": "integer",
    "SMALLINT": "integer",
    "USMALLINT": "integer",
    "TINYINT": "integer",
    "UTINYINT": "integer",
    '"NULL"': "text",
}
# The types of DuckDB whose values are read through Arrow.
_BY_ARROW = frozenset({"HUGEINT", "BIGINT", "INTEGER", "DOUBLE", "VARCHAR", "BOOLEAN"})
# Up to that many rows of all tables a result is read by row.
_FEW_ROWS = 1_000
# The most descriptions of statements that are remembered.
_REMEMBERED = 256


class Unbound(Exception):
    """The error for a SQL statement over released values that DuckDB does not accept; the message
    quotes no more than the statement.
    """


class Stopped(Exception):
    """The error for a SQL statement that failed while it ran over released values; the message may
    quote these.
    """


@dataclass(frozen=True, slots=True)
class Held:
    """A table of values that were released in an answer: the name and type of each column, and its
    values; without ``values`` it has no rows.
    """

    columns: tuple[tuple[str, str], ...]
    values: Sequence[Sequence[object]] = ()

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.values[0]) if self.values else 0


class Scratch:
    """A DuckDB database in which SQL statements run over tables of released values, one statement
    at a time.

    ``public`` are the public tables that statements may name, with their sources; whoever runs a
    statement reads them.

    Guarantees:
        a statement sees the tables that it is given and nothing else
        a statement ends within the limits

    >>> table = Held((("region", "text"), ("n", "integer")), (("a", "b"), (1, 2)))
    >>> with Scratch() as scratch:
    ...     scratch.values("SELECT region, n + 1 FROM t", {"t": table})
    [['a', 'b'], [2, 3]]
    """

    def __init__(self, public: Mapping[str, Table] | None = None) -> None:
        self.public = dict(public or {})
        # opened with the first statement: it takes as long as several small questions
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._cursor_in_use: duckdb.DuckDBPyConnection | None = None
        # their threads are started once: that takes as long as a small statement
        self._watcher = Watcher(SECONDS, self._interrupt)
        self._worker = Worker(self._interrupt)
        self._lock = threading.Lock()
        self._closed = False
        self._described: dict[tuple[object, ...], list[tuple[str, str]]] = {}

    def described(self, statement: str, tables: Mapping[str, Held]) -> list[tuple[str, str]]:
        """Returns the names and types of the columns of a statement's result, given the columns of
        the tables.

        It is run over one row of NULLs a table: a cast that is none, or a constant that is no
        number, is refused here.

        Raises:
            Unbound: DuckDB does not accept it, or a column is of a type that an answer has not.
            Stopped: it takes too long whatever the answers are.
        """
        key = statement, tuple((name, table.columns) for name, table in tables.items())
        known = self._described.get(key)
        if known is None:
            known = self._columns(statement, tables)
            # a new dictionary: another thread may be reading the old one
            self._described = {} if len(self._described) >= _REMEMBERED else self._described
            self._described[key] = known
        return known

    def _columns(self, statement: str, tables: Mapping[str, Held]) -> list[tuple[str, str]]:
        """As ``described``, which asks DuckDB once."""
        empty = {name: Held(table.columns) for name, table in tables.items()}
        with self._cursor(empty) as cursor:
            for name in empty:
                cursor.execute(f"INSERT INTO {_quoted(name)} DEFAULT VALUES")
            try:
                self._run(cursor, statement, ENDLESS)
            except (duckdb.Error, RuntimeError) as failure:
                raise Unbound(_first_line(failure)) from None
            described = cursor.description or []
        columns = []
        for name, kind, *_ in described:
            known = _KINDS.get(str(kind).partition("(")[0])
            if known is None:
                raise Unbound(f"The column {name} is of the type {kind}")
            columns.append((str(name), known))
        return columns

    def values(
        self,
        statement: str,
        tables: Mapping[str, Held],
        patience: Patience = ENDLESS,
    ) -> list[list[object]]:
        """Runs a statement over tables of released values and returns the values of each column of
        its result.

        Raises:
            Stopped: it fails, needs more memory or time, or has more rows than are allowed.
            Cancelled: the caller stopped waiting.
        """
        with self._cursor(tables) as cursor:
            is_large = sum(map(len, tables.values())) > _FEW_ROWS
            values = self._run(cursor, statement, patience, is_large=is_large)
        if len(values[0]) > MOST_ROWS:
            raise Stopped(f"it has more than {MOST_ROWS:,} rows")
        return values

    def _run(
        self,
        cursor: duckdb.DuckDBPyConnection,
        statement: str,
        patience: Patience,
        *,
        is_large: bool = False,
    ) -> list[list[object]]:
        """The columns of a statement, which is interrupted when its time is over."""
        fetch = _fetched_by_arrow if is_large else _fetched
        with self._watcher.over(1, patience) as watch:
            try:
                return self._worker.run(lambda: fetch(cursor, statement))
            except (duckdb.Error, RuntimeError) as failure:
                if watch.is_cancelled:
                    raise Cancelled(paid=True) from None
                if watch.is_over:
                    raise Stopped(f"it takes more than {SECONDS:g} seconds") from None
                if is_stopped(failure):
                    raise KeyboardInterrupt from None
                raise

    def _interrupt(self) -> None:
        """Interrupts the statement that runs, if one does."""
        cursor = self._cursor_in_use
        if cursor is not None:
            cursor.interrupt()

    @contextmanager
    def _cursor(self, tables: Mapping[str, Held]) -> Iterator[duckdb.DuckDBPyConnection]:
        """A cursor with temporary tables, which no other cursor sees and which end with it."""
        with self._lock:
            cursor = self._opened().cursor()
            self._cursor_in_use = cursor
            try:
                for name, table in tables.items():
                    _create(cursor, name, table)
                yield cursor
            except (duckdb.Error, RuntimeError) as failure:
                raise Stopped(_first_line(failure)) from None
            finally:
                self._cursor_in_use = None
                cursor.close()

    def _opened(self) -> duckdb.DuckDBPyConnection:
        """The connection, locked down."""
        if self._closed:
            raise Cancelled(paid=True)
        if self._connection is None:
            connection = duckdb.connect(":memory:")
            for setting in _SETTINGS:
                connection.execute(f"SET {setting}")
            self._connection = connection
        return self._connection

    def close(self) -> None:
        """Interrupts a running statement and closes the database; none of its tables remains."""
        self._closed = True
        self._worker.close()
        connection = self._connection
        if connection is not None:
            with suppress(duckdb.Error):
                connection.interrupt()
            with self._lock, suppress(duckdb.Error):
                connection.close()

    def __enter__(self) -> "Scratch":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _fetched(cursor: duckdb.DuckDBPyConnection, statement: str) -> list[list[object]]:
    """The columns of a statement, with at most one row more than are allowed."""
    rows = cursor.execute(statement).fetchmany(MOST_ROWS + 1)
    return [[row[place] for row in rows] for place in range(len(cursor.description or []))]


def _fetched_by_arrow(cursor: duckdb.DuckDBPyConnection, statement: str) -> list[list[object]]:
    """As ``_fetched``, in less than half its time for many rows and in more for few.

    DuckDB makes a Python value of a HUGEINT in ten times the time that Arrow takes.
    """
    relation = cursor.sql(statement)
    if not {str(kind) for kind in relation.types} <= _BY_ARROW:
        return _fetched(cursor, statement)
    columns: list[list[object]] = [[] for _ in relation.types]
    for batch in relation.to_arrow_reader(MOST_ROWS + 1):
        for values, column in zip(columns, batch.columns, strict=True):
            values += _python_values(column)
        if len(columns[0]) > MOST_ROWS:
            break
    return columns


def _python_values(column: "pyarrow.Array[Any]") -> list[object]:
    """The Python values of a column of one of the types ``_BY_ARROW``."""
    import pyarrow

    if not pyarrow.types.is_decimal(column.type):
        return list(column.to_pylist())
    with suppress(pyarrow.ArrowInvalid):
        return list(column.cast(pyarrow.int64()).to_pylist())
    # more digits than int64 has
    return [None if value is None else int(value) for value in column.to_pylist()]


def _create(cursor: duckdb.DuckDBPyConnection, name: str, table: Held) -> None:
    """Creates a temporary table with the rows of a table."""
    columns = ", ".join(f"{_quoted(column)} {_TYPES[kind]}" for column, kind in table.columns)
    cursor.execute(f"CREATE TEMP TABLE {_quoted(name)} ({columns})")
    if not len(table):
        return
    import pyarrow  # only statements over answers need it

    arrays = []
    for (_, kind), values in zip(table.columns, table.values, strict=True):
        arrays.append(_array(kind, values))
    frame = pyarrow.Table.from_arrays(arrays, [f"c{place}" for place in range(len(arrays))])
    cursor.from_arrow(frame).insert_into(_quoted(name))


def _array(kind: str, values: Sequence[object]) -> "pyarrow.Array[Any]":
    """A column as DuckDB reads it: what has no type of Arrow as texts."""
    import pyarrow

    if kind == "real":
        return pyarrow.array(
            [None if value is None else float(str(value)) for value in values], pyarrow.float64()
        )
    if kind == "boolean":
        return pyarrow.array(values, pyarrow.bool_())
    if kind in ("integer", ROW_NUMBER):
        with suppress(OverflowError, pyarrow.ArrowInvalid):
            return pyarrow.array(values, pyarrow.int64())
    texts = [None if value is None else str(value) for value in values]
    return pyarrow.array(texts, pyarrow.string())


def _quoted(name: str) -> str:
    """A name as an identifier of DuckDB."""
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


def _first_line(failure: Exception) -> str:
    """What DuckDB says of a failure, without the statement that it quotes."""
    return str(failure).partition("\n")[0].rstrip(".")
