# SPDX-License-Identifier: Apache-2.0
"""Validates the ``bins`` and ``edges`` of a recipe when the user creates it."""

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction

import numpy as np

from sfumato.errors import WrongUse, shown

MOST_BINS = 10_000
_NUMBERS = (int, float, Fraction, np.integer, np.floating)


def require_binning(
    bins: object,
    edges: object,
) -> None:
    """Raises WrongUse unless ``bins`` is a number of bins and all ``edges`` are numbers.

    Raises:
        WrongUse: what is not allowed.

    >>> require_binning(16, {"age": [18, 65]})
    """
    if type(bins) is not int or not 2 <= bins <= MOST_BINS:
        raise WrongUse(f"bins={shown(bins)}.", allowed="a whole number from 2 to 10,000")
    if not isinstance(edges, Mapping):
        raise WrongUse(f"edges={shown(edges)}.", allowed='{"age": [18, 65]}')
    for name, values in edges.items():
        if not isinstance(values, Iterable) or isinstance(values, str | Mapping):
            raise WrongUse(
                f"edges= of {shown(name)}: {shown(values)}.", allowed='{"age": [18, 65]}'
            )
        for value in values:
            _require_edge(name, value)


def _require_edge(name: object, value: object) -> None:
    """Raises WrongUse unless an edge is a finite number."""
    if isinstance(value, bool) or not isinstance(value, _NUMBERS):
        raise WrongUse(f"The edge {shown(value)} of {shown(name)}.", allowed="numbers")
    if not math.isfinite(value):
        raise WrongUse(f"The edge {shown(value)} of {shown(name)}.", allowed="finite numbers")
