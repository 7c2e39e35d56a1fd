# SPDX-License-Identifier: Apache-2.0
"""Public prototypes of an array column, as codes: vectors that are given, or means."""

from typing import Any

import numpy as np

from sfumato.errors import WrongUse
from sfumato.metadata.column import Array
from sfumato.mining.means import FoundMeans
from sfumato.mining.unit_keys import MOST_VALUES


def codes_of(prototypes: Any, kind: Array) -> tuple[tuple[int, ...], ...]:
    """Returns public prototype arrays as integer codes of an array type, each clipped to its
    declared bounds.

    Raises:
        WrongUse: they are no 1 to 1,000 arrays of finite numbers with the length of ``kind``.

    >>> codes_of([[0, 0.5], [9, 1]], Array(2, 0, 1, step="0.5"))
    ((0, 1), (2, 2))
    """
    given = prototypes
    if isinstance(given, FoundMeans):
        given = [given[label] for label, people in given.counts.items() if people >= 1]
    try:
        vectors = np.array([np.asarray(each, np.float64).reshape(-1) for each in given])
        is_right = vectors.shape[1:] == (kind.length,) and 1 <= len(vectors) <= MOST_VALUES
    except (TypeError, ValueError):
        is_right = False
    if not is_right or not np.isfinite(vectors).all():
        raise WrongUse(
            "prototypes= are no arrays like the column.",
            allowed=f"1 to {MOST_VALUES:,} arrays of {kind.length:,} numbers, or a result of Means",
        )
    codes = np.rint(vectors / float(kind.step)).clip(kind.lower_code, kind.upper_code)
    return tuple(tuple(map(int, each)) for each in codes)
