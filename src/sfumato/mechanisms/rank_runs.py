# SPDX-License-Identifier: Apache-2.0
"""Groups the points of a range into runs of equal rank error, for the exponential mechanism.

``quantile`` and ``grid`` draw from the runs. Proof: rank_runs.proof.md.
"""

from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.noise import Entropy
from sfumato.noise.entropy import below
from sfumato.noise.select import exponential

# Python integers where a product could exceed 64 bits, else int64.
Whole: TypeAlias = NDArray[Any]
# Of each run: its first point, its number of points, and their rank error times q's denominator.
Runs: TypeAlias = tuple[Whole, Whole, Whole]

_ADDABLE = 2**61


def rank_runs(
    values: Whole,
    weights: Whole,
    ends: tuple[int, int],
    q: Fraction,
    shift: int = 0,
) -> Runs:
    """Returns all points between ``ends`` (included) as runs of neighbouring points with one rank
    error: their starts, widths and errors.

    ``values`` are the points that have a weight, ascending. With N the sum of the weights, the rank
    error of a point is the distance of q N + ``shift`` from its ranks: from the weight before it to
    the weight up to it. Each value is a run of one point; the points of a gap before, between or
    after values are one run.

    >>> starts, widths, errors = rank_runs(np.array([5]), np.array([2]), (0, 9), Fraction(1, 2))
    >>> [starts.tolist(), widths.tolist(), errors.tolist()]
    [[5, 0, 6], [1, 5, 4], [0, 2, 2]]
    """
    total = total_weight(weights)
    exact = np.int64 if q.denominator * (total + abs(shift)) < _ADDABLE else object
    ranks_end = np.cumsum(weights.astype(exact))
    passed = np.concatenate((np.zeros(1, exact), ranks_end))
    # positive: so far above the aim is the rank at each edge of a gap
    above = q.denominator * passed - (q.numerator * total + q.denominator * shift)
    of_values = np.maximum(np.maximum(above[:-1], -above[1:]), 0)
    gap_starts = np.concatenate(([ends[0]], values + 1))
    gap_widths = np.concatenate((values, [ends[1] + 1])) - gap_starts
    is_run = gap_widths > 0
    return (
        np.concatenate((values, gap_starts[is_run])),
        np.concatenate((np.ones_like(values), gap_widths[is_run])),
        np.concatenate((of_values, np.abs(above)[is_run])),
    )


def draw_point(runs: Runs, rate: Fraction, entropy: Entropy) -> int:
    """Draws a point of the runs by the exponential mechanism: with probability proportional to
    exp(-rate x its rank error).

    >>> from sfumato.noise import SYSTEM
    >>> draw_point((np.array([5, 0]), np.array([1, 5]), np.array([0, 10**6])), Fraction(1), SYSTEM)
    5
    """
    starts, widths, errors = runs
    run = exponential(-errors, rate, entropy, weights=widths)
    return int(starts[run]) + below(int(widths[run]), entropy)


def total_weight(weights: Whole) -> int:
    """Returns the sum of weights >= 0, without overflow.

    >>> total_weight(np.array([2**62, 2**62]))
    9223372036854775808
    """
    if weights.dtype == np.int64 and len(weights) * int(weights.max(initial=0)) < _ADDABLE:
        return int(weights.sum())
    return sum(weights.tolist())
