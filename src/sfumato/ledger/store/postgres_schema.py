# SPDX-License-Identifier: Apache-2.0
"""The tables of a ledger in PostgreSQL, in their own schema, with the same names as in SQLite.

Strings compare by their bytes (``COLLATE "C"``), whatever the database's locale.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from sfumato.ledger.binding import binding_entries
from sfumato.ledger.names import folded
from sfumato.ledger.store.base import (
    COMMITTED,
    EXECUTING,
    FORFEITED,
    RESERVED,
    SUSPENDED,
    VOIDED,
    AccountRow,
)
from sfumato.ledger.store.format import FORMAT
from sfumato.ledger.store.postgres_rows import placed
from sfumato.ledger.store.rows import (
    ACCOUNTS,
    APPEND,
    FAILED_INDEX,
    PUT_ACCOUNT,
    UNENDED_INDEX,
    WENT_ON_INDEX,
)
from sfumato.noise.entropy import token

SCHEMA = "sfumato"
# pg_temp is last, so that a temporary table cannot shadow one of the ledger.
PATH = f"{SCHEMA}, pg_temp"

# The identity of the server and its timeline, which changes when a standby is promoted: another
# server may lack entries.
SERVER = (
    "((SELECT system_identifier FROM pg_control_system())::text || '/' "
    "|| left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))"
)
# The database and its table of entries. The server never gives these numbers to others: a dump that
# is restored, and a copy of the database, have new ones; a backup of the whole server has the same.
TABLES = (
    "((SELECT oid FROM pg_database WHERE datname = current_database())::text "
    f"|| '/' || '{SCHEMA}.journal'::regclass::oid::text)"
)
# Both: while a session is connected, a dump may be restored in place of the ledger.
PLACE = f"{SERVER} || ' ' || {TABLES}"

_TEXT = 'TEXT COLLATE "C" NOT NULL'
_STATES = ", ".join(f"'{state}'" for state in (RESERVED, EXECUTING, COMMITTED, FORFEITED, VOIDED))
_OPEN = f"state IN ('{RESERVED}', '{EXECUTING}')"

# since format 2, the first of this store
_TABLES = f"""
CREATE TABLE meta (name {_TEXT} PRIMARY KEY, value {_TEXT});
CREATE TABLE journal (chain {_TEXT}, seq BIGINT NOT NULL, at {_TEXT}, kind {_TEXT}, body {_TEXT},
    previous {_TEXT}, hash {_TEXT}, CONSTRAINT journal_seq PRIMARY KEY (chain, seq));
CREATE TABLE account (id {_TEXT}, parent {_TEXT}, contract {_TEXT}, "limit" {_TEXT}, gates {_TEXT}, spent {_TEXT},
    held {_TEXT}, frozen {_TEXT}, policy {_TEXT}, earlier {_TEXT}, seq BIGINT NOT NULL, head {_TEXT},
    CONSTRAINT account_id PRIMARY KEY (id));
CREATE TABLE charge (id {_TEXT}, chain {_TEXT}, seq BIGINT NOT NULL, dataset {_TEXT}, account {_TEXT},
    analyst {_TEXT}, state {_TEXT}, question {_TEXT}, statement {_TEXT}, shared {_TEXT}, cost {_TEXT}, source {_TEXT},
    reason {_TEXT}, lease_until BIGINT NOT NULL, acknowledged INTEGER NOT NULL DEFAULT 0,
    CONSTRAINT charge_id PRIMARY KEY (id), CONSTRAINT charge_seq UNIQUE (chain, seq),
    CONSTRAINT charge_state CHECK (state IN ({_STATES})));
CREATE UNIQUE INDEX charge_question ON charge (question) WHERE {_OPEN};
CREATE INDEX charge_lease ON charge (lease_until) WHERE {_OPEN};
CREATE INDEX charge_failed ON charge (dataset) WHERE state = '{FORFEITED}' AND acknowledged = 0;
CREATE TABLE answer (rowid BIGINT GENERATED ALWAYS AS IDENTITY, question {_TEXT}, statement {_TEXT}, shared {_TEXT},
    charge {_TEXT} CONSTRAINT answer_paid REFERENCES charge (id), body BYTEA NOT NULL,
    CONSTRAINT answer_question PRIMARY KEY (question), CONSTRAINT answer_charge UNIQUE (charge));
