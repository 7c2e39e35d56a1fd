# SPDX-License-Identifier: Apache-2.0
"""A session over notes of a small hospital."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import sfumato as sf
from tests.mining.clinic import TABLE, open_clinic


@pytest.fixture
def session(tmp_path: Path) -> Iterator[sf.Session]:
    """A session whose account can pay for a few answers."""
    with open_clinic(tmp_path, TABLE) as opened:
        yield opened
