# SPDX-License-Identifier: Apache-2.0
"""A real MariaDB for the whole session of tests, stopped at its end even if they fail."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.contracts.require import missing

if TYPE_CHECKING:
    from tools.mariadb import MariaDB

__all__ = ["clinic", "mariadb"]


@pytest.fixture(scope="session")
def mariadb() -> "Iterator[MariaDB]":
    """A running server."""
    # it needs PyMySQL, which other tests do not
    from tools.mariadb import MariaDB, is_installed

    if not is_installed():
        missing("mariadb", "MariaDB (mariadbd, mariadb-install-db) is not installed")
    folder = Path(tempfile.mkdtemp(prefix="sfumato-mariadb-"))
    try:
        server = MariaDB(folder)
        try:
            server.start()
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def clinic(mariadb: "MariaDB") -> str:
    """The address of an empty database."""
    return mariadb.emptied()
