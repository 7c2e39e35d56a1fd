# SPDX-License-Identifier: Apache-2.0
"""Fixtures of several files of this room."""

from pathlib import Path

import pytest

from sfumato.ledger import Ledger
from tests.contracts.charges import opened


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return opened(tmp_path / "l.db")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which this user remembers ledgers."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "sfumato" / "ledger_heads"
