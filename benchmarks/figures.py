# SPDX-License-Identifier: Apache-2.0
"""The pictures of docs/noise.md: ``make figures``.

``noise-speed.svg`` is drawn from results/noise.json, ``noise-law.svg`` from a million draws,
which are replayed so that the file only changes with what it shows.
"""

import html
import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.driver import OURS, ROOT
from benchmarks.noise import LAWS, RESULTS, SCALES, title
from sfumato.noise import DiscreteGaussian, DiscreteLaplace, Law
from sfumato.testing import Replay

FOLDER = ROOT / "docs" / "figures"
DRAWS = 10**6
_WIDTH, _HEIGHT = 760, 340
_LEFTS = 62, 434
_COLOURS = {OURS: "#3b6ea5", "numpy": "#c8794a", "opendp": "#5b9a68"}
_NAMES = {OURS: "sfumato, exact", "numpy": "numpy, unsafe floats", "opendp": "OpenDP, exact"}
_STYLE = (
    "<style>.t{font-size:14px;font-weight:600;fill:#222}.a{font-size:12px;fill:#555}.n{font-size:12px;font-weight:600}"
    ".g{stroke:#e6e6e6}.l{fill:none;stroke-width:2.2;stroke-linejoin:round}.b{fill:#a9c3de}.d{fill:#b5532a}</style>"
)

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Axis:
    """From a value to a place in the picture, linear or logarithmic."""

    low: float
    high: float
    start: float
    end: float
    log: bool = True

    def __call__(self, value: float) -> float:
        low, high, at = (
            math.log(each) if self.log else each for each in (self.low, self.high, value)
        )
        return self.start + (at - low) / (high - low) * (self.end - self.start)


@dataclass(frozen=True, slots=True)
class Panel:
    """Two axes and the ticks that are named on them."""

    title: str
    x: Axis
    y: Axis
    x_ticks: Sequence[tuple[float, str]]
    y_ticks: Sequence[tuple[float, str]]

    def frame(self, x_name: str) -> str:
        """Title, grid and ticks."""
        left, right, bottom = self.x.start, self.x.end, self.y.start
        parts = [
            _text(left, self.y.end - 14, self.title, "t"),
            _text((left + right) / 2, bottom + 38, x_name, "a", "middle"),
        ]
        for value, name in self.y_ticks:
            y = self.y(value)
            parts.append(
                f'<line x1="{left:.1f}" x2="{right:.1f}" y1="{y:.1f}" y2="{y:.1f}" class="g"/>'
            )
            parts.append(_text(left - 6, y + 4, name, "a", "end"))
        parts += [
            _text(self.x(value), bottom + 18, name, "a", "middle") for value, name in self.x_ticks
        ]
        return "".join(parts)

    def line(self, points: Sequence[Point], colour: str) -> str:
        """A line with a dot at each point."""
        places = [(self.x(x), self.y(y)) for x, y in points]
        path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
        dots = "".join(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places
        )
        return f'<path d="{path}" class="l" stroke="{colour}"/>{dots}'


def speed(rows: Sequence[dict[str, Any]]) -> str:
    """Time a sample over the scale: ours and numpy's of a million, OpenDP's of 100,000."""
    taken = {(row["case"], row["peer_name"]): row for row in rows}
    parts = []
    for law, left in zip(LAWS, _LEFTS, strict=True):
        panel = Panel(
            f"Discrete {law.capitalize()}: time a sample",
            Axis(SCALES[0], SCALES[-1], left, left + 310),
            Axis(1, 1e5, _HEIGHT - 62, 48),
            list(zip(SCALES, ("0.1", "1", "16", "", "1,000", "10⁶", "2⁴⁰"), strict=True)),
            [
                (1, "1 ns"),
                (10, "10 ns"),
                (100, "100 ns"),
                (1e3, "1 µs"),
                (1e4, "10 µs"),
                (1e5, "100 µs"),
            ],
        )
        name = "scale" if law == "laplace" else "sigma"
        parts.append(panel.frame(f"{name}; arrays of 1,000,000, OpenDP's of 100,000"))
        million = [taken[title(law, scale, 10**6), "numpy"] for scale in SCALES]
        exact = [taken[title(law, scale, 10**5), "opendp"] for scale in SCALES]
        parts.append(_curve(panel, OURS, [row["ours"] for row in million]))
        parts.append(_curve(panel, "numpy", [row["peer"] for row in million]))
        parts.append(_curve(panel, "opendp", [row["peer"] for row in exact]))
    return _document("Time a sample of sfumato, numpy and OpenDP over the scale", "".join(parts))


