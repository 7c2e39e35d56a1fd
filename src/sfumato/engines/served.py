# SPDX-License-Identifier: Apache-2.0
"""A table of a server or of a database file, and its local copy in DuckDB."""

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
    """The server is gone, or refuses; the message does not say why."""


@dataclass(frozen=True, slots=True)
class Served:
    """A declared table that is copied for each question, and how each column of it is read.

    ``relation`` is its qualified name. ``columns``: the expression that reads each column, and its
    type in DuckDB. ``unread``: the type of each column that cannot be read; no declaration fits it.
    ``kinds``: how the database stores the table; compared before rows are read.
    """

    name: str
    table: Table
    relation: str
    columns: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    unread: Mapping[str, str] = field(default_factory=dict)
    kinds: str = ""

    @property
    def origin(self) -> Server | Path:
        """The server or the file; tables of one origin are read in one snapshot."""
        source = self.table.source
        assert isinstance(source, Server | Path), "an address, or an absolute path"
        return source

    @property
    def sql(self) -> str:
        """The local table that stores its rows while a question runs."""
        return quote(f"server {self.name}")

    @property
    def types(self) -> dict[str, str]:
        """The type of each column in DuckDB."""
        held = {column: kind for column, (_, kind) in self.columns.items()}
        return held | dict(self.unread)

    @property
    def empty(self) -> str:
        """The statement that creates the local table without rows.

        It has an extra column, so that a question that reads no column still sees the number of
        rows.
        """
        columns = [f"{quote(column)} {stored}" for column, (_, stored) in self.columns.items()]
        columns.append(f"{quote(_ROW)} BOOLEAN")
        return f"CREATE OR REPLACE TEMP TABLE {self.sql} ({', '.join(columns)})"

    def insert(self, columns: Sequence[str], batch: str) -> str:
        """The statement that copies a batch of rows with these columns into the local table."""
        names = ", ".join(map(quote, [*columns, _ROW]))
        return f"INSERT INTO {self.sql} ({names}) SELECT * FROM {batch}"


class Reader(Protocol):
    """Reads the tables of one kind of database."""

    def served(
        self,
        name: str,
        table: Table,
        relation: str = "",
    ) -> Served:
        """Looks a declared table up; ``relation`` is its qualified name, if that is known already.

        Raises:
            InvalidSource: its driver is missing, the database cannot be read, or has no such table.
        """
        ...

    def snapshot(self, tables: Sequence[Served]) -> AbstractContextManager[Fetch]:
        """Opens one read-only snapshot of tables of one origin.

        Raises:
            ServerFailed: the database fails, or a table is not what it was; no message of the
                database is in it.
        """
        ...

    def count_respellings(self, table: Served, column: str) -> int:
        """Counts the values that the database calls equal to another one and that we read apart.

        Of several spellings of a value all but one are counted, over all rows. For the owner only.

        Raises:
            ServerFailed: the database fails.
        """
        ...
