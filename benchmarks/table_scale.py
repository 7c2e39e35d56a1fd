# SPDX-License-Identifier: Apache-2.0
"""The table of docs/scale.md, from the results of the engines: ``make figures``."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.driver import ROOT
from benchmarks.engines import BY_HAND, PLAIN, RESULTS, SIZES, TITLES
from benchmarks.page import cells, rewritten
from benchmarks.table_bars import BEGIN, END

PAGE = ROOT / "docs" / "scale.md"
_COLUMNS = ("ours", "ours, prepared", BY_HAND, PLAIN)

# Seconds of each column, by question and size; None where it cannot say the question.
Seconds = Mapping[tuple[str, str], Sequence[float | None]]


def block(results: Mapping[str, Any]) -> str:
    """Wall seconds by question and size, and how they grow."""
    found = {
        (name, size): _seconds(results["rows"], f"{size}: {name} {TITLES[name]}") for name in TITLES for size in SIZES
    }
    lines = [cells("question", "rows", *_COLUMNS), cells("---", "---:", *["---:"] * len(_COLUMNS))]
    for (name, size), seconds in found.items():
        shown = ("" if each is None else f"{each:#.2g}".rstrip(".") for each in seconds)
        lines.append(cells(f"{name} {TITLES[name]}", f"{SIZES[size]:,}", *shown))
    grown = ", ".join(_grown(title, place, found) for place, title in ((0, "ours"), (2, "by hand"), (3, "plain")))
    return "\n".join((BEGIN, *lines, "", f"Ten times the rows take so many times as long: {grown}.", END))


def _seconds(rows: Sequence[Mapping[str, Any]], case: str) -> tuple[float | None, ...]:
    told = {(row["case"], row["peer_name"]): row for row in rows if row["metric"] == "s"}
    plain, by_hand = told[case, PLAIN], told.get((case, BY_HAND))
    return (
        plain["ours"],
        told[f"{case}, prepared", PLAIN]["ours"],
        None if by_hand is None else by_hand["peer"],
        plain["peer"],
    )


def _grown(title: str, place: int, found: Seconds) -> str:
    times = list(_times(place, found))
    return f"{title} {min(times):.0f} to {max(times):.0f}"


def _times(place: int, found: Seconds) -> Iterator[float]:
    for name in TITLES:
        less, more = (found[name, size][place] for size in SIZES)
        if less is not None and more is not None:
            yield more / less


def main() -> None:
    """Rewrites the table of the page."""
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    PAGE.write_text(rewritten(PAGE.read_text(encoding="utf-8"), BEGIN, block(results), END), encoding="utf-8")


if __name__ == "__main__":
    main()
