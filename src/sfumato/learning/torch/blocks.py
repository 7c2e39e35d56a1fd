# SPDX-License-Identifier: Apache-2.0
"""Per-row gradients of one parameter as integers, so that their sum over rows is exact.

``gradients`` sums the blocks of all parameters. A block stores gradients in their cheapest form:
one vector per row, or two factors whose product over positions is the gradient. Factors are rounded
to integers before they are multiplied, so the sum is exact in any order: in float32 if the products
are small enough, else in float64. What a row adds is a function of this row only. Numbers per row
are numpy arrays, which are fast for few numbers. Proof: blocks.proof.md.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cache
from math import ceil, log2, sqrt
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from sfumato.errors import WrongUse
from sfumato.learning.features import Floats

# The inputs of a row become integers whose length in L2 has so many bits; in float32 each of them
# has so many on average.
_LENGTH_BITS, _ENTRY_BITS = 14, 5
# Products for smaller weights cost little in float64.
_SMALL = 2**16
# Integers whose products are added up in float32 count so many fine steps.
COARSE = 2.0**8
# A rounded entry is off by at most this.
_OFF = 0.55
_UNIT = 2.0**-53
# Inputs of a row that are shorter count as zeros.
_SHORTEST = 2.0**-40
# So many squares are added up in float32.
_WIDE = 2**12
# Squares that vanish in float32 add up to less, also where it has no subnormal numbers.
_VANISHED = 2.0**-100
# float32 adds up integers exactly below 2^24; the square of it, less the errors of the bound.
_SINGLE = 2.0**47.5
# Positions times features of a row, and rows of a chunk, are at most these.
LARGEST_ROW, MOST_ROWS = 2**26, 256
# So many numbers are multiplied to see whether products are exact.
_PROBED = 64
_SETTINGS = "Switch off what emulates float64 by shorter numbers."


class Block(ABC):
    """The gradients of one trained parameter for some rows, in a form whose clipped sum can be
    computed exactly in integers.

    ``squares`` bounds the squared norm of each row's gradient from above; ``amounts`` bounds the
    squared norm of the sums of its absolute products. Integers are in units of ``unit`` fine steps;
    ``rounding`` bounds in L2 how many fine steps a row's integers are away from its gradient.
    """

    squares: Floats
    amounts: Floats
    unit: float
    rounding: float

    @abstractmethod
    def integers(
        self,
        factors: Floats,
    ) -> Sequence[torch.Tensor]:
        """Returns integer tensors, with one line for each row, that represent its gradient
        multiplied by its clipping factor.

        Factors are those of the clipping divided by a fine step.
        """

    @abstractmethod
    def total(
        self,
        integers: Sequence[torch.Tensor],
    ) -> torch.Tensor:
        """Returns the exact sum of all rows' gradients, given the tensors of ``integers``: one
        integer for each entry of the parameter.
        """


class Vectors(Block):
    """A block that stores the gradient of each row as one vector."""

    def __init__(
        self,
        vectors: torch.Tensor,
    ) -> None:
        # layers under autocast return floats that are too short for bounds
        if not _are_single(vectors):
            vectors = vectors.double()
        self._vectors = vectors.flatten(1)
        with np.errstate(all="ignore"):
            self.squares = _squares(self._vectors)
        self.amounts = self.squares
        self.unit, self.rounding = COARSE, 0.0

    def integers(
        self,
        factors: Floats,
    ) -> Sequence[torch.Tensor]:
        """Returns the gradient of each row times its clipping factor, rounded towards zero."""
        return (_scaled(self._vectors, factors / self.unit).to(torch.int32),)

    def total(
        self,
        integers: Sequence[torch.Tensor],
    ) -> torch.Tensor:
        """Returns the exact sum of the integer gradients of all rows."""
        return integers[0].sum(0, dtype=torch.int32).double()


class Products(Block):
    """A block for a weight matrix (m, n), stored as layer inputs (rows, positions, n) and output
    gradients (rows, positions, m).

    The gradient of a row is the sum over positions of their outer products.
    """

    def __init__(
        self,
        inputs: torch.Tensor,
        outputs: torch.Tensor,
    ) -> None:
        positions, width, height = inputs.shape[1], inputs.shape[2], outputs.shape[2]
        if positions * width > LARGEST_ROW or len(inputs) > MOST_ROWS:
            raise WrongUse(
                f"A layer with {positions:,} positions of {width:,} inputs.",
                allowed=f"{LARGEST_ROW:,} in all",
            )
        self._longest, self.unit = 2.0**_LENGTH_BITS, 1.0
        if positions > 1 or not _are_single(inputs, outputs):
            inputs, outputs = inputs.double(), outputs.double()
        elif width * height > _SMALL:
            self._longest, self.unit = 2.0 ** (_ENTRY_BITS + ceil(log2(width) / 2)), COARSE
        self._outputs = outputs
        with np.errstate(all="ignore"):
            self._bound(self._round(inputs))
        longest = self._longest + sqrt(positions * width) / 2
        self.rounding = self.unit * _OFF * longest * sqrt(positions * height)

    def _bound(
        self,
        usable: NDArray[np.bool],
    ) -> None:
        """Bounds norms and amounts; rows that are not finite get none."""
        positions, width = self._inputs.shape[1:]
        height = self._outputs.shape[2]
        scales = np.square(self._scale)
        amounts = _squares(self._inputs) / scales * _squares(self._outputs)
        self.amounts = np.where(usable, amounts, np.nan)
        self.squares = self.amounts
        if positions > 1:
            error = 16 * (positions**2 + positions + width + height + 8) * _UNIT
            found = _product_squares(self._inputs, self._outputs) / scales
            self.squares = found + error * self.amounts

    def _round(
        self,
        inputs: torch.Tensor,
    ) -> NDArray[np.bool]:
        """Rounds the inputs to integers on a scale per row; returns which rows are finite."""
        lengths = np.sqrt(_squares(inputs))
        usable: NDArray[np.bool] = np.isfinite(lengths)
        self._some = usable & (lengths > _SHORTEST)
        some = np.where(self._some, lengths, 1.0)
        # a float over its mantissa: a power of two, exact
        self._scale = self._longest * np.frexp(some)[0] / some
        self._inputs = _scaled(inputs, np.where(self._some, self._scale, 0.0)).round_()
        return usable

    def integers(
        self,
        factors: Floats,
    ) -> Sequence[torch.Tensor]:
        """Returns the layer inputs as integers, and the output gradients times the clipping factors
        of their rows, rounded.
        """
        shares = np.where(self._some, factors / (self.unit * self._scale), 0.0)
        return self._inputs, _scaled(self._outputs, shares).round_()

    def total(
        self,
        integers: Sequence[torch.Tensor],
    ) -> torch.Tensor:
        """Returns the exact sum of all rows' gradients: the product of inputs and output gradients,
        summed over rows and positions.
        """
        inputs, outputs = (each.flatten(0, 1) for each in integers)
        is_short = self.unit == COARSE and _fits_single(inputs, outputs)
        if not (is_short and _is_exact(inputs)):
            inputs, outputs = inputs.double(), outputs.double()
            if not _is_exact(inputs):
                raise WrongUse("Products of float64 that are rounded shorter.", remedy=_SETTINGS)
        return (outputs.T @ inputs).flatten()


class Lookups(Block):
    """A block for an embedding table of ``size`` vectors, stored as the looked-up indices and their
    output gradients.

    Indices have the shape (rows, positions); the output gradients belong to them.
    """

    def __init__(
        self,
        indices: torch.Tensor,
        outputs: torch.Tensor,
        size: int,
    ) -> None:
        self._indices, self._size = indices, size
        self._outputs = outputs.double()
        positions, width = outputs.shape[1:]
        same = indices.unsqueeze(1) == indices.unsqueeze(2)
        gram = self._outputs @ self._outputs.transpose(1, 2)
        error = 16 * (positions**2 + width + 8) * _UNIT
        with np.errstate(all="ignore"):
            self.amounts = positions * self._outputs.square().sum((1, 2)).cpu().numpy()
            self.squares = (gram * same).sum((1, 2)).cpu().numpy() + error * self.amounts
        self.unit, self.rounding = 1.0, _OFF * positions * sqrt(width)

    def integers(
        self,
        factors: Floats,
    ) -> Sequence[torch.Tensor]:
        """Returns the indices, and the output gradients times the clipping factors of their rows,
        rounded.
        """
        return self._indices, _scaled(self._outputs, factors).round_()

    def total(
        self,
        integers: Sequence[torch.Tensor],
    ) -> torch.Tensor:
        """Returns the exact sum of all rows' gradients: the output gradients, summed by index."""
        indices, outputs = integers
        table = torch.zeros(
            self._size, outputs.shape[2], dtype=torch.float64, device=outputs.device
        )
        return table.index_add_(0, indices.flatten(), outputs.flatten(0, 1)).flatten()


