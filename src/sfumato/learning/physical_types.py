# SPDX-License-Identifier: Apache-2.0
"""Checks the physical type of a column of an array or a frame: public, whatever its values.

``declared_rows`` refuses types that can hold no declared value.
"""

from collections.abc import Collection
from typing import Any

import pyarrow as pa

from sfumato.errors import WrongUse, shown
from sfumato.metadata.physical_words import can_hold_word

_NAMES = {"boolean": "truth values", "whole": "whole numbers"}
_TRUTHS = ("False", "True")


def family_of(values: Any) -> str:
    """Returns the family of the physical type of an array of values: ``boolean``, ``whole``
    (integers), or empty for any other.

    A list, and an array of objects, have no physical type: each value is converted by itself.

    >>> import numpy as np
    >>> family_of(np.array([True])), family_of(np.array([1])), family_of(np.array([1.0]))
    ('boolean', 'whole', '')
    >>> family_of([True]), family_of(pa.array([None], pa.int8()))
    ('', 'whole')
    """
    arrow = getattr(values, "type", None)
    if isinstance(arrow, pa.DataType):
        if pa.types.is_boolean(arrow):
            return "boolean"
        return "whole" if pa.types.is_integer(arrow) else ""
    dtype = getattr(values, "dtype", None)
    # of numpy and pandas a letter; of polars a method
    kind = getattr(dtype, "kind", None)
    if kind == "b" or (kind is None and str(dtype) == "Boolean"):
        return "boolean"
    is_integer = getattr(dtype, "is_integer", None)
    if kind in ("i", "u") or (kind is None and is_integer is not None and is_integer()):
        return "whole"
    return ""


def require_word(name: str, words: Collection[str], values: Any) -> None:
    """Raises WrongUse if values of this physical type can never be one of the declared strings.

    The decision is by type only, never by values.

    Raises:
        WrongUse: truth values or whole numbers under other words.

    >>> import numpy as np
    >>> require_word("smoker", ["no", "yes"], np.array([True]))
    Traceback (most recent call last):
    sfumato.errors.WrongUse: 'smoker' has truth values, and none of its declared values is one.
    """
    family = family_of(values)
    # Python writes truth values with a capital
    written = [*words, *(word.lower() for word in words if word in _TRUTHS)]
    if not can_hold_word(written, family):
        raise WrongUse(
            f"{shown(name)} has {_NAMES[family]}, and none of its declared values is one.",
            allowed=", ".join(words),
            remedy="Declare sf.Boolean() for truth values; for numbers the numbers themselves, "
            "which may have labels.",
        )
