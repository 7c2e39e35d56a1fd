# SPDX-License-Identifier: Apache-2.0
"""Chooses how a distribution is sampled, by the number of draws and the width of its curve.

A few draws use a small table, many a large one; beyond a width of 2^52 there is no table.
"""

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from sfumato.noise.entropy import Entropy
from sfumato.noise.law import Integers, Shape, size_of
from sfumato.noise.rejection_sampler import Cells, Curve

WIDEST = 1 << 52
# up to this many draws are made one by one, which takes no longer than building the large table
_FEW = 128


class Sampler:
    """The sampler of the integer distribution with a given curve.

    Tables are built on first use and shared between equal curves. For curves wider than 2^52,
    ``wide`` samples instead, without tables.

    Guarantees:
        a few draws and many follow the same law
        a wide law is drawn in python integers
    """

    __slots__ = ("_curve", "_large", "_plain", "_small", "_wide")

    def __init__(self, curve: Curve, wide: Callable[[Entropy], int] | None = None) -> None:
        self._curve = curve
        self._plain = wide
        self._wide = wide if curve.width > WIDEST else None
        self._small: Cells | None = None
        self._large: Cells | None = None

    def __reduce__(self) -> tuple[type["Sampler"], tuple[object, ...]]:
        return Sampler, (self._curve, self._plain)

    def one(self, entropy: Entropy) -> int:
        """Returns an exact sample of the curve's distribution."""
        if self._small is None:
            if self._wide is not None:
                return self._wide(entropy)
            self._small = _small(self._curve)
        return self._small.one(entropy)

    def many(self, shape: Shape, entropy: Entropy) -> Integers:
        """Returns an array of independent exact draws as int64; as Python integers for a curve
        wider than 2^52.
        """
        size = size_of(shape)
        if self._wide is not None:
            drawn = np.empty(size, object)
            drawn[:] = [self.one(entropy) for _ in range(size)]
            return drawn.reshape(shape)
        out = np.empty(size, np.int64)
        if size <= _FEW:
            out[:] = [self.one(entropy) for _ in range(size)]
        else:
            if self._large is None:
                self._large = _large(self._curve)
            self._large.fill(out, entropy)
        return out.reshape(shape)


@lru_cache(maxsize=256)
def _small(curve: Curve) -> Cells:
    """A table that is quick to build: at least 2^10 cells, 8 to 16 blocks per width."""
    bits = max(10, _columns(curve, 8).bit_length() + 3)
    return Cells(curve, bits=bits, fineness=8)


@lru_cache(maxsize=4)
def _large(curve: Curve) -> Cells:
    """Returns a table for many draws: so many cells that few are hard, in up to 2 MB."""
    columns = _columns(curve, curve.fineness)
    one_integer_blocks = curve.shift(curve.fineness) == 0
    if columns <= 64:
        bits = 16
    elif one_integer_blocks and columns <= 4096:
        bits = 18
    else:
        bits = 20
    return Cells(curve, bits=bits, fineness=curve.fineness)


def _columns(curve: Curve, fineness: int) -> int:
    """The number of columns of a two-sided curve cut to this fineness."""
    return 2 * curve.blocks(curve.shift(fineness))
