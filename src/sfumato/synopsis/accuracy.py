# SPDX-License-Identifier: Apache-2.0
"""Simultaneous error bounds for the queries of a workload, from declarations alone.

``Plan.error`` and ``Synopsis.error`` use them. A synopsis is accurate in the sense of the theory
if, with a given confidence, at least a given share of the queries have an error within the bound.
The queries are those of the workload, weighted as the workload weights its terms.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from sfumato.errors import WrongUse
from sfumato.exact.rational import Number, positive, to_fraction
from sfumato.privacy.distance import Norm
from sfumato.synopsis.estimate import gaussian_reach, laplace_reach, miss_of, noise_width
from sfumato.synopsis.grid_task import GridTask
from sfumato.synopsis.measurement import LayersTask


@dataclass(frozen=True, slots=True)
class Spread:
    """The variances of the answers of a workload, in squared lattice steps.

    Args:
        mean: the weighted mean over the queries.
        worst: an upper bound of every query's variance.
        queries: the number of queries.
    """

    mean: float
    worst: float
    queries: int


def share_of(over: Number) -> Fraction:
    """Checks and returns the share of the queries for which an error bound must hold.

    Raises:
        InvalidNumber: a share outside of (0, 1].

    >>> share_of("0.9")
    Fraction(9, 10)
    """
    return positive("over", to_fraction("over", over), at_most=Fraction(1))


def require_confidence(confidence: Number | None, over: Number) -> None:
    """Raises WrongUse if a share of the queries (``over``) is given without a confidence.

    Raises:
        WrongUse: ``over`` without a confidence.
    """
    if confidence is None and over != 1:
        raise WrongUse(
            "over= without a confidence=.", remedy='error(confidence="0.95", over="0.9")'
        )


def bound(
    spread: Spread, reach: Callable[[float, float], float], confidence: Number, over: Number
) -> float:
    """Returns an error bound, in lattice steps, that at least the share ``over`` of a workload's
    queries meet, with the given confidence.

    For all queries at once it is the union bound. For a share 1 - t, the mean share of queries that
    miss their own interval is at most the probability m of a miss, so more than t miss with
    probability at most m / t (Markov). And at most t / 2 of the queries have a variance above the
    mean times 2 / t, so a miss of the others with m = t / 2 is enough. The smallest of these bounds
    is returned; which one it is follows from declarations.

    Args:
        spread: the variances.
        reach: returns the error that an estimate of a variance exceeds with at most a probability.
        confidence: one minus the probability with which the bound may fail.
        over: the share of the queries.

    >>> from sfumato.synopsis.estimate import gaussian_reach
    >>> each = lambda variance, miss: gaussian_reach(variance, math.log(2 / miss))
    >>> round(bound(Spread(1.0, 1.0, 10**6), each, "0.95", 1), 2)
    5.92
    >>> round(bound(Spread(1.0, 1.0, 10**6), each, "0.95", "0.9"), 2)
    3.46
    """
    miss, left = miss_of(confidence), float(1 - share_of(over))
    bounds = [reach(spread.worst, miss / spread.queries)]
    if left > 0:
        bounds.append(reach(spread.worst, miss * left))
        bounds.append(reach(spread.mean * 2 / left, miss * left / 2))
    return min(bounds)


def reach_of(task: LayersTask | GridTask) -> Callable[[float, float], float]:
    """Returns a function from the variance of an estimate and a miss probability to an error bound,
    for the noise of the task.

    Under the noise of the task, the error exceeds the bound with at most this probability. Each
    layer's noise has a width (of its tail bound) and a variance; the variance of an estimate is
    multiplied by the largest ratio of squared width to variance among the layers, then a Gaussian
    or Laplace tail bound is applied.
    """
    widening = 0.0
    for mechanism, precision in set(zip(task.mechanisms, task.precisions, strict=True)):
        widening = max(widening, noise_width(mechanism.noise) ** 2 * precision)
    is_gaussian = task.allowance.norm is Norm.L2

    def reach(variance: float, miss: float) -> float:
        if math.isinf(variance):
            return math.inf
        squared, tail = variance * widening, math.log(2 / miss)
        if is_gaussian:
            return gaussian_reach(squared, tail)
        return laplace_reach(squared, math.sqrt(squared), tail)

    return reach
