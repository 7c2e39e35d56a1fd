# SPDX-License-Identifier: Apache-2.0
"""The names of Python that are in stored bytes, computed from the pinned texts.

``pinned_names`` lists them for whoever renames: a name in it stays, or is stored by a literal.
``renamed`` renames one in memory.
"""

import copy
import json
import sys
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any
from unittest.mock import patch

from sfumato.metadata.column import Column
from sfumato.plan import show
from sfumato.privacy.event import serialization
from tests.stored import parts, questions

# ``show`` writes these by literals.
_LITERAL = (Column,)
_NO_FIELD = ""
_CLASS, _FIELD, _VALUE, _MEMBER = "class", "field", "value", "member"


@dataclass(frozen=True)
class Name:
    """A name that is stored: a class, one of its fields, or the value or name of a member.

    ``text`` is the first word of the texts that have it; "" for forms of questions and nodes.
    """

    kind: str
    owner: Any
    name: str
    text: str = ""

    def __str__(self) -> str:
        own = "" if self.kind == _CLASS else f".{self.name}"
        where = f" ({self.text})" if self.text else ""
        return f"{self.owner.__module__}.{self.owner.__qualname__}{own}{where}"


@cache
def pinned_names() -> tuple[Name, ...]:
    """All that is pinned, in the order of modules and classes."""
    named = [*_in_forms(), *_in_other_texts()]
    return tuple(sorted(named, key=lambda name: (str(name), name.kind)))


def places_of(name: Name, texts: Iterable[str]) -> list[str]:
    """The names of the texts in which a name is, the shortest text of forms first."""
    if name.text:
        return [place for place in texts if place.split()[0] == name.text]
    members = _found()[name.owner]
    if name.kind == _CLASS:
        return next(iter(members.values()))
    value = str(name.owner[name.name].value) if name.kind == _VALUE else name.name
    return members[value]


def _in_forms() -> Iterator[Name]:
    """The names in forms."""
    for kind, members in _found().items():
        if kind not in _LITERAL:
            yield Name(_CLASS, kind, kind.__name__)
        for member in sorted(members):
            if isinstance(kind, type) and issubclass(kind, Enum):
                yield Name(_VALUE, kind, kind(_typed(kind, member)).name)
            elif kind not in _LITERAL and member != _NO_FIELD:
                yield Name(_FIELD, kind, member)


def _in_other_texts() -> Iterator[Name]:
    """The names in what is stored beside forms."""
    for text, (classes, owners) in parts.OWN.items():
        for kind in classes:
            yield Name(_CLASS, kind, kind.__name__, text)
        for kind in owners:
            for member in parts.stored_fields(kind):
                yield Name(_FIELD, kind, member, text)
    for text, members in parts.BY_NAME.items():
        for each in members:
            yield Name(_MEMBER, type(each), each.name, text)


@cache
def _found() -> dict[Any, dict[str, list[str]]]:
    """The classes in pinned forms: for each field, and each value of an enum, where it is."""
    found: dict[Any, dict[str, list[str]]] = {}
    for place, text in sorted(forms().items(), key=lambda item: len(item[1])):
        for node in _nodes(text):
            members = set(node) - {"node"}
            if "node" in node:
                kind = _class(node["node"], frozenset(members))
            elif members == {"enum", "value"}:
                kind, members = _enum(node["enum"], node["value"]), {node["value"]}
            else:
                continue
            # a class without fields has its own name alone
            for member in members or {_NO_FIELD}:
                own = found.setdefault(kind, {}).setdefault(member, [])
                if place not in own[-1:]:
                    own.append(place)
    return found


def forms() -> dict[str, str]:
    """The pinned texts in which forms are, by the name of the question and of the text."""
    texts = {}
    for dataset in questions.QUESTIONS:
        for question, stored in parts.read(f"forms/{dataset}.json").items():
            for place, text in stored["texts"].items():
                if not place.startswith("event"):
                    texts[f"{question}: {place}"] = text
    return texts | {
        place: text for place, text in parts.pinned().items() if place.startswith("form ")
    }


def _nodes(text: str) -> Iterator[dict[str, Any]]:
    """The objects of the JSON in a text; a string of it may hold JSON too."""
    decoder, start = json.JSONDecoder(), 0
    while 0 <= start < len(text):
        begins = [place for sign in "{[" if (place := text.find(sign, start)) >= 0]
        if not begins:
            return
        try:
            value, start = decoder.raw_decode(text, min(begins))
        except ValueError:
            start = min(begins) + 1
            continue
        yield from _objects(value)


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    """The objects of a value of JSON."""
    if isinstance(value, str) and '"node"' in value:
        yield from _nodes(value)
    elif isinstance(value, dict):
        yield value
        for each in value.values():
            yield from _objects(each)
    elif isinstance(value, list):
        for each in value:
            yield from _objects(each)


@cache
def _class(name: str, members: frozenset[str]) -> Any:
    """The class of this name that has these compared fields."""
    later = set(show._LATER)
    chosen = [kind for kind in _classes(name) if compared(kind) - later == members - later]
    assert chosen, f"a stored form has {name} of {', '.join(sorted(members))}, and no class is it"
    assert len(chosen) == 1, f"several classes are {name} in stored forms: {chosen}"
    return chosen[0]


