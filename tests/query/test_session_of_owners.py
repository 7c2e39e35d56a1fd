# SPDX-License-Identifier: Apache-2.0
"""What a session does for its owner alone; test_data_check and tests/ledger have what is found."""

from pathlib import Path

import pytest

from sfumato.errors import WrongUse
from tests.contracts.people import session


def test_the_owner_checks_the_data_and_nobody_else(tmp_path: Path) -> None:
    with session(tmp_path) as opened:
        told: list[str] = []
        (people,) = opened.check_data(report=told.append).tables
        assert people.rows == 40 and told
        with pytest.raises(WrongUse):
            opened.asking_as("b").check_data()


def test_anybody_verifies_the_ledger(tmp_path: Path) -> None:
    with session(tmp_path) as opened:
        opened.query("SELECT COUNT(*) AS n FROM people", epsilon="0.1")
        assert opened.asking_as("b").verify().charges == 1
        assert not opened.verify().problems
