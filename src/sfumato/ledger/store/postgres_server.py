# SPDX-License-Identifier: Apache-2.0
"""Connections to a durable PostgreSQL server, and the settings of a transaction.

A client that stops while it locks an account (a suspended machine, a debugger) is ended within ten
seconds. Between two batches of its pipeline the server ends it after ``_STOPPED``; it counts only
after a Sync, so each batch of a writing transaction ends with one. In the middle of a batch or
message the server waits for ever. Then the waiting callers end it: a wait for a lock times out
after ``_STOPPED`` and is retried after the stopped clients are ended.
"""

from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from sfumato.errors import LedgerReadOnly, LedgerUnavailable
from sfumato.ledger.store.postgres_errors import place_of
from sfumato.ledger.store.postgres_rows import CLOCK, Connection
from sfumato.ledger.store.postgres_schema import PLACE, SCHEMA, SERVER, TABLES

OLDEST_SERVER = 140000
_STOPPED = "5s"
# The timeout of idle readers: they hold no locks, but delay the vacuum of old rows.
_READER_STOPPED = "10min"

# Stated in BEGIN, since the database or the role may have another default, under which a
# transaction that waited for a lock sees the rows as they were before, and is refused.
BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
WRITING = (
    f"SELECT {CLOCK}, {PLACE}, set_config('search_path', $1, true), "
    "set_config('synchronous_commit', 'off', true), "
    f"set_config('lock_timeout', '{_STOPPED}', true), "
    f"set_config('idle_in_transaction_session_timeout', '{_STOPPED}', true)"
)
BEGIN_READING = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
# The snapshot is older than this WAL position, so the log up to it has everything that the reader
# can see.
READING = (
    "SELECT pg_current_wal_insert_lsn()::text, set_config('search_path', $1, true), "
    f"set_config('idle_in_transaction_session_timeout', '{_READER_STOPPED}', true)"
)
# False with synchronous standbys, whose progress is not known here.
IS_FLUSHED = (
    "SELECT pg_current_wal_flush_lsn() >= $1::pg_lsn AND "
    "current_setting('synchronous_standby_names') = ''"
)
# The role may have warnings turned off, and only a warning reports that the wait for a standby was
# cancelled.
FLUSH = (
    "SELECT set_config('synchronous_commit', $1, true), set_config('client_min_messages', "
    "'warning', true), "
    "pg_logical_emit_message(true, 'sfumato', '')"
)
# Ends connections that hold locks and stopped sending in the middle of a batch. The server itself
# ends those that are idle between two batches; readers block nobody.
END_STOPPED = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
    "AND state = 'active' AND wait_event_type = 'Client' AND pg_has_role(usesysid, 'USAGE') "
    f"AND clock_timestamp() - greatest(query_start, state_change) >= interval '{_STOPPED}' "
    "AND pid IN (SELECT pid FROM pg_locks JOIN pg_class ON pg_class.oid = relation "
    "WHERE relnamespace = to_regnamespace($1) AND mode IN ('RowShareLock', 'RowExclusiveLock') AND "
    "granted)"
)
# The server and the tables that the ledger records, each before those it is in.
SERVERS = (
    f"SELECT (SELECT value FROM {SCHEMA}.meta WHERE name = 'server'), {SERVER}, "
    f"(SELECT value FROM {SCHEMA}.meta WHERE name = 'tables'), {TABLES}"
)
ENTRIES = (
    f"SELECT chain, seq, hash FROM {SCHEMA}.journal "
    "JOIN unnest($1::text[], $2::bigint[]) AS known (name, number) ON (chain, seq) = (name, number)"
)
_PROMISES = (
    "SELECT pg_is_in_recovery(), current_setting('fsync'), current_setting('full_page_writes'), "
    "current_setting('synchronous_commit'), current_setting('synchronous_standby_names'), "
    "current_setting('server_encoding')"
)


def connected(url: str) -> Connection:
    """Opens a connection to a server and checks that its commits are durable.

    Behind a pooler a session uses several connections, so no statement is prepared.
    """
    settings: dict[str, Any] = {
        "application_name": "sfumato",
        "connect_timeout": 10,
    } | conninfo_to_dict(url)
    connection = psycopg.connect(**settings, autocommit=True, cursor_factory=psycopg.RawCursor)
    try:
        if not _is_direct(connection):
            connection.prepare_threshold = None
        connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        _require_durable(connection, place_of(url))
    except BaseException:
        connection.close()
        raise
    return connection


def end_stopped(connection: Connection) -> None:
    """Ends clients that have stopped while they lock an account."""
    connection.execute(END_STOPPED, (SCHEMA,))


def _is_direct(connection: Connection) -> bool:
    """Whether the connection goes to the server directly.

    A pooler reports a process id of its own.
    """
    row = connection.execute("SELECT pg_backend_pid()", prepare=False).fetchone()
    return row == (connection.info.backend_pid,)


def _require_durable(connection: Connection, place: str) -> None:
    """Refuses a server that could lose confirmed commits."""
    if connection.info.server_version < OLDEST_SERVER:
        raise LedgerUnavailable(
            f"The server of {place} is PostgreSQL {connection.info.server_version // 10000}.",
            allowed=f"PostgreSQL {OLDEST_SERVER // 10000} or newer",
        )
    row = connection.execute(_PROMISES).fetchone()
    assert row is not None
    replica, fsync, pages, durably, standbys, encoding = row
    if replica:
        raise LedgerReadOnly(
            f"The server of {place} is a standby.", remedy="Use the address of the primary."
        )
    waits = durably in (
        ("on", "remote_apply") if standbys else ("on", "remote_apply", "remote_write", "local")
    )
    if (fsync, pages, encoding) != ("on", "on", "UTF8") or not waits:
        raise LedgerUnavailable(
            f"The server of {place} could lose a charge: fsync={fsync}, full_page_writes={pages}, "
            f"synchronous_commit={durably}, server_encoding={encoding}.",
            allowed="fsync=on, full_page_writes=on, synchronous_commit=on (or remote_apply), "
            "server_encoding=UTF8",
            remedy="Set them in postgresql.conf, or synchronous_commit for this role with ALTER "
            "ROLE.",
        )
