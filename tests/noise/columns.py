# SPDX-License-Identifier: Apache-2.0
"""What the proof of the engine asks of a table of cells and of a curve, asked of every column in
ball arithmetic.
"""

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from flint import arb, ctx, fmpq

from sfumato.noise.curves import Exponential, Parabola
from sfumato.noise.decay import ERROR
from sfumato.noise.rejection_sampler import _FRACTION_BITS, Cells

# f(x) of a law up to its norming constant, f(0) = 1, falling to either side
F: TypeAlias = Callable[[int], arb]
Curve: TypeAlias = Exponential | Parabola

_BITS = 200


def exponential(width: Fraction) -> F:
    """e^-(|x| / width)."""
    return lambda x: (-arb(fmpq(abs(x) * width.denominator, width.numerator))).exp()


def parabola(sigma_squared: Fraction) -> F:
    """e^-(x^2 / (2 sigma^2))."""
    return lambda x: (
        -arb(fmpq(x * x * sigma_squared.denominator, 2 * sigma_squared.numerator))
    ).exp()


WIDTHS = [
    Fraction(each)
    for each in ("1e-3", "0.3", "1", "7.3", "16", "50", "100.01", "1000", "1e6", "123456789.123")
]
WIDTHS += [Fraction(10**12, 7), Fraction(2**40), Fraction(2**52)]


def laws(widths: list[Fraction]) -> Iterator[tuple[Curve, F]]:
    """Each curve of each width, and its truth."""
    for width in widths:
        yield Exponential(width, two_sided=True), exponential(width)
        yield Exponential(width, two_sided=False), exponential(width)
        yield Parabola(width**2), parabola(width**2)


LAWS = list(laws(WIDTHS))


def truth(curve: Curve) -> F:
    """The curve, in balls."""
    return (
        exponential(curve.width)
        if isinstance(curve, Exponential)
        else parabola(curve.sigma_squared)
    )


def faults(cells: Cells, f: F) -> Iterator[str]:
    """Everything that is not as the proof asks; nothing if all is well."""
    with ctx.workprec(_BITS):
        yield from _column_faults(cells, f)
        yield from _escape_faults(cells, f)


def _column_faults(cells: Cells, f: F) -> Iterator[str]:
    """Each column covers f on its block, its easy cells are wholly under f, all others are marked
    hard.
    """
    height = arb(cells.height) / arb(2) ** _FRACTION_BITS
    ends = [*cells._starts_list, cells._escape]
    table = cells.table
    if len(ends) - 1 != cells.blocks - cells.first or ends[0] != 0:
        yield "the columns are not those of the blocks"
    for number, start, end in zip(range(cells.first, cells.blocks), ends, ends[1:], strict=False):
        lowest = number << cells.shift
        highest = lowest + (1 << cells.shift) - 1
        near, far = (f(lowest), f(highest)) if number >= 0 else (f(highest), f(lowest))
        if not (end - start) * height >= near:
            yield f"column {number} does not cover the curve"
        easy = int((table[start:end] < cells._limit).sum())
        if not easy * height <= far:
            yield f"column {number} has an easy cell that is not under the curve"
        if not (
            (table[start : start + easy] == number).all()
            and (table[start + easy : end] == number + cells._hard).all()
        ):
            yield f"column {number} has cells of another name"
        if (
            not abs(cells._tops_list[number - cells.first] - 2**31 * _nearest(cells, number, f))
            <= ERROR
        ):
            yield f"the top of column {number} is too far from the curve"


def _nearest(cells: Cells, number: int, f: F) -> arb:
    """f where the rise of the energy over a block begins: at the corner nearest to 0, one further
    out for blocks of one.
    """
    if number >= 0 or cells.shift == 0:
        return f(number << cells.shift)
    return f(number + 1 << cells.shift)


def _escape_faults(cells: Cells, f: F) -> Iterator[str]:
    """The cells for the tail are there, and their hat is above the curve."""
    if not (cells.table[cells._escape :] == cells._none).all():
        yield "a cell of no column has a name"
    if (
        not cells._limit
        <= min(cells.first + cells._hard, cells._none)
        <= np.iinfo(cells.table.dtype).max
    ):
        yield "an easy cell has the name of a hard one"
    if not (len(cells.table) == 1 << cells.bits and cells._escape < cells._void <= 1 << cells.bits):
        yield "there are not as many cells as there should be"
    if cells._outside != cells.blocks << cells.shift:
        yield "the tail does not begin where the columns end"
    sides = 2 if cells.first else 1
    area = (
        (cells._void - cells._escape)
        * (1 << cells.shift)
        * Fraction(cells.height, 1 << _FRACTION_BITS)
    )
    if cells._share != 2 * cells._stretch * sides / area:
        yield "the tail's cells are not as large as its hat"
    share = arb(fmpq(cells._share.numerator, cells._share.denominator))
    for x in (cells._outside, -cells._outside)[:sides]:
        if not share * f(x) <= 1:
            yield "the hat is below the curve"


def verdict_fault(cells: Cells, f: F, number: int, offset: int, height: int) -> str | None:
    """What is wrong with the verdict on a point of a column: ``height`` counts the last known bit
    of its height.
    """
    under, above = cells._margins(number, offset, height, cells._tops_list[number - cells.first])
    with ctx.workprec(_BITS):
        value = f(number << cells.shift | offset) * arb(2) ** (_FRACTION_BITS + cells.height_bits)
        if under >= 0 and not (height + 1) * cells.height <= value:
            return "a point is called under the curve that may be above it"
        if above >= 0 and not height * cells.height >= value:
            return "a point is called above the curve that may be under it"
    return None
