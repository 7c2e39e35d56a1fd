# SPDX-License-Identifier: Apache-2.0
"""A lane: a DuckDB cursor with a worker thread, which runs one plan at a time.

``lanes`` is the pool of them. Registered frames and temporary tables belong to one cursor, so each
lane registers its own.
"""

from collections.abc import Mapping

import duckdb

from sfumato.engines.local import Local
from sfumato.engines.sources import Opened, show
from sfumato.engines.time_limit import Watcher
from sfumato.engines.worker import Worker


class Lane:
    """One of an engine's connections: a DuckDB cursor with a worker thread and a watcher of its
    time limit.

    It runs the statements of one question at a time.
    """

    __slots__ = ("connection", "watcher", "worker")

    def __init__(self, connection: duckdb.DuckDBPyConnection, limits: Local) -> None:
        self.connection = connection.cursor()
        # DuckDB reports progress only if this is on; nothing is ever printed
        shown = "false" if limits.progress is None else "true"
        self.connection.execute(f"SET enable_progress_bar = {shown}")
        self.connection.execute("SET enable_progress_bar_print = false")
        percent = self.connection.query_progress
        self.watcher = Watcher(
            limits.time_limit, self.connection.interrupt, percent=percent, told=limits.progress
        )
        self.worker = Worker(self.connection.interrupt)

    def show(self, sources: Mapping[str, Opened]) -> None:
        """Registers on this cursor the sources that DuckDB does not share between cursors (frames,
        copies of remote tables).
        """
        for name, item in sources.items():
            show(self.connection, name, item)

    def close(self) -> None:
        """Closes the DuckDB cursor and ends its worker thread."""
        self.worker.close()
        self.connection.close()
