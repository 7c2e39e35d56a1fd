# SPDX-License-Identifier: Apache-2.0
"""Opens a store of reports: a folder, or a PostgreSQL server at an address."""

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pyarrow as pa

from sfumato.collector import folder
from sfumato.collector.store import ReportStore
from sfumato.errors import WrongUse
from sfumato.metadata.server import POSTGRES, is_address, is_postgres
from sfumato.telemetry.task import ReportTask


def open_store(place: str | Path) -> ReportStore:
    """Opens a store of reports for writing: a folder, or a server at a postgresql:// address.

    Raises:
        WrongUse: the place cannot be used, or is another kind of address.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     open_store(place).close()
    """
    if not is_address(place):
        return folder.Folder(place)
    store: ReportStore = _postgres(place).PostgresStore(place)
    return store


def stored_reports(place: str | Path, task: ReportTask, period: int) -> Iterator[pa.Array]:
    """Yields the stored reports of a period, in chunks.

    >>> import tempfile
    >>> from sfumato.telemetry.task import report_task
    >>> task = report_task("t", "?", ["a"], epsilon=1, start=0, periods=1)
    >>> with tempfile.TemporaryDirectory() as place:
    ...     list(stored_reports(place, task, 0))
    []
    """
    if not is_address(place):
        return folder.read(place, task, period)
    found: Iterator[pa.Array] = _postgres(place).read(place, task, period)
    return found


def _postgres(place: str | Path) -> ModuleType:
    """Imports the module ``postgres``, which needs an optional package."""
    if not is_postgres(place):
        # as a path, its password would become the name of a folder
        raise WrongUse(
            "The address of a server that is not written as one of PostgreSQL.",
            allowed=f"a folder, or {POSTGRES}",
        )
    try:
        from sfumato.collector import postgres
    except ImportError:
        raise WrongUse(
            "Reports on a server need the package psycopg.",
            remedy="pip install 'sfumato[postgres]'",
        ) from None
    return postgres