CREATE INDEX answer_statement ON answer (statement, rowid);
CREATE INDEX answer_shared ON answer (shared, rowid) WHERE shared <> '';
CREATE TABLE key (account {_TEXT}, key {_TEXT}, request {_TEXT}, charge {_TEXT}, chain {_TEXT}, seq BIGINT NOT NULL,
    CONSTRAINT key_key PRIMARY KEY (account, key), CONSTRAINT key_seq UNIQUE (chain, seq));
"""
# since format 3
_PARTS = f"""
CREATE TABLE part (part {_TEXT}, charge {_TEXT} CONSTRAINT part_paid REFERENCES charge (id), chain {_TEXT},
    seq BIGINT NOT NULL, CONSTRAINT part_key PRIMARY KEY (part, chain, seq));
CREATE INDEX part_seq ON part (chain, seq, part);
"""
# since format 4
_BINDING = """
ALTER TABLE account ADD COLUMN moved BIGINT NOT NULL DEFAULT 0;
ALTER TABLE answer ADD COLUMN seq BIGINT NOT NULL DEFAULT 0;
UPDATE answer SET seq = journal.seq FROM journal
    WHERE kind IN ('commit', 'share') AND journal.body::json->>'charge' = answer.charge;
"""
# since format 5
_INSTALMENTS = f"""
ALTER TABLE charge ADD COLUMN pieces {_TEXT} DEFAULT '', ADD COLUMN failures INTEGER NOT NULL DEFAULT 0,
    DROP CONSTRAINT charge_state, ADD CONSTRAINT charge_state CHECK (state IN ({_STATES}, '{SUSPENDED}'));
DROP INDEX charge_question;
CREATE UNIQUE INDEX {UNENDED_INDEX}
CREATE TABLE instalment (charge {_TEXT} CONSTRAINT instalment_paid REFERENCES charge (id), place BIGINT NOT NULL,
    body BYTEA NOT NULL, chain {_TEXT}, seq BIGINT NOT NULL, coding {_TEXT},
    CONSTRAINT instalment_place PRIMARY KEY (charge, place), CONSTRAINT instalment_seq UNIQUE (chain, seq));
CREATE TABLE chunk (name {_TEXT}, number INTEGER NOT NULL, data BYTEA NOT NULL,
    CONSTRAINT chunk_number PRIMARY KEY (name, number));
