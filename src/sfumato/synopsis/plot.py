# SPDX-License-Identifier: Apache-2.0
"""Draws a synopsis as SVG: ranges with intervals, a heat map, and the layers of a strategy."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self, TypeAlias

import numpy as np

from sfumato.metadata.column import Text
from sfumato.plan.value import GroupKey
from sfumato.show.palette import BLUE, LIGHT, ORANGE
from sfumato.show.render import number
from sfumato.show.svg import Figure, short, svg_document, ticks, xml_text
from sfumato.synopsis.estimate import Estimate
from sfumato.synopsis.workload import Floats

# The most steps of a band, the most rows and columns of a map, and the most blocks of a layer.
STEPS, TILES, _BLOCKS = 200, 40, 256
_WIDTH, _LEFT, _RIGHT, _TOP = 760, 66, 20, 44
_HEIGHT, _STRIP = 220, 26
# From few to many.
_FEW, _MANY = (243, 246, 250), (29, 78, 137)
_LETTERS = 11
# The left, top, width and height of a tile.
Box: TypeAlias = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Strip:
    """A layer as a picture: its blocks, the cells that each covers, and its share of the cost.

    The last block may extend beyond the cells.
    """

    name: str
    width: float
    blocks: int
    cells: int
    share: float
    halves: bool = False


def _spans(cells: int, most: int) -> list[tuple[int, int]]:
    """The cells in at most so many groups of neighbours of one size: each group's first and end.

    >>> _spans(7, 3)
    [(0, 3), (3, 6), (6, 7)]
    """
    size = -(-cells // most)
    return [(first, min(first + size, cells)) for first in range(0, cells, size)]


def _names_of(labels: Sequence[str], groups: Sequence[tuple[int, int]]) -> list[str]:
    """Returns the name of each group of values: one value, or the first and the last.

    >>> _names_of(["a", "b", "c"], [(0, 2), (2, 3)])
    ['a to b', 'c']
    """
    found = []
    for first, end in groups:
        found.append(labels[first] if end == first + 1 else f"{labels[first]} to {labels[end - 1]}")
    return found


def bands(
    title: str,
    axis: str,
    names: Sequence[str],
    rows: Sequence[Estimate],
    *,
    note: str = "",
) -> Figure:
    """Draws a step for each value, or range of values, with its interval as a band.

    Each sentence of ``note`` is a line below the picture; sentences end with semicolons.
    """
    low = min(0.0, *(row.low for row in rows))
    marks = ticks(low, max(*(row.high for row in rows), low + 1))
    step = (_WIDTH - _LEFT - _RIGHT) / len(rows)

    def y(value: float) -> float:
        share = (value - marks[0]) / (marks[-1] - marks[0])
        return _TOP + _HEIGHT * (1 - share)

    parts = [_title(title)]
    for mark in marks:
        parts.append(_rule(y(mark), short(mark)))
    line: list[str] = []
    for place, (name, row) in enumerate(zip(names, rows, strict=True)):
        left = _LEFT + place * step
        box = f'x="{left:.1f}" y="{y(row.high):.1f}" width="{step:.2f}"'
        tip = f"<title>{xml_text(name)}: {xml_text(repr(row))}</title>"
        height = y(row.low) - y(row.high)
        parts.append(f'<rect {box} height="{height:.1f}" fill="{LIGHT}">{tip}</rect>')
        line.append(f"{'L' if line else 'M'}{left:.1f} {y(row.value):.1f}h{step:.2f}")
    parts.append(f'<path d="{"".join(line)}" fill="none" stroke="{BLUE}" stroke-width="1.6"/>')
    parts += _below(names, step, _TOP + _HEIGHT)
    return _captioned(title, parts, f"{axis}; band: 95% interval of each; {note}")


def _captioned(title: str, parts: Sequence[str], caption: str) -> Figure:
    """Returns a picture with lines of text below it, which end with semicolons."""
    bottom = _TOP + _HEIGHT + 38
    first, *rest = caption.removesuffix("; ").split("; ")
    texts = []
    for place, words in enumerate([f"{first}; {rest[0]}", *rest[1:]]):
        at = f'x="{_LEFT}" y="{bottom + 16 * place}" class="a"'
        texts.append(f"<text {at}>{xml_text(words)}</text>")
    height = bottom + 16 * len(texts) - 4
    return Figure(svg_document(height, title, "".join([*parts, *texts])))


def heat_map(
    title: str,
    axes: tuple[str, str],
    names: tuple[Sequence[str], Sequence[str]],
    rows: Sequence[Sequence[Estimate]],
) -> Figure:
    """Draws a tile for each pair of values, darker for more rows; tooltips have the interval."""
    every = [each for row in rows for each in row]
    most = max(1.0, *(each.value for each in every))
    height = min(26.0, 520 / len(rows))
    left = _LEFT + 70
    width = (_WIDTH - left - _RIGHT) / len(rows[0])
    parts = [_title(title)]
    for place, (name, row) in enumerate(zip(names[0], rows, strict=True)):
        top = _TOP + place * height
        if place % max(1, round(14 / height)) == 0:
            parts.append(_beside(name, left - 6, top + height / 2 + 4))
        tips = [f"{name}, {under}: " for under in names[1]]
        parts += _tiles(tips, row, most, (left, top, width, height))
    bottom = _TOP + len(rows) * height
    parts += _below(names[1], width, bottom, left)
    widest = max(each.high - each.value for each in every)
    caption = f"{axes[0]} by {axes[1]}; each is off by at most {number(widest)} (95%)"
    parts += _scale(most, caption, left, bottom + 34)
    return Figure(svg_document(bottom + 58, title, "".join(parts)))


def layers(title: str, strips: Sequence[Strip]) -> Figure:
    """Draws the layers of a strategy one above the other, with their blocks and shares of the cost."""
    left, parts = _LEFT + 90, [_title(title)]
    width = _WIDTH - left - 90
    for place, strip in enumerate(strips):
        top = _TOP + place * _STRIP
        at = f'y="{top + _STRIP / 2 + 2:.1f}" class="a"'
        parts.append(f'<text x="{left - 8}" {at} text-anchor="end">{xml_text(strip.name)}</text>')
        parts += _blocks(strip, left, top, width)
        share = f"{100 * strip.share:.3g}% of cost"
        parts.append(f'<text x="{left + width + 8}" {at}>{share}</text>')
    bottom = _TOP + len(strips) * _STRIP
    caption = "a box: one noisy integer, the sum of its values; two colours: their difference"
    parts.append(f'<text x="{left}" y="{bottom + 18}" class="a">{caption}</text>')
    return Figure(svg_document(bottom + 30, title, "".join(parts)))


def _blocks(strip: Strip, left: float, top: float, width: float) -> Iterator[str]:
    """Yields the blocks of a layer; with more than can be told apart, one box for all of them."""
    size = f'y="{top}" height="{_STRIP - 8}"'
    if strip.blocks > _BLOCKS:
        words = f"{strip.blocks:,} blocks"
        yield f'<rect x="{left}" {size} width="{width}" fill="{BLUE}" opacity="0.75"/>'
        at = f'x="{left + width / 2:.1f}" y="{top + 13}" text-anchor="middle"'
        yield f'<text {at} font-size="12" fill="#fff">{words}</text>'
        return
    cell = width / strip.cells
    gap = min(2.0, strip.width * cell / 4)
    for place in range(strip.blocks):
        first, end = place * strip.width, min((place + 1) * strip.width, strip.cells)
        middle = min(first + strip.width / 2, end) if strip.halves else end
        for start, stop, colour in ((first, middle, BLUE), (middle, end, ORANGE)):
            wide = (stop - start) * cell - (gap if stop == end else 0.0)
            if stop > start:
                at = f'x="{left + start * cell:.2f}" {size} width="{wide:.2f}"'
                yield f'<rect {at} fill="{colour}"/>'


def _beside(name: str, right: float, middle: float) -> str:
    """Returns the name of a row of a map."""
    at = f'x="{right}" y="{middle:.1f}" text-anchor="end"'
    return f'<text {at} class="a">{_short_name(name, 20)}</text>'


def _tiles(tips: Sequence[str], row: Sequence[Estimate], most: float, at: Box) -> Iterator[str]:
    """A row of a map: a tile for each estimate, with its tooltip, from the box of the first."""
    left, top, width, height = at
    size = f'y="{top:.1f}" width="{width:.2f}" height="{height:.1f}"'
    for place, (tip, cell) in enumerate(zip(tips, row, strict=True)):
        box = f'x="{left + place * width:.1f}" {size} fill="{_colour(cell.value / most)}"'
        yield f"<rect {box}><title>{xml_text(tip + repr(cell))}</title></rect>"


def _title(title: str) -> str:
    return f'<text x="{_LEFT}" y="20" class="t">{xml_text(title)}</text>'


def _rule(y: float, words: str) -> str:
    """Returns a horizontal grid line with its number."""
    line = f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{_WIDTH - _RIGHT}" y2="{y:.1f}" class="g"/>'
    at = f'x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end"'
    return f'{line}<text {at} class="a">{words}</text>'


def _below(names: Sequence[str], step: float, bottom: float, left: float = _LEFT) -> Iterator[str]:
    """Yields some of the names below the picture, as many as there is room for."""
    longest = max(min(len(name), _LETTERS) for name in names)
    every = max(1, int(-(-(7 * longest + 8) // step)))
    for place in range(0, len(names), every):
        middle = left + (place + 0.5) * step
        at = f'x="{middle:.1f}" y="{bottom + 16:.1f}" text-anchor="middle"'
        yield f'<text {at} class="a">{_short_name(names[place], _LETTERS)}</text>'


def _scale(most: float, caption: str, left: float, top: float) -> Iterator[str]:
    """Yields the colours of a map, and what it shows."""
    for place in range(10):
        at = f'x="{left + place * 12}" y="{top:.1f}" width="12" height="10"'
        yield f'<rect {at} fill="{_colour(place / 9)}"/>'
    yield f'<text x="{left + 126}" y="{top + 10:.1f}" class="a">{short(round(most))}</text>'
    yield f'<text x="{left + 190}" y="{top + 10:.1f}" class="a">{xml_text(caption)}</text>'


def _short_name(name: str, letters: int) -> str:
    """Returns the first of the values of a group, if both are too long."""
    first = name if len(name) <= letters else name.partition(" to ")[0]
    return xml_text(first[:letters])


def _colour(share: float) -> str:
    """Returns the colour of a share of the most; of less than 0 that of 0."""
    inside = min(max(share, 0.0), 1.0)
    parts = [round(few + (many - few) * inside) for few, many in zip(_FEW, _MANY, strict=True)]
    return "#" + "".join(f"{part:02x}" for part in parts)


def values_of(axis: GroupKey) -> list[object]:
    """Returns the declared values of an axis."""
    kind = axis.value.type
    assert not isinstance(kind, Text), "a cube has no open axis"
    return [kind.decode(code) for code in axis.codes or ()]


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups of neighbouring values of an axis, as a chart shows them.

    ``names`` are the labels, ``queries`` the cells of each group as 1 and others as 0.
    """

    names: list[str]
    queries: list[Floats]

    @classmethod
    def of(cls, axis: GroupKey, most: int) -> Self:
        """Makes at most ``most`` groups of equal size; the last cell may be missing values."""
        words = [str(value) for value in values_of(axis)]
        spans = _spans(len(words), most)
        queries = []
        for first, end in spans:
            query = np.zeros(len(words) + 1)
            query[first:end] = 1.0
            queries.append(query)
        return cls(_names_of(words, spans), queries)
