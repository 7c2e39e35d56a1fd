# SPDX-License-Identifier: Apache-2.0
"""Maps outputs to hashable keys, equal if an observer cannot distinguish the outputs.

``explore`` and ``region`` compare outputs by these keys.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from sfumato.errors import InvalidDeclaration

Key: TypeAlias = Hashable


@dataclass(frozen=True, slots=True)
class Raised:
    """The outcome of a run in which a mechanism raised an exception of this type; observers see it
    too.

    >>> Raised("ValueError") == Raised("ValueError")
    True
    """

    kind: str


def key_of(output: object) -> Key:
    """Returns a hashable key for an output; two outputs have equal keys iff an observer cannot
    distinguish them.

    Numbers of different types differ, sequences and mappings are compared in order, and NaN equals
    itself.

    Raises:
        InvalidDeclaration: a type whose values are equal only to themselves, or never.

    >>> key_of([1, 2]) == key_of([1, 2])
    True
    >>> key_of(1) == key_of(True), key_of({"a": 1}) == key_of({"b": 1})
    (False, False)
    """
    kind = type(output)
    special = _SPECIAL.get(kind)
    if special is not None:
        return special(output)
    if isinstance(output, np.ndarray):
        return (kind, str(output.dtype), output.shape, tuple(map(key_of, output.ravel().tolist())))
    if isinstance(output, np.generic):
        return (kind, key_of(output.item()))
    if isinstance(output, Mapping):
        return (kind, tuple((key_of(name), key_of(value)) for name, value in output.items()))
    if isinstance(output, Set):
        return (kind, frozenset(map(key_of, output)))
    if isinstance(output, Sequence):
        return (kind, tuple(map(key_of, output)))
    return _other(output)


def _other(output: object) -> Key:
    """The value of another type, if it is compared by value."""
    kind = type(output)
    if kind.__eq__ is object.__eq__ or kind.__hash__ is None:
        raise InvalidDeclaration(
            f"Outputs of type {kind.__name__}, which cannot be counted.",
            allowed="numbers, text, bytes, None, arrays, sequences, mappings, sets, and frozen "
            "dataclasses of these",
            remedy="Give a function that turns the output into one of these: lambda data: "
            "list(mechanism(data)).",
        )
    try:
        hash(output)
    except TypeError:
        raise InvalidDeclaration(
            f"Outputs of type {kind.__name__} with parts that cannot be counted.",
            allowed="parts that are hashable",
        ) from None
    return (kind, output)


def _itself(value: Hashable) -> Key:
    return value


# floats by their hexadecimal form: 0.0 and -0.0 differ, and NaN equals itself
_SPECIAL: dict[type, Callable[[Any], Key]] = {
    int: _itself,
    str: _itself,
    bytes: _itself,
    type(None): _itself,
    bool: lambda value: (bool, value),
    float: lambda value: (float, value.hex()),
    tuple: lambda values: (tuple, tuple(map(key_of, values))),
    list: lambda values: (list, tuple(map(key_of, values))),
}
