# SPDX-License-Identifier: Apache-2.0
"""Exact confidence bounds of a probability, from counts; ``attack`` uses them.

Source: Clopper and Pearson, "The use of confidence or fiducial limits illustrated in the case of
the binomial" (Biometrika 1934). The binomial tail is bounded from above in closed form, so the
bounds are never tighter than theirs. Proof: binomial.proof.md.
"""

import math
from collections.abc import Callable

# Far above the rounding error of the C library's logarithms on counts up to 10^8.
_SLACK = 1e-6
_HALVINGS = 60


def at_least(happened: int, runs: int, miss: float) -> float:
    """Returns a lower bound of a probability, given the number of times it ``happened`` in
    ``runs``, with confidence 1 - ``miss``.

    If the probability were smaller, so many events would happen with probability at most ``miss``.

    Guarantees:
        the bounds of a probability miss it as rarely as stated

    >>> round(at_least(90, 100, 0.01), 3)
    0.808
    >>> at_least(0, 100, 0.01)
    0.0
    """
    if happened == 0:
        return 0.0
    target = math.log(miss)
    return last_point(lambda p: _log_tail(happened, runs, p) <= target, 0.0, happened / runs)


def at_most(happened: int, runs: int, miss: float) -> float:
    """Returns an upper bound of a probability, given the number of times it ``happened`` in
    ``runs``, with confidence 1 - ``miss``.

    >>> round(at_most(0, 1000, 0.001), 4)
    0.0069
    """
    others_at_least = at_least(runs - happened, runs, miss)
    # rounded up, so that 1 - (a float rounded down) stays a bound
    return min(math.nextafter(1 - others_at_least, 2.0), 1.0)


def usual(probability: float, runs: int, miss: float) -> tuple[int, int]:
    """Returns the range (low, high) of counts to expect in ``runs`` trials at a probability.

    Fewer than low, and more than high, each have probability at most ``miss``.

    >>> usual(0.5, 100, 0.01)
    (38, 62)
    """
    most = _most(probability, runs, miss)
    most_of_others = _most(1 - probability, runs, miss)
    return runs - most_of_others, most


def _most(probability: float, runs: int, miss: float) -> int:
    """The largest count whose successor has a tail probability of at most ``miss``."""
    low, high = min(math.floor(runs * probability), runs), runs
    while low < high:
        middle = (low + high) // 2
        if _log_tail(middle + 1, runs, probability) <= math.log(miss):
            high = middle
        else:
            low = middle + 1
    return low


def _log_tail(count: int, runs: int, p: float) -> float:
    """An upper bound of ln P(X >= count), X binomial."""
    if count <= 0 or p >= 1:
        return 0.0
    if count > runs or p <= 0:
        return -math.inf
    ratio = (runs - count) * p / ((count + 1) * (1 - p))
    if ratio >= 1:
        return 0.0
    log_mass = _log_choose(runs, count) + count * math.log(p) + (runs - count) * math.log1p(-p)
    return min(log_mass - math.log1p(-ratio) + _SLACK, 0.0)


def _log_choose(runs: int, count: int) -> float:
    """ln of the binomial coefficient, rounded up by Robbins' bounds of the factorial."""
    if count in (0, runs):
        return 0.0
    rest = runs - count
    # sqrt(2 pi n) (n/e)^n e^(1/(12n+1)) < n! < sqrt(2 pi n) (n/e)^n e^(1/12n)
    value = count * math.log(runs / count) + rest * math.log(runs / rest)
    value += math.log(runs / (2 * math.pi * count * rest)) / 2
    return value + 1 / (12 * runs) - 1 / (12 * count + 1) - 1 / (12 * rest + 1)


def last_point(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Finds by bisection the last point at which ``holds`` is true, approximately.

    ``holds`` must be true at ``low``, and is true at the result.
    """
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if holds(middle):
            low = middle
        else:
            high = middle
    return low
