# SPDX-License-Identifier: Apache-2.0
"""The interface of a store of reports: a folder of files, or a PostgreSQL server."""

from typing import Protocol

from sfumato.errors import Failed
from sfumato.telemetry.oracles.oracle import Payloads
from sfumato.telemetry.task import ReportTask


class StoreFailed(Failed):
    """The store is full or unavailable: no report of the last batch may be acknowledged.

    >>> raise StoreFailed("The store of reports failed (No space left on device).")
    Traceback (most recent call last):
    sfumato.collector.store.StoreFailed: The store of reports failed (No space left on device).
    """


class ReportStore(Protocol):
    """The interface of a store of reports, by task and period: without duplicates, senders and
    times.

    >>> import tempfile
    >>> from sfumato.collector.folder import Folder
    >>> with tempfile.TemporaryDirectory() as place, Folder(place) as folder:
    ...     store: ReportStore = folder
    """

    def append(self, task: ReportTask, period: int, rows: Payloads) -> int:
        """Stores the reports that are not stored yet, durably; returns their number.

        Raises:
            StoreFailed: nothing may be acknowledged; the same reports may come again.
        """
        ...

    def finish(self, task: ReportTask, period: int) -> None:
        """Closes a period: no more of its reports will be appended."""
        ...

    def close(self) -> None:
        """Closes the store."""
        ...
