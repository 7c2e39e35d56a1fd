# SPDX-License-Identifier: Apache-2.0
"""Random bits from the operating system, and from nowhere else.

There is no seed and no state here: each request is a fresh ``os.urandom`` call, so nothing
can be repeated by a fork, a snapshot or a thread. Only ``sfumato.testing`` has a source
that can be replayed, and nothing shipped may import it.
"""

import os
from typing import Protocol


class Entropy(Protocol):
    """A source of independent fair bits."""

    def bits(self, count: int) -> int:
        """``count`` independent fair bits as an integer in [0, 2^count)."""
        ...


class SystemEntropy:
    """The operating system's CSPRNG (``os.urandom``)."""

    __slots__ = ()

    def bits(self, count: int) -> int:
        size = (count + 7) // 8
        return int.from_bytes(os.urandom(size), "little") >> (8 * size - count)


SYSTEM: Entropy = SystemEntropy()


def below(bound: int, entropy: Entropy) -> int:
    """A uniform integer in [0, bound), bound >= 1, by rejection: exactly uniform.

    >>> below(1, SYSTEM)
    0
    """
    count = (bound - 1).bit_length()
    while True:
        candidate = entropy.bits(count)
        if candidate < bound:
            return candidate


def token(entropy: Entropy = SYSTEM) -> str:
    """128 random bits as hexadecimal: identifiers and sampling keys, never noise."""
    return f"{entropy.bits(128):032x}"
