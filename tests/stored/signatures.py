# SPDX-License-Identifier: Apache-2.0
"""The signatures of all public names: the parameters of functions, of classes and their methods."""

import importlib
import inspect
import re
from collections.abc import Iterator, Sequence
from typing import Any

from tests.architecture.structure import SOURCE

# Where an object is in memory, as its text says.
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_ALONE = "*"
# Before the name that leads to the same.
SAME = "same as "


def signatures() -> dict[str, list[str]]:
    """The parameters of each public name, without their types; ``*`` begins those with a keyword.

    A name that leads to what an earlier one leads to has that one, behind ``SAME``.
    """
    found: dict[str, list[str]] = {}
    first: dict[int, str] = {}
    for path in sorted(SOURCE.rglob("__init__.py")):
        place = ".".join(path.parent.relative_to(SOURCE.parent).parts)
        module = importlib.import_module(place)
        for name in sorted(getattr(module, "__all__", ())):
            value = getattr(module, name)
            full = f"{place}.{name}"
            if callable(value) and id(value) in first:
                found[full] = [f"{SAME}{first[id(value)]}"]
                continue
            first[id(value)] = full
            found |= dict(_called(full, value))
    return found


def _called(name: str, value: Any) -> Iterator[tuple[str, list[str]]]:
    """A name with its parameters; of a class also its public methods, properties and fields."""
    yield name, _parameters(value) if callable(value) else []
    if not isinstance(value, type):
        return
    for member in sorted({each for owner in _own(value) for each in vars(owner)}):
        method = inspect.getattr_static(value, member)
        if not member.startswith("_"):
            own = getattr(method, "__func__", method)
            yield f"{name}.{member}", _parameters(own) if inspect.isfunction(own) else []


def _own(kind: type) -> list[type]:
    """The classes of this package from which a class derives, itself among them."""
    return [owner for owner in kind.__mro__ if owner.__module__.startswith("sfumato")]


def _parameters(value: Any) -> list[str]:
    """The parameters of what is called; none, if it has no signature."""
    try:
        parameters = list(inspect.signature(value).parameters.values())
    except (ValueError, TypeError):
        return []
    shown: list[str] = []
    for each in parameters:
        if each.kind is each.KEYWORD_ONLY and _ALONE not in shown:
            shown.append(_ALONE)
        mark = {each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}.get(each.kind, "")
        default = "" if each.default is each.empty else f"={_ADDRESS.sub('', repr(each.default))}"
        shown.append(f"{mark}{each.name}{default}")
    return shown


def lines() -> list[str]:
    """A line for each public name, as it is pinned."""
    return [f"{name}: {' | '.join(given)}" for name, given in signatures().items()]


def allows(now: Sequence[str], before: Sequence[str]) -> bool:
    """Whether all calls that were right before are right now: only what has a default is new."""
    own, own_named = _divided(now)
    old, old_named = _divided(before)
    new = [*own[len(old) :], *(each for each in own_named if each not in old_named)]
    is_kept = own[: len(old)] == old and set(old_named) <= set(own_named)
    return is_kept and all("=" in each or each.startswith("*") for each in new)


def _divided(shown: Sequence[str]) -> tuple[list[str], list[str]]:
    """The parameters by place, and those by keyword alone."""
    at = shown.index(_ALONE) if _ALONE in shown else len(shown)
    return list(shown[:at]), list(shown[at + 1 :])


if __name__ == "__main__":
    print("\n".join(lines()))
