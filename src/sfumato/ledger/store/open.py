# SPDX-License-Identifier: Apache-2.0
"""The store at a place: a SQLite file, or a PostgreSQL server."""

from pathlib import Path

from sfumato.errors import LedgerUnavailable
from sfumato.ledger.store.base import Store
from sfumato.ledger.store.sqlite import SQLite
from sfumato.metadata.server import POSTGRES, is_address, is_postgres


def open_store(place: str | Path, *, create: bool = True) -> Store:
    """The store at a place: a postgresql:// address, or the path of a file."""
    if is_address(place) and not is_postgres(place):
        # taken for a path it would be the name of a file, with its password
        raise LedgerUnavailable(
            "The address of a ledger that is not written as one of PostgreSQL.", allowed=f"a path, or {POSTGRES}"
        )
    if isinstance(place, str) and is_postgres(place):
        try:
            # psycopg is an extra
            from sfumato.ledger.store.postgres import Postgres
        except ImportError:
            raise LedgerUnavailable(
                "A ledger on a server needs the package psycopg.", remedy="pip install 'sfumato[postgres]'"
            ) from None
        return Postgres(place, create=create)
    return SQLite(place, create=create)
