# SPDX-License-Identifier: Apache-2.0
"""A dense integer strategy matrix over the cells of one column, and its least squares.

``p_identity`` makes such strategies for Laplace noise.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from sfumato.errors import WrongUse
from sfumato.noise import Integers
from sfumato.synopsis.layers import Numbers
from sfumato.synopsis.workload import Floats, Workload

# A column of more cells has too large a matrix.
MOST_CELLS = 1024
# Sums beyond it are clipped, so that noise can be added in 64 bits.
_LARGEST = 2**61


@dataclass(frozen=True)
class DenseLayer:
    """A measured layer of one column with arbitrary integer coefficients, as a matrix over its
    cells.

    The matrix is a diagonal, so that each cell is measured, above further rows. ``diagonal`` and
    ``rows`` are bytes of little-endian int32, so that layers compare by value. It has the
    attributes of a ``Layer``; ``halves`` is always False.

    Guarantees:
        the norm is the largest sum of absolute values of a column of the matrix that is applied

    Raises:
        WrongUse: more than 1,024 cells, or a diagonal with an entry below 1.

    >>> layer = DenseLayer.of(np.array([2, 3]), np.array([[1, -1]]))
    >>> layer.apply(np.array([10, 20])).tolist(), layer.norm
    ([20, 60, -10], 4)
    """

    diagonal: bytes
    rows: bytes

    halves = False

    @classmethod
    def of(cls, diagonal: npt.ArrayLike, rows: npt.ArrayLike) -> "DenseLayer":
        """Makes a layer from arrays of integers."""
        return cls(np.asarray(diagonal, "<i4").tobytes(), np.asarray(rows, "<i4").tobytes())

    def __post_init__(self) -> None:
        cells = len(self.own)
        if not 1 <= cells <= MOST_CELLS or self.own.min() < 1:
            raise WrongUse(
                f"A dense strategy over {cells:,} cells.",
                allowed=f"at most {MOST_CELLS:,}",
                remedy="A tree, or a Haar wavelet, has any number of cells.",
            )

    @cached_property
    def own(self) -> Integers:
        """The diagonal of the matrix: the coefficient with which each cell is measured alone."""
        return np.frombuffer(self.diagonal, "<i4").astype(np.int64)

    @cached_property
    def more(self) -> Integers:
        """The rows of the matrix below the diagonal, as a two-dimensional array."""
        return np.frombuffer(self.rows, "<i4").astype(np.int64).reshape(-1, len(self.own))

    @cached_property
    def norm(self) -> int:
        """The L1 norm of the matrix: the largest sum of absolute values of a column."""
        return int((self.own + np.abs(self.more).sum(axis=0)).max())

    @property
    def width(self) -> str:
        """A text with the number of rows below the diagonal, in place of the block width of a
        ``Layer``.
        """
        return f"{len(self.more)} rows"

    @property
    def digest(self) -> str:
        """A hash of the matrix, which the cache key of an answer contains."""
        return hashlib.sha256(self.diagonal + b"|" + self.rows).hexdigest()

    def size(self, cells: int) -> int:
        """Returns the number of integers that are measured for a column of so many cells."""
        return cells + len(self.more)

    def apply(self, cells: Numbers) -> Numbers:
        """Returns the matrix times the counts of the cells; integer results are clipped to 2^61,
        floats are not.
        """
        if np.issubdtype(cells.dtype, np.floating):
            floats: Numbers = np.concatenate([self.own * cells, self.more @ cells])
            return floats
        # in Python's integers, which do not overflow
        wide = cells.astype(object)
        sums = np.concatenate([self.own * wide, self.more.astype(object) @ wide])
        integers: Numbers = np.clip(sums, -_LARGEST, _LARGEST).astype(np.int64)
        return integers


@dataclass(frozen=True)
class DenseStack:
    """A strategy of one dense layer, with the interface of ``Stack``.

    With B = [diag(b); C], B^T B = diag(b) (1 + T^T T) diag(b) where T = C diag(1/b), whose inverse
    needs one of the size of T T^T (Woodbury).
    """

    cells: int
    layer: DenseLayer

    @property
    def layers(self) -> tuple[DenseLayer]:
        """The only layer of the strategy, as a tuple."""
        return (self.layer,)

    def error(self, workload: Workload, precisions: Sequence[float]) -> float:
        """Returns the exact mean variance of the estimates of a workload's queries."""
        scaled = workload.gram() / np.outer(self.layer.own, self.layer.own)
        inner = float(np.einsum("ij,ji->", self._kept @ scaled, self._ratios.T))
        return (float(np.trace(scaled)) - inner) / precisions[0] / workload.queries

    def worst(self, workload: Workload, precisions: Sequence[float]) -> float:
        """Returns the largest variance of the estimate of a workload's query."""
        own = self.layer.own
        inverse = np.eye(self.cells) - self._ratios.T @ self._kept
        # above the rounding of floats, whose terms nearly cancel
        return (1 + 1e-6) * workload.peak(inverse / np.outer(own, own)) / precisions[0]

    def variance(self, query: Floats, precisions: Sequence[float]) -> float:
        """Returns the variance of the estimate of one query, given by its coefficients."""
        return float(query @ self._solved(query)) / precisions[0]

    def estimate(self, noisy: Sequence[Integers | Floats], precisions: Sequence[float]) -> Floats:
        """Returns the least-squares estimate of the cells from the noisy integers."""
        (integers,) = noisy
        own, more = np.split(np.asarray(integers, dtype=np.float64), [self.cells])
        return self._solved(self.layer.own * own + more @ self.layer.more)

    def coefficients(self, query: Floats, precisions: Sequence[float]) -> list[Floats]:
        """Returns the coefficients of the noisy integers in the estimate of a query."""
        return [self.layer.apply(self._solved(query))]

    @cached_property
    def _ratios(self) -> Floats:
        """T: the other rows over the diagonal."""
        ratios: Floats = self.layer.more / self.layer.own
        return ratios

    @cached_property
    def _kept(self) -> Floats:
        """(1 + T T^T)^-1 T."""
        gram = np.eye(len(self._ratios)) + self._ratios @ self._ratios.T
        kept: Floats = np.linalg.solve(gram, self._ratios).astype(np.float64)
        return kept

    def _solved(self, score: Floats) -> Floats:
        """(B^T B)^-1 times a score."""
        scaled = score / self.layer.own
        inverse = scaled - self._ratios.T @ (self._kept @ scaled)
        solved: Floats = inverse / self.layer.own
        return solved
