# SPDX-License-Identifier: Apache-2.0
"""A replayable source of random bits, for tests only."""

import hashlib

import numpy as np

from sfumato.noise.entropy import Bytes


class Replay:
    """A seeded entropy source: equal seeds give equal bits (SHAKE-256 of seed and counter).

    >>> Replay(7).bits(64) == Replay(7).bits(64)
    True
    """

    _BLOCK = 1 << 16

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._block = 0
        self._rest = memoryview(b"")

    def bits(self, count: int) -> int:
        """Returns the next ``count`` bits of the stream as an integer; it reads whole bytes."""
        size = (count + 7) // 8
        return int.from_bytes(self._bytes(size), "little") >> (8 * size - count)

    def fill(self, buffer: Bytes) -> None:
        """Overwrites ``buffer`` with the next bytes of the stream."""
        buffer[:] = np.frombuffer(self._bytes(buffer.size), np.uint8)

    def _bytes(self, size: int) -> bytes:
        parts = []
        missing = size
        while missing > len(self._rest):
            parts.append(self._rest)
            missing -= len(self._rest)
            name = f"{self._seed}/{self._block}"
            block = hashlib.shake_256(name.encode()).digest(self._BLOCK)
            self._rest = memoryview(block)
            self._block += 1
        parts.append(self._rest[:missing])
        self._rest = self._rest[missing:]
        return b"".join(parts)
