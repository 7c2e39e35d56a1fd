# SPDX-License-Identifier: Apache-2.0
"""e^-t of many t at once, in integers with a proved error, and coins of that bias.

``t`` is given in units of 2^-42. No float and no math library has a part in any result.
Proof: decay.proof.md.
"""

from collections.abc import Callable
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from sfumato.exact.exponential import exp_scaled
from sfumato.noise.entropy import Entropy
from sfumato.noise.law import Integers
from sfumato.noise.lazy_uniform import is_below

FRACTION = 42
ONE = 1 << 31
# |decay(t) - 2^31 e^-t| <= ERROR, also where the true t is up to 2^10 units (2^-32) above.
ERROR = 8
# beyond this e^-t < 2^-32: the result is 0
_END = 23
_COARSE, _FINE = 5, 5
_BLOCK = 1 << 15


def decay(t: Integers) -> Integers:
    """2^31 e^-t within ``ERROR``, for t >= 0 in units of 2^-42.

    Guarantees:
        the decay is within its error of the exponential

    >>> int(decay(np.array([0]))[0]) - ONE
    0
    """
    coarse, fine = _powers()
    t = np.minimum(t, _END << FRACTION)
    value = coarse.take(t >> FRACTION - _COARSE)
    value *= fine.take(t >> FRACTION - _COARSE - _FINE & (1 << _FINE) - 1)
    value >>= 31
    # 1 - r + r^2/2 for the rest r < 2^-10
    rest = t & (1 << FRACTION - _COARSE - _FINE) - 1
    half = rest >> 1
    value *= ONE - (rest >> FRACTION - 31) + (half * half >> 52)
    value >>= 31
    return value


def coins(
    t: Integers, exact: Callable[[int], tuple[int, int]], entropy: Entropy
) -> NDArray[np.bool_]:
    """Independent coins: the i-th is true with probability e^-a_i, exactly.

    ``exact(i)`` gives a_i as (numerator, denominator); ``t[i]`` is a_i in units of 2^-42,
    at most 2^10 units too low and never too high.

    Guarantees:
        many coins have exactly their bias
    """
    result = np.empty(len(t), np.bool_)
    for start in range(0, len(t), _BLOCK):
        result[start : start + _BLOCK] = _block(t[start : start + _BLOCK], start, exact, entropy)
    return result


def _block(
    t: Integers, start: int, exact: Callable[[int], tuple[int, int]], entropy: Entropy
) -> NDArray[np.bool_]:
    """Sixteen bits decide nearly all coins, thirty-two nearly all others, the exact bias the rest."""
    surely, perhaps = _sixteen()
    drawn = _shorts(len(t), entropy)
    cell = np.minimum(t >> FRACTION - _COARSE - _FINE, len(surely) - 1)
    result: NDArray[np.bool_] = drawn < surely.take(cell)
    doubt = np.flatnonzero(~result & (drawn <= perhaps.take(cell)))
    if len(doubt) == 0:
        return result
    prefix = drawn[doubt].astype(np.int64) << 16 | _shorts(len(doubt), entropy)
    value = decay(t[doubt])
    result[doubt] = yes = prefix + 1 <= 2 * (value - ERROR)
    for lane in np.flatnonzero(~yes & (prefix < 2 * (value + ERROR))):
        bias = partial(exp_scaled, *exact(start + int(doubt[lane])))
        result[doubt[lane]] = is_below(bias, entropy, prefix=int(prefix[lane]), known=32)
    return result


def _shorts(count: int, entropy: Entropy) -> NDArray[np.uint16]:
    """Uniform sixteen-bit integers."""
    drawn = np.empty(count, "<u2")
    entropy.fill(drawn.view(np.uint8))
    return drawn


@cache
def _powers() -> tuple[Integers, Integers]:
    """floor(2^31 e^-j/32) to the end, and floor(2^31 e^-j/1024) for j < 32."""
    coarse = _ladder(1 << _COARSE, (_END << _COARSE) + 1)
    coarse[-1] = 0
    return coarse, _ladder(1 << _COARSE + _FINE, 1 << _FINE)


def _ladder(steps: int, count: int) -> Integers:
    """2^31 e^-(j/steps) for j < count, each at most 1 + 2^-80 too low."""
    ratio = exp_scaled(1, steps, 128)[0]
    values, value = [], 1 << 128
    for _ in range(count):
        values.append(value >> 97)
        value = value * ratio >> 128
    return np.array(values)


@cache
def _sixteen() -> tuple[NDArray[np.uint16], NDArray[np.uint16]]:
    """Per cell of 2^-10: below the first all sixteen-bit draws mean yes, above the second all mean no."""
    cells = 12 << _COARSE + _FINE
    edges = decay(np.arange(cells + 1, dtype=np.int64) << FRACTION - _COARSE - _FINE)
    surely = np.clip(edges[1:] - ERROR >> 15, 0, 2**16 - 1)
    perhaps = np.clip(edges[:-1] + ERROR >> 15, 0, 2**16 - 1)
    # the last cell stands for all beyond it
    surely[-1] = 0
    return surely.astype(np.uint16), perhaps.astype(np.uint16)
