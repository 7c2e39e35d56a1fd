# SPDX-License-Identifier: Apache-2.0
"""The recorded CPU seconds (``make durations``) keep ``make test`` at 8 minutes on two cores."""

import json
from collections import defaultdict

from tests.architecture.structure import ROOT

RECORDED = json.loads((ROOT / "tests" / "durations.json").read_text("utf-8"))
A_TEST = 2.0
# CPU seconds of each room's tests; what is slower belongs to `make prove` (pytest.mark.long)
SHARES = {
    "accounting": 60,
}
DOCUMENTS = 20
TOTAL = 850


def room_of(file):
    """The room of a test file; documents and docstrings are one."""
    top, _, rest = file.partition("/")
    return rest.partition("/")[0] if top == "tests" else "documents"


def rooms(files):
    """The CPU seconds of each room."""
    spent = defaultdict(float)
    for file, seconds in files.items():
        spent[room_of(file)] += seconds
    return spent


def test_no_test_takes_more_than_two_seconds():
    assert {name: s for name, s in RECORDED["tests"].items() if s > A_TEST} == {}


def test_no_room_takes_more_than_its_share():
    above = {
        room: (round(seconds, 1), SHARES.get(room, 2))
        for room, seconds in rooms(RECORDED["files"]).items()
        if seconds > SHARES.get(room, 2)
    }
    assert above == {}


def test_the_shares_are_those_of_eight_minutes():
    assert sum(SHARES.values()) <= TOTAL
    assert sum(RECORDED["files"].values()) <= TOTAL


def test_the_files_that_take_longest_are_still_there():
    heavy = [file for file, seconds in RECORDED["files"].items() if seconds > A_TEST]
    assert [file for file in heavy if not (ROOT / file).exists()] == []


def test_seconds_are_summed_by_room():
    files = {"tests/sql/a.py": 1.0, "tests/sql/deep/b.py": 2.0, "docs/a.md": 0.5, "src/x.py": 0.25}
    assert rooms(files) == {"sql": 3.0, "documents": 0.75}
