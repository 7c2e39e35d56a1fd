# SPDX-License-Identifier: Apache-2.0
"""The gradient of one parameter for each row of a chunk, as integers whose sum is exact.

A block has the gradients of some rows in the form in which they are cheap: a vector for each row,
or two factors whose product over positions is the gradient. Factors are rounded to integers before
they are multiplied. So the product over all rows is one of integers, exact in float64 in any
order, and what a row adds is a function of this row alone. Proof: blocks.proof.md.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from math import sqrt

import torch

from sfumato.errors import WrongUse

# Inputs of a row become integers of this length in L2, in bits.
_INPUT_BITS = 17
# A rounded entry is off by at most this.
_OFF = 0.51
_UNIT = 2.0**-53
# Positions times features of a row, and rows of a chunk, are at most these.
LARGEST_ROW, MOST_ROWS = 2**26, 256


class Block(ABC):
    """The gradients of one parameter, row by row.

    ``squares`` bounds the squared length of each row's gradient from above, ``amounts`` the square
    of what its products add up to without signs; ``rounding`` bounds in L2 by how many integers
    the integers of a row differ from its gradient.
    """

    squares: torch.Tensor
    amounts: torch.Tensor
    rounding: float

    @abstractmethod
    def integers(
        self,
        factors: torch.Tensor,
    ) -> Sequence[torch.Tensor]:
        """The integers of each row whose gradient is multiplied by its factor; first axis: rows."""

    @abstractmethod
    def total(
        self,
        integers: Sequence[torch.Tensor],
    ) -> torch.Tensor:
        """The exact sum of the integers of all rows, one for each entry of the parameter."""


class Vectors(Block):
    """A vector for each row."""

    def __init__(
        self,
        vectors: torch.Tensor,
    ) -> None:
        self._vectors = vectors.double().flatten(1)
        self.squares = self._vectors.square().sum(1)
        self.amounts = self.squares
        self.rounding = 0.0

    def integers(
        self,
        factors: torch.Tensor,
    ) -> Sequence[torch.Tensor]:
        """Each vector times its factor, rounded towards zero."""
        return (_kept(self._vectors * _column(factors, 2), factors).trunc(),)

    def total(
        self,
        integers: Sequence[torch.Tensor],
    ) -> torch.Tensor:
        """The sum of the vectors."""
        return integers[0].sum(0)


class Products(Block):
    """Inputs (rows, positions, n) and output gradients (rows, positions, m): gradients (m, n)."""

    def __init__(
        self,
        inputs: torch.Tensor,
        outputs: torch.Tensor,
    ) -> None:
        self._outputs = outputs.double()
        positions, width, height = inputs.shape[1], inputs.shape[2], outputs.shape[2]
        if positions * width > LARGEST_ROW or len(inputs) > MOST_ROWS:
            raise WrongUse(
                f"A layer with {positions:,} positions of {width:,} inputs.",
                allowed=f"{LARGEST_ROW:,} in all",
            )
        usable = self._round(inputs.double())
        kept = self._inputs / _column(self._scale, 3)
        self.amounts = kept.square().sum((1, 2)) * self._outputs.square().sum((1, 2))
        self.amounts = torch.where(usable, self.amounts, torch.nan)
        error = 16 * (positions**2 + positions + width + height + 8) * _UNIT
        self.squares = _product_squares(kept, self._outputs) + error * self.amounts
        longest = 2.0**_INPUT_BITS * (1 + 2**-20) + sqrt(positions * width) / 2
        self.rounding = _OFF * longest * sqrt(positions * height)

    def _round(
        self,
        inputs: torch.Tensor,
    ) -> torch.Tensor:
        """Makes integers of the inputs, on a scale of each row; which rows are finite."""
        lengths = inputs.square().sum((1, 2)).sqrt()
        usable = torch.isfinite(lengths)
        some = torch.where(usable & (lengths > 0), lengths, 1.0)
        # a float over its mantissa: a power of two, exact
        self._scale = 2.0**_INPUT_BITS * torch.frexp(some).mantissa / some
        scaled = inputs * _column(self._scale, 3)
        self._inputs = torch.where(_column(usable, 3), scaled, 0.0).round()
        return usable

    def integers(
        self,
        factors: torch.Tensor,
    ) -> Sequence[torch.Tensor]:
        """The inputs, and the output gradients times the factors, as integers."""
        shares = factors / self._scale
        return self._inputs, _kept(self._outputs * _column(shares, 3), factors).round()

    def total(
        self,
        integers: Sequence[torch.Tensor],
    ) -> torch.Tensor:
        """One product over rows and positions."""
        inputs, outputs = integers
        return (outputs.flatten(0, 1).T @ inputs.flatten(0, 1)).flatten()


class Lookups(Block):
    """Indices (rows, positions) into a table of ``size`` vectors, and output gradients."""

    def __init__(
        self,
        indices: torch.Tensor,
        outputs: torch.Tensor,
        size: int,
    ) -> None:
        self._indices, self._size = indices, size
        self._outputs = outputs.double()
        positions, width = outputs.shape[1:]
        self.amounts = positions * self._outputs.square().sum((1, 2))
        same = indices.unsqueeze(1) == indices.unsqueeze(2)
        gram = self._outputs @ self._outputs.transpose(1, 2)
        error = 16 * (positions**2 + width + 8) * _UNIT
        self.squares = (gram * same).sum((1, 2)) + error * self.amounts
        self.rounding = _OFF * positions * sqrt(width)

    def integers(
        self,
        factors: torch.Tensor,
    ) -> Sequence[torch.Tensor]:
        """The indices, and the output gradients times the factors, as integers."""
        return self._indices, _kept(self._outputs * _column(factors, 3), factors).round()

    def total(
        self,
        integers: Sequence[torch.Tensor],
    ) -> torch.Tensor:
        """The output gradients added up by index."""
        indices, outputs = integers
        table = torch.zeros(self._size, outputs.shape[2], dtype=torch.float64)
        return table.index_add_(0, indices.flatten(), outputs.flatten(0, 1)).flatten()


def _product_squares(
    inputs: torch.Tensor,
    outputs: torch.Tensor,
) -> torch.Tensor:
    """The squared length of each row's product, up to rounding."""
    positions, width = inputs.shape[1:]
    height = outputs.shape[2]
    if positions == 1:
        return inputs.square().sum((1, 2)) * outputs.square().sum((1, 2))
    if positions * (width + height) < width * height:
        among_inputs = inputs @ inputs.transpose(1, 2)
        return (among_inputs * (outputs @ outputs.transpose(1, 2))).sum((1, 2))
    return (outputs.transpose(1, 2) @ inputs).square().sum((1, 2))


def _column(
    numbers: torch.Tensor,
    axes: int,
) -> torch.Tensor:
    """One number a row, against ``axes`` axes."""
    return numbers.reshape(-1, *[1] * (axes - 1))


def _kept(
    values: torch.Tensor,
    factors: torch.Tensor,
) -> torch.Tensor:
    """The values of rows whose factor is above 0; 0 for the others, whatever they hold."""
    return torch.where(_column(factors, values.dim()) > 0, values, 0.0)
