# SPDX-License-Identifier: Apache-2.0
"""The exact sum of the integers of one parameter over all chunks. Proof: gradients.proof.md."""

import numpy as np
import torch

from sfumato.noise import Integers

# Chunks that float64 adds up exactly: each is below 2^45.
_AT_ONCE = 2**8
# So many numbers stay in the cache from one operation to the next.
PIECE = 2**15


class Total:
    """An exact running sum of integer gradients, to which chunks of rows are added one after the
    other.

    A single chunk is used as it is. Several chunks are added up in float64 fine steps, and moved to
    64-bit integers before float64 would round.
    """

    def __init__(self) -> None:
        self._held: torch.Tensor | None = None
        self._unit = 1.0
        self._chunks = 0
        self._moved: Integers | None = None

    def add(
        self,
        chunk: torch.Tensor,
        unit: float,
    ) -> None:
        """Adds the integers of a chunk, in units of ``unit`` fine steps (``GradientSums.fine``);
        the tensor may be overwritten.
        """
        self._chunks += 1
        if self._held is None:
            self._held, self._unit = chunk, unit
            return
        self._held = _fine(self._held, self._unit).add_(chunk, alpha=unit)
        self._unit = 1.0
        if self._chunks % _AT_ONCE == 0:
            whole = self._held.to(torch.int64).cpu().numpy()
            self._moved = whole if self._moved is None else self._moved + whole
            self._held = None

    def write(
        self,
        out: Integers,
        steps: int,
    ) -> None:
        """Writes the sum divided by ``steps`` (a power of two), rounded half up, into ``out``."""
        total = self._held
        if total is None:
            total = torch.zeros(len(out), dtype=torch.float64)
        kind: type[np.signedinteger] = np.int32
        if total.dtype is torch.float32 and self._moved is None and steps % self._unit == 0:
            steps //= int(self._unit)
        else:
            total, kind = _fine(total, self._unit), np.int64
        numbers = total.cpu().numpy()
        for first in range(0, len(out), PIECE):
            part = slice(first, first + PIECE)
            sums = numbers[part].astype(kind)
            if self._moved is not None:
                sums += self._moved[part]
            sums += steps >> 1
            sums >>= steps.bit_length() - 1
            out[part] = sums


def _fine(
    chunk: torch.Tensor,
    unit: float,
) -> torch.Tensor:
    """Converts integers to float64 fine steps; exact, since units are powers of two or integers are
    few.
    """
    if unit == 1:
        return chunk.double()
    return chunk.double() * unit
