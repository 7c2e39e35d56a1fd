# SPDX-License-Identifier: Apache-2.0
"""The table of docs/scale.md, from the results of the engines and of the largest: ``make figures``."""

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from benchmarks import engines, largest
from benchmarks.driver import ROOT
from benchmarks.engines import BY_HAND, PLAIN, TITLES
from benchmarks.page import cells, rewritten
from benchmarks.table_bars import BEGIN, END

PAGE = ROOT / "docs" / "scale.md"
RUNS = (engines.RESULTS, largest.RESULTS)
SIZES = engines.SIZES | largest.SIZE
_COLUMNS = ("ours", "ours, prepared", BY_HAND, PLAIN)

# Seconds of each column, by question and size; None where it cannot say the question.
Seconds = Mapping[tuple[str, str], Sequence[float | None]]


def block(*runs: Mapping[str, Any]) -> str:
    """Wall seconds by question and size, and how they grow."""
    rows = [row for results in runs for row in results["rows"]]
    found = {
        (name, size): _seconds(rows, f"{size}: {name} {TITLES[name]}")
        for name in TITLES
        for size in SIZES
    }
    lines = [cells("question", "rows", *_COLUMNS), cells("---", "---:", *["---:"] * len(_COLUMNS))]
    for (name, size), seconds in found.items():
        shown = ("" if each is None else f"{each:#.2g}".rstrip(".") for each in seconds)
        lines.append(cells(f"{name} {TITLES[name]}", f"{SIZES[size]:,}", *shown))
    grown = "; ".join(_grown(less, more, found) for less, more in pairwise(SIZES))
    return "\n".join(
        (BEGIN, *lines, "", f"Ten times the rows take so many times as long: {grown}.", END)
    )


def _seconds(rows: Sequence[Mapping[str, Any]], case: str) -> tuple[float | None, ...]:
    told = {(row["case"], row["peer_name"]): row for row in rows if row["metric"] == "s"}
    plain, by_hand = told[case, PLAIN], told.get((case, BY_HAND))
    return (
        plain["ours"],
        told[f"{case}, prepared", PLAIN]["ours"],
        None if by_hand is None else by_hand["peer"],
        plain["peer"],
    )


def _grown(less: str, more: str, found: Seconds) -> str:
    """From one size to the next, the least and the most of all questions."""
    told = []
    for place, title in ((0, "ours"), (2, "by hand"), (3, "plain")):
        both = ((found[name, less][place], found[name, more][place]) for name in TITLES)
        times = [
            after / before for before, after in both if before is not None and after is not None
        ]
        told.append(f"{title} {min(times):.0f} to {max(times):.0f}")
    return f"from {SIZES[less]:,} to {SIZES[more]:,} {', '.join(told)}"


def main() -> None:
    """Rewrites the table of the page."""
    runs = [json.loads(path.read_text(encoding="utf-8")) for path in RUNS]
    PAGE.write_text(
        rewritten(PAGE.read_text(encoding="utf-8"), BEGIN, block(*runs), END), encoding="utf-8"
    )


if __name__ == "__main__":
    main()
