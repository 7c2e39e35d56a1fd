# SPDX-License-Identifier: Apache-2.0
"""Maps errors of a PostgreSQL server to errors of the ledger.

The server's own messages may contain values and are dropped.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict
from psycopg.errors import Diagnostic

from sfumato.errors import (
    LedgerBusy,
    LedgerCorrupt,
    LedgerError,
    LedgerIncomplete,
    LedgerReadOnly,
    LedgerUnavailable,
)
from sfumato.ledger.store.postgres_rows import Connection
from sfumato.ledger.store.postgres_schema import SCHEMA

# The server rolled the transaction back: nothing of it was committed.
ROLLED_BACK = (
    errors.DeadlockDetected,
    errors.SerializationFailure,
    errors.IdleInTransactionSessionTimeout,
    # a statement prepared on another connection: behind a pooler, or after an error in a pipeline
    errors.InvalidSqlStatementName,
    errors.DuplicatePreparedStatement,
)
# Only these say that the tables are not what they should be: whoever reads "damaged" may restore a
# backup, which forgets what was spent since.
_DAMAGED = (
    errors.DataCorrupted,
    errors.IndexCorrupted,
    errors.InvalidSchemaName,
    errors.UndefinedTable,
    errors.UndefinedColumn,
    errors.UndefinedFunction,
    errors.DatatypeMismatch,
    psycopg.IntegrityError,
    psycopg.DataError,
)


@contextmanager
def heeding(connection: Connection, place: str) -> Iterator[None]:
    """Raises the PostgreSQL server's warnings as errors within a ``with`` block.

    For example, a warning says that waiting for a standby was cancelled.
    """
    heard: list[str | None] = []

    def hear(notice: Diagnostic) -> None:
        heard.append(notice.severity_nonlocalized)

    connection.add_notice_handler(hear)
    try:
        yield
    finally:
        connection.remove_notice_handler(hear)
    if "WARNING" in heard:
        raise unknown(place)


@contextmanager
def typed(place: str) -> Iterator[None]:
    """Raises the errors of psycopg within a ``with`` block as errors of the ledger."""
    try:
        yield
    except psycopg.Error as error:
        raise _translate(error, place) from None


def unknown(place: str) -> LedgerUnavailable:
    """Returns the error for a connection lost after the commit was sent: its outcome is unknown."""
    return LedgerUnavailable(
        f"The ledger {place} was lost while it wrote: nobody knows yet whether it did.",
        remedy="Ask again: what was stored is found, and is not paid twice.",
    )


def corrupt(place: str) -> LedgerCorrupt:
    """Returns the error for a ledger whose tables cannot be trusted."""
    return LedgerCorrupt(
        f"What lies in the schema {SCHEMA} of {place} is not a ledger, or is damaged.",
        remedy="Keep it as it is, and find out what happened before anything is restored "
        "(docs/operations.md): "
        "a backup forgets what was spent after it. Do not start a new ledger over the same data.",
    )


def incomplete(place: str, why: str) -> LedgerIncomplete:
    """Returns the error for a server that may lack spending; ``why`` is the reason."""
    return LedgerIncomplete(
        f"The ledger {place} may have forgotten what was spent: {why}.",
        remedy="Go back to the server that has everything, or let the owner decide: "
        "docs/operations.md, "
        "'After a fail-over'.",
    )


def place_of(url: str) -> str:
    """Returns a postgresql:// address without its password."""
    try:
        parts = conninfo_to_dict(url)
    except psycopg.Error:
        raise LedgerUnavailable(
            "The address of the ledger cannot be read.",
            allowed="postgresql://user@host:5432/database",
        ) from None
    return f"postgresql://{parts.get('host', '')}/{parts.get('dbname', '')}"


def _translate(error: psycopg.Error, place: str) -> LedgerError:
    error_name = f"{type(error).__name__} {error.sqlstate or ''}".strip()
    if isinstance(error, errors.LockNotAvailable):
        return LedgerBusy(
            f"An account of the ledger {place} is held by somebody else.", remedy="Ask again."
        )
    if isinstance(error, errors.ReadOnlySqlTransaction | errors.InsufficientPrivilege):
        return LedgerReadOnly(
            f"The ledger {place} cannot be written ({error_name}), so nothing can be charged.",
            remedy=f"Give this role SELECT, INSERT and UPDATE in the schema {SCHEMA}; "
            "to create it, CREATE on the database.",
        )
    if isinstance(error, _DAMAGED):
        return corrupt(place)
    return LedgerUnavailable(
        f"The ledger {place} does not answer ({error_name}).",
        remedy="Look at the server and ask again; what was paid for is not paid twice.",
    )
