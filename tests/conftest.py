# SPDX-License-Identifier: Apache-2.0
"""Fixtures of several rooms, and which tests run one after the other where there are several processes."""

import pytest

from tests.contracts.places import place
from tests.contracts.postgres import database, postgres
from tests.contracts.spark import both, java_errors, spark

__all__ = [
    "both",
    "database",
    "java_errors",
    "place",
    "postgres",
    "pytest_collection_modifyitems",
    "spark",
]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The tests of a file share what it sets up; all that need Spark share one JVM, which takes long to start."""
    for item in items:
        needs_spark = "spark" in getattr(item, "fixturenames", ())
        item.add_marker(pytest.mark.xdist_group("spark" if needs_spark else str(item.path)))
