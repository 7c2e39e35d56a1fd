# SPDX-License-Identifier: Apache-2.0
"""An expression for the index of a string among released strings, computed by the engine."""

from collections.abc import Sequence

from sfumato.metadata.column import Column
from sfumato.plan.scalar import Case, Compare, Comparison, Constant, Field, IsNull, Scalar

# So many strings are compared one by one.
_FEW = 8


def place_of(
    text: Column,
    keys: Sequence[str],
) -> Scalar:
    """Returns an SQL plan expression for the index of a row's string among the ascending ``keys``.

    Another string gives the number of keys, NULL a missing value. It is a binary search, so a row
    is compared with few keys.
    """
    field = Field(text)
    place = _search_keys(field, keys, 0, len(keys))
    return Case(((IsNull(field), Constant(None)),), place)


def _search_keys(
    field: Field,
    keys: Sequence[str],
    first: int,
    end: int,
) -> Scalar:
    """Returns the expression for the index of a string among the keys from ``first`` to ``end``."""
    if end - first <= _FEW:
        branches: list[tuple[Scalar, Scalar]] = []
        for place in range(first, end):
            same = Compare(Comparison.EQ, field, Constant(keys[place]))
            branches.append((same, Constant(place)))
        return Case(tuple(branches), Constant(len(keys))) if branches else Constant(len(keys))
    middle = (first + end) // 2
    below = Compare(Comparison.LT, field, Constant(keys[middle]))
    return Case(
        ((below, _search_keys(field, keys, first, middle)),), _search_keys(field, keys, middle, end)
    )
