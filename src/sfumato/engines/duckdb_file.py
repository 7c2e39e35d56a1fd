# SPDX-License-Identifier: Apache-2.0
"""The FROM item of a table of a DuckDB file, which is attached for reading only."""

import logging
from pathlib import Path

import duckdb

from sfumato.engines.duckdb_printer import quote, text
from sfumato.engines.files import unreadable
from sfumato.errors import InvalidSource, shown

_OWNER = logging.getLogger("sfumato.owner")


def from_database(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    path: Path,
    table: str,
) -> str:
    """Attaches a DuckDB file read-only and returns the FROM item of a table in it.

    A view or a computed column is refused: its expression could fail on a row, or change.
    """
    if not path.is_file():
        raise InvalidSource(f"Table {name!r}: no file {shown(path)}.", remedy="Check the path.")
    if path.with_name(f"{path.name}.wal").exists():
        raise InvalidSource(
            f"Table {name!r}: {path.name!r} has changes that are not in it yet.",
            remedy="Let its writer end, or run CHECKPOINT.",
        )
    alias = f"file {path.resolve()}"
    failed = ""
    try:
        file = text(str(path.resolve()))
        connection.execute(
            f"ATTACH IF NOT EXISTS {file} AS {quote(alias)} (TYPE duckdb, READ_ONLY)"
        )
    except (duckdb.Error, RuntimeError) as failure:
        failed = type(failure).__name__
    if failed:
        raise unreadable(name, path, failed)
    plain = _plain_tables(connection, alias)
    if table not in plain:
        _OWNER.error(
            "table %s: %s has the tables %s",
            name,
            path,
            ", ".join(map(repr, plain)),
        )
        raise InvalidSource(
            f"Table {name!r}: {path.name!r} has no table {table!r}.",
            allowed="a table of the schema main; the log 'sfumato.owner' has their names",
            remedy="Views and tables with computed columns are not read: store what they hold.",
        )
    return f"{quote(alias)}.main.{quote(table)}"


def _plain_tables(connection: duckdb.DuckDBPyConnection, alias: str) -> list[str]:
    """Returns the tables of an attached file that have no computed column."""
    computed = (
        "SELECT table_name FROM information_schema.columns "
        "WHERE table_catalog = $1 AND table_schema = 'main' AND is_generated <> 'NEVER'"
    )
    stored = connection.execute(
        "SELECT table_name FROM duckdb_tables() WHERE database_name = $1 AND schema_name = 'main' "
        f"AND table_name NOT IN ({computed}) ORDER BY table_name",
        [alias],
    ).fetchall()
    return [row[0] for row in stored]
