# SPDX-License-Identifier: Apache-2.0
"""The smallest integer for which a monotone statement holds."""

from collections.abc import Callable


def smallest(holds: Callable[[int], bool], below: int = 0) -> int:
    """The smallest integer x with ``holds(x)``; ``holds`` must stay true once true.

    ``below`` is a first guess, of no effect on the result.

    >>> smallest(lambda x: x >= -37)
    -37
    """
    step, high = 1, below
    while not holds(high):
        high, step = high + step, step * 2
    step, low = 1, high - 1
    while holds(low):
        high, low, step = low, low - step, step * 2
    while high - low > 1:
        middle = (high + low) // 2
        if holds(middle):
            high = middle
        else:
            low = middle
    return high
