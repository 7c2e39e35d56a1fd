# SPDX-License-Identifier: Apache-2.0
"""The order of the tests where several processes run them: the heaviest groups first."""

import json
from functools import cache
from pathlib import Path

import pytest

DURATIONS = Path(__file__).resolve().parents[1] / "durations.json"
SPARK = "spark"
# The JVM's own CPU time is in no test's; it takes as long again as the tests that wait for it.
_SPARK_SECONDS = 100.0


def group(item: pytest.Item) -> str:
    """Returns the group of a test: its file, or one group for all that need Spark.

    The tests of a file share what it sets up; the JVM of Spark takes long to start.
    """
    return SPARK if SPARK in getattr(item, "fixturenames", ()) else _file(item)


def heaviest_first(items: list[pytest.Item]) -> list[pytest.Item]:
    """Returns the tests group by group, those with most recorded CPU seconds first."""
    weights = _weights()
    return sorted(items, key=lambda item: (-weights.get(group(item), 0.0), group(item)))


def _file(item: pytest.Item) -> str:
    return item.nodeid.split("::")[0]


@cache
def _weights() -> dict[str, float]:
    """The recorded CPU seconds of each group."""
    recorded = json.loads(DURATIONS.read_text(encoding="utf-8"))
    return {**recorded["files"], SPARK: _SPARK_SECONDS}
