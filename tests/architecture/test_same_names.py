# SPDX-License-Identifier: Apache-2.0
"""Proves that a change renames and does nothing else, or says what else it does."""

import re

import pytest

from tools.same_names import Different, Frozen, compare, problems

SOURCE = '''
from m import b, a
import json
LIMIT = 3
class Size:
    width: int = 0
    def area(self, one):
        """One."""
        return self._scaled(one) + self.width
    def _scaled(self, one):
        return [one * other for other in range(LIMIT)], b, a
def outer(found, *, kept=1, **rest):
    def inner():
        return found, kept
    text = f"{found=}"
    match rest:
        case {"kept": held}:
            return held
    try:
        return inner, text, Size(width=kept)
    except ValueError as problem:
        raise KeyError("_scaled is found") from problem
'''


def check(*replaced: tuple[str, str], frozen: Frozen | None = None) -> list[str]:
    new = SOURCE
    for old, other in replaced:
        assert old in new
        new = new.replace(old, other)
    return problems({"a.py": (SOURCE, new)}, frozen or Frozen())


@pytest.mark.parametrize(
    "replaced",
    [
        [("found", "values")],
        [("_scaled", "_scale")],
        [("problem", "error")],
        [("held", "number")],
        [("One.", "Another docstring."), ("LIMIT = 3", "LIMIT = 3  # why")],
        # imports are sorted anew
        [("import b, a", "import c, a"), (", b, a", ", c, a")],
        # two names change places in a scope of their own
        [
            ("one * other for other", "other * one for one"),
            ("_scaled(self, one)", "_scaled(self, other)"),
        ],
    ],
)
def test_renames_are_proved(replaced: list[tuple[str, str]]) -> None:
    problem = replaced == [("import b, a", "import c, a"), (", b, a", ", c, a")]
    # an imported name is to be renamed where it is defined
    assert check(*replaced) == (["a.py: b -> c is defined in no changed file"] if problem else [])


@pytest.mark.parametrize(
    ("replaced", "reason"),
    [
        ([("LIMIT = 3", "LIMIT = 4")], "syntax trees differ"),
        ([("self.width", "self.real")], "not one to one"),
        ([("KeyError", "ValueError")], "not one to one"),
        ([("width", "height")], "stored, public or a field"),
        ([("return found, kept", "return kept, kept")], "another scope"),
        ([("return found, kept", "return kept, found")], "another scope"),
        ([("found, kept", "found, LIMIT")], "another scope"),
        ([("def inner", "def range")], "another scope|not one to one|other instructions"),
        ([("return held", "return rest")], "not one to one"),
        ([("is found", "is lost")], "became"),
        ([("width=kept", "height=kept")], "became"),
        ([("+ self", "- self")], "differ"),
        ([("import json", "import math")], "imports differ"),
        ([("ValueError", "TypeError")], "is defined in no changed file"),
    ],
)
def test_another_change_is_refused(replaced: list[tuple[str, str]], reason: str) -> None:
    (problem, *_) = check(*replaced) or [""]
    assert re.search(reason, problem), problem


def test_a_public_parameter_is_refused() -> None:
    frozen = Frozen(parameters={"outer": frozenset({"found"})})
    assert check(("found", "values"), frozen=frozen) == [
        "a.py: found is a parameter of the public outer"
    ]
    assert check(("held", "number"), frozen=frozen) == []


def test_a_variable_that_captures_another_is_refused() -> None:
    text = "def f(a):\n    def g(b):\n        return a\n    return g\n"
    with pytest.raises(Different):
        compare(text, text.replace("g(b)", "g(a)"))
    compare(text, text.replace("g(b)", "g(c)"))
