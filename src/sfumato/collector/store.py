# SPDX-License-Identifier: Apache-2.0
"""The interface of what keeps reports: a folder of files, or a PostgreSQL server."""

from typing import Protocol

from sfumato.errors import Failed
from sfumato.telemetry.oracles.oracle import Payloads
from sfumato.telemetry.task import ReportTask


class StoreFailed(Failed):
    """The store is full or away: nothing of the last batch may be acknowledged.

    >>> raise StoreFailed("The store of reports failed (No space left on device).")
    Traceback (most recent call last):
    sfumato.collector.store.StoreFailed: The store of reports failed (No space left on device).
    """


class ReportStore(Protocol):
    """Keeps the reports of tasks by period, each once, and nothing of who sent them or when.

    >>> import tempfile
    >>> from sfumato.collector.folder import Folder
    >>> with tempfile.TemporaryDirectory() as place, Folder(place) as folder:
    ...     store: ReportStore = folder
    """

    def append(self, task: ReportTask, period: int, rows: Payloads) -> int:
        """Keeps what is new of some reports, and returns how much; it is durable then.

        Raises:
            StoreFailed: nothing may be acknowledged; the same reports may come again.
        """
        ...

    def finish(self, task: ReportTask, period: int) -> None:
        """Hears that a period has closed: nothing more comes."""
        ...

    def close(self) -> None:
        """Closes the place."""
        ...
