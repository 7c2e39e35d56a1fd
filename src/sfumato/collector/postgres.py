# SPDX-License-Identifier: Apache-2.0
"""A store of reports in a PostgreSQL server, a row each; several collectors may write to it.

A batch is one transaction, in the order of the ids, which are random: neither the rows of a batch
nor their order reveal when a report came. Error messages of the server are dropped, since they may
quote values.
"""

from collections.abc import Iterator, Sequence
from threading import Lock
from typing import Any

import psycopg
import pyarrow as pa
from psycopg.conninfo import conninfo_to_dict

from sfumato.collector.store import StoreFailed
from sfumato.errors import WrongUse
from sfumato.telemetry.oracles.oracle import Payloads
from sfumato.telemetry.sealing import sent_size
from sfumato.telemetry.task import ReportTask

SCHEMA = "sfumato_telemetry"
TABLE = f"{SCHEMA}.reports"
# Bytes 13 to 28: the id of a report; of a sealed one, a part of the key that was made for it alone.
_NAME = "substring(report FROM 14 FOR 16)"
_COLUMNS = 'task text COLLATE "C" NOT NULL, period bigint NOT NULL, report bytea NOT NULL'
_MAKE = (
    # two collectors that start at once make it one after the other
    f"SELECT pg_advisory_xact_lock(hashtext('{SCHEMA}'))",
    f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}",
    f"CREATE TABLE IF NOT EXISTS {TABLE} ({_COLUMNS})",
    f"CREATE UNIQUE INDEX IF NOT EXISTS once ON {TABLE} (task, period, ({_NAME}))",
)
_IS_MADE = f"SELECT to_regclass('{SCHEMA}.once') IS NOT NULL"
_IS_LOGGED = f"SELECT relpersistence = 'p' FROM pg_class WHERE oid = '{TABLE}'::regclass"
_ADD = (
    f"INSERT INTO {TABLE} SELECT %b, %b, unnest(%b::bytea[]) "
    f"ON CONFLICT (task, period, ({_NAME})) DO NOTHING"
)
_READ = f"SELECT report FROM {TABLE} WHERE task = %b AND period = %b AND length(report) = %b"
_SETTINGS = (
    "SELECT pg_is_in_recovery(), current_setting('fsync'), current_setting('full_page_writes'), "
    "current_setting('synchronous_commit'), current_setting('track_commit_timestamp'), "
    "current_setting('log_parameter_max_length'), current_setting('log_statement'), "
    "current_setting('log_min_duration_statement'), current_setting('log_min_duration_sample'), "
    "current_setting('log_transaction_sample_rate')::float8"
)
# Rows that are fetched at a time.
_BLOCK = 1 << 16
# A server that says nothing for so long is away.
_PATIENCE: dict[str, Any] = {
    "connect_timeout": 10,
    "tcp_user_timeout": 10_000,
    "application_name": "sfumato",
}


