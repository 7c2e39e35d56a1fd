# SPDX-License-Identifier: Apache-2.0
"""Axes, grid lines and labels of charts with two axes, as SVG; the charts of telemetry use it."""

from dataclasses import dataclass

from sfumato.show.svg import WIDTH, xml_text

TOP, HEIGHT, LEFT, RIGHT = 62, 260, 66, 24


@dataclass(frozen=True, slots=True)
class Axis:
    """A linear map from values to pixels along one axis of a chart.

    >>> Axis((0.0, 10.0), (100.0, 200.0))(2.5)
    125.0
    """

    values: tuple[float, float]
    places: tuple[float, float]

    def __call__(self, value: float) -> float:
        first, last = self.values
        start, end = self.places
        return start + (end - start) * (value - first) / (last - first)


def words(
    x: float,
    y: float,
    text: str,
    anchor: str = "start",
    kind: str = "a",
) -> str:
    """Returns an SVG text element; ``kind`` is its CSS class (t: title, h: heading, a: axis)."""
    at = f'x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}"'
    return f"<text {at}>{xml_text(text)}</text>"


def title_of(text: str, left: float = LEFT) -> str:
    """Returns the SVG element of a chart's title."""
    return words(left, 20, text, kind="t")


def upright(x: float, bottom: float, style: str = 'class="g"') -> str:
    """Returns a vertical SVG line over the full height of a chart."""
    return f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{bottom:.1f}" {style}/>'


def level(y: float, text: str) -> str:
    """Returns a horizontal grid line with its label, as SVG."""
    line = f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" class="g"/>'
    return line + words(LEFT - 6, y + 4, text, "end")


def percent(share: float) -> str:
    """Returns a share (0 to 1) as the text of a percentage.

    >>> percent(0.95), percent(0.99975)
    ('95%', '99.975%')
    """
    return f"{100 * share:.6g}%"
