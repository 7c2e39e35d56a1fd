# SPDX-License-Identifier: Apache-2.0
"""The statistic of a training step: the sum over units of clipped gradients.

``training`` measures it once per step. Proof: gradients.proof.md.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import sqrt
from typing import TypeAlias

import numpy as np
import torch

from sfumato.errors import InvalidDeclaration, WrongUse
from sfumato.exact.rational import power_of_two_at_most
from sfumato.learning.features import Floats
from sfumato.learning.lattice import Lattice, clip_factors
from sfumato.learning.torch.blocks import MOST_ROWS, Block, Vectors
from sfumato.learning.torch.device import ROWS, repeatable
from sfumato.learning.torch.reading import Known, Reading
from sfumato.learning.torch.recorded import Recorded
from sfumato.learning.torch.total import Total
from sfumato.noise import Integers
from sfumato.plan.rows import BoundedRows
from sfumato.privacy.distance import Distance, Norm
from sfumato.query.statistic import BoundedStatistic, Opened, Rows

# Integers of a unit are counted in steps of which the clip has at least so many, and twice at most.
_FINE = 2**29
# A step is this part of the clip at most, and that part at least.
_COARSEST, _FINEST = 2**17, 2**20
# Without signs, what a unit adds may be this many clips.
_AMOUNT = 64.0
# Rounding inside a row may take this share of the clip.
_ROUNDED = 0.02
# Rows after the stem, labels, and which rows are known.
Chunk: TypeAlias = tuple[torch.Tensor, torch.Tensor, Known]
# Entries of gradients that are held at once where each row's gradient is computed whole.
_ENTRIES = 2**23


def lattice_for(
    size: int,
    clip: Fraction,
    multiplier: Fraction,
) -> Lattice:
    """Returns the integer grid for a gradient sum of ``size`` entries, fine enough for clipping
    factors that are rounded.
    """
    step = Lattice.of(size, clip, multiplier=multiplier).step
    finest, coarsest = clip / _FINEST, power_of_two_at_most(clip / _COARSEST)
    return Lattice(size, clip, min(max(step, power_of_two_at_most(finest)), coarsest))


@dataclass(frozen=True, slots=True)
class GradientSums(BoundedStatistic[Integers]):
    """The statistic that a DP-SGD training step releases: the sum of the clipped gradients of all
    units.

    A unit's gradient is the sum over its rows, and is clipped once. ``network`` must be isolated
    (``isolation.require_isolated``): no row may affect the gradient of another. With ``whole`` the
    gradient of each row is computed as one vector, which units with several rows need.

    Guarantees:
        gradients of neighbours are as near as their distance says
        a unit with several rows is clipped once
        a gradient that is not finite counts as nothing

    Raises:
        InvalidDeclaration: units with several rows without ``whole``; a norm that is not L2.
    """

    plan: BoundedRows
    reading: Reading
    lattice: Lattice
    whole: bool
    network: Recorded = field(repr=False, compare=False)
    weights: Floats | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.plan.most > 1 and not self.whole:
            raise InvalidDeclaration("Rows of a unit that are clipped one by one.")

    def at(
        self,
        weights: Floats,
    ) -> "GradientSums":
        """Returns a copy of the statistic, whose gradients are computed at these weights of the
        network.
        """
        return replace(self, weights=weights)

    @property
    def scale(self) -> float:
        """The factor by which gradients are multiplied before they are clipped, which is 1."""
        return 1.0

    @property
    def widths(self) -> Sequence[int]:
        """The number of released integers of each gradient block: one block for each parameter, or
        a single one with ``whole``.
        """
        if self.whole:
            return (self.lattice.size,)
        return self.network.sizes

    @property
    def rows(self) -> int:
        """The number of rows whose gradients are computed in one batch; a shorter last batch is
        padded.
        """
        if self.whole:
            return int(np.clip(_ENTRIES // self.lattice.size // ROWS * ROWS, ROWS, MOST_ROWS))
        return MOST_ROWS

    def distance(
        self,
        norm: Norm,
    ) -> Distance:
        """Returns the squared L2 sensitivity of the gradient sum, in steps of the lattice,
        including all rounding.
        """
        if norm is not Norm.L2:
            raise InvalidDeclaration(f"Gradients in {norm.value}.", allowed="L2")
        return self.lattice.distance(self.plan.neighbours)

    def exact(
        self,
        opened: Opened,
    ) -> Integers:
        """Returns the exact gradient sum without noise, in steps of the lattice."""
        rows = opened.unit_rows(self.plan)
        steps = (self.lattice.step / self.fine).numerator
        with repeatable(self.network.device):
            self.load()
            return self.summed(self._units(rows) if self.whole else self._rows(opened), steps)

    def summed(
        self,
        chunks: Iterable[tuple[Sequence[Block], Known]],
        steps: int,
    ) -> Integers:
        """Returns the sum of the integer gradients of all units in ``chunks``, divided by ``steps``
        and rounded once.
        """
        totals = [Total() for _ in self.widths]
        for blocks, known in chunks:
            integers = self.integers(blocks, known)
            for total, block, each in zip(totals, blocks, integers, strict=True):
                total.add(block.total(each), block.unit)
        ends = np.cumsum(self.widths)
        found = np.empty(int(ends[-1]), np.int64)
        for total, out in zip(totals, np.split(found, ends[:-1]), strict=True):
            total.write(out, steps)
        return found

    @property
    def fine(self) -> Fraction:
        """The unit of the integers to which one unit's gradient is rounded; a power of two that
        divides the step of the lattice.
        """
        return power_of_two_at_most(self.lattice.clip / _FINE)

    def load(self) -> None:
        """Loads the weights into the network."""
        if self.weights is not None:
            self.network.load(self.weights)

    def integers(
        self,
        blocks: Sequence[Block],
        known: Known,
    ) -> Iterator[Sequence[torch.Tensor]]:
        """Yields, block by block, the clipped gradients of the units as integers, in multiples of
        ``fine``.

        A block is computed when it is requested, so that few are in memory at a time.
        """
        fine = float(self.fine)
        rounding = fine * sqrt(sum(block.rounding**2 for block in blocks))
        clip = float(self.lattice.clip)
        if rounding > _ROUNDED * clip:
            raise WrongUse("A layer with too many positions.", remedy="A larger stride or pooling.")
        scale = self.scale
        with np.errstate(all="ignore"):
            squares = np.sum([block.squares for block in blocks], axis=0) * scale**2
            amounts = np.sqrt(np.sum([block.amounts for block in blocks], axis=0)) * scale
        factors = clip_factors(
            squares,
            amounts,
            terms=self.lattice.size + len(blocks) + 64,
            clip=(clip - rounding) * (1 - 2.0**-20),
            amount=_AMOUNT * clip,
        )
        kept = np.where(known, factors * scale, 0.0) / fine
        return (block.integers(kept) for block in blocks)

    def _rows(
        self,
        opened: Opened,
    ) -> Iterator[tuple[Sequence[Block], Known]]:
        """Yields the blocks of chunks of rows, where each row is a unit.

        The output of the stem (frozen first layers) is cached as long as the rows are open.
        """
        kept = None
        if self.network.stem is not None:
            key = ("begun", self.network, self.reading, self.rows)
            kept = opened.derived(self.plan, key, self._kept)
        for x, y, known in kept or self._chunks(opened.unit_rows(self.plan)):
            # a layer may write into what it is given
            yield self.parts(x.clone() if kept else x, y), known

    def _kept(
        self,
        rows: Rows,
    ) -> Sequence[Chunk] | None:
        """Returns the chunks of all rows for the cache; None if they are larger than the rows
        themselves.
        """
        found, most = [], self.rows * rows.codes[:1].nbytes
        for chunk in self._chunks(rows):
            if chunk[0].nbytes > most:
                return None
            found.append(chunk)
        return found

    def _chunks(
        self,
        rows: Rows,
    ) -> Iterator[Chunk]:
        """Yields the outputs of the stem, the labels, and which rows have a known label."""
        for first in range(0, rows.units, self.rows):
            codes = self.reading.codes(rows, first, min(first + self.rows, rows.units))
            x, y, known = self.reading.tensors(codes, self.rows, self.network.device)
            yield self.network.begun(x), y, known

    def _units(
        self,
        rows: Rows,
    ) -> Iterator[tuple[Sequence[Block], Known]]:
        """Yields the gradients of groups of whole units; a unit longer than a chunk is a group of
        its own.
        """
        for first, last in _groups(rows.starts, self.rows):
            starts = np.asarray(rows.starts[first : last + 1])
            sums = np.zeros((self.rows, self.lattice.size))
            count = last - first
            for begin in range(int(starts[0]), int(starts[-1]), self.rows):
                end = min(begin + self.rows, int(starts[-1]))
                vectors = self._vectors(self.reading.codes(rows, begin, end))
                # only a group of one unit has several chunks
                within = starts[:-1] - starts[0]
                sums[:count] += np.add.reduceat(vectors, within, axis=0)
            known = np.arange(self.rows) < count
            yield self.blocks(sums), known

    def _vectors(
        self,
        codes: Integers,
    ) -> Floats:
        """Returns the gradient of each row; 0 where the label is missing."""
        x, y, known = self.reading.tensors(codes, self.rows, self.network.device)
        vectors = torch.cat(list(self.network.vectors(x, y)), 1).double().cpu().numpy()
        found: Floats = np.where(known[:, np.newaxis], vectors, 0.0)[: len(codes)]
        return found

    def parts(
        self,
        x: torch.Tensor,
        y: torch.Tensor,
    ) -> Sequence[Block]:
        """Returns the gradients of a chunk of rows as blocks, one for each parameter, where each
        row is a unit; ``x`` is the output of the network's stem (its frozen first layers).
        """
        return self.network.bookkeeping(x, y)

    def blocks(
        self,
        sums: Floats,
    ) -> Sequence[Block]:
        """Returns the gradients of a group of units, each summed over the unit's rows, as a single
        ``Block``.
        """
        return [Vectors(torch.from_numpy(sums).to(self.network.device))]


def _groups(
    starts: Integers,
    rows: int,
) -> Iterator[tuple[int, int]]:
    """Yields ranges of whole units with at most ``rows`` rows; a longer unit is a range of its
    own.
    """
    first, count = 0, len(starts) - 1
    while first < count:
        last = int(np.searchsorted(starts, starts[first] + rows, side="right")) - 1
        last = min(max(last, first + 1), count)
        yield first, last
        first = last
