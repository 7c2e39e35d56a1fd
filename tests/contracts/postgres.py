# SPDX-License-Identifier: Apache-2.0
"""A real PostgreSQL for the whole session of tests, stopped at its end even if they fail."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contracts.require import missing
from tools.postgres import Cluster, programs

__all__ = ["Cluster", "database", "postgres"]


@pytest.fixture(scope="session")
def postgres() -> Iterator[Cluster]:
    """A running server."""
    found = programs() or missing("postgres", "PostgreSQL (initdb, postgres) is not installed")
    folder = Path(tempfile.mkdtemp(prefix="sfumato-postgres-"))
    try:
        cluster = Cluster(found, folder)
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.stop()
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def database(postgres: Cluster) -> str:
    """The address of a database without a ledger."""
    return postgres.emptied()
