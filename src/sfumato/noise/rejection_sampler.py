# SPDX-License-Identifier: Apache-2.0
"""A uniform point under a curve, by equal cells: the engine of the fast samplers.

Let f(x) = e^-energy(x) be a law up to its norming constant. The integers are cut into blocks
of B = 2^shift; above block q stands a column of n_q cells, each as wide as the block and of
one common height, so that the column covers f. A cell drawn uniformly, an x drawn uniformly
in its block and a height drawn uniformly in the cell are a uniform point; given that it
lies under f, x has exactly the law. Nearly all cells lie wholly under f: there a table
look-up and an x are the whole work, and no height is drawn. What the columns leave out, far
in the tail, is a few cells more, which stand for a geometric hat. There is no norming
constant, no float and no math library here. Proof: rejection_sampler.proof.md.
"""

from fractions import Fraction
from functools import partial
from itertools import count
from typing import Protocol, TypeVar

import numpy as np

from sfumato.noise.decay import ERROR, ONE
from sfumato.noise.entropy import Entropy, Words, below, words
from sfumato.noise.law import Integers
from sfumato.noise.lazy_uniform import is_below

# a height within a cell is known to so many bits before it is drawn on
_HEIGHT_BITS = 18
# heights are in units of 2^-44, tops in units of 2^-31
_UNIT_BITS = 44
_SLACK = 20
# blocks are called by their number; hard cells by that plus _HARD; what has no column, _NONE
_BLOCKS, _HARD, _NONE = 1 << 20, 1 << 21, 1 << 22
_SHORT_BLOCKS, _SHORT_HARD, _SHORT_NONE = 1 << 13, 1 << 14, (1 << 15) - 1
_LANES = 1 << 14
_BATCH = 32 * _LANES
_FEW = 32
_MOST = 1 << 62

# One int or many: the arithmetic of a verdict is the same, and so is its proof.
Ints = TypeVar("Ints", int, Integers)


class Rise(Protocol):
    """(d, x) -> 2^31 (energy(x + d) - energy(x)), never too high and at most 16 too low."""

    def __call__(self, distance: Ints, nearest: Ints) -> Ints:
        """One or many; below 2^31."""
        ...


class Curve(Protocol):
    """What the engine asks of a law f, which falls from f(0) = 1 to either side."""

    def __hash__(self) -> int:
        """Equal curves share their cells."""
        ...

    @property
    def two_sided(self) -> bool:
        """Whether x < 0 is possible."""
        ...

    @property
    def width(self) -> Fraction:
        """About how wide the law is; of no effect on the result."""
        ...

    @property
    def fineness(self) -> int:
        """Into how many blocks a width is best cut where speed counts; of no effect on the result."""
        ...

    def shift(self, fineness: int) -> int:
        """Blocks of 2^shift are at most a ``fineness``-th of the width, or one integer each."""
        ...

    def blocks(self, shift: int) -> int:
        """How many blocks have a column, to either side."""
        ...

    def ends(self, shift: int, blocks: int) -> tuple[Integers, Integers]:
        """2^31 f at the near and at the far end of each block, within ``ERROR``."""
        ...

    def rise(self, shift: int, farthest: int) -> Rise:
        """How -ln f rises within a block: for d <= 2^shift and x <= farthest."""
        ...

    def bounds(self, x: int, precision: int) -> tuple[int, int]:
        """lower <= 2^precision f(x) <= upper, closing in as the precision grows."""
        ...

    def halving(self, x: int) -> int:
        """s such that, beyond x and beyond -x, f at least halves with each s further out."""
        ...


