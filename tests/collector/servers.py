# SPDX-License-Identifier: Apache-2.0
"""A PostgreSQL server of a test's own, which it may stop and kill."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.contracts.require import missing
from tools.postgres import Cluster, programs


@contextmanager
def own_server() -> Iterator[Cluster]:
    """A running server."""
    found = programs() or missing("postgres", "PostgreSQL (initdb, postgres) is not installed")
    folder = Path(tempfile.mkdtemp(prefix="sfumato-reports-"))
    try:
        cluster = Cluster(found, folder)
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.stop()
    finally:
        shutil.rmtree(folder)
