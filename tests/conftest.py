# SPDX-License-Identifier: Apache-2.0
"""Fixtures of several rooms."""

import re

import pytest

from tests.contracts.places import place
from tests.contracts.postgres import database, postgres

__all__ = ["database", "place", "postgres"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Names of tests that are the same in every worker: without addresses of objects."""
    seen: dict[str, int] = {}
    for item in items:
        if " at 0x" in item.nodeid:
            name = re.sub(r" at 0x[0-9a-f]+", "", item.nodeid)
            seen[name] = seen.get(name, 0) + 1
            item._nodeid = f"{name}#{seen[name]}"
