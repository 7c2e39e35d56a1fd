# SPDX-License-Identifier: Apache-2.0
"""Converts the user's weights of columns into weights of pairs of columns."""

from collections.abc import Mapping, Sequence

from sfumato.errors import UnknownName, WrongUse, shown
from sfumato.synthetic.select import MOST_WEIGHT
from sfumato.synthetic.tree import Clique


def weights_of(
    names: Sequence[str],
    workload: Mapping[str, int],
) -> tuple[tuple[Clique, int], ...]:
    """Returns the selection weights of pairs of columns, from a workload that maps column names to
    weights.

    Raises:
        UnknownName: a column that is not among ``names``.
        WrongUse: a weight that is not from 0 to 1,000.

    >>> weights_of(("age", "job", "pay"), {"pay": 10})
    (((0, 2), 10), ((1, 2), 10))
    """
    by_place = {}
    for name, weight in workload.items():
        if type(weight) is not int or not 0 <= weight <= MOST_WEIGHT:
            raise WrongUse(
                f"workload={{{shown(name)}: {shown(weight)}}}.",
                allowed=f"whole numbers from 0 to {MOST_WEIGHT:,}",
            )
        if name not in names:
            raise UnknownName(f"No column {shown(name)}.", allowed=", ".join(names))
        by_place[names.index(name)] = weight
    weights = {}
    for place, weight in by_place.items():
        for other in range(len(names)):
            if other != place:
                pair = (min(place, other), max(place, other))
                weights[pair] = max(weight, by_place.get(other, weight if weight else 1))
    return tuple(sorted(weights.items()))
