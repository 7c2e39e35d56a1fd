# SPDX-License-Identifier: Apache-2.0
"""Uniform integers, permutations and subsets, without bias. Proof: uniform.proof.md."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidNumber, shown
from sfumato.noise.entropy import SYSTEM, Entropy, Words, words
from sfumato.noise.law import Integers, Shape, size_of

_BLOCK = 1 << 15
# A subset of more than one in this many is marked on a table of all; a smaller one is kept as a list.
_DENSE = 32


def accepted(size: int, propose: Callable[[int], Integers]) -> Integers:
    """The first ``size`` accepted of independent proposals, int64.

    ``propose(count)`` makes ``count`` of them and returns, in order, those that it accepts.

    >>> accepted(3, lambda count: np.arange(count)[1::2]).tolist()
    [1, 3, 5]
    """
    result, done = np.empty(size, np.int64), 0
    while done < size:
        missing = size - done
        kept = propose(min(missing + missing // 4 + 16, _BLOCK))[:missing]
        result[done : done + len(kept)] = kept
        done += len(kept)
    return result


def below_many(bound: int, shape: Shape, entropy: Entropy = SYSTEM) -> Integers:
    """Independent uniform integers in [0, bound), for 1 <= bound <= 2^63, as int64.

    Guarantees:
        many integers below a bound are uniform

    Raises:
        InvalidNumber: a bound outside 1 .. 2^63, or a shape that cannot be.

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
        return drawn if drawn.max() < bound else drawn[drawn < bound]

    return accepted(size, quotients).reshape(shape)


def permutation(n: int, entropy: Entropy = SYSTEM) -> Integers:
    """0 .. n-1 in an order that is uniform over all n!.

    Guarantees:
        every permutation is equally likely

    Raises:
        InvalidNumber: n that is not an integer >= 0.

    >>> sorted(permutation(5).tolist())
    [0, 1, 2, 3, 4]
    """
    _whole("n", n, 0, 1 << 60)
    return _shuffled(n, entropy, dropped=max(n - 1, 0).bit_length())


def subset(n: int, k: int, entropy: Entropy = SYSTEM) -> Integers:
    """k of the integers 0 .. n-1, ascending; every k-subset is equally likely.

    Guarantees:
        every subset is equally likely

    Raises:
        InvalidNumber: n or k that is not an integer, or not 0 <= k <= n <= 2^63.

    >>> subset(3, 3).tolist(), subset(3, 0).tolist()
    ([0, 1, 2], [])
    """
    _whole("n", n, 0, 1 << 63)
    _whole("k", k, 0, n)
    if k * _DENSE < n:
        return _listed(n, k, entropy)
    # what is left out of a uniform subset is one too
    chosen = _marked(n, min(k, n - k), entropy)
    return np.flatnonzero(chosen if k <= n - k else ~chosen)


def _marked(n: int, k: int, entropy: Entropy) -> NDArray[np.bool_]:
    """A uniform k-subset as marks, k <= n/2: draws until k are marked, never more at once than are missing."""
    marks = np.zeros(n, np.bool_)
    missing = k
    while missing:
        for start in range(0, missing, _BLOCK):
            marks[below_many(n, min(_BLOCK, missing - start), entropy)] = True
        missing = k - int(np.count_nonzero(marks))
    return marks


def _listed(n: int, k: int, entropy: Entropy) -> Integers:
    """The same by a sorted list of what is drawn."""
    chosen = np.empty(0, np.int64)
    while missing := k - len(chosen):
        chosen = np.sort(np.concatenate((chosen, below_many(n, missing, entropy))))
        chosen = chosen[np.append(True, chosen[1:] != chosen[:-1])]
    return chosen


def _shuffled(n: int, entropy: Entropy, *, dropped: int) -> Integers:
    """0 .. n-1 sorted by random keys of 64 - ``dropped`` bits, each above its index in one word."""
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
    """Orders each run of equal keys uniformly: by words of its own, drawn again until none are equal."""
    shift = np.uint64(dropped)
    ties = [
        start + np.flatnonzero(top[1:] == top[:-1])
        for start in range(0, len(keys), _BLOCK)
        for top in (keys[start : start + _BLOCK + 1] >> shift,)
    ]
    first = np.concatenate(ties) if ties else np.empty(0, np.int64)
    tied = np.union1d(first, first + 1)
    run = keys[tied] >> shift
    while True:
        drawn = words(len(tied), entropy)
        order = np.lexsort((drawn, run))
        again = (run[1:] == run[:-1]) & (drawn[order][1:] == drawn[order][:-1])
        if not again.any():
            break
    keys[tied] = keys[tied[order]]


def _whole(name: str, value: int, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InvalidNumber(
            f"{name} = {shown(value)}.", allowed=f"an integer from {least} to {most}"
        )