ALTER TABLE answer ADD COLUMN coding {_TEXT} DEFAULT '';
{WENT_ON_INDEX}
"""

_ALONE = (
    "SELECT set_config('search_path', $1, true), set_config('lock_timeout', '5s', true), "
    "set_config('idle_in_transaction_session_timeout', '5s', true)"
)

# Constraints and triggers that must exist and be valid; ``damage`` checks them.
GUARDS = frozenset(
    {
        *(
            "journal_seq",
            "account_id",
            "charge_id",
            "charge_seq",
            "charge_state",
            "charge_question",
        ),
        *(
            "answer_paid",
            "answer_question",
            "answer_charge",
            "key_key",
            "key_seq",
            "part_paid",
            "part_key",
        ),
        *("instalment_paid", "instalment_place", "instalment_seq", "chunk_number"),
    }
)


def has_tables(connection: psycopg.Connection[Any]) -> bool:
    """Whether the schema ``sfumato`` exists in the database, with a ledger in it or not."""
    # not to_regclass, whose negative result a session caches for a while
    query = "SELECT EXISTS (SELECT FROM pg_tables WHERE schemaname = $1 AND tablename = 'meta')"
    return connection.execute(query, (SCHEMA,)).fetchone() == (True,)


def create_tables(connection: psycopg.Connection[Any]) -> None:
    """Creates the tables of a ledger in one transaction. Safe to run in several processes at once."""
    with _alone(connection):
        if has_tables(connection):
            return
        # the schema may have been created by an owner for a role that cannot create it
        if (
            connection.execute("SELECT FROM pg_namespace WHERE nspname = $1", (SCHEMA,)).fetchone()
            is None
        ):
            connection.execute(f"CREATE SCHEMA {SCHEMA}")
        connection.execute(_TABLES)
        for about in (("version", "2"), ("identity", token())):
            connection.execute("INSERT INTO meta VALUES ($1, $2)", about)
        _upgrade(connection, 2)


def upgrade_tables(connection: psycopg.Connection[Any]) -> None:
    """Upgrades the tables of an older format in one transaction. Safe to run in several processes
    at once.
    """
    with _alone(connection):
        version = connection.execute(
            "SELECT value FROM meta WHERE name = 'version' FOR UPDATE"
        ).fetchone()
        if version is not None:
            _upgrade(connection, int(version[0]))


@contextmanager
def _alone(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """A transaction that holds the lock for schema changes; the server ends it if its client
    stops.
    """
    with connection.transaction():
        connection.execute(_ALONE, (PATH,))
        connection.execute("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", (SCHEMA,))
        yield


def keep_server(connection: psycopg.Connection[Any]) -> None:
    """Records which server, and which tables in it, the ledger is in (since format 4)."""
    connection.execute(
        f"INSERT INTO {SCHEMA}.meta VALUES ('server', {SERVER}), ('tables', {TABLES}) "
        "ON CONFLICT (name) DO UPDATE SET value = excluded.value"
    )


def keep_tables(connection: psycopg.Connection[Any]) -> None:
    """Records the identity of a ledger's tables, if only that of the server was recorded so far.

    Earlier versions recorded the server alone. Does nothing if the server is another one.
    """
    connection.execute(
        f"INSERT INTO {SCHEMA}.meta SELECT 'tables', {TABLES} FROM {SCHEMA}.meta "
        f"WHERE name = 'server' AND value = {SERVER} ON CONFLICT DO NOTHING"
    )


def _upgrade(connection: psycopg.Connection[Any], version: int) -> None:
    for version_before in range(version, FORMAT):
        _STEPS[version_before](connection)
    connection.execute("UPDATE meta SET value = $1 WHERE name = 'version'", (str(FORMAT),))


def _from_2(connection: psycopg.Connection[Any]) -> None:
    """Format 2 to format 3."""
    connection.execute(_PARTS)


def _from_3(connection: psycopg.Connection[Any]) -> None:
    """Format 3 to format 4."""
    keep_server(connection)
    _fold_names(connection)
    # last, since it binds the accounts as they are after the other steps
    _bind(connection)


def _from_4(connection: psycopg.Connection[Any]) -> None:
    """Format 4 to format 5."""
    connection.execute(_INSTALMENTS)


def _fold_names(connection: psycopg.Connection[Any]) -> None:
    """Fills the column ``folded``, by which accounts are found regardless of how names are spelled."""
    connection.execute(
        """ALTER TABLE account ADD COLUMN folded TEXT COLLATE "C" NOT NULL DEFAULT ''"""
    )
    for (account_id,) in connection.execute("SELECT id FROM account").fetchall():
        connection.execute(
            "UPDATE account SET folded = $1 WHERE id = $2", (folded(account_id), account_id)
        )
    connection.execute("CREATE INDEX account_folded ON account (folded)")


def _bind(connection: psycopg.Connection[Any]) -> None:
    """Binds each account and each answer to an entry of its chain."""
    connection.execute(_BINDING + FAILED_INDEX)
    accounts = map(AccountRow._make, connection.execute(f"{ACCOUNTS} ORDER BY id").fetchall())
    for entry, after in binding_entries(accounts):
        connection.execute(placed(APPEND), entry)
        for row in after:
            connection.execute(placed(PUT_ACCOUNT), row)


# by format, the step to the next one; a new ledger takes all of them
_STEPS: dict[int, Callable[[psycopg.Connection[Any]], None]] = {2: _from_2, 3: _from_3, 4: _from_4}