def _are_single(*values: torch.Tensor) -> bool:
    """Whether all tensors are float32."""
    return all(each.dtype is torch.float32 for each in values)


def _squares(values: torch.Tensor) -> Floats:
    """Returns an upper bound of the squared norm of each row, in float64."""
    squares: Floats
    flat = values.flatten(1)
    width = flat.shape[1]
    if width > _WIDE:
        squares = np.zeros(len(flat))
        for part in flat.split(_WIDE, 1):
            squares += _squares(part)
        return squares
    unit = _UNIT if flat.dtype is torch.float64 else 2.0**-24
    squares = torch.linalg.vector_norm(flat, dim=1).cpu().numpy().astype(np.float64)
    squares *= 1 + (width + 8) * unit
    np.square(squares, out=squares)
    squares += _VANISHED
    return squares


def _product_squares(
    inputs: torch.Tensor,
    outputs: torch.Tensor,
) -> Floats:
    """Returns the squared norm of each row's product, up to rounding."""
    positions, width = inputs.shape[1:]
    height = outputs.shape[2]
    if positions * (width + height) < width * height:
        among_inputs = inputs @ inputs.transpose(1, 2)
        found = (among_inputs * (outputs @ outputs.transpose(1, 2))).sum((1, 2))
    else:
        found = (outputs.transpose(1, 2) @ inputs).square().sum((1, 2))
    return np.asarray(found.cpu().numpy())


