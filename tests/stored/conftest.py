# SPDX-License-Identifier: Apache-2.0
"""The pinned ledger, opened anew, for all tests of this folder."""

from collections.abc import Iterator

import pytest

from tests.stored import world


@pytest.fixture(scope="session")
def stored_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[world.World]:
    """A copy of the ledger, with what its questions were answered."""
    with world.opened(tmp_path_factory.mktemp("stored")) as found:
        yield found
