# SPDX-License-Identifier: Apache-2.0
"""The table of docs/accounting.md against the peers, from results/accounting.json: ``make figures``.

It stands between two marks and is rewritten whole; the rest of the page is left as it is.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from benchmarks.accounting import AUTODP, GOOGLE, OPACUS, OPENDP, PRV, RESULTS
from benchmarks.driver import ROOT
from benchmarks.page import cells, measured_on, rewritten

PAGE = ROOT / "docs" / "accounting.md"
BEGIN, END = "<!-- peers: written by make figures -->", "<!-- peers: end -->"
LIBRARIES = {
    GOOGLE: "dp-accounting",
    PRV: "prv-accountant",
    OPACUS: "Opacus",
    AUTODP: "autodp",
    OPENDP: "OpenDP",
}
# a width that was rounded is not taken to be smaller than it is
_WIDER = 1.001

Row: TypeAlias = Mapping[str, Any]


def block(results: Mapping[str, Any]) -> str:
    """The table with its marks, and what it was measured on."""
    versions = results["versions"]
    measured = ", ".join(
        f"{LIBRARIES[each]} {versions[each][each]}" for each in LIBRARIES if each in versions
    )
    return "\n".join(
        (BEGIN, *_table(results["rows"]), "", f"{measured_on(results)}; {measured}.", END)
    )


def _table(rows: Sequence[Row]) -> Iterator[str]:
    yield cells("plan", "measure", "sfumato", *LIBRARIES.values(), "asked")
    yield cells(*["---"] * 2, *["---:"] * (1 + len(LIBRARIES)), "---")
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["case"], row["metric"]), []).append(row)
    for (case, metric), group in groups.items():
        truth = _proved(case, groups) if metric == "epsilon" else 0.0
        theirs = [
            ", ".join(_peer(row, truth) for row in group if _library(row) == each)
            for each in LIBRARIES
        ]
        yield cells(case, metric, _short(group[0]["ours"]), *theirs, ", ".join(_asked(group)))


def _proved(case: str, groups: Mapping[tuple[str, str], Sequence[Row]]) -> float:
    """What epsilon is at least: our lower end, or 0 where no width was measured."""
    width = groups.get((case, "relative width"))
    return groups[case, "epsilon"][0]["ours"] / (1 + _WIDER * width[0]["ours"]) if width else 0.0


def _library(row: Row) -> str:
    return (row["peer_name"] or "").partition(", ")[0]


def _peer(row: Row, truth: float) -> str:
    """A peer's number, which way it went, and whether it says less than is lost."""
    if row["peer"] is None:
        return "not measured"
    way = row["peer_name"].partition(", ")[2]
    notes = [*([way] if way else []), *(["below the truth"] if row["peer"] < truth else [])]
    return _short(row["peer"]) + (f" ({', '.join(notes)})" if notes else "")


def _asked(group: Sequence[Row]) -> Iterator[str]:
    for row in group:
        if row["bar"]:
            yield row["bar"] + (f" {LIBRARIES[_library(row)]}" if row["peer_name"] else "")
            if row["holds"] is False:
                yield "missed"


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.7g}"


def main() -> None:
    """Rewrites the table in the page."""
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    PAGE.write_text(
        rewritten(PAGE.read_text(encoding="utf-8"), BEGIN, block(results), END), encoding="utf-8"
    )


if __name__ == "__main__":
    main()
