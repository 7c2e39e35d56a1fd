# SPDX-License-Identifier: Apache-2.0
"""Copies frozen values that an analyst's code passes in (plans, events, statistics) to trusted
ones.

Privacy is proved for what such a value states; afterwards the session compares, prices and runs it.
An object of a class that the analyst wrote could override ``==`` or its fields and be priced as one
thing and run as another. A copy contains exact built-in types and classes defined in sfumato only,
so it can not. Proof: values.proof.md.
"""

import sys
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from enum import Enum
from fractions import Fraction
from functools import cache
from inspect import signature
from itertools import chain
from types import NoneType
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np

from sfumato.errors import InvalidDeclaration

T = TypeVar("T")
# The copies made so far, by the id of the original.
Known: TypeAlias = dict[int, Any]
_Copier: TypeAlias = Callable[[Any, Known], object]

# The ids of types whose values are used as they are. Types are compared by identity, since a
# metaclass could override their equality.
_PLAIN = frozenset(map(id, (int, bool, float, str, bytes, NoneType)))
# What copies the values of a class, by the id of the class; the class is kept so that its id is.
_COPIERS: dict[int, tuple[type, _Copier]] = {}


def copied(value: T, known: Known | None = None) -> T:
    """Returns a copy of a frozen value that contains built-in types and classes of sfumato only.

    A dataclass is built anew by its constructor, which checks its fields. Arrays, objects of
    sfumato that are no dataclass, and fields that are not compared (such as a network) are not
    copied.

    Guarantees:
        every part of a copy has exactly its type

    Raises:
        InvalidDeclaration: a part has another type, or its class refuses it.

    >>> copied((Fraction(1, 2), ("x", 1)))
    (Fraction(1, 2), ('x', 1))
    >>> class Code(int): ...
    >>> copied((Code(1),))
    Traceback (most recent call last):
    ...
    sfumato.errors.InvalidDeclaration: A value of type Code...
    """
    made: T = _copied(value, {} if known is None else known)
    return made


def is_same(value: object, own: object) -> bool:
    """Whether ``value`` equals ``own`` (a result of ``copied``), with the same type in every part.

    Objects that ``copied`` passes on uncopied (enumeration members, arrays, objects that are no
    dataclass) are the same only if they are identical.

    Guarantees:
        what is the same has the same types

    >>> is_same((1, "a"), (1, "a")), is_same((True, "a"), (1, "a"))
    (True, False)
    """
    kind = type(own)
    if type(value) is not kind:
        return False
    if id(kind) in _PLAIN:
        return value == own
    if isinstance(own, Fraction):
        return is_same(cast(Fraction, value).as_integer_ratio(), own.as_integer_ratio())
    if isinstance(own, tuple):
        parts = cast(tuple[object, ...], value)
        kinds = list(map(id, map(type, parts)))
        if _PLAIN.issuperset(kinds):
            return kinds == list(map(id, map(type, own))) and parts == own
        return len(parts) == len(own) and all(map(is_same, parts, own))
    if isinstance(own, Enum) or not is_dataclass(own):
        return value is own
    # mypy takes the __hash__ of a class for that of its instances
    names = _compared(kind)  # type: ignore[arg-type]
    return all(is_same(getattr(value, name), getattr(own, name)) for name in names)


@cache
def _compared(kind: Any) -> tuple[str, ...]:
    """The names of the fields of a dataclass that are compared."""
    return tuple(field.name for field in fields(kind) if field.compare)


def is_ours(kind: type) -> bool:
    """Whether a class is defined in sfumato: the module that it names has it under its name.

    >>> is_ours(Fraction), is_ours(type("Fraction", (), {"__module__": "sfumato.exact.values"}))
    (False, False)
    """
    module, name = kind.__module__, kind.__qualname__
    if type(module) is not str or type(name) is not str or not module.startswith("sfumato."):
        return False
    loaded = sys.modules.get(module)
    return loaded is not None and vars(loaded).get(name) is kind


def _copied(value: Any, known: Known) -> Any:
    """The copy of a value; that of a dataclass is made once."""
    kind = type(value)
    if id(kind) in _PLAIN:
        return value
    if kind is tuple:
        return _tuple(value, known)
    if id(value) in known:
        return known[id(value)]
    entry = _COPIERS.get(id(kind))
    if entry is None or entry[0] is not kind:
        entry = _COPIERS[id(kind)] = (kind, _copier(kind))
    copy = known[id(value)] = entry[1](value, known)
    return copy


def _tuple(value: tuple[Any, ...], known: Known) -> tuple[Any, ...]:
    """The copy of a tuple; the tuple itself, if nothing in it or in its tuples can be changed."""
    kinds = set(map(id, map(type, value)))
    if kinds == {id(tuple)}:
        kinds = set(map(id, map(type, chain.from_iterable(value))))
    if kinds <= _PLAIN:
        return value
    return tuple([_copied(part, known) for part in value])


def _copier(kind: type) -> _Copier:
    """Returns the function that copies values of a class; built-in plain values and tuples need
    none.

    Objects of sfumato that are no dataclass are passed on uncopied: their methods are ours.

    Raises:
        InvalidDeclaration: the class is not defined in sfumato.
    """
    if kind is Fraction:
        return _fraction
    if kind is np.ndarray:
        return _array
    if not is_ours(kind):
        raise InvalidDeclaration(
            f"A value of type {kind.__name__}.",
            allowed="frozen values of sfumato, tuples, strings and numbers, of no subclass",
        )
    if issubclass(kind, Enum):
        return _member(kind)
    if not is_dataclass(kind):
        return lambda value, known: value
    return _dataclass(kind)


def _fraction(value: Fraction, known: Known) -> Fraction:
    """The copy of a fraction of exact integers."""
    return Fraction(*_tuple(value.as_integer_ratio(), known))


def _array(value: np.ndarray[Any, Any], known: Known) -> np.ndarray[Any, Any]:
    """An array of numbers itself."""
    if value.dtype.hasobject:
        raise InvalidDeclaration("An array of objects.", allowed="arrays of numbers")
    return value


def _member(kind: type[Enum]) -> _Copier:
    """Returns the function that passes on members of an enumeration, and refuses forged ones."""
    members = frozenset(map(id, kind))

    def member(value: Enum, known: Known) -> Enum:
        if id(value) not in members:
            raise InvalidDeclaration(f"No member of {kind.__name__}.")
        return value

    return member


def _dataclass(kind: Any) -> _Copier:
    """Returns the function that copies a dataclass by its constructor, if it takes all fields."""
    taken = signature(kind).parameters
    compared = _compared(kind)
    is_made = set(compared) <= set(taken)
    names = [
        (each.name, each.compare) for each in fields(kind) if each.name in taken or not is_made
    ]

    def copy(value: Any, known: Known) -> Any:
        parts = {}
        for name, is_compared in names:
            part = getattr(value, name)
            # most parts are plain: the call would take longer than the check
            if is_compared and id(type(part)) not in _PLAIN:
                part = _copied(part, known)
            parts[name] = part
        if is_made:
            try:
                return kind(**parts)
            except (TypeError, ValueError) as failure:
                raise InvalidDeclaration(f"A {kind.__name__} that is none.") from failure
        made = object.__new__(kind)
        for name, part in parts.items():
            object.__setattr__(made, name, part)
        return made

    return copy
