# SPDX-License-Identifier: Apache-2.0
"""Computes e^-t for arrays in integers with a proved error, and draws exact coins of that bias.

``t`` is a fixed-point number with 42 fractional bits. No result depends on a float or on a math
library. Proof: decay.proof.md.
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
# |decay(t) - 2^31 e^-t| <= ERROR, also if the true t is up to 2^-32 greater than the given one.
ERROR = 8
# for t beyond this e^-t < 2^-32, and the result is 0
_END = 23
_COARSE = 5
_FINE = 5
_BLOCK = 1 << 15


def decay(t: Integers) -> Integers:
    """Returns 2^31 e^-t within ``ERROR``, for an array of numbers t >= 0, given as integers 2^42 t.

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
    """Returns independent random booleans: the i-th is True with probability e^-a_i, exactly.

    ``exact(i)`` returns a_i as (numerator, denominator). ``t[i]`` is 2^42 a_i, never too high and
    at most 2^10 too low.

    Guarantees:
        many coins have exactly their bias
    """
    result = np.empty(len(t), np.bool_)
    for start in range(0, len(t), _BLOCK):
        result[start : start + _BLOCK] = _block(t[start : start + _BLOCK], start, exact, entropy)
    return result


def _block(
    t: Integers,
    start: int,
    exact: Callable[[int], tuple[int, int]],
    entropy: Entropy,
) -> NDArray[np.bool_]:
    """Draws the coins of one block.

    16 random bits decide nearly all coins, 32 nearly all others, the exact bias the rest.
    """
    surely, perhaps = _sixteen()
    drawn = _shorts(len(t), entropy)
    cell = np.minimum(t >> FRACTION - _COARSE - _FINE, len(surely) - 1)
    result: NDArray[np.bool_] = drawn < surely.take(cell)
    doubt = np.flatnonzero(~result & (drawn <= perhaps.take(cell)))
    if len(doubt) == 0:
        return result
    prefix = drawn[doubt].astype(np.int64) << 16 | _shorts(len(doubt), entropy)
    value = decay(t[doubt])
    yes = prefix + 1 <= 2 * (value - ERROR)
    result[doubt] = yes
    for lane in np.flatnonzero(~yes & (prefix < 2 * (value + ERROR))):
        bias = partial(exp_scaled, *exact(start + int(doubt[lane])))
        result[doubt[lane]] = is_below(bias, entropy, prefix=int(prefix[lane]), known=32)
    return result


def _shorts(count: int, entropy: Entropy) -> NDArray[np.uint16]:
    """Draws ``count`` uniform 16-bit integers."""
    drawn = np.empty(count, "<u2")
    entropy.fill(drawn.view(np.uint8))
    return drawn


@cache
def _powers() -> tuple[Integers, Integers]:
    """The tables floor(2^31 e^(-j/32)) for j/32 <= _END and floor(2^31 e^(-j/1024)) for j < 32."""
    coarse = _ladder(1 << _COARSE, (_END << _COARSE) + 1)
    coarse[-1] = 0
    fine = _ladder(1 << _COARSE + _FINE, 1 << _FINE)
    return coarse, fine


def _ladder(steps: int, count: int) -> Integers:
    """2^31 e^-(j/steps) for j < count, each at most 1 + 2^-80 too low."""
    ratio, _ = exp_scaled(1, steps, 128)
    values = []
    value = 1 << 128
    for _ in range(count):
        values.append(value >> 97)
        value = value * ratio >> 128
    return np.array(values)


@cache
def _sixteen() -> tuple[NDArray[np.uint16], NDArray[np.uint16]]:
    """Two thresholds of 16-bit draws for each cell of t of width 2^-10.

    A draw below the first means True, one above the second means False.
    """
    cells = 12 << _COARSE + _FINE
    starts = np.arange(cells + 1, dtype=np.int64) << FRACTION - _COARSE - _FINE
    edges = decay(starts)
    surely = np.clip(edges[1:] - ERROR >> 15, 0, 2**16 - 1)
    perhaps = np.clip(edges[:-1] + ERROR >> 15, 0, 2**16 - 1)
    # the last cell also covers every larger t
    surely[-1] = 0
    return surely.astype(np.uint16), perhaps.astype(np.uint16)
