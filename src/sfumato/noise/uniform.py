# SPDX-License-Identifier: Apache-2.0
"""Draws exactly uniform integers, permutations and subsets. Proof: uniform.proof.md."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidNumber, shown
from sfumato.noise.entropy import SYSTEM, Entropy, Words, words
from sfumato.noise.law import Integers, Shape, size_of

_BLOCK = 1 << 15
# A subset of at least n / _DENSE is drawn as marks on an array of all n, a smaller one as a list.
_DENSE = 32


def accepted(size: int, propose: Callable[[int], Integers]) -> Integers:
    """Returns the first ``size`` accepted proposals of rejection sampling, as int64.

    ``propose(count)`` makes ``count`` independent proposals and returns the accepted ones in order.

    >>> accepted(3, lambda count: np.arange(count)[1::2]).tolist()
    [1, 3, 5]
    """
    result = np.empty(size, np.int64)
    done = 0
    while done < size:
        missing = size - done
        count = min(missing + missing // 4 + 16, _BLOCK)
        kept = propose(count)[:missing]
        result[done : done + len(kept)] = kept
        done += len(kept)
    return result


def below_many(bound: int, shape: Shape, entropy: Entropy = SYSTEM) -> Integers:
    """Returns an array of independent uniform random integers in [0, bound), for 1 <= bound <=
    2^63, as int64.

    Guarantees:
        many integers below a bound are uniform

    Raises:
        InvalidNumber: the bound is outside 1 to 2^63, or the shape is invalid.

    >>> below_many(1, (2, 2)).tolist()
    [[0, 0], [0, 0]]
    """
    size = size_of(shape)
    _whole("bound", bound, 1, 1 << 63)
    if bound == 1:
        return np.zeros(shape, np.int64)
    share = np.uint64((1 << 64) // bound)

    def quotients(count: int) -> Integers:
        drawn = (words(count, entropy) // share).view(np.int64)
        if drawn.max() < bound:
            return drawn
        return drawn[drawn < bound]

    return accepted(size, quotients).reshape(shape)


def permutation(n: int, entropy: Entropy = SYSTEM) -> Integers:
    """Returns a uniformly random permutation of the integers 0 to n-1.

    Guarantees:
        every permutation is equally likely

    Raises:
        InvalidNumber: n is not an integer >= 0.

    >>> sorted(permutation(5).tolist())
    [0, 1, 2, 3, 4]
    """
    _whole("n", n, 0, 1 << 60)
    return _shuffled(n, entropy, dropped=max(n - 1, 0).bit_length())


def subset(n: int, k: int, entropy: Entropy = SYSTEM) -> Integers:
    """Returns a uniformly random k-subset of the integers 0 to n-1, in ascending order.

    Guarantees:
        every subset is equally likely

    Raises:
        InvalidNumber: n or k is not an integer, or not 0 <= k <= n <= 2^63.

    >>> subset(3, 3).tolist(), subset(3, 0).tolist()
    ([0, 1, 2], [])
    """
    _whole("n", n, 0, 1 << 63)
    _whole("k", k, 0, n)
    if k * _DENSE < n:
        return _listed(n, k, entropy)
    # the complement of a uniform subset is uniform too
    marks = _marked(n, min(k, n - k), entropy)
    if k > n - k:
        marks = ~marks
    return np.flatnonzero(marks)


def _marked(n: int, k: int, entropy: Entropy) -> NDArray[np.bool_]:
    """A uniform k-subset as an array of n booleans, k <= n/2.

    Draws until k are marked, and never more in one round than are still missing.
    """
    marks = np.zeros(n, np.bool_)
    missing = k
    while missing:
        for start in range(0, missing, _BLOCK):
            size = min(_BLOCK, missing - start)
            marks[below_many(n, size, entropy)] = True
        missing = k - int(np.count_nonzero(marks))
    return marks


def _listed(n: int, k: int, entropy: Entropy) -> Integers:
    """A uniform k-subset as a sorted array: draws what is missing and drops duplicates."""
    chosen = np.empty(0, np.int64)
    while missing := k - len(chosen):
        more = below_many(n, missing, entropy)
        chosen = np.sort(np.concatenate((chosen, more)))
        is_first = np.append(True, chosen[1:] != chosen[:-1])
        chosen = chosen[is_first]
    return chosen


def _shuffled(n: int, entropy: Entropy, *, dropped: int) -> Integers:
    """The integers 0 to n-1, sorted by random keys of 64 - ``dropped`` bits.

    One word holds the key in its high bits and the integer in its low bits.
    """
    keys = words(n, entropy)
    for start in range(0, n, _BLOCK):
        block = keys[start : start + _BLOCK]
        block >>= np.uint64(dropped)
        block <<= np.uint64(dropped)
        block |= np.arange(start, start + len(block), dtype=np.uint64)
    keys.sort()
    _shuffle_ties(keys, entropy, dropped=dropped)
    keys &= np.uint64((1 << dropped) - 1)
    return keys.view(np.int64)


def _shuffle_ties(keys: Words, entropy: Entropy, *, dropped: int) -> None:
    """Orders each run of equal keys uniformly, by new random words that are all different.

    The words are drawn again until no two in one run are equal.
    """
    shift = np.uint64(dropped)
    ties = [np.empty(0, np.int64)]
    for start in range(0, len(keys), _BLOCK):
        top = keys[start : start + _BLOCK + 1] >> shift
        ties.append(start + np.flatnonzero(top[1:] == top[:-1]))
    first = np.concatenate(ties)
    tied = np.union1d(first, first + 1)
    run = keys[tied] >> shift
    while True:
        drawn = words(len(tied), entropy)
        order = np.lexsort((drawn, run))
        ordered = drawn[order]
        collides = (run[1:] == run[:-1]) & (ordered[1:] == ordered[:-1])
        if not collides.any():
            break
    keys[tied] = keys[tied[order]]


def _whole(
    name: str,
    value: int,
    least: int,
    most: int,
) -> None:
    """Raises ``InvalidNumber`` unless ``value`` is an integer from ``least`` to ``most``."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InvalidNumber(
            f"{name} = {shown(value)}.", allowed=f"an integer from {least} to {most}"
        )
