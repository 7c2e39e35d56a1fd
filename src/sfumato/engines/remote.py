# SPDX-License-Identifier: Apache-2.0
"""Copies tables of database servers and SQLite files into DuckDB for one question, batch by batch.

All tables of one origin are read in one snapshot. Each reader (``postgres``, ``mysql``, ``sqlite``)
turns every value that can be stored into a value that DuckDB can store, so no row can make a copy
fail.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import duckdb

from sfumato.engines import mysql, postgres, sqlite
from sfumato.engines.files import is_sqlite
from sfumato.engines.served import Fetch, Reader, Served, ServerFailed
from sfumato.errors import InvalidSource
from sfumato.metadata.server import Server
from sfumato.metadata.table import Table


def is_remote(table: Table) -> bool:
    """Whether a table is copied for each question: a table of a server or of an SQLite file."""
    if isinstance(table.source, str | Path):
        return table.table is not None and is_sqlite(Path(table.source))
    return isinstance(table.source, Server)


def served(
    name: str,
    table: Table,
    relation: str = "",
) -> Served:
    """Looks a table up in its server or SQLite file; returns its columns and how they are copied.
    ``relation`` is its qualified name, if known already.

    Raises:
        InvalidSource: its driver is missing, the database cannot be read, or has no such table.
    """
    if isinstance(table.source, str | Path):
        # whatever the working directory is when a question is asked
        table = replace(table, source=Path(table.source).absolute())
    return _reader(table.source).served(name, table, relation)


def fill(
    connection: duckdb.DuckDBPyConnection,
    tables: Sequence[tuple[Served, Iterable[str]]],
    going: Callable[[], bool] = lambda: True,
) -> None:
    """Copies the given columns of tables of servers and SQLite files into DuckDB, in one snapshot
    of each server or file.

    Stops as soon as ``going`` returns False.

    Raises:
        ServerFailed: the database fails, a table has changed, or ``going`` returned False.
    """
    for origin in dict.fromkeys(table.origin for table, _ in tables):
        wanted = [(table, columns) for table, columns in tables if table.origin == origin]
        with _reader(origin).snapshot([table for table, _ in wanted]) as fetch:
            for table, columns in wanted:
                # with its present columns: this lane may have created it with others
                connection.execute(table.empty)
                _copy(connection, fetch, table, list(columns), going)


def count_respellings(table: Served, column: str) -> int:
    """Counts the strings of a remote column that its database treats as equal to another string.

    Sfumato reads them as different strings. Of several equal spellings all but one are counted; the
    count is exact, for the owner only. A column that is read as a number or a date has none.

    Raises:
        InvalidSource: the database cannot be read.
    """
    if table.types[column] != "VARCHAR":
        return 0
    with suppress(ServerFailed):
        return _reader(table.origin).count_respellings(table, column)
    # after the handler, whose error is no part of this one
    raise InvalidSource(f"{table.name}.{column} cannot be read to its end.")


def _reader(source: object) -> Reader:
    if not isinstance(source, Server):
        return sqlite
    if source.scheme == "mysql":
        return mysql
    return postgres


def _copy(
    connection: duckdb.DuckDBPyConnection,
    fetch: Fetch,
    table: Served,
    columns: list[str],
    going: Callable[[], bool],
) -> None:
    import pyarrow  # remote tables and frames need it, files do not

    arrow_types = {
        "BIGINT": pyarrow.int64(),
        "UBIGINT": pyarrow.uint64(),
        "DOUBLE": pyarrow.float64(),
        "VARCHAR": pyarrow.string(),
        "BOOLEAN": pyarrow.bool_(),
        "DATE": pyarrow.date32(),
        "TIMESTAMP": pyarrow.timestamp("us"),
        "TIMESTAMP WITH TIME ZONE": pyarrow.timestamp("us", "UTC"),
    }
    kinds = [arrow_types[table.columns[column][1]] for column in columns]
    with closing(fetch(table, columns)) as batches:
        for *wanted, one in batches:
            if not going():
                raise ServerFailed
            arrays = list(map(pyarrow.array, wanted, kinds))
            arrays.append(pyarrow.array([True] * len(one)))
            batch = pyarrow.table(arrays, [str(place) for place in range(len(arrays))])
            connection.register("batch", batch)
            try:
                connection.execute(table.insert(columns, "batch"))
            finally:
                connection.unregister("batch")
