# SPDX-License-Identifier: Apache-2.0
"""Where a ledger may lie; a test that takes ``place`` runs on every store."""

from pathlib import Path

import pytest

SQLITE, POSTGRES = "sqlite", "postgres"


@pytest.fixture(params=[SQLITE, POSTGRES])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A place with nothing in it."""
    if request.param == POSTGRES:
        return str(request.getfixturevalue("database"))
    folder = tmp_path / "ledger"
    folder.mkdir()
    return str(folder / "l.db")
