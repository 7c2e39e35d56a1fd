# SPDX-License-Identifier: Apache-2.0
"""A lane of DuckDB: a cursor on which one plan runs at a time.

A cursor sees none of another's registered frames and temporary tables, so each is given them all.
"""

from collections.abc import Mapping

import duckdb

from sfumato.engines.local import Local
from sfumato.engines.sources import Opened, show
from sfumato.engines.time_limit import Watcher


class Lane:
    """A cursor with a watcher: the statements of one question at a time."""

    __slots__ = ("connection", "watcher")

    def __init__(self, connection: duckdb.DuckDBPyConnection, limits: Local) -> None:
        self.connection = connection.cursor()
        # without it DuckDB does not know how far it is; nothing is ever printed
        wanted = "false" if limits.progress is None else "true"
        self.connection.execute(f"SET enable_progress_bar = {wanted}")
        self.connection.execute("SET enable_progress_bar_print = false")
        percent = self.connection.query_progress
        self.watcher = Watcher(
            limits.time_limit, self.connection.interrupt, percent=percent, told=limits.progress
        )

    def show(self, sources: Mapping[str, Opened]) -> None:
        """Makes the sources visible that a cursor sees only once they are its own."""
        for name, item in sources.items():
            show(self.connection, name, item)

    def close(self) -> None:
        """Closes the cursor."""
        self.connection.close()
