# SPDX-License-Identifier: Apache-2.0
"""Exact rejection sampling under a curve, with a table of cells of equal area.

Let f(x) = e^-energy(x) be a distribution without its normalising constant. The integers are cut
into blocks of B = 2^shift. Each block has a column of cells that covers f. Every cell is as wide
as a block, and all have the same height. Draw a cell uniformly, an x uniformly in its block and
a height uniformly in the cell: a uniform point. If the point lies under f, x is accepted, and it
has exactly the distribution f; otherwise start again.

Nearly all cells lie completely under f ("easy" cells). For these a table look-up and an x suffice,
and no height is drawn. The tail beyond the columns gets a few more cells, which are sampled with
a geometric hat. There is no normalising constant, no float and no math library in this file.
Proof: rejection_sampler.proof.md.
"""

from fractions import Fraction
from functools import partial
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from sfumato.noise.decay import ERROR, ONE
from sfumato.noise.entropy import Entropy, Words, below, words
from sfumato.noise.law import Integers
from sfumato.noise.lazy_uniform import is_below

# the first bits of a height within a cell; more are drawn only if these do not decide
_HEIGHT_BITS = 18
# heights of cells have 44 fractional bits, heights of the curve ("tops") 31
_FRACTION_BITS = 44
_SLACK = 20
# the table names a block by its number, in a hard cell plus _HARD; cells without a column are _NONE
_BLOCKS = 1 << 20
_HARD = 1 << 21
_NONE = 1 << 22
_SHORT_BLOCKS = 1 << 13
_SHORT_HARD = 1 << 14
_SHORT_NONE = (1 << 15) - 1
_LANES = 1 << 14
_BATCH = 32 * _LANES
_FEW = 32
_MOST = 1 << 62

# One integer or an array: the same arithmetic, and the same proof, decide both.
Ints = TypeVar("Ints", int, Integers)


class Rise(Protocol):
    """The rise of the energy -ln f(x) over a distance d within a block of integers."""

    def __call__(self, distance: Ints, nearest: Ints) -> Ints:
        """Returns 2^31 (energy(x + d) - energy(x)), never too high, at most 16 too low, below 2^31.

        ``distance`` has the d, ``nearest`` the x.
        """
        ...


class Curve(Protocol):
    """The interface of a curve from which samples are drawn: an unnormalised distribution f with
    f(0) = 1 that falls from 0 outward.

    It is on both sides of 0 if ``two_sided``, and on 0, 1, 2, ... otherwise.
    """

    def __hash__(self) -> int:
        """Returns equal hashes for equal curves, so that they share their table of cells."""
        ...

    @property
    def two_sided(self) -> bool:
        """Whether negative x are drawn too."""
        ...

    @property
    def width(self) -> Fraction:
        """The approximate width of the curve; it has no effect on the distribution."""
        ...

    @property
    def fineness(self) -> int:
        """The number of table blocks per width of the curve that is fastest for many draws; it does
        not change the distribution.
        """
        ...

    def shift(self, fineness: int) -> int:
        """Returns the base-2 logarithm of the block length, so that blocks are at most width /
        ``fineness`` long; at least 0.
        """
        ...

    def blocks(self, shift: int) -> int:
        """Returns the number of blocks on each side of 0 that the sampling table covers; the rest
        is the tail.
        """
        ...

    def ends(self, shift: int, blocks: int) -> tuple[Integers, Integers]:
        """Returns 2^31 f at the near and far end of each block of 2^``shift`` integers, within
        ``ERROR``.
        """
        ...

    def rise(self, shift: int, farthest: int) -> Rise:
        """Returns a function for the rise of -ln f from x to x + d, for 0 <= d <= 2^shift and x <=
        farthest.
        """
        ...

    def bounds(self, x: int, precision: int) -> tuple[int, int]:
        """Returns integers lower <= 2^precision f(x) <= upper, tighter with higher precision."""
        ...

    def halving(self, x: int) -> int:
        """Returns a distance s such that beyond x and beyond -x f at least halves over each s."""
        ...


