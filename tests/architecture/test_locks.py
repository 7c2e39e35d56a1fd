# SPDX-License-Identifier: Apache-2.0
"""A lock is taken itself, never through a condition or a semaphore.

Ctrl-C within their methods, which are Python, leaves the lock taken.
"""

import re

import pytest

from tests.architecture.structure import ROOT

_CONDITION = re.compile(r"(\w+) = threading\.Condition\(([^)]*)\)")


def misused(text: str) -> list[str]:
    """The conditions of a module that make their own lock or are entered, and its semaphores."""
    found = [(name, lock, rf"with (self\.)?{name}\b") for name, lock in _CONDITION.findall(text)]
    semaphores = re.findall(r"threading\.(?:Bounded)?Semaphore\b", text)
    return [
        name for name, lock, entered in found if not lock or re.search(entered, text)
    ] + semaphores


def test_no_condition_is_entered_and_there_is_no_semaphore() -> None:
    found = {path.name: misused(path.read_text()) for path in (ROOT / "src").rglob("*.py")}
    assert {name: names for name, names in found.items() if names} == {}


@pytest.mark.parametrize(
    "text",
    [
        "self._changed = threading.Condition()",
        "c = threading.Condition(lock)\nwith c:\n    pass",
        "self._turns = threading.Semaphore(size)",
    ],
)
def test_a_condition_that_is_entered_or_a_semaphore_is_noticed(text: str) -> None:
    assert misused(text)