@cache
def _enum(name: str, value: str) -> Any:
    """The enum of this name that has a member of this value."""
    enums = [kind for kind in _classes(name) if issubclass(kind, Enum)]
    (kind,) = (kind for kind in enums if value in {str(member.value) for member in kind})
    return kind


def _typed(kind: Any, value: str) -> Any:
    """The value of a member whose text is stored."""
    return next(member.value for member in kind if str(member.value) == value)


def compared(kind: Any) -> set[str]:
    """The fields of a class that are in its form; none if it has no form."""
    if not is_dataclass(kind):
        return set()
    return {field.name for field in fields(kind) if field.compare and field.name != "clip"}


@cache
def _by_name() -> dict[str, list[Any]]:
    """The classes of the package by their names, but for the trees of SQL, which have no form."""
    kinds: dict[str, dict[int, Any]] = {}
    for name, module in list(sys.modules.items()):
        if name.startswith("sfumato") and not name.startswith("sfumato.engines"):
            for kind in list(vars(module).values()):
                if isinstance(kind, type) and kind.__module__ == name:
                    kinds.setdefault(kind.__name__, {})[id(kind)] = kind
    return {name: list(each.values()) for name, each in kinds.items()}


def _classes(name: str) -> list[Any]:
    return _by_name().get(name, [])


def reachable(start: Iterable[Any]) -> set[Any]:
    """The classes that may be in a field of these, or of those, as their annotations say."""
    seen: set[Any] = set()
    left = list(start)
    while left:
        kind = left.pop()
        if kind in seen or not kind.__module__.startswith("sfumato"):
            continue
        seen.add(kind)
        if not issubclass(kind, Enum):
            left += _derived(kind)
        if is_dataclass(kind):
            hints = typing.get_type_hints(kind)
            for name in compared(kind):
                left += _atoms(hints[name])
    return {kind for kind in seen if issubclass(kind, Enum) or is_dataclass(kind)}


def _derived(kind: Any) -> list[Any]:
    """The classes of the package that derive from one, or keep to it, if it is a protocol."""
    every = [each for kinds in _by_name().values() for each in kinds if each is not kind]
    if not getattr(kind, "_is_protocol", False):
        return [each for each in every if kind in each.__mro__]
    own = {*vars(kind), *vars(kind).get("__annotations__", {})}
    members = {name for name in own if not name.startswith("_")}
    return [
        each
        for each in every
        if is_dataclass(each) and members <= {*dir(each), *(f.name for f in fields(each))}
    ]


def _atoms(hint: Any) -> Iterator[Any]:
    """The classes in an annotation."""
    if isinstance(hint, typing.TypeVar):
        for part in (hint.__bound__, *hint.__constraints__):
            yield from _atoms(part)
    if isinstance(hint, type) and not typing.get_args(hint):
        yield hint
    for part in typing.get_args(hint):
        yield from _atoms(part)


@contextmanager
def renamed(name: Name) -> Iterator[None]:
    """Everything reads the object under another name, as if the sources had been renamed."""
    with ExitStack() as block:
        block.callback(_forget, name)
        _RENAMED[name.kind](block, name)
        _forget(name)
        yield


def _rename_class(block: ExitStack, name: Name) -> None:
    block.enter_context(_set(name.owner, "__name__", f"{name.name}Renamed"))
    block.enter_context(_set(name.owner, "__qualname__", f"{name.name}Renamed"))


def _rename_field(block: ExitStack, name: Name) -> None:
    kind, new = name.owner, f"{name.name}_renamed"
    if not is_dataclass(kind):
        own = tuple(new if each == name.name else each for each in kind._fields)
        block.enter_context(_set(kind, "_fields", own))
        return
    declared = {}
    for each in kind.__dataclass_fields__.values():
        field = copy.copy(each)
        if field.name == name.name:
            field.name = new
        declared[field.name] = field
    block.enter_context(_set(kind, "__dataclass_fields__", declared))
    block.enter_context(
        patch.object(kind, new, property(lambda self: getattr(self, name.name)), create=True)
    )
    # a field may be annotated in a class above
    hint = typing.get_type_hints(kind).get(name.name)
    annotations = vars(kind).get("__annotations__", {}) | {new: hint}
    block.enter_context(_set(kind, "__annotations__", annotations))


def _rename_value(block: ExitStack, name: Name) -> None:
    block.enter_context(_set(name.owner[name.name], "_value_", "renamed"))


def _rename_member(block: ExitStack, name: Name) -> None:
    block.enter_context(_set(name.owner[name.name], "_name_", "RENAMED"))


_RENAMED: Mapping[str, Callable[[ExitStack, Name], None]] = {
    _CLASS: _rename_class,
    _FIELD: _rename_field,
    _VALUE: _rename_value,
    _MEMBER: _rename_member,
}


@contextmanager
def _set(owner: Any, name: str, value: Any) -> Iterator[None]:
    """An attribute has another value in the block."""
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


def _forget(name: Name) -> None:
    """What was computed of the names before is computed anew."""
    show._members.cache_clear()
    show._column.cache_clear()
    for known in (serialization._KINDS, serialization._DESIGNS):
        for kind, (make, _) in known.items():
            if make is name.owner:
                known[kind] = (make, serialization._fields(make))


if __name__ == "__main__":
    for each in pinned_names():
        print(each)
