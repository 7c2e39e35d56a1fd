# SPDX-License-Identifier: Apache-2.0
"""Stacks of layers over one axis: their exact error for a workload, and least squares.

The widths of a stack divide one another: 1 = w_0 | w_1 | ... | w_h, of which the last covers all
cells. Let V_j be the functions that are constant on blocks of w_j and add up to 0 in each block of
w_(j+1), and V_h the constants. They are orthogonal, and each layer acts on them as a number: the
sums of blocks of w_k act on V_j as w_k if k <= j, else as 0; the halves of w_k as w_k on V_(k-1)
(where w_k = 2 w_(k-1)). So with layers of precision p (one over the variance of their noise), the
information on V_j is one number, least squares is a sum of block averages, and the variance of any
query is exact. Source: for trees Hay et al. (2010), "Boosting the accuracy of differentially
private histograms through consistency"; the spaces are those of a multi-level Haar basis.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.errors import WrongUse
from sfumato.noise import Integers
from sfumato.synopsis.layers import Layer
from sfumato.synopsis.workload import Floats, Workload


@dataclass(frozen=True, slots=True)
class Stack:
    """A strategy's layers over the ``cells`` cells of one column; their widths divide one another.

    Raises:
        WrongUse: widths that do not begin with 1, do not divide one another or do not cover all
            cells, a layer of another width, or halves of a block that the widths do not halve.

    >>> tree = Stack(4, (1, 2, 4), (Layer(1), Layer(2)))
    >>> round(tree.variance(np.array([1.0, 1.0, 0, 0]), [1.0, 1.0]), 3)
    0.667
    """

    cells: int
    widths: tuple[int, ...]
    layers: tuple[Layer, ...]

    def __post_init__(self) -> None:
        pairs = list(zip(self.widths, self.widths[1:], strict=False))
        chained = all(wide % narrow == 0 and wide > narrow for narrow, wide in pairs)
        if self.widths[0] != 1 or not chained or self.widths[-1] < self.cells:
            raise WrongUse(
                f"Widths {self.widths} over {self.cells:,} cells.",
                allowed="1, then multiples of the width before, up to all cells",
            )
        halved = {(narrow, wide) for narrow, wide in pairs}
        for layer in self.layers:
            known = layer.width in self.widths
            if layer.halves:
                known = (layer.width // 2, layer.width) in halved
            if not known:
                raise WrongUse(f"{layer} in a stack of widths {self.widths}.")

    @property
    def padded(self) -> int:
        """The number of cells of the blocks of the largest width, including the padding."""
        return self.widths[-1]

    def information(self, precisions: Sequence[float]) -> Floats:
        """Returns the precision with which all layers together measure each orthogonal space V_j
        (see ``Chain``), given the precision of each layer.
        """
        information = np.zeros(len(self.widths))
        for layer, precision in zip(self.layers, precisions, strict=True):
            place = self.widths.index(layer.width)
            if layer.halves:
                information[place - 1] += layer.width * precision
            else:
                information[place:] += layer.width * precision
        return information

    def error(self, workload: Workload, precisions: Sequence[float]) -> float:
        """Returns the exact mean variance of the estimates of a workload's queries.

        Infinite if the layers do not determine a query.
        """
        energies = np.append(workload.energies(self.widths), 0.0)
        return _weighed(-np.diff(energies), self.information(precisions)) / workload.queries

    def worst(self, workload: Workload, precisions: Sequence[float]) -> float:
        """Returns an upper bound of the variance of every query of a workload."""
        wider = (*self.widths[1:], None)
        lengths = list(map(workload.largest, self.widths, wider))
        return _weighed(np.maximum(lengths, 0.0), self.information(precisions))

    def variance(self, query: Floats, precisions: Sequence[float]) -> float:
        """Returns the variance of the estimate of one query, given by its coefficients."""
        energies = [float((mean**2).sum()) for mean in self._means(self._pad(query))]
        lost = -np.diff(np.append(energies, 0.0))
        return _weighed(lost, self.information(precisions))

    def estimate(self, noisy: Sequence[Integers | Floats], precisions: Sequence[float]) -> Floats:
        """Returns the least-squares estimate of the cells from the noisy integers of each layer."""
        parts = [np.zeros(self.padded // width) for width in self.widths]
        for layer, integers, precision in zip(self.layers, noisy, precisions, strict=True):
            place = self.widths.index(layer.width)
            blocks = precision * np.asarray(integers, dtype=np.float64)
            if layer.halves:
                place -= 1
                blocks = np.outer(blocks, [1.0, -1.0]).ravel()
            parts[place][: len(blocks)] += blocks
        score = self._summed(parts)
        return self._solved(score, self.information(precisions))[: self.cells]

    def coefficients(self, query: Floats, precisions: Sequence[float]) -> list[Floats]:
        """Returns the coefficients of each layer's noisy integers in the estimate of a query."""
        solved = self._solved(self._pad(query), self.information(precisions))
        found = []
        for layer, precision in zip(self.layers, precisions, strict=True):
            # blocks without cells are known to be 0, and not measured
            measured = layer.apply(solved)[: layer.size(self.cells)]
            found.append(precision * measured)
        return found

    def _solved(self, score: Floats, information: Floats) -> Floats:
        """The sum over the spaces of the projection of a score, over the information there."""
        means = self._means(score)
        parts = []
        for place, width in enumerate(self.widths):
            part = means[place].copy()
            if place + 1 < len(self.widths):
                times = self.widths[place + 1] // width
                part -= np.repeat(means[place + 1] / np.sqrt(times), times)
            part /= np.sqrt(width) * information[place]
            parts.append(part)
        return self._summed(parts)

    def _summed(self, parts: Sequence[Floats]) -> Floats:
        """Returns the sum, on the cells, of one function of blocks for each width.

        From the widest on, so that it costs two passes over the cells and not one for each width.
        """
        total = parts[-1]
        for place in reversed(range(len(parts) - 1)):
            times = self.widths[place + 1] // self.widths[place]
            total = np.repeat(total, times) + parts[place]
        return total

    def _means(self, cells: Floats) -> list[Floats]:
        """For each width, the sum of each block over the root of the width: orthonormal."""
        means = [cells]
        for narrow, wide in zip(self.widths, self.widths[1:], strict=False):
            times = wide // narrow
            table = means[-1].reshape(-1, times)
            means.append(table.sum(axis=1) / np.sqrt(times))
        return means

    def _pad(self, query: Floats) -> Floats:
        padded = np.zeros(self.padded)
        padded[: self.cells] = query
        return padded


def _weighed(energies: Floats, information: Floats) -> float:
    """The sum of energies over information; infinite where there is energy without information."""
    # rounding may leave a space without energy a little below or above 0
    real = energies > 1e-9 * max(energies.max(), 0.0)
    if (information[real] <= 0).any():
        return float("inf")
    return float((energies[real] / information[real]).sum())
