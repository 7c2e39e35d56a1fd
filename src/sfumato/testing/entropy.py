# SPDX-License-Identifier: Apache-2.0
"""Bits that can be drawn again: for tests only."""

import hashlib


class Replay:
    """An entropy source that repeats itself: SHAKE-256 of a seed and a counter.

    >>> Replay(7).bits(64) == Replay(7).bits(64)
    True
    """

    _BLOCK = 4096

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._block = 0
        self._bits = 0
        self._left = 0

    def bits(self, count: int) -> int:
        """``count`` bits of the stream."""
        while self._left < count:
            stream = hashlib.shake_256(f"{self._seed}/{self._block}".encode()).digest(self._BLOCK)
            self._bits |= int.from_bytes(stream, "little") << self._left
            self._left += 8 * self._BLOCK
            self._block += 1
        value = self._bits & ((1 << count) - 1)
        self._bits >>= count
        self._left -= count
        return value
