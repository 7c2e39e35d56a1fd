# SPDX-License-Identifier: Apache-2.0
"""A table of renames is applied as it says, or refused as a whole."""

from importlib.util import find_spec

import pytest

from tests.contracts.require import missing
from tools.rename import Refused, Row, apply, read_table
from tools.same_names import Frozen, frozen_names

NONE = Frozen()
PATH = "src/house/rooms.py"
OTHER = "tests/test_rooms.py"
SOURCE = '''
"""Rooms."""
def _told(one, *, kept=2):
    """The sum of ``one`` and ``kept``."""
    found = [each for each in one]
    return sum(found) + kept, other

def ask(one):
    return _told(one, kept=3)
'''
TEST = """
from house import rooms
from house.rooms import _told

def test(monkeypatch):
    assert _told([1], kept=2) == rooms._told([1])
    monkeypatch.setattr(rooms, "_told", len)
    monkeypatch.setattr("house.rooms._told", len)
    print("_told", {"kept": 1})
"""
FILES = {PATH: SOURCE, OTHER: TEST}


def applied(table: str, frozen: Frozen = NONE) -> dict[str, str]:
    rows = [Row(PATH, *line.split()) for line in table.splitlines()]
    return apply(rows, FILES, frozen)


def test_a_local_and_a_parameter_are_renamed_where_they_are_meant() -> None:
    changed = applied("_told found numbers\n_told one values")
    assert changed == {
        PATH: SOURCE.replace("found", "numbers")
        .replace("_told(one, *", "_told(values, *")
        .replace("in one", "in values")
        .replace("``one``", "``values``")
    }


def test_keywords_of_callers_follow_a_parameter() -> None:
    changed = applied("_told kept added")
    assert changed[PATH] == SOURCE.replace("kept", "added")
    assert changed[OTHER] == TEST.replace("kept=", "added=")


def test_imports_and_replaced_names_follow_a_function() -> None:
    changed = applied(". _told add_all")
    assert changed[PATH] == SOURCE.replace("_told", "add_all")
    assert changed[OTHER] == TEST.replace("_told", "add_all").replace('("add_all"', '("_told"')


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ("_told found one", "not one to one"),
        ("_told found kept", "not one to one"),
        # it would hide a global that the function reads
        ("_told found other", "another scope"),
        ("_told found sum", "another scope"),
        ("_told found values\n_told one values", "two names become one"),
        ("_told found values\n_told found numbers", "renamed twice"),
        (". _told ask", "not one to one"),
        (". _told sum", "not one to one"),
        (". missing added", "no name missing"),
        ("_told missing added", "no name missing"),
        ("missing found added", "0 functions named missing"),
    ],
)
def test_a_broken_table_is_refused(table: str, reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        applied(table)


def test_a_stored_or_public_name_is_refused() -> None:
    for frozen in (Frozen(frozenset({"_told"})), Frozen(frozenset({"add_all"}))):
        with pytest.raises(Refused, match="stored, public or a field"):
            applied(". _told add_all", frozen)
    public = Frozen(parameters={"ask": frozenset({"one"})})
    with pytest.raises(Refused, match="a parameter of the public ask"):
        applied("ask one values", public)
    assert set(applied("_told one values", public)) == {PATH}


def test_a_file_that_is_not_there_is_refused() -> None:
    with pytest.raises(Refused, match="no such file"):
        apply([Row("src/house/none.py", ".", "a", "b")], FILES, NONE)


def test_a_table_is_read_with_its_comments() -> None:
    assert read_table("# why\n\na.py f old new  # because\n") == [Row("a.py", "f", "old", "new")]


def test_the_pinned_names_are_frozen() -> None:
    if find_spec("torch") is None:
        missing("torch", "PyTorch is not installed: what is pinned of networks is not known")
    frozen = frozen_names()
    # a field of a stored plan, a class of one, a public function
    assert {"UnitTable", "lower_code", "understand"} & frozen.names
    assert "dataset" in frozen.parameters["understand"]
