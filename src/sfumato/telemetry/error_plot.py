# SPDX-License-Identifier: Apache-2.0
"""Draws the error of estimates against the number of devices."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from sfumato.show.axes import HEIGHT, LEFT, RIGHT, TOP, Axis, level, title_of, upright, words
from sfumato.show.palette import DASHES, PALETTE
from sfumato.show.svg import WIDTH, Figure, short, svg_document

# How many powers of 10 fewer and more devices are drawn.
_DECADES = 2


@dataclass(frozen=True, slots=True)
class ErrorLine:
    """A line of an error chart: a design (such as an oracle and epsilon), and its error by the
    number of devices.
    """

    name: str
    error: float


@dataclass(frozen=True, slots=True)
class _Field:
    """The two axes, in powers of 10, and the power of the planned number of devices."""

    across: Axis
    up: Axis
    devices: float

    def place(self, line: ErrorLine, devices: float) -> tuple[float, float]:
        """Where the error of so many devices is: it falls as the root of their number."""
        error = math.log10(line.error) - (devices - self.devices) / 2
        return self.across(devices), self.up(error)


def share_text(error: float) -> str:
    """Formats an error as a share of the devices.

    >>> share_text(0.01)
    '1%'
    """
    return f"{100 * error:.4g}%"


def error_chart(
    title: str,
    axis: str,
    lines: Sequence[ErrorLine],
    devices: int,
    error_text: Callable[[float], str] = share_text,
) -> Figure:
    """Draws the error of each design over the number of devices; marks ``devices``.

    Both axes are logarithmic. ``error_text`` formats an error.
    """
    bottom = TOP + HEIGHT
    field = _field(lines, devices)
    parts = [title_of(title), *_grid(field, error_text)]
    mark = field.across(field.devices)
    parts.append(upright(mark, bottom, DASHES))
    parts.append(words(mark, TOP - 8, f"{devices:,} devices", "middle"))
    for number, line in enumerate(lines):
        colour = PALETTE[number % len(PALETTE)]
        parts += _line(line, field, colour)
        named = f"{line.name}: {error_text(line.error)}"
        parts += _name(named, TOP + 18 + 18 * number, colour)
    parts.append(words(LEFT, bottom + 36, f"number of devices; {axis}"))
    return Figure(svg_document(bottom + 46, title, "".join(parts)))


def _field(lines: Sequence[ErrorLine], devices: int) -> _Field:
    """Axes that hold all lines."""
    place = math.log10(devices)
    first = max(math.floor(place) - _DECADES, 0)
    last = math.ceil(place) + _DECADES
    errors = [math.log10(line.error) for line in lines]
    low = math.floor(min(errors) - (last - place) / 2)
    high = math.ceil(max(errors) + (place - first) / 2)
    across = Axis((first, last), (LEFT, WIDTH - RIGHT))
    return _Field(across, Axis((low, high), (TOP + HEIGHT, TOP)), place)


def _grid(field: _Field, error_text: Callable[[float], str]) -> Iterator[str]:
    """Yields the powers of 10 of errors and of devices."""
    low, high = (round(power) for power in field.up.values)
    for power in range(low, high + 1):
        yield level(field.up(power), error_text(10.0**power))
    first, last = (round(power) for power in field.across.values)
    for power in range(first, last + 1):
        yield words(field.across(power), TOP + HEIGHT + 16, short(10.0**power), "middle")


def _line(line: ErrorLine, field: _Field, colour: str) -> Iterator[str]:
    """Yields the errors of one way to ask, with a dot where the plan is."""
    ends = [field.place(line, end) for end in field.across.values]
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in ends)
    yield f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"/>'
    x, y = field.place(line, field.devices)
    yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>'


def _name(name: str, y: float, colour: str) -> Iterator[str]:
    """The name of a line in the upper right corner, which is empty because all lines fall."""
    right = WIDTH - RIGHT
    yield f'<rect x="{right - 10}" y="{y - 9:.0f}" width="10" height="10" fill="{colour}" rx="2"/>'
    yield words(right - 16, y, name, "end")
