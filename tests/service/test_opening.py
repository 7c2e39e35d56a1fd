# SPDX-License-Identifier: Apache-2.0
"""What is opened is closed, also if the opening fails half way."""

from pathlib import Path

import pytest

from sfumato.errors import InvalidConfig, LedgerError
from sfumato.ledger import Ledger
from sfumato.service.opening import Service
from sfumato.service.settings import Settings
from tests.contracts.clinic import TOML, written


def test_a_service_holds_its_ledger_until_it_is_closed(tmp_path: Path) -> None:
    with (
        Service(Settings((written(tmp_path),), tmp_path / "service.db")),
        pytest.raises(LedgerError),
    ):
        Ledger.open(tmp_path / "ledger.db")
    Ledger.open(tmp_path / "ledger.db").close()


def test_a_failed_opening_leaves_nothing_open(tmp_path: Path) -> None:
    path = written(tmp_path)
    second = tmp_path / "second.toml"
    second.write_text(TOML.replace("people.csv", "nowhere.csv"), encoding="utf-8")
    with pytest.raises(InvalidConfig):
        Service(Settings((path, second), tmp_path / "service.db"))
    Ledger.open(tmp_path / "ledger.db").close()
