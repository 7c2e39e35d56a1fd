# SPDX-License-Identifier: Apache-2.0
"""The recorded CPU seconds (``make durations``) keep ``make test`` at 10 minutes on two cores.

A test that takes longer is made quicker, or is marked ``long`` and runs in ``make prove``.
"""

import json
from collections import defaultdict

import pytest

from tests.architecture.structure import ROOT
from tests.contracts.durations import STANDARD, standard

RECORDED = json.loads((ROOT / "tests" / "durations.json").read_text("utf-8"))
A_TEST = 5.0
# a page is many examples; the JVM compiles in the background, while whichever test runs
A_PAGE, WITH_SPARK = 6.0, 10.0
# a journey starts a dozen processes
A_JOURNEY = 10.0
# the start of the JVM is the first test's
START_OF_SPARK = {"tests/engines/test_spark.py::test_the_application_runs": 25.0}
# CPU seconds of all tests of a room, and of all rooms
SHARES = {
    "accounting": 82,
    "architecture": 20,
    "attacks": 75,
    "audit": 40,
    "benchmarks": 32,
    "cli": 72,
    "clients": 15,
    "collector": 5,
    "config": 4,
    "contracts": 5,
    "documents": 40,
    "engines": 270,
    "exact": 5,
    "examples": 30,
    "federated": 30,
    "graph": 30,
    "journeys": 30,
    "learning": 49,
    "ledger": 110,
    "mechanisms": 55,
    "metadata": 13,
    "mining": 15,
    "noise": 70,
    "plan": 10,
    "privacy": 27,
    "query": 95,
    "regressions": 25,
    "root": 5,
    "service": 15,
    "show": 5,
    "sql": 45,
    "stored": 30,
    "synopsis": 60,
    "synthetic": 27,
    "telemetry": 33,
    "testing": 10,
    "tutorials": 15,
    "web": 30,
}
TOTAL = 1150


def room_of(file):
    """Returns the room of a test file; pages and docstrings are documents."""
    folder, *below = file.split("/")
    if folder != "tests":
        return "documents"
    return below[0] if len(below) > 1 else "root"


def rooms(files):
    """Returns the CPU seconds of each room."""
    spent = defaultdict(float)
    for file, seconds in files.items():
        spent[room_of(file)] += seconds
    return spent


def limit(test):
    """Returns the CPU seconds that a test may take."""
    if test.split("::")[0].endswith(".md"):
        return A_PAGE
    if test.startswith("tests/journeys/"):
        return A_JOURNEY
    return START_OF_SPARK.get(test, WITH_SPARK if "spark" in test.split("::")[0] else A_TEST)


def above(recorded):
    """Returns what takes more than it may: tests, rooms, and all together."""
    found = [test for test, seconds in recorded["tests"].items() if seconds > limit(test)]
    spent = rooms(recorded["files"])
    found += [room for room, seconds in spent.items() if seconds > SHARES[room]]
    return found + ["all"] * (sum(spent.values()) > TOTAL)


def test_no_test_and_no_room_takes_more_than_it_may():
    assert above(RECORDED) == []


def test_every_room_has_a_share():
    folders = {path.name for path in (ROOT / "tests").iterdir() if any(path.glob("**/test_*.py"))}
    assert {*folders, "documents", "root"} == set(SHARES)


def test_the_files_that_take_longest_are_still_there():
    heavy = [file for file, seconds in RECORDED["files"].items() if seconds > A_TEST]
    assert [file for file in heavy if not (ROOT / file).exists()] == []


@pytest.mark.parametrize(
    ("tests", "files", "named"),
    [
        ({"tests/sql/test_a.py::test_b": 5.5}, {}, ["tests/sql/test_a.py::test_b"]),
        ({"docs/a.md::a.md": 5.5}, {}, []),
        ({}, {"tests/sql/a.py": 40, "tests/sql/deep/b.py": 6}, ["sql"]),
        ({}, {"docs/a.md": 25, "src/x.py": 16, "tests/test_main.py": 1}, ["documents"]),
        ({}, {f"tests/{room}/a.py": share for room, share in SHARES.items()}, ["all"]),
    ],
)
def test_what_takes_longer_is_noticed(tests, files, named):
    assert above({"tests": tests, "files": files}) == named


def test_seconds_of_a_slower_machine_count_less():
    assert standard({"tests/a.py::b": 3.0}, [2 * STANDARD, 9 * STANDARD, STANDARD]) == {
        "tests/a.py::b": 1.5
    }