def _curve(panel: Panel, system: str, taken: Sequence[float | None]) -> str:
    """A line and its name: ours below it, others above. Nothing for a peer that was skipped."""
    points = [(scale, time) for scale, time in zip(SCALES, taken, strict=True) if time is not None]
    if not points:
        return ""
    last = [panel.y(time) for _, time in points[-3:]]
    y = max(last) + 19 if system == OURS else min(last) - 9
    colour = _COLOURS[system]
    return panel.line(points, colour) + _text(panel.x.end, y, _NAMES[system], "n", "end", colour)


def law() -> str:
    """How often each integer was drawn, and how often it should be."""
    parts = [
        _histogram("Discrete Laplace, scale 2.5", DiscreteLaplace("2.5"), 32, _LEFTS[0]),
        _histogram("Discrete Gaussian, sigma 3", DiscreteGaussian(3), 16, _LEFTS[1]),
    ]
    return _document("Draws of both laws beside their exact probabilities", "".join(parts))


def _histogram(name: str, noise: Law, reach: int, left: int) -> str:
    panel = Panel(
        name,
        Axis(-reach - 1, reach + 1, left, left + 310, log=False),
        Axis(5e-7, 1, _HEIGHT - 62, 48),
        [(value, f"{value}") for value in range(-reach, reach + 1, reach // 4)],
        [(10.0**-power, f"10{_raised(-power)}" if power else "1") for power in range(7)],
    )
    width = 0.8 * (panel.x(1) - panel.x(0))
    drawn = Counter(noise.sample(DRAWS, Replay(1)).tolist())
    parts = [panel.frame(f"{DRAWS:,} draws (bars) and the exact law (dots)")]
    for value in range(-reach, reach + 1):
        x, floor = panel.x(value), panel.y.start
        if drawn[value]:
            y = panel.y(drawn[value] / DRAWS)
            size = f'width="{width:.1f}" height="{floor - y:.1f}"'
            parts.append(f'<rect x="{x - width / 2:.1f}" y="{y:.1f}" {size} class="b"/>')
        if (chance := noise.pmf(value).upper) >= panel.y.low:
            parts.append(f'<circle cx="{x:.1f}" cy="{panel.y(chance):.1f}" r="1.8" class="d"/>')
    return "".join(parts)


def _raised(power: int) -> str:
    return str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def _text(
    x: float, y: float, words: str, kind: str, anchor: str = "start", colour: str = ""
) -> str:
    fill = f' fill="{colour}"' if colour else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}"{fill}>{html.escape(words)}</text>'


def _document(name: str, inside: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" '
        f'viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{name}" '
        f'font-family="system-ui, sans-serif">{_STYLE}<rect width="{_WIDTH}" height="{_HEIGHT}" rx="6" fill="#fff"/>'
        f"{inside}</svg>\n"
    )


def main() -> None:
    """Writes both."""
    FOLDER.mkdir(exist_ok=True)
    rows = json.loads(RESULTS.read_text(encoding="utf-8"))["rows"]
    (FOLDER / "noise-speed.svg").write_text(speed(rows), encoding="utf-8")
    (FOLDER / "noise-law.svg").write_text(law(), encoding="utf-8")


if __name__ == "__main__":
    main()