class PostgresStore:
    """The reports of several tasks in a PostgreSQL server.

    The server drops a report with an id that is stored already, also if another collector stored
    it. After a failure the next batch reconnects.

    Guarantees:
        a connection that breaks acknowledges nothing and loses nothing

    Raises:
        WrongUse: the server is unavailable, could lose reports, or would record when they came.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._busy = Lock()
        self._connection: psycopg.Connection[Any] | None = None
        try:
            self._connection = _connected(address)
            if self._connection.execute(_IS_MADE).fetchone() != (True,):
                with self._connection.transaction():
                    for statement in _MAKE:
                        self._connection.execute(statement)
            _require_logged(self._connection)
        except psycopg.Error as error:
            self.close()
            raise _unavailable(error) from None
        except WrongUse:
            self.close()
            raise

    def append(self, task: ReportTask, period: int, rows: Payloads) -> int:
        """Stores the reports that are new and commits; returns how many they were.

        Raises:
            StoreFailed: it is unknown whether they are stored; they may be sent again.
        """
        reports = sorted((row.tobytes() for row in rows), key=_name)
        with self._busy:
            try:
                return self._added(task, period, reports)
            except (psycopg.Error, WrongUse) as error:
                self._forget()
                raise StoreFailed(
                    f"The store of reports failed ({type(error).__name__})."
                ) from None

    def _added(self, task: ReportTask, period: int, reports: Sequence[bytes]) -> int:
        """Inserts reports in one transaction; returns how many were new."""
        if self._connection is None:
            self._connection = _connected(self._address)
        return self._connection.execute(_ADD, (name_of(task), period, reports)).rowcount

    def finish(self, task: ReportTask, period: int) -> None:
        """Does nothing: the server keeps the ids."""

    def _forget(self) -> None:
        """Closes a failed connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __enter__(self) -> "PostgresStore":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection."""
        with self._busy:
            self._forget()


def name_of(task: ReportTask) -> str:
    """The name of a task in the table; it contains the hash of the task, which never changes."""
    return f"{task.id}-{task.hash[:8].hex()}"


def read(address: str, task: ReportTask, period: int) -> Iterator[pa.Array]:
    """Yields the reports of a period in chunks, from one snapshot.

    Raises:
        WrongUse: the server is unavailable, or has no reports that may be read.
    """
    size = sent_size(task)
    try:
        with psycopg.connect(**_connection_options(address)) as connection:
            connection.read_only = True
            with connection.cursor("reports", binary=True) as cursor:
                cursor.execute(_READ, (name_of(task), period, size))
                while rows := cursor.fetchmany(_BLOCK):
                    yield pa.array([report for (report,) in rows], pa.binary(size))
    except psycopg.Error as error:
        raise _unavailable(error) from None


def _name(report: bytes) -> bytes:
    """The key by which the server detects duplicates."""
    return report[13:29]


def _connection_options(address: str) -> dict[str, Any]:
    """The connection parameters of an address, with default timeouts."""
    return _PATIENCE | conninfo_to_dict(address)


def _connected(address: str) -> psycopg.Connection[Any]:
    """A connection to a server that is durable and records no times."""
    connection = psycopg.connect(**_connection_options(address), autocommit=True)
    # a pooler gives each transaction another session
    connection.prepare_threshold = None
    try:
        _require_durable(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _require_durable(connection: psycopg.Connection[Any]) -> None:
    """Raises WrongUse for a server that could lose reports, or would record when they came."""
    row = connection.execute(_SETTINGS).fetchone()
    assert row is not None, "one row of settings"
    replica, fsync, pages, commits, times, logged, *causes = row
    if replica or (fsync, pages) != ("on", "on") or commits == "off":
        raise WrongUse(
            "A PostgreSQL server that could lose reports.",
            allowed="a primary with fsync, full_page_writes and synchronous_commit on",
        )
    statements, slow, sampled, rate = causes
    is_told = statements in ("mod", "all") or (slow, sampled) != ("-1", "-1") or rate > 0
    is_logged = logged != "0" and is_told
    if times == "on" or is_logged:
        raise WrongUse(
            "A PostgreSQL server that would keep when a report came.",
            allowed="track_commit_timestamp = off, and no parameters of statements in its log",
            remedy="ALTER ROLE collector SET log_parameter_max_length = 0",
        )


def _require_logged(connection: psycopg.Connection[Any]) -> None:
    """Raises WrongUse for an unlogged table, which a crash of the server empties."""
    if connection.execute(_IS_LOGGED).fetchone() != (True,):
        raise WrongUse(
            f"A table {TABLE} that a crash of the server empties.",
            allowed="a table that is not UNLOGGED",
            remedy=f"ALTER TABLE {TABLE} SET LOGGED",
        )


def _unavailable(error: psycopg.Error) -> WrongUse:
    """The error for a server that cannot be used, without its message and address."""
    what = f"{type(error).__name__} {error.sqlstate or ''}".strip()
    return WrongUse(
        f"The PostgreSQL server of the reports cannot be used ({what}).",
        remedy="Is it running, and may this role create a schema, or use "
        f"{SCHEMA} with SELECT and INSERT on its table?",
    )
