# SPDX-License-Identifier: Apache-2.0
"""Tables of a server or database file, their copy in DuckDB, and the interface of their readers.

``postgres``, ``mysql`` and ``sqlite`` are readers; ``remote`` chooses among them.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeAlias

from sfumato.engines.duckdb_printer import quote
from sfumato.metadata.server import Server
from sfumato.metadata.table import Table

# The number of rows that are copied at a time.
BATCH = 50_000
_ROW = "a row of the server"

# The columns of a batch of rows: the wanted ones, then one that is never NULL.
Cells: TypeAlias = Sequence[Sequence[object]]
# Reads the wanted columns of a table, batch by batch.
Fetch: TypeAlias = Callable[["Served", Sequence[str]], Generator[Cells]]


class ServerFailed(OSError):
    """The error for a database server that does not answer or refuses; the message never quotes the
    server.
    """


@dataclass(frozen=True, slots=True)
class Served:
    """A table of a database server or database file, which is copied to DuckDB for each question.

    ``relation`` is its qualified name there. ``columns`` maps each readable column to the SQL
    expression that reads it and its type in DuckDB. ``unread`` maps columns that cannot be read to
    their types; no declaration fits them. ``kinds`` are the physical types, compared again before
    rows are read.
    """

    name: str
    table: Table
    relation: str
    columns: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    unread: Mapping[str, str] = field(default_factory=dict)
    kinds: str = ""

    @property
    def origin(self) -> Server | Path:
        """The server or database file that contains the table. All tables of one origin are read in
        one snapshot.
        """
        source = self.table.source
        assert isinstance(source, Server | Path), "an address, or an absolute path"
        return source

    @property
    def sql(self) -> str:
        """The name of the DuckDB table into which the rows are copied while a question runs."""
        return quote(f"server {self.name}")

    @property
    def types(self) -> dict[str, str]:
        """The DuckDB type of each readable column."""
        held = {column: kind for column, (_, kind) in self.columns.items()}
        return held | dict(self.unread)

    @property
    def empty(self) -> str:
        """The SQL statement that creates the DuckDB copy of the table, without rows.

        The copy has an extra column, so that a question that reads no column can still count rows.
        """
        columns = [f"{quote(column)} {stored}" for column, (_, stored) in self.columns.items()]
        columns.append(f"{quote(_ROW)} BOOLEAN")
        return f"CREATE OR REPLACE TEMP TABLE {self.sql} ({', '.join(columns)})"

    def insert(self, columns: Sequence[str], batch: str) -> str:
        """Returns the SQL statement that adds a batch of some columns to the DuckDB copy of the
        table.
        """
        names = ", ".join(map(quote, [*columns, _ROW]))
        return f"INSERT INTO {self.sql} ({names}) SELECT * FROM {batch}"


class Reader(Protocol):
    """The interface by which tables of one kind of database (PostgreSQL, MySQL, SQLite) are read;
    each kind has a module.
    """

    def served(
        self,
        name: str,
        table: Table,
        relation: str = "",
    ) -> Served:
        """Looks a declared table up in its database; returns its columns and how they are copied.
        ``relation`` is its qualified name, if that is known already.

        Raises:
            InvalidSource: its driver is missing, the database cannot be read, or has no such table.
        """
        ...

    def snapshot(self, tables: Sequence[Served]) -> AbstractContextManager[Fetch]:
        """Opens one read-only snapshot of several tables of one origin.

        Raises:
            ServerFailed: the database fails, or a table has changed; the error quotes no message of
                the database.
        """
        ...

    def count_respellings(self, table: Served, column: str) -> int:
        """Counts strings of a column that the database treats as equal but sfumato does not, for
        the owner.

        Of several spellings of a value all but one are counted, over all rows.

        Raises:
            ServerFailed: the database fails.
        """
        ...
