# SPDX-License-Identifier: Apache-2.0
"""Draws a frontier (accuracy against epsilon) as SVG, with the attacker's odds on a second axis."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeAlias

from sfumato.show.palette import BLUE, DASHES, LIGHT, ORANGE
from sfumato.show.svg import Figure, short, svg_document, ticks, xml_text

_WIDTH, _LEFT, _RIGHT, _TOP, _HEIGHT = 760, 66, 66, 64, 280
_TITLE = "What a guarantee costs: accuracy against epsilon"
# The least, the mean and the greatest accuracy at one epsilon.
Band: TypeAlias = tuple[float, float, float]
# Pixels from the left and from the top.
Place: TypeAlias = tuple[float, float]


@dataclass(frozen=True, slots=True)
class _Axes:
    """The axes of the plot: epsilon is logarithmic, accuracy and the attacker's share are
    linear.
    """

    epsilons: tuple[float, float]
    shares: tuple[float, float]

    def x(self, epsilon: float) -> float:
        """The pixel of an epsilon."""
        low, high = (math.log(each) for each in self.epsilons)
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * (math.log(epsilon) - low) / (high - low)

    def y(self, share: float) -> float:
        """The pixel of an accuracy."""
        low, high = self.shares
        return _TOP + _HEIGHT * (high - share) / (high - low)

    def right(self, share: float) -> float:
        """The pixel of the attacker's share, whose axis goes from 1/2 to 1."""
        return _TOP + _HEIGHT * (1 - share) * 2


def chart(
    epsilons: Sequence[float],
    bands: Sequence[Band],
    attacker: Sequence[float],
    lines: Mapping[str, float],
    band: str,
) -> Figure:
    """Returns the figure: the mean accuracy with its band, and the attacker's share as a dashed
    line.

    ``lines`` are accuracies that do not depend on epsilon, by name; ``band`` is the caption of the
    band.
    """
    every = [*lines.values(), *chain.from_iterable(bands)]
    marks = ticks(min(every), max(max(every), min(every) + 0.01))
    axes = _Axes((epsilons[0] / 1.15, epsilons[-1] * 1.15), (marks[0], marks[-1]))
    elements = [f'<text x="{_LEFT}" y="20" class="t">{xml_text(_TITLE)}</text>']
    elements += _grid(axes, marks, epsilons)
    elements += _rules(axes, lines)
    elements += _band(axes, epsilons, bands)
    odds = [(axes.x(at), axes.right(share)) for at, share in zip(epsilons, attacker, strict=True)]
    elements.append(_line(odds, ORANGE, dashed=True))
    elements += _captions(band)
    return Figure(svg_document(_TOP + _HEIGHT + 56, _TITLE, "".join(elements)))


def _places(axes: _Axes, epsilons: Sequence[float], shares: Sequence[float]) -> list[Place]:
    """Where the accuracies at some epsilons are drawn."""
    return [(axes.x(at), axes.y(share)) for at, share in zip(epsilons, shares, strict=True)]


def _band(axes: _Axes, epsilons: Sequence[float], bands: Sequence[Band]) -> Iterator[str]:
    """The area between the least and the greatest fit, and the mean in it."""
    low, mean, high = (_places(axes, epsilons, shares) for shares in zip(*bands, strict=True))
    outline = " ".join(f"{x:.1f},{y:.1f}" for x, y in [*low, *reversed(high)])
    yield f'<polygon points="{outline}" fill="{LIGHT}"/>'
    yield _line(mean, BLUE)
    for place, band in zip(mean, bands, strict=True):
        yield _dot(place, band)


def _grid(axes: _Axes, marks: Sequence[float], epsilons: Sequence[float]) -> Iterator[str]:
    """Horizontal lines with accuracies on the left and the attacker's shares on the right."""
    end = _WIDTH - _RIGHT
    for mark in marks:
        y = axes.y(mark)
        yield f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{end}" y2="{y:.1f}" class="g"/>'
        yield _text(_LEFT - 6, y + 4, f"{100 * mark:.4g}%", "end")
    for share in (0.5, 0.6, 0.7, 0.8, 0.9, 1.0):
        yield _text(end + 6, axes.right(share) + 4, f"{100 * share:.0f}%", "start", ORANGE)
    for epsilon in epsilons:
        yield _text(axes.x(epsilon), _TOP + _HEIGHT + 16, short(epsilon), "middle")


def _rules(axes: _Axes, rules: Mapping[str, float]) -> Iterator[str]:
    """Draws the accuracies that do not depend on epsilon as horizontal lines."""
    for name, share in rules.items():
        y = axes.y(share)
        line = f'x1="{_LEFT}" y1="{y:.1f}" x2="{_WIDTH - _RIGHT}" y2="{y:.1f}"'
        yield f"<line {line} {DASHES}/>"
        words = f"{name}: {100 * share:.1f}%"
        yield _text(_LEFT + 6, y - 5, words, "start")


def _line(places: Sequence[Place], colour: str, *, dashed: bool = False) -> str:
    """A line through some places."""
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    dash = ' stroke-dasharray="7 4"' if dashed else ""
    return f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>'


def _dot(position: Place, band: Band) -> str:
    """A mean with its tooltip."""
    low, mean, high = (f"{100 * share:.1f}%" for share in band)
    tip = f"<title>{mean}, from {low} to {high}</title>"
    return (
        f'<circle cx="{position[0]:.1f}" cy="{position[1]:.1f}" r="4" fill="{BLUE}">{tip}</circle>'
    )


def _captions(band: str) -> Iterator[str]:
    """What the axes and the colours are."""
    end = _WIDTH - _RIGHT
    yield _text(_LEFT, 42, f"accuracy on held-out rows; band: {band}", "start", BLUE)
    yield _text(end, 42, "the best attacker is right at most, at even odds", "end", ORANGE)
    middle = (_LEFT + end) / 2
    yield _text(middle, _TOP + _HEIGHT + 38, "epsilon (more to the right: less privacy)", "middle")


def _text(x: float, y: float, words: str, anchor: str, colour: str = "") -> str:
    """A label."""
    fill = f' style="fill:{colour}"' if colour else ""
    at = f'x="{x:.1f}" y="{y:.1f}" class="a" text-anchor="{anchor}"'
    return f"<text {at}{fill}>{xml_text(words)}</text>"
