# SPDX-License-Identifier: Apache-2.0
"""Improves estimates by impossible cells: cells that are known to be 0.

The estimate of an impossible cell is pure noise, and the errors of the cells of an area are
correlated. Their covariance C is the sum over the residuals of the residual's variance times the
projection on it. So the best estimate of the other cells, given the impossible cells Z, is y - C[:,
Z] C[Z, Z]^-1 y[Z]. One matrix is used for all areas of a level, from the mean variances of the
level; the estimate is unbiased for any matrix, since y[Z] has mean 0.
"""

import numpy as np

from sfumato.synopsis.geography.design import Axes, Design
from sfumato.synopsis.geography.least_squares import (
    LeastSquares,
    by_axes,
)
from sfumato.synopsis.geography.tree import Floats
from sfumato.synopsis.geography.tree_squares import Mask

# With more cells in the detail of a level, the matrix would take longer than the rest.
_MOST_CELLS = 2048


def impossible_in(impossible: Mask, axes: Axes) -> Mask:
    """Returns a mask over the cells of a table by some axes: those that cover impossible cells
    only.
    """
    every = tuple(range(impossible.ndim))
    possible = by_axes((~impossible[None]).astype(np.int64), every, axes)
    found: Mask = possible[0] == 0
    return found


def conditioned(
    squares: LeastSquares,
    estimates: list[Floats],
    impossible: Mask,
) -> list[Floats]:
    """Returns the estimates of each level's detail table, corrected so that impossible cells are 0.

    A level whose detail table has more than 2,048 cells stays unchanged.
    """
    conditioned_estimates = []
    for level, estimate in enumerate(estimates):
        axes = squares.design.detail(level)
        never = impossible_in(impossible, axes).ravel()
        cells = estimate.reshape(len(estimate), -1)
        if never.any() and len(never) <= _MOST_CELLS:
            covariance = _covariance(squares, level)
            within = covariance[np.ix_(never, never)]
            inverse = np.linalg.pinv(within, rcond=1e-9, hermitian=True)
            moves = covariance[:, never] @ inverse
            cells = cells - cells[:, never] @ moves.T
        conditioned_estimates.append(cells.reshape(estimate.shape))
    return conditioned_estimates


def _covariance(squares: LeastSquares, level: int) -> Floats:
    """The covariance of the cells of the detail of an area, by the mean variances of its level."""
    design = squares.design
    axes = design.detail(level)
    size = design.cells(axes)
    found = np.zeros((size, size))
    for residual in design.residuals(level):
        variance = squares.residual_variances(residual, level).mean()
        outside = design.outside(residual, axes)
        found += variance / outside * _projection(design, residual, axes)
    return found


def _projection(design: Design, residual: Axes, axes: Axes) -> Floats:
    """Returns the projection of the cells of a table on a residual: a Kronecker product."""
    projection = np.ones((1, 1))
    for axis in axes:
        size = design.sizes[axis]
        mean = np.full((size, size), 1 / size)
        part = np.eye(size) - mean if axis in residual else mean
        projection = np.kron(projection, part)
    return projection
