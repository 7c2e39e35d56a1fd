# SPDX-License-Identifier: Apache-2.0
"""Which engine draws: a small table for a few, a large one for many, the plain one beyond 2^52."""

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from sfumato.noise.entropy import Entropy
from sfumato.noise.law import Integers, Shape, size_of
from sfumato.noise.rejection_sampler import Cells, Curve

WIDEST = 1 << 52
# so many draws are made one by one: without the large table, and nearly as fast as it is built
_FEW = 128


class Sampler:
    """Draws under one curve. Tables are built when first needed, and shared between equal curves.

    ``wide`` draws instead where the curve is wider than 2^52.

    Guarantees:
        a few draws and many follow the same law
        a wide law is drawn in python integers
    """

    __slots__ = ("_curve", "_large", "_plain", "_small", "_wide")

    def __init__(self, curve: Curve, wide: Callable[[Entropy], int] | None = None) -> None:
        self._curve, self._plain = curve, wide
        self._wide = wide if curve.width > WIDEST else None
        self._small: Cells | None = None
        self._large: Cells | None = None

    def __reduce__(self) -> tuple[type["Sampler"], tuple[object, ...]]:
        return Sampler, (self._curve, self._plain)

    def one(self, entropy: Entropy) -> int:
        """One exact draw."""
        if self._small is None:
            if self._wide is not None:
                return self._wide(entropy)
            self._small = _small(self._curve)
        return self._small.one(entropy)

    def many(self, shape: Shape, entropy: Entropy) -> Integers:
        """Independent exact draws as int64; as Python integers where the law is wider than 2^52."""
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
    return Cells(curve, bits=max(10, _columns(curve, 8).bit_length() + 3), fineness=8)


@lru_cache(maxsize=4)
def _large(curve: Curve) -> Cells:
    """As many cells as leave few of them hard, up to two megabytes; 2^16 are picked by a random short."""
    columns, single = _columns(curve, curve.fineness), curve.shift(curve.fineness) == 0
    bits = 16 if columns <= 64 else 18 if single and columns <= 4096 else 20
    return Cells(curve, bits=bits, fineness=curve.fineness)


def _columns(curve: Curve, fineness: int) -> int:
    return 2 * curve.blocks(curve.shift(fineness))