def _scaled(
    values: torch.Tensor,
    factors: Floats,
) -> torch.Tensor:
    """Multiplies each row by its factor; 0 where the factor is 0, even if the row is not finite."""
    column: NDArray[Any] = factors
    if values.dtype is torch.float32:
        with np.errstate(over="ignore"):
            column = factors.astype(np.float32)
    column = column.reshape(-1, *[1] * (values.dim() - 1))
    is_some = column > 0
    found = values * torch.from_numpy(column).to(values.device)
    if is_some.all():
        return found
    return torch.where(torch.from_numpy(is_some).to(values.device), found, 0.0)


def _fits_single(
    inputs: torch.Tensor,
    outputs: torch.Tensor,
) -> bool:
    """Whether every sum of products of these integers stays below 2^24, so that float32 is
    exact.
    """
    if inputs.dtype is not torch.float32:
        return False
    longest = inputs.square().sum(0).max() * outputs.square().sum(0).max()
    return bool(longest < _SINGLE)


def _is_exact(values: torch.Tensor) -> bool:
    """Whether products of this float type are computed in full precision on this device now.

    Settings of torch and libraries replace them by shorter floats: ``autocast``,
    ``set_float32_matmul_precision``, emulated float64.
    """
    if values.device.type == "cpu" and values.dtype is torch.float64:
        # no setting shortens these
        return True
    probe, squares = _probe(values.dtype, values.device)
    return bool(torch.equal((probe @ probe).to(values.dtype), squares))


@cache
def _probe(
    kind: torch.dtype,
    device: torch.device,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns numbers that use half the bits of a float type, and their squares.

    A shorter float type cannot represent these squares.
    """
    bits = 12 if kind is torch.float32 else 26
    numbers = torch.arange(2**bits - _PROBED, 2**bits, dtype=kind, device=device)
    return torch.diag(numbers), torch.diag(numbers.square())
