# SPDX-License-Identifier: Apache-2.0
"""The store at a place: a SQLite file, or a PostgreSQL server."""

from pathlib import Path

from sfumato.errors import LedgerUnavailable
from sfumato.ledger.store.base import Store
from sfumato.ledger.store.sqlite import SQLite
from sfumato.ledger.store.sqlite_reader import SQLiteReader
from sfumato.metadata.server import SERVERS


def open_store(place: str | Path, *, create: bool = True, read_only: bool = False) -> Store:
    """The store at a place: a postgresql:// address, or the path of a file.

    ``read_only``: it must be there, and nothing of it is changed.
    """
    if isinstance(place, str) and place.startswith(SERVERS):
        try:
            # psycopg is an extra
            from sfumato.ledger.store.postgres import Postgres
            from sfumato.ledger.store.postgres_reader import PostgresReader
        except ImportError:
            raise LedgerUnavailable(
                "A ledger on a server needs the package psycopg.", remedy="pip install 'sfumato[postgres]'"
            ) from None
        return PostgresReader(place) if read_only else Postgres(place, create=create)
    return SQLiteReader(place) if read_only else SQLite(place, create=create)
