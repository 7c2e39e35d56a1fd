# SPDX-License-Identifier: Apache-2.0
"""A fixed feature extractor for small images: histograms of oriented gradients.

Nothing is learnt, so it costs no privacy. Sources: Dalal and Triggs, "Histograms of oriented
gradients for human detection" (2005), with square roots in place of shares; Tramer and Boneh,
"Differentially private learning needs better features" (2021), on how far fixed features go.
"""

import math

import torch
from torch import nn
from torch.nn import functional

from sfumato.errors import WrongUse, shown

# Pictures are smoothed by a bell of this width, and cells lie so far apart and are so wide.
_SMOOTH, _APART, _CELL = 0.8, 3, 4
_DIRECTIONS = 8
# Edges that are weaker are drawn towards zero, beside those of the cells around.
_FAINT = 0.05
_LEAST, _MOST = 8, 64
# Keeps a root from a slope of infinity.
_TINY = 1e-12


class OrientedGradients(nn.Module):  # type: ignore[misc] # torch is not read by mypy
    """A torch module without parameters that computes eight edge strengths (0 to 1) for each cell
    of an image.

    A row is an image of ``height`` times ``width`` numbers from 0 to 1, row by row, as an
    ``sf.Array((height, width), ...)`` column provides it. Every third pixel is the middle of a
    cell. The edges of its eight directions are weighted by nearness, divided by the length of all
    edges of the surrounding cells, and the square root is taken.

    Raises:
        WrongUse: sides that are no whole numbers from 8 to 64.

    >>> OrientedGradients(28, 28)(torch.zeros(2, 784)).shape
    torch.Size([2, 648])
    """

    edges: torch.Tensor
    directions: torch.Tensor

    def __init__(
        self,
        height: int,
        width: int,
    ) -> None:
        super().__init__()
        for side in (height, width):
            if type(side) is not int or not _LEAST <= side <= _MOST:
                raise WrongUse(f"A picture with a side of {shown(side)}.", allowed="8 to 64")
        self.height, self.width = height, width
        self.register_buffer("edges", _edges(), persistent=False)
        angles = torch.arange(_DIRECTIONS) * (2 * math.pi / _DIRECTIONS)
        both = torch.stack([angles.cos(), angles.sin()])
        self.register_buffer("directions", both.reshape(2, _DIRECTIONS, 1, 1), persistent=False)

    def forward(
        self,
        x: torch.Tensor,
    ) -> torch.Tensor:
        """Returns the edge strengths of each image in a batch."""
        pictures = x.reshape(-1, 1, self.height, self.width)
        slopes = functional.conv2d(pictures, self.edges, padding=self.edges.shape[-1] // 2)
        strength = (slopes.square().sum(1, keepdim=True) + _TINY).sqrt()
        along = slopes[:, :1] * self.directions[0] + slopes[:, 1:] * self.directions[1]
        near = (along / strength).relu()
        # a square twice is a pyramid: neighbouring cells overlap
        cells = functional.avg_pool2d(strength * near * near * near, _CELL, 1, _CELL // 2)
        cells = functional.avg_pool2d(cells, _CELL, _APART)
        around = functional.avg_pool2d(cells.square().sum(1, keepdim=True), 3, 1, 1) * 9
        return (cells / (around + _FAINT**2).sqrt()).sqrt().flatten(1)


def _edges() -> torch.Tensor:
    """Returns the filters for horizontal and vertical brightness differences: (2, 1, size,
    size).
    """
    reach = math.ceil(3 * _SMOOTH)
    places = torch.arange(-reach, reach + 1).float()
    bell = torch.exp(-(places**2) / (2 * _SMOOTH**2))
    bell = bell / bell.sum()
    slope = places * bell
    slope = slope / slope.abs().sum()
    return torch.stack([torch.outer(bell, slope), torch.outer(slope, bell)]).unsqueeze(1)
