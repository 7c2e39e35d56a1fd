# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/engines.md, docs/ledger.md and docs/query.md, from their results: ``make figures``.

Each stands between two marks and is rewritten whole; the rest of the page is left as it is.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import engines, largest, ledger, query
from benchmarks.driver import ROOT
from benchmarks.page import cells, measured_on, rewritten

PAGES: Mapping[Path, Sequence[Path]] = {
    ROOT / "docs" / "engines.md": (engines.RESULTS, largest.RESULTS),
    ROOT / "docs" / "ledger.md": (ledger.RESULTS,),
    ROOT / "docs" / "query.md": (query.RESULTS,),
}
BEGIN, END = "<!-- measured: written by make figures -->", "<!-- measured: end -->"


def block(*runs: Mapping[str, Any]) -> str:
    """The table of the runs, what they were measured on, and what could not be."""
    lines = [BEGIN, *_table([row for results in runs for row in results["rows"]])]
    for results in runs:
        lines += ["", f"{measured_on(results)}."]
    skipped = sorted(name.partition(":")[0] for results in runs for name in results["skipped"])
    if skipped:
        lines += ["", f"Not measured here: {', '.join(dict.fromkeys(skipped))}."]
    return "\n".join((*lines, END))


def _table(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield cells("case", "measure", "sfumato", "beside", "its figure", "its / ours", "asked")
    yield cells("---", "---", "---:", "---", "---:", "---:", "---")
    for row in rows:
        asked = "" if not row["bar"] else f"{row['bar']}: {'holds' if row['holds'] else 'missed'}"
        peer = (
            ("", "", "")
            if row["peer"] is None
            else (row["peer_name"], _short(row["peer"]), _short(row["ratio"]))
        )
        yield cells(row["case"], row["metric"], _short(row["ours"]), *peer, asked)


def _short(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def main() -> None:
    """Rewrites the tables of the pages."""
    for page, paths in PAGES.items():
        runs = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
        text = rewritten(page.read_text(encoding="utf-8"), BEGIN, block(*runs), END)
        page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