class Cells:
    """The cells of one law: 2^bits of them, ``fineness`` to twice as many blocks a width.

    Guarantees:
        draws from cells follow the law exactly
        one draw and many follow the same law
    """

    def __init__(
        self, curve: Curve, *, bits: int, fineness: int, height_bits: int = _HEIGHT_BITS
    ) -> None:
        self.curve, self.bits, self.height_bits = curve, bits, height_bits
        self._height_mask = (1 << height_bits) - 1
        self.shift = curve.shift(fineness)
        self.blocks = curve.blocks(self.shift)
        self.first = -self.blocks if curve.two_sided else 0
        self._mask = (1 << self.shift) - 1
        self._rise = curve.rise(self.shift, self.blocks << self.shift)
        self._dtype = np.dtype(
            "<u2" if bits + self.shift <= 16 else "<u4" if bits + self.shift <= 32 else "<u8"
        )
        self._spare = 8 * self._dtype.itemsize - bits
        short = self.blocks <= _SHORT_BLOCKS
        self._limit, self._hard, self._none = (
            (_SHORT_BLOCKS, _SHORT_HARD, _SHORT_NONE) if short else (_BLOCKS, _HARD, _NONE)
        )
        # one word holds a cell and an offset, a longer one the height too
        if (
            self.blocks > self._limit
            or bits + self.shift > 64
            or bits + self.shift + height_bits > 96
        ):
            raise OverflowError("A table of noise whose cells do not fit a word.")
        self._build(*curve.ends(self.shift, self.blocks))
        if self.height >= 1 << _UNIT_BITS - 1:
            raise OverflowError("A table of noise whose verdicts do not fit 64 bits.")

    def _build(self, tops: Integers, lows: Integers) -> None:
        """The height of a cell, the cells of each column, and the table from cell to block."""
        outside = self.blocks << self.shift
        stretch, sides = self.curve.halving(outside), 2 if self.first else 1
        bound = max(self.curve.bounds(x, 31)[1] for x in (outside, -outside)[:sides])
        tail = -(-2 * stretch * sides * bound >> self.shift)
        areas = tops + ERROR << _UNIT_BITS - 31
        self.height = self._height(areas, tail << _UNIT_BITS - 31)
        columns = -(-areas // self.height)
        easy = np.maximum(lows - ERROR << _UNIT_BITS - 31, 0) // self.height
        starts = np.concatenate(([0], np.cumsum(columns)))
        self._escape = int(starts[-1])
        escapes = self._escapes(tail << _UNIT_BITS - 31, self.height)
        self._void = self._escape + escapes
        self._stretch, self._outside = stretch, outside
        self._share = Fraction(
            2 * stretch * sides << _UNIT_BITS, self.height * escapes << self.shift
        )
        numbers = np.arange(self.first, self.blocks)
        names = np.stack((numbers, numbers + self._hard), axis=1).ravel()
        counts = np.stack((easy, columns - easy), axis=1).ravel()
        self.table = np.repeat(
            np.append(names, self._none).astype(
                np.int16 if self._limit == _SHORT_BLOCKS else np.int32
            ),
            np.append(counts, (1 << self.bits) - self._escape),
        )
        self._cell = self.table.data
        self._starts, self._tops = starts[:-1], tops
        self._starts_list, self._tops_list = starts[:-1].tolist(), tops.tolist()

    def _height(self, areas: Integers, tail: int) -> int:
        """Nearly the least height of a cell with which 2^bits of them are enough, in units of 2^-44."""
        cells, area = 1 << self.bits, int(areas.sum()) + tail
        low, high = area >> self.bits, area // (cells - len(areas) - 2) + 1
        for _ in range(5):
            middle = (low + high + 1) // 2
            if int((-(-areas // middle)).sum()) + self._escapes(tail, middle) <= cells:
                high = middle
            else:
                low = middle
        return high

    @staticmethod
    def _escapes(tail: int, height: int) -> int:
        return max(-(-tail // height), 1)

    def fill(self, out: Integers, entropy: Entropy) -> None:
        """Overwrites a contiguous array with independent draws."""
        for start in range(0, len(out), _BATCH):
            self._batch(out[start : start + _BATCH], entropy)

    def _batch(self, out: Integers, entropy: Entropy) -> None:
        hard = [self._lanes(out, start, entropy) for start in range(0, len(out), _LANES)]
        lanes, names, drawn = (
            hard[0]
            if len(hard) == 1
            else [np.concatenate(each) for each in zip(*hard, strict=True)]
        )
        if len(lanes) > _FEW:
            self._many(out, lanes, names.astype(np.int64) - self._hard, drawn, entropy)
        elif len(lanes):
            heights = entropy.bits(len(lanes) * self.height_bits)
            out[lanes] = [
                self._settled(
                    name - self._hard, word, heights >> place & self._height_mask, entropy
                )
                for place, name, word in zip(
                    count(0, self.height_bits), names.tolist(), drawn.tolist(), strict=False
                )
            ]

    def _lanes(
        self, out: Integers, start: int, entropy: Entropy
    ) -> tuple[Integers, Integers, Words]:
        """Draws a stretch of ``out``; gives the places of the hard cells, their names, and the words drawn."""
        target = out[start : start + _LANES]
        drawn = np.empty(len(target), self._dtype)
        entropy.fill(drawn.view(np.uint8))
        names = self.table.take(drawn >> self._spare if self._spare else drawn, mode="clip")
        target[:] = names
        if self.shift:
            target <<= self.shift
            offsets = drawn & self._mask
            target |= offsets.view(np.int64) if offsets.itemsize == 8 else offsets
        hard = (names >= self._limit).nonzero()[0]
        return hard + start if start else hard, names[hard], drawn[hard]

    def _many(
        self, out: Integers, lanes: Integers, numbers: Integers, drawn: Words, entropy: Entropy
    ) -> None:
        """Settles hard cells all at once, but for the tail and for points too close to the curve."""
        cells, offsets = (
            (drawn >> self._spare).astype(np.int64),
            (drawn & self._mask).astype(np.int64),
        )
        heights = (words(len(lanes), entropy) >> 64 - self.height_bits).astype(np.int64)
        outside = cells >= self._escape
        block = np.where(outside, 0, numbers - self.first)
        places = cells - self._starts[block] << self.height_bits | heights
        under, above = self._margins(numbers, offsets, places, self._tops[block])
        no = above >= 0
        values = numbers << self.shift | offsets
        for lane in ((under < 0) & ~no | outside).nonzero()[0]:
            x = self._attempt(
                int(cells[lane]),
                int(numbers[lane]),
                int(offsets[lane]),
                int(heights[lane]),
                entropy,
            )
            no[lane], values[lane] = x is None, x or 0
        out[lanes] = values
        again = np.empty(int(no.sum()), np.int64)
        self.fill(again, entropy)
        out[lanes[no]] = again

    def _settled(self, number: int, word: int, height: int, entropy: Entropy) -> int:
        """The draw that begins with this word, which fell into a hard cell."""
        x = self._attempt(word >> self._spare, number, word & self._mask, height, entropy)
        return self.one(entropy) if x is None else x

    def one(self, entropy: Entropy) -> int:
        """One draw."""
        while True:
            word = entropy.bits(96)
            cell = word & (1 << self.bits) - 1
            name, offset = self._cell[cell], word >> self.bits & self._mask
            if name < self._limit:
                return name << self.shift | offset
            x = self._attempt(
                cell, name - self._hard, offset, word >> 96 - self.height_bits, entropy
            )
            if x is not None:
                return x

    def _attempt(
        self, cell: int, number: int, offset: int, height: int, entropy: Entropy
    ) -> int | None:
        """The draw of a hard cell, or None where its point is above the curve."""
        if cell >= self._escape:
            return self._tail(entropy) if cell < self._void else None
        block = number - self.first
        level = cell - self._starts_list[block]
        under, above = self._margins(
            number, offset, level << self.height_bits | height, self._tops_list[block]
        )
        if above >= 0:
            return None
        x = number << self.shift | offset
        return x if under >= 0 or self._is_under(x, level, height, entropy) else None

    def _margins(self, number: Ints, offset: Ints, height: Ints, top: Ints) -> tuple[Ints, Ints]:
        """By how much a point is certainly under the curve, and by how much certainly above."""
        t = number - number
        if self.shift:
            sign = number >> 63
            t = self._rise((offset ^ sign & self._mask) - sign, (number ^ sign) << self.shift)
        square = t * t >> 32
        most = ONE - t + square + _SLACK
        least = most - (square * t >> 32) - 3 * _SLACK
        # in units of 2^-62, as the products of top and fall are
        cell = self.height << _HEIGHT_BITS - self.height_bits
        start = height * cell
        return (top - ERROR) * least - (start + cell), start - (top + ERROR) * most

    def _is_under(self, x: int, level: int, height: int, entropy: Entropy) -> bool:
        """Whether the point in the cell of this level, its height known to 18 bits, is under the curve."""

        def share(precision: int) -> tuple[int, int]:
            """The part of the cell under the curve; outside [0, 1] where all or nothing is."""
            lower, upper = self.curve.bounds(x, precision + _UNIT_BITS)
            return lower // self.height - (level << precision), -(-upper // self.height) - (
                level << precision
            )

        return is_below(share, entropy, prefix=height, known=self.height_bits)

    def _tail(self, entropy: Entropy) -> int | None:
        """A draw beyond the columns under a hat that halves each ``stretch``, or None."""
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
        # no width up to 2^52 comes here with a probability above e^-1000
        return max(min(x, _MOST), -_MOST)

    def _share_of(self, x: int, turns: int, precision: int) -> tuple[int, int]:
        """2^precision times the part of the hat at x, ``turns`` stretches out, that is under the curve."""
        extra = self._share.numerator.bit_length() + turns
        lower, upper = self.curve.bounds(x, precision + extra)
        over, under = self._share.numerator << turns, self._share.denominator << extra
        return lower * over // under, -(-upper * over // under)
