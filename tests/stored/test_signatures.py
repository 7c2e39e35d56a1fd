# SPDX-License-Identifier: Apache-2.0
"""Public names keep their parameters: what was called rightly before is called rightly now."""

import pytest

from tests.stored import questions
from tests.stored.signatures import SAME, allows, signatures

NOW = signatures()


def pinned() -> dict[str, list[str]]:
    """The signatures of before."""
    lines = (questions.FOLDER / "signatures.txt").read_text(encoding="utf-8").splitlines()
    return {name: given.split(" | ") if given else [] for name, _, given in divided(lines)}


def divided(lines: list[str]) -> list[tuple[str, str, str]]:
    """The name and the parameters of each line."""
    return [line.partition(":") for line in (line.replace(": ", ":", 1) for line in lines)]


def test_every_public_name_of_before_is_there() -> None:
    assert sorted(set(pinned()) - set(NOW)) == []


# these took anything and refused every call: no call that was right is wrong now
ALWAYS_REFUSED = {"sfumato.learning.Clusters.plot", "sfumato.learning.Components.plot"}


def test_every_public_name_takes_what_it_took_before() -> None:
    before = pinned()
    changed = {
        name for name in before if not allows(parameters(NOW, name), parameters(before, name))
    }
    assert changed == ALWAYS_REFUSED


def parameters(shown: dict[str, list[str]], name: str) -> list[str]:
    """The parameters of a name, or of the one that leads to the same."""
    given = shown[name]
    return shown[given[0].removeprefix(SAME)] if given and given[0].startswith(SAME) else given


def test_a_public_name_that_is_new_is_pinned() -> None:
    assert sorted(set(NOW) - set(pinned())) == []


@pytest.mark.parametrize(
    ("now", "allowed"),
    [
        (["a", "b=1", "*", "c=2"], True),
        (["a", "b=1", "d=3", "*", "c=2"], True),
        (["a", "b=1", "*", "d=3", "c=2"], True),
        (["a", "b=1", "*", "d", "c=2"], False),
        (["a", "b=1", "d", "*", "c=2"], False),
        (["x", "b=1", "*", "c=2"], False),
        (["a", "b=2", "*", "c=2"], False),
        (["b=1", "a", "*", "c=2"], False),
        (["a", "b=1", "*", "other=2"], False),
        (["a", "b=1"], False),
    ],
)
def test_another_parameter_is_noticed(now: list[str], allowed: bool) -> None:
    assert allows(now, ["a", "b=1", "*", "c=2"]) is allowed
