# SPDX-License-Identifier: Apache-2.0
"""Draws packed independent bits with one bias, 64 per word, by comparing binary digits.

A bit is true if a uniform number in [0, 1) is below the bias. The 64 bits (lanes) of a word compare
their numbers with the bias in parallel, digit by digit. Proof: bits.proof.md.
"""

from collections.abc import Callable
from functools import cache

import numpy as np

from sfumato.errors import InvalidNumber
from sfumato.noise.entropy import SYSTEM, Entropy, Words, words
from sfumato.noise.law import size_of
from sfumato.noise.lazy_uniform import Bounds

# Words per block; their digits, twelve times as many words, fit the cache of a core.
_BLOCK = 1 << 13
_ALL = ~np.uint64(0)


def random_bits(
    count: int,
    bias: Bounds,
    entropy: Entropy = SYSTEM,
    *,
    levels: int = 12,
) -> Words:
    """Returns ``count`` independent random bits, each 1 with the same probability, packed 64 to a
    word.

    Bit i is ``words[i // 64] >> (i % 64) & 1``. ``bias`` bounds the probability, a real number in
    [0, 1], to any precision; for an integer over a power of two, the bounds must become equal.
    ``levels`` binary digits are drawn at a time; this has no effect on the distribution.

    Guarantees:
        packed bits have exactly their bias
        bits beyond the count are zero

    Raises:
        InvalidNumber: a count below 0, or no levels.

    >>> half = lambda precision: (1 << precision - 1, 1 << precision - 1)
    >>> drawn = random_bits(100, half)
    >>> len(drawn), int(drawn[1]) < 1 << 36
    (2, True)
    """
    if levels < 1:
        raise InvalidNumber(f"levels = {levels}.", allowed="an integer >= 1")
    whole, rest = divmod(size_of(count), 64)
    digits = cache(lambda depth: _digits(bias, depth * levels, levels))
    drawn = np.empty(whole + (rest > 0), np.uint64)
    for start in range(0, len(drawn), _BLOCK):
        part = drawn[start : start + _BLOCK]
        part[:] = _below(np.full(len(part), _ALL), digits, entropy)
    if rest:
        drawn[-1] &= np.uint64((1 << rest) - 1)
    return drawn


def _below(
    lanes: Words,
    digits: Callable[[int], list[bool]],
    entropy: Entropy,
    depth: int = 0,
) -> Words:
    """Sets each bit of ``lanes`` whose number is below the bias, from digit block ``depth`` on.

    Bits that are not in ``lanes`` are not meaningful in the result.
    """
    ours = digits(depth)
    # a set bit means that this digit of the number of its lane is 0
    drawn = words(len(lanes) * len(ours), entropy).reshape(len(ours), len(lanes))
    below = np.zeros_like(lanes)
    zeros = lanes.copy()
    ones = np.zeros_like(lanes)
    for zero, one in zip(drawn, ours, strict=True):
        if one:
            below |= zero
            ones |= zero
        else:
            below &= zero
            zeros &= zero
    equal = zeros & ~ones
    rest = np.flatnonzero(equal)
    if len(rest):
        below[rest] |= equal[rest] & _below(equal[rest], digits, entropy, depth + 1)
    return below


def _digits(bias: Bounds, skipped: int, levels: int) -> list[bool]:
    """The ``levels`` binary digits of the bias after the first ``skipped``, in reverse order.

    A bias of one is 0.111...
    """
    wanted = skipped + levels
    guard = 64
    while True:
        lower, upper = bias(wanted + guard)
        if lower >> guard == upper >> guard:
            prefix = min(lower >> guard, (1 << wanted) - 1)
            return [bool(prefix >> level & 1) for level in range(levels)]
        guard *= 2
