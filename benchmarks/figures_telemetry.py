# SPDX-License-Identifier: Apache-2.0
"""The picture of docs/telemetry.md, from results/telemetry_accuracy.json: ``make figures``."""

import json
from collections.abc import Iterator, Sequence

from benchmarks.figures import FOLDER, Axis, _document, _text
from benchmarks.telemetry_accuracy import COLUMNS, RESULTS, Accuracy

_TITLE = "Error of a count of 1,000,000 devices, by oracle and epsilon"
# The colours of epsilons; RAPPOR's of 2.2 is drawn as 2.
_COLOURS = {0.5: "#8a8a8a", 1.0: "#c8794a", 2.0: "#5b9a68", 4.0: "#3b6ea5"}
_NAMES = (
    "category",
    "unary",
    "hashed",
    "projective",
    "bit",
    "sketch",
    "count_mean",
    "hadamard_count_mean",
    "rappor",
    "levels",
)
_TICKS = {0.0002: "0.02%", 0.001: "0.1%", 0.005: "0.5%", 0.02: "2%"}
_LEFT, _WIDTH, _APART, _TOP, _LINE, _BOTTOM = 150, 185, 202, 92, 21, 306


def accuracy(found: Sequence[Accuracy]) -> str:
    """A line an oracle, a panel a column: what was measured as dots, what is stated as strokes."""
    parts = [_text(12, 20, _TITLE, "t"), *_legend()]
    for place, column in enumerate(COLUMNS):
        axis = Axis(0.0002, 0.03, _LEFT + _APART * place, _LEFT + _APART * place + _WIDTH)
        rows = [each for each in found if each.column == column]
        title = f"{column}: {rows[0].values} {COLUMNS[column]}"
        parts.append(_text(axis.start, _TOP - 22, title, "n"))
        parts += _grid(axis)
        for each in rows:
            parts += _marks(each, axis)
    for name in _NAMES:
        shown = "rappor (2.2)" if name == "rappor" else name
        parts.append(_text(12, _height(name) + 4, shown, "a"))
    return _document(_TITLE, "".join(parts))


def _height(name: str) -> float:
    """The line of an oracle."""
    return _TOP + _LINE * _NAMES.index(name)


def _legend() -> Iterator[str]:
    """What colours, dots and strokes are."""
    for place, (epsilon, colour) in enumerate(_COLOURS.items()):
        x = 18 + 92 * place
        yield f'<circle cx="{x}" cy="42" r="5" fill="{colour}"/>'
        yield _text(x + 10, 46, f"epsilon {epsilon:g}", "a")
    yield _text(392, 46, "dot: root of the mean square; stroke: as stated", "a")


def _grid(axis: Axis) -> Iterator[str]:
    """The errors below a panel."""
    for value, name in _TICKS.items():
        x = axis(value)
        yield f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP - 12}" y2="{_BOTTOM - 8}" class="g"/>'
        yield _text(x, _BOTTOM + 8, name, "a", "middle")


def _marks(each: Accuracy, axis: Axis) -> Iterator[str]:
    """The error of an oracle at an epsilon, and the one that it states."""
    y = _height(each.oracle)
    nearest = min(_COLOURS, key=lambda epsilon: abs(epsilon - each.epsilon))
    colour = _COLOURS[nearest]
    x = axis(each.stated)
    ends = f'x1="{x:.1f}" x2="{x:.1f}" y1="{y - 8}" y2="{y + 8}"'
    yield f'<line {ends} stroke="{colour}" stroke-width="1.6"/>'
    tip = f"<title>{each.oracle}, epsilon {each.epsilon:g}: {each.error:.2%}</title>"
    yield f'<circle cx="{axis(each.error):.1f}" cy="{y}" r="4" fill="{colour}">{tip}</circle>'


def main() -> None:
    """Writes it."""
    FOLDER.mkdir(exist_ok=True)
    rows = [Accuracy(**each) for each in json.loads(RESULTS.read_text(encoding="utf-8"))]
    (FOLDER / "telemetry-accuracy.svg").write_text(accuracy(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
