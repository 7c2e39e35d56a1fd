# SPDX-License-Identifier: Apache-2.0
"""The store at a place: a SQLite file, or a PostgreSQL server."""

from pathlib import Path

from sfumato.errors import LedgerUnavailable
from sfumato.ledger.store.base import Store
from sfumato.ledger.store.sqlite import SQLite
from sfumato.metadata.server import SERVERS


def open_store(place: str | Path, *, create: bool = True) -> Store:
    """The store at a place: a postgresql:// address, or the path of a file."""
    if isinstance(place, str) and place.startswith(SERVERS):
        try:
            # psycopg is an extra
            from sfumato.ledger.store.postgres import Postgres
        except ImportError:
            raise LedgerUnavailable(
                "A ledger on a server needs the package psycopg.", remedy="pip install 'sfumato[postgres]'"
            ) from None
        return Postgres(place, create=create)
    return SQLite(place, create=create)
