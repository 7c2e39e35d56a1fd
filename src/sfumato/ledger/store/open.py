# SPDX-License-Identifier: Apache-2.0
"""Opens the store at a place: a SQLite file or a PostgreSQL server."""

from pathlib import Path
from typing import TypeAlias

from sfumato.errors import LedgerUnavailable
from sfumato.ledger.store.base import Store
from sfumato.ledger.store.sqlite import SQLite
from sfumato.ledger.store.sqlite_reader import SQLiteReader
from sfumato.metadata.server import POSTGRES, is_address, is_postgres

Place: TypeAlias = str | Path


def open_store(
    place: Place, *, create: bool = True, read_only: bool = False, accept_loss: bool = False
) -> Store:
    """Opens the store at a postgresql:// address or a file path.

    ``create`` makes a new one if there is none. With ``read_only`` it must exist and is not
    changed. ``accept_loss`` opens it even if it may lack acknowledged transactions, so that the
    owner can decide.
    """
    if is_address(place) and not is_postgres(place):
        # if it were used as a path, its password would become a file name
        raise LedgerUnavailable(
            "The address of a ledger that is not written as one of PostgreSQL.",
            allowed=f"a path, or {POSTGRES}",
        )
    if isinstance(place, str) and is_postgres(place):
        try:
            # psycopg is an extra
            from sfumato.ledger.store.postgres import Postgres
            from sfumato.ledger.store.postgres_reader import PostgresReader
        except ImportError:
            raise LedgerUnavailable(
                "A ledger on a server needs the package psycopg.",
                remedy="pip install 'sfumato[postgres]'",
            ) from None
        return (
            PostgresReader(place)
            if read_only
            else Postgres(place, create=create, accept_loss=accept_loss)
        )
    return (
        SQLiteReader(place) if read_only else SQLite(place, create=create, accept_loss=accept_loss)
    )
