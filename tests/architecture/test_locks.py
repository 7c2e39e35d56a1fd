# SPDX-License-Identifier: Apache-2.0
"""A lock is taken itself, never through a condition: Ctrl-C within its ``__enter__``, which is Python, leaves it taken."""

import re

import pytest

from tests.architecture.structure import ROOT

_CONDITION = re.compile(r"(\w+) = threading\.Condition\(([^)]*)\)")


def misused(text: str) -> list[str]:
    """The conditions of a module that make their own lock, or are entered."""
    found = [(name, lock, rf"with (self\.)?{name}\b") for name, lock in _CONDITION.findall(text)]
    return [name for name, lock, entered in found if not lock or re.search(entered, text)]


def test_no_condition_is_entered() -> None:
    found = {path.name: misused(path.read_text()) for path in (ROOT / "src").rglob("*.py")}
    assert {name: names for name, names in found.items() if names} == {}


@pytest.mark.parametrize(
    "text", ["self._changed = threading.Condition()", "c = threading.Condition(lock)\nwith c:\n    pass"]
)
def test_a_condition_that_is_entered_is_noticed(text: str) -> None:
    assert misused(text)
