# SPDX-License-Identifier: Apache-2.0
"""The canonical JSON of a plan, of which the keys of stored answers are made."""

import json
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import Field, fields, is_dataclass
from enum import Enum
from fractions import Fraction
from functools import cache, lru_cache
from json.encoder import encode_basestring
from typing import Any, cast

from sfumato.metadata.column import Column
from sfumato.plan.owner import Owner
from sfumato.privacy.event import Json


def canonical(node: object) -> Json:
    """Returns a plan as canonical JSON, which is the same for equal plans, in every process.

    Fields that are not compared are left out, among them the names of values, which follow the
    wording of the statement. So a statement that is worded differently gets the stored answer of
    the same plan, with the column titles of the first.

    Guarantees:
        different plans have different forms
        the name of a value is no part of the form

    >>> from sfumato.plan.aggregate import CountRows
    >>> canonical(CountRows())
    {'node': 'CountRows'}
    """
    return cast(Json, json.loads(form(node)))


def form(node: Any, known: Mapping[int, str] | None = None) -> str:
    """Returns the canonical JSON of a plan as a string, with sorted names and no spaces; cache keys
    of answers are made from it.

    The string is built directly, because each question needs it several times for its keys.
    ``known`` has the forms of nodes that several plans share, by their ``id``.

    >>> from sfumato.plan.aggregate import CountRows
    >>> form(CountRows())
    '{"node":"CountRows"}'
    """
    kind = type(node)
    if kind in _LEAVES:
        return _LEAVES[kind](node)
    if known and id(node) in known:
        return known[id(node)]
    if kind is tuple or kind is list:
        return f"[{','.join([form(item, known) for item in node])}]"
    # mypy takes the __hash__ of a class for that of its instances
    members = _members(kind)  # type: ignore[arg-type]
    if members is not None:
        texts = []
        for text, name in members:
            if name:
                part = getattr(node, name)
                # most parts are leaves: the call of form would take longer than theirs
                leaf = _LEAVES.get(type(part))
                text += leaf(part) if leaf else form(part, known)
            texts.append(text)
        return f"{{{','.join(texts)}}}"
    if isinstance(node, Enum):
        return f'{{"enum":"{kind.__name__}","value":{encode_basestring(str(node.value))}}}'
    raise TypeError(f"a plan holds {kind.__name__}, which has no canonical form")


def _object(kind: str, inner: dict[str, str]) -> str:
    inner["node"] = f'"{kind}"'
    members = [f'"{name}":{inner[name]}' for name in sorted(inner)]
    return f"{{{','.join(members)}}}"


@cache
def _members(kind: Hashable) -> tuple[tuple[str, str], ...] | None:
    """The members of the form of a dataclass: the text before each, and the name of its field.

    Compared fields, sorted by name, and the name of the class as ``node``. None for other types.
    """
    if not isinstance(kind, type) or not is_dataclass(kind):
        return None
    members = {
        field.name: (f'"{field.name}":', field.name)
        for field in _asked(kind)
        if field.compare and field.name not in _LATER
    }
    members["node"] = (f'"node":"{kind.__name__}"', "")
    return tuple(members[name] for name in sorted(members))


def _asked(kind: Any) -> Iterator[Field[Any]]:
    """The fields of a dataclass but ``clip``: where a clip is read, an expression states it."""
    for field in fields(kind):
        if field.name != "clip":
            yield field


@lru_cache(maxsize=4096)
def _column(column: Column) -> str:
    """The form of a column; cached, since a type may list thousands of values."""
    kind = column.type
    inner = {}
    for field in _asked(type(kind)):
        value = getattr(kind, field.name)
        if field.name not in _LATER or value is not None:
            inner[field.name] = form(value)
    return _object(
        "Column", {"name": form(column.name), "type": _object(type(kind).__name__, inner)}
    )


def _owner(owner: Owner) -> str:
    """The form of an owner; ``unordered`` is in it only if it is set, since it came later."""
    inner = {}
    for field in _asked(Owner):
        value = getattr(owner, field.name)
        if field.name not in _LATER or value:
            inner[field.name] = form(value)
    return _object(Owner.__name__, inner)


# Fields that column types and owners did not always have: they are in the form of one that declares
# them, and in no other, so the forms of before stay as they were. A value that is computed from the
# column contains it.
_LATER = ("format", "tokens", "unordered")
_LEAVES: Mapping[type, Callable[[Any], str]] = {
    str: encode_basestring,
    int: str,
    bool: json.dumps,
    type(None): json.dumps,
    Column: _column,
    Owner: _owner,
    Fraction: lambda value: f'{{"fraction":"{value}"}}',
}