class Cells:
    """The rejection sampler of one curve: a table of 2^bits cells under the curve.

    It has ``fineness`` to 2 ``fineness`` blocks per width.

    Guarantees:
        draws from cells follow the law exactly
        one draw and many follow the same law
    """

    def __init__(
        self,
        curve: Curve,
        *,
        bits: int,
        fineness: int,
        height_bits: int = _HEIGHT_BITS,
    ) -> None:
        self.curve = curve
        self.bits = bits
        self.height_bits = height_bits
        self._height_mask = (1 << height_bits) - 1
        self.shift = curve.shift(fineness)
        self.blocks = curve.blocks(self.shift)
        self.first = -self.blocks if curve.two_sided else 0
        self._mask = (1 << self.shift) - 1
        self._rise = curve.rise(self.shift, self.blocks << self.shift)
        word_bits = bits + self.shift
        code = "<u8"
        if word_bits <= 32:
            code = "<u4"
        if word_bits <= 16:
            code = "<u2"
        self._dtype = np.dtype(code)
        self._spare = 8 * self._dtype.itemsize - bits
        self._limit = _BLOCKS
        self._hard = _HARD
        self._none = _NONE
        if self.blocks <= _SHORT_BLOCKS:
            self._limit = _SHORT_BLOCKS
            self._hard = _SHORT_HARD
            self._none = _SHORT_NONE
        # a word of 64 bits holds a cell and an offset, one of 96 the height too
        if self.blocks > self._limit or word_bits > 64 or word_bits + height_bits > 96:
            raise OverflowError("A table of noise whose cells do not fit a word.")
        self._build(*curve.ends(self.shift, self.blocks))
        if self.height >= 1 << _FRACTION_BITS - 1:
            raise OverflowError("A table of noise whose verdicts do not fit 64 bits.")

    def _build(self, tops: Integers, lows: Integers) -> None:
        """Computes the height of a cell, the cells of each column, and the look-up table."""
        outside = self.blocks << self.shift
        sides = 2 if self.first else 1
        stretch = self.curve.halving(outside)
        bound = max(self.curve.bounds(x, 31)[1] for x in (outside, -outside)[:sides])
        tail = -(-2 * stretch * sides * bound >> self.shift) << _FRACTION_BITS - 31
        areas = tops + ERROR << _FRACTION_BITS - 31
        self.height = self._height(areas, tail)
        columns = -(-areas // self.height)
        easy = np.maximum(lows - ERROR << _FRACTION_BITS - 31, 0) // self.height
        starts = np.concatenate(([0], np.cumsum(columns)))
        self._escape = int(starts[-1])
        escapes = self._escapes(tail, self.height)
        self._void = self._escape + escapes
        self._stretch = stretch
        self._outside = outside
        hat = 2 * stretch * sides << _FRACTION_BITS
        self._share = Fraction(hat, self.height * escapes << self.shift)
        self.table = self._table(easy, columns)
        self._cell = self.table.data
        self._starts = starts[:-1]
        self._tops = tops
        self._starts_list = starts[:-1].tolist()
        self._tops_list = tops.tolist()

    def _table(self, easy: Integers, columns: Integers) -> NDArray[Any]:
        """The table from a cell to the name of its block: easy cells first in each column."""
        numbers = np.arange(self.first, self.blocks)
        names = np.stack((numbers, numbers + self._hard), axis=1).ravel()
        counts = np.stack((easy, columns - easy), axis=1).ravel()
        all_names = np.append(names, self._none)
        all_counts = np.append(counts, (1 << self.bits) - self._escape)
        is_short = self._limit == _SHORT_BLOCKS
        return np.repeat(all_names.astype(np.int16 if is_short else np.int32), all_counts)

    def _height(self, areas: Integers, tail: int) -> int:
        """A nearly minimal height of a cell for which 2^bits cells suffice, times 2^44."""
        cells = 1 << self.bits
        area = int(areas.sum()) + tail
        low = area >> self.bits
        high = area // (cells - len(areas) - 2) + 1
        for _ in range(5):
            middle = (low + high + 1) // 2
            needed = int((-(-areas // middle)).sum()) + self._escapes(tail, middle)
            if needed <= cells:
                high = middle
            else:
                low = middle
        return high

    @staticmethod
    def _escapes(tail: int, height: int) -> int:
        """The number of cells for the tail: at least one."""
        return max(-(-tail // height), 1)

    def fill(self, out: Integers, entropy: Entropy) -> None:
        """Overwrites a contiguous array with independent draws."""
        for start in range(0, len(out), _BATCH):
            self._batch(out[start : start + _BATCH], entropy)

    def _batch(self, out: Integers, entropy: Entropy) -> None:
        """Draws one batch: easy cells as arrays, then the hard ones, one by one if few."""
        hard = [self._lanes(out, start, entropy) for start in range(0, len(out), _LANES)]
        if len(hard) == 1:
            lanes, names, drawn = hard[0]
        else:
            lanes, names, drawn = [np.concatenate(parts) for parts in zip(*hard, strict=True)]
        if len(lanes) > _FEW:
            self._many(out, lanes, names.astype(np.int64) - self._hard, drawn, entropy)
        elif len(lanes):
            heights = entropy.bits(len(lanes) * self.height_bits)
            values = []
            for name, word in zip(names.tolist(), drawn.tolist(), strict=True):
                height = heights & self._height_mask
                heights >>= self.height_bits
                values.append(self._settled(name - self._hard, word, height, entropy))
            out[lanes] = values

    def _lanes(
        self, out: Integers, start: int, entropy: Entropy
    ) -> tuple[Integers, Integers, Words]:
        """Draws up to ``_LANES`` values into ``out`` from ``start`` on, as if all cells were easy.

        Returns the positions of the hard cells, their names in the table, and their random words.
        """
        target = out[start : start + _LANES]
        drawn = np.empty(len(target), self._dtype)
        entropy.fill(drawn.view(np.uint8))
        cells = drawn >> self._spare if self._spare else drawn
        names = self.table.take(cells, mode="clip")
        target[:] = names
        if self.shift:
            target <<= self.shift
            offsets = drawn & self._mask
            target |= offsets.view(np.int64) if offsets.itemsize == 8 else offsets
        hard = (names >= self._limit).nonzero()[0]
        lanes = hard + start if start else hard
        return lanes, names[hard], drawn[hard]

    def _many(
        self,
        out: Integers,
        lanes: Integers,
        numbers: Integers,
        drawn: Words,
        entropy: Entropy,
    ) -> None:
        """Decides hard cells as arrays; the tail and points very close to the curve one by one.

        Rejected lanes are drawn again.
        """
        cells = (drawn >> self._spare).astype(np.int64)
        offsets = (drawn & self._mask).astype(np.int64)
        heights = (words(len(lanes), entropy) >> 64 - self.height_bits).astype(np.int64)
        outside = cells >= self._escape
        block = np.where(outside, 0, numbers - self.first)
        places = cells - self._starts[block] << self.height_bits | heights
        under, above = self._margins(numbers, offsets, places, self._tops[block])
        rejected = above >= 0
        values = numbers << self.shift | offsets
        undecided = (under < 0) & ~rejected | outside
        for lane in undecided.nonzero()[0]:
            cell = int(cells[lane])
            number = int(numbers[lane])
            offset = int(offsets[lane])
            x = self._attempt(cell, number, offset, int(heights[lane]), entropy)
            rejected[lane] = x is None
            values[lane] = x or 0
        out[lanes] = values
        again = np.empty(int(rejected.sum()), np.int64)
        self.fill(again, entropy)
        out[lanes[rejected]] = again

    def _settled(
        self,
        number: int,
        word: int,
        height: int,
        entropy: Entropy,
    ) -> int:
        """The draw of a random word whose cell is hard; a new draw if that is rejected."""
        cell = word >> self._spare
        offset = word & self._mask
        x = self._attempt(cell, number, offset, height, entropy)
        return self.one(entropy) if x is None else x

    def one(self, entropy: Entropy) -> int:
        """Returns an exact sample of the curve's distribution."""
        while True:
            word = entropy.bits(96)
            cell = word & (1 << self.bits) - 1
            name = self._cell[cell]
            offset = word >> self.bits & self._mask
            if name < self._limit:
                return name << self.shift | offset
            height = word >> 96 - self.height_bits
            x = self._attempt(cell, name - self._hard, offset, height, entropy)
            if x is not None:
                return x

    def _attempt(
        self,
        cell: int,
        number: int,
        offset: int,
        height: int,
        entropy: Entropy,
    ) -> int | None:
        """The draw of a hard cell, or None if its point is above the curve."""
        if cell >= self._escape:
            return self._tail(entropy) if cell < self._void else None
        block = number - self.first
        level = cell - self._starts_list[block]
        place = level << self.height_bits | height
        under, above = self._margins(number, offset, place, self._tops_list[block])
        if above >= 0:
            return None
        x = number << self.shift | offset
        if under >= 0 or self._is_under(x, level, height, entropy):
            return x
        return None

    def _margins(
        self,
        number: Ints,
        offset: Ints,
        height: Ints,
        top: Ints,
    ) -> tuple[Ints, Ints]:
        """Two lower bounds: how far the point is under the curve, and how far above it.

        If the first is >= 0 the point is under the curve, if the second is >= 0 above it; if
        neither is, the known bits of its height do not decide.
        """
        t = number - number
        if self.shift:
            sign = number >> 63
            distance = (offset ^ sign & self._mask) - sign
            t = self._rise(distance, (number ^ sign) << self.shift)
        square = t * t >> 32
        most = ONE - t + square + _SLACK
        least = most - (square * t >> 32) - 3 * _SLACK
        # these have 62 fractional bits, as the products with ``top`` have
        cell = self.height << _HEIGHT_BITS - self.height_bits
        start = height * cell
        under = (top - ERROR) * least - (start + cell)
        above = start - (top + ERROR) * most
        return under, above

    def _is_under(
        self,
        x: int,
        level: int,
        height: int,
        entropy: Entropy,
    ) -> bool:
        """Whether a point is under the curve, exactly; draws more bits of its height if needed.

        The point is in the cell number ``level`` of its column; ``height`` are the first bits.
        """

        def share(precision: int) -> tuple[int, int]:
            """The part of the cell under the curve; below 0 if none of it is, above 1 if all is."""
            lower, upper = self.curve.bounds(x, precision + _FRACTION_BITS)
            below_cell = level << precision
            return lower // self.height - below_cell, -(-upper // self.height) - below_cell

        return is_below(share, entropy, prefix=height, known=self.height_bits)

    def _tail(self, entropy: Entropy) -> int | None:
        """A draw beyond the columns, or None if rejected; the hat halves over each ``stretch``."""
        turns = 0
        while entropy.bits(1):
            turns += 1
        beyond = turns * self._stretch + below(self._stretch, entropy)
        negative = self.first < 0 and entropy.bits(1) == 1
        if negative and beyond == 0:
            return None
        magnitude = self._outside + beyond
        x = -magnitude if negative else magnitude
        if not is_below(partial(self._share_of, x, turns), entropy):
            return None
        # for widths up to 2^52 this cuts with a probability below e^-1000
        return max(min(x, _MOST), -_MOST)

    def _share_of(self, x: int, turns: int, precision: int) -> tuple[int, int]:
        """Bounds of 2^precision f(x) / hat(x), where x is ``turns`` stretches past the columns."""
        extra = self._share.numerator.bit_length() + turns
        lower, upper = self.curve.bounds(x, precision + extra)
        over = self._share.numerator << turns
        under = self._share.denominator << extra
        return lower * over // under, -(-upper * over // under)
