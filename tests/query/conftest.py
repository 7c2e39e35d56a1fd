# SPDX-License-Identifier: Apache-2.0
"""Fixtures of several files of this room."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from sfumato.query.session import Session
from tests.contracts.people import session


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Session]:
    """A session over the people."""
    with session(tmp_path) as people_session:
        yield people_session
