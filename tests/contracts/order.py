# SPDX-License-Identifier: Apache-2.0
"""How two processes share the tests: whole groups, the heaviest first.

A group is a file, whose tests share what it sets up. The files that need Spark are one group, and
so are those that need MariaDB: each starts once. Those that read the syntax trees of all sources
are one too. pytest-xdist 3.8 has groups by a mark, but under pytest 9.2 it drops the mark without
a word, and hands out test by test. So the first process finds the group by the name of the file.
"""

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import SupportsIndex

import pytest
from xdist.scheduler.loadscope import LoadScopeScheduling
from xdist.workermanage import WorkerController

DURATIONS = Path(__file__).resolve().parents[1] / "durations.json"
SPARK, MARIADB, SOURCES = "spark", "mariadb", "tests/architecture"
# files whose names do not say their group
_SHARED = {
    "tests/benchmarks/test_bench.py": SPARK,
    "tests/cli/test_language.py": SOURCES,
    "tests/query/test_data_check.py": SOURCES,
    "tests/engines/test_mysql.py": MARIADB,
    "tests/engines/test_declared.py": MARIADB,
    "tests/audit/test_forms.py": MARIADB,
    "tests/engines/test_prepared.py": MARIADB,
}
# a file without a record may be heavy: it is not left for the end
_UNKNOWN = float("inf")


class _Places(list[str]):
    """Tests, each of whose places is looked up and not searched for."""

    def __init__(self, tests: Sequence[str]) -> None:
        super().__init__(tests)
        self._places = {test: place for place, test in enumerate(tests)}

    def index(self, test: str, *_: SupportsIndex) -> int:
        return self._places[test]


class Groups(LoadScopeScheduling):
    """Hands out a group at a time, in the order of the tests.

    After each test pytest-xdist counts all tests that a process was ever given, and it searches all
    tests for each that it hands out: 11 seconds for 27,000 tests. Here it counts those of the
    groups that are not finished.
    """

    def _split_scope(self, nodeid: str) -> str:
        return group(nodeid)

    def add_node_collection(self, node: WorkerController, collection: Sequence[str]) -> None:
        super().add_node_collection(node, collection)
        if node in self.registered_collections:
            self.registered_collections[node] = _Places(collection)

    def mark_test_complete(
        self, node: WorkerController, item_index: int, duration: float = 0
    ) -> None:
        super().mark_test_complete(node, item_index, duration)
        groups = self.assigned_work[node]
        name = group(self.registered_collections[node][item_index])
        if all(groups[name].values()):
            del groups[name]


def group(test: str) -> str:
    """Returns the group of a test, by its name."""
    file = test.split("::")[0]
    if file in _SHARED:
        return _SHARED[file]
    return next((name for name in (SPARK, MARIADB, SOURCES) if name in file), file)


def heaviest_first(items: list[pytest.Item]) -> list[pytest.Item]:
    """Returns the tests group by group, those with most recorded CPU seconds first."""
    weights = _weights()

    def place(item: pytest.Item) -> tuple[float, str]:
        name = group(item.nodeid)
        return -weights.get(name, _UNKNOWN), name

    return sorted(items, key=place)


@cache
def _weights() -> dict[str, float]:
    """The recorded CPU seconds of each group."""
    weights: dict[str, float] = {}
    for file, seconds in json.loads(DURATIONS.read_text(encoding="utf-8"))["files"].items():
        weights[group(file)] = weights.get(group(file), 0.0) + seconds
    return weights
