# SPDX-License-Identifier: Apache-2.0
"""Finds the smallest integer with a monotone property."""

from collections.abc import Callable


def smallest(holds: Callable[[int], bool], below: int = 0) -> int:
    """Returns the smallest integer x for which ``holds(x)`` is true, by doubling steps and
    bisection.

    ``holds`` must be monotone: true for all integers above any for which it is true. ``below`` is
    where the search starts; it has no effect on the result.

    >>> smallest(lambda x: x >= -37)
    -37
    """
    step = 1
    high = below
    while not holds(high):
        high += step
        step *= 2
    step = 1
    low = high - 1
    while holds(low):
        high = low
        low -= step
        step *= 2
    while high - low > 1:
        middle = (high + low) // 2
        if holds(middle):
            high = middle
        else:
            low = middle
    return high
