# SPDX-License-Identifier: Apache-2.0
"""Fixtures of several files of this room."""

import pytest

from tests.attacks import shop
from tests.attacks.questions import shown


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """What every question shows of the shop as it is."""
    return shown(tmp_path_factory.mktemp("base"), shop.data())
