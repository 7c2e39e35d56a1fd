# SPDX-License-Identifier: Apache-2.0
"""Fixtures of several files of this room."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contracts.clinic import Clinic


@pytest.fixture
def clinic(tmp_path: Path) -> Iterator[Clinic]:
    """A service over made-up people of a clinic."""
    with Clinic(tmp_path) as opened:
        yield opened
