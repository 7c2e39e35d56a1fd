# SPDX-License-Identifier: Apache-2.0
"""The picture of docs/engines.md, ``engines-speed.svg``, from results/engines.json: ``make figures``."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.engines import BY_HAND, FEW, OURS, PLAIN, RESULTS, TITLES
from benchmarks.figures import FOLDER, Axis, _document, _text

NAMES = {
    PLAIN: ("plain DuckDB, not private", "#8a8a8a"),
    BY_HAND: ("bounded SQL by hand, no noise", "#5b9a68"),
    OURS: ("sfumato, any table", "#3b6ea5"),
    "prepared": ("sfumato, prepared", "#b5532a"),
}
QUESTIONS = TITLES | {"W7": FEW}
_SIZES = ("1M", "10M")
_TICKS = {0.001: "1 ms", 0.01: "10 ms", 0.1: "0.1 s", 1.0: "1 s", 10.0: "10 s"}
_TOP, _LINE, _BOTTOM = 84, 32, 310

Seconds = Mapping[tuple[str, str, str], float]


def seconds(rows: Sequence[Mapping[str, Any]]) -> Seconds:
    """What was taken of each size and question by each of ``NAMES``; what was not measured is not there."""
    found = {}
    for row in rows:
        size, _, title = row["case"].partition(": ")
        question = title.partition(" ")[0]
        scale = {"s": 1.0, "ms": 1e-3}.get(row["metric"])
        if scale is None or size not in _SIZES or row["peer_name"] not in (PLAIN, BY_HAND):
            continue
        found[size, question, "prepared" if title.endswith(", prepared") else OURS] = (
            row["ours"] * scale
        )
        if row["peer"] is not None:
            found[size, question, row["peer_name"]] = row["peer"] * scale
    return found


def speed(taken: Seconds) -> str:
    """A line a question, a dot a way of asking it, for both sizes."""
    parts = []
    for size, left in zip(_SIZES, (196, 482), strict=True):
        axis = Axis(0.001, 60, left, left + 258)
        parts.append(_text(left, 34, f"{size[:-1]},000,000 rows", "t"))
        for value, name in _TICKS.items():
            x = axis(value)
            parts.append(
                f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP - 18}" y2="{_BOTTOM - 16}" class="g"/>'
            )
            parts.append(_text(x, _BOTTOM, name, "a", "middle"))
        for place, question in enumerate(QUESTIONS):
            y = _TOP + _LINE * place
            for way, (_, colour) in NAMES.items():
                if (time := taken.get((size, question, way))) is not None:
                    parts.append(f'<circle cx="{axis(time):.1f}" cy="{y}" r="5" fill="{colour}"/>')
    for place, (question, title) in enumerate(QUESTIONS.items()):
        parts.append(_text(12, _TOP + 4 + _LINE * place, f"{question} {title}", "a"))
    for place, (name, colour) in enumerate(NAMES.values()):
        parts.append(f'<circle cx="{18 + 185 * place}" cy="54" r="5" fill="{colour}"/>')
        parts.append(_text(28 + 185 * place, 58, name, "a"))
    return _document(
        "Seconds of seven questions: plain, bounded by hand, sfumato, sfumato prepared",
        "".join(parts),
    )


def main() -> None:
    """Writes it."""
    FOLDER.mkdir(exist_ok=True)
    rows = json.loads(RESULTS.read_text(encoding="utf-8"))["rows"]
    (FOLDER / "engines-speed.svg").write_text(speed(seconds(rows)), encoding="utf-8")


if __name__ == "__main__":
    main()
