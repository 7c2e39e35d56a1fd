# SPDX-License-Identifier: Apache-2.0
"""Reads and writes model files: JSON with a kind, and no code. Any other content is refused.

Readers raise ValueError for a wrong value; ``load`` turns it into WrongUse.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy.event import Json
from sfumato.query.cost import Cost

FORMAT = 1
# Codes are below the first, and numbers that a model adds up below the second.
_CODES, _LARGEST = 2**53, 1e100


def write(path: str | Path, kind: str, fields: Mapping[str, Json]) -> None:
    """Writes the fields of a model to a JSON file; ``kind`` says which class of model they
    describe.
    """
    stored = {"format": FORMAT, "kind": kind, **fields}
    Path(path).write_text(json.dumps(stored, indent=1), encoding="utf-8")


def read_cost(form: Mapping[str, Any]) -> Cost:
    """Returns the privacy cost that is stored in a model file, given its JSON.

    Raises:
        ValueError: the JSON is not a cost.
    """
    items = tuple(form["items"])
    for item in items:
        if not isinstance(item, dict):
            raise ValueError("no item")
        texts([*item.keys(), *item.values()])
    epsilon, rho, delta = texts([form["epsilon"], form["rho"], form["delta"]])
    found = Cost(epsilon, rho, delta, items)
    # numbers that cannot be shown are none
    str(found)
    return found


def texts(values: Sequence[Any]) -> tuple[str, ...]:
    """Returns the values of a model file as a tuple of strings; raises ValueError if one is no
    string.

    Raises:
        ValueError: a value is not a string.

    >>> texts(["no", "yes"])
    ('no', 'yes')
    """
    found = tuple(values)
    if isinstance(values, str) or not all(type(value) is str for value in found):
        raise ValueError("not a list of strings")
    return found


def text(value: Any) -> str:
    """Returns a value that is a string; raises ValueError otherwise."""
    (found,) = texts([value])
    return found


def whole(
    value: Any,
    least: int = -_CODES,
    most: int = _CODES,
) -> int:
    """Checks that a value of a model file is an integer within bounds, and returns it.

    Raises:
        ValueError: the value is not an integer, or out of bounds.

    >>> whole(3, 0, 9)
    3
    """
    if type(value) is not int or not least <= value <= most:
        raise ValueError("not such a whole number")
    return value


def wholes(values: Sequence[Any]) -> tuple[int, ...]:
    """Returns values as a tuple of whole numbers; raises ValueError otherwise."""
    return tuple(whole(value) for value in values)


def numbers(
    values: Any,
    *shape: int | None,
) -> NDArray[np.float64]:
    """Returns the values of a model file as an array of floats of a given shape; raises ValueError
    if they are not.

    ``shape`` has the length of each axis; None stands for any length.

    Raises:
        ValueError: another shape, or what is no number.

    >>> numbers([[1, 2.5]], None, 2).tolist()
    [[1.0, 2.5]]
    """
    array = np.array(values)
    if array.dtype.kind not in "if" or not (np.abs(array) < _LARGEST).all():
        raise ValueError("not finite numbers")
    if array.ndim != len(shape):
        raise ValueError("an array of other dimensions")
    for length, wanted in zip(array.shape, shape, strict=True):
        if wanted is not None and length != wanted:
            raise ValueError("an array of another shape")
    return array.astype(np.float64)
