# SPDX-License-Identifier: Apache-2.0
"""The trusted modules of which a function runs while the SQL corpus is answered.

``python -m tests.architecture.used_for_sql`` writes their table into CONTRIBUTING.md.
"""

import inspect
import itertools
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import CodeType, FrameType

import pyarrow as pa

import sfumato as sf
from sfumato.errors import Refused
from tests.architecture.structure import FILES, ROOT, TRUSTED, module_name
from tests.contracts.corpus import statements
from tools.corpus import empty_tables

PAGE = ROOT / "CONTRIBUTING.md"
HEAD = "| Section | Ran | Did not run |\n|---|---|---|\n"
PATHS = {str(path): module_name(path).removeprefix("sfumato.") for path in FILES}
TIMES = sf.Table(
    pa.table({"at": pa.array([], pa.timestamp("us", tz="UTC"))}),
    columns={"at": sf.Timestamp("2024-01-01", "2024-12-31", zone="Europe/Berlin")},
)
OF_TIMES = "SELECT MONTH(at) AS month, COUNT(*) AS n FROM times GROUP BY MONTH(at)"


@contextmanager
def modules_that_run() -> Iterator[set[str]]:
    """The modules of sfumato of which a function is called meanwhile, in any thread."""
    codes: set[CodeType] = set()

    def notice(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            codes.add(frame.f_code)

    ran: set[str] = set()
    previous = sys.getprofile()
    threading.setprofile(notice)
    sys.setprofile(notice)
    try:
        yield ran
    finally:
        sys.setprofile(previous)
        threading.setprofile(None)
        # bodies of modules and of classes, which run at an import, are no functions
        functions = [code for code in codes if code.co_flags & inspect.CO_OPTIMIZED]
        ran |= {PATHS[code.co_filename] for code in functions if code.co_filename in PATHS}


def ask_corpus() -> None:
    """Asks every statement of the corpus over empty tables, for epsilon or for rho in turn."""
    answered = [each.text for each in statements() if each.verdict == "answered"]
    with (
        tempfile.TemporaryDirectory() as folder,
        sf.connect(
            {**empty_tables(), "times": TIMES},
            dataset="shop",
            budget=sf.Budget(10**6, "1e-3"),
            ledger=Path(folder) / "ledger.db",
        ) as session,
    ):
        for text, law in zip(
            (*answered, OF_TIMES), itertools.cycle(("epsilon", "rho")), strict=False
        ):
            try:
                session.query(text, **{law: 1})
            except Refused:
                # its groups are not public
                session.query(text, **{law: 1}, delta="1e-9")


def table_of_corpus() -> str:
    """The table, of a process of its own: what was computed before is not computed again."""
    command = [sys.executable, "-m", "tests.architecture.used_for_sql", "print"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def table(ran: set[str]) -> str:
    """The rows of the table: each section, how many modules ran, and which did not."""
    rows = []
    for section, listed in TRUSTED.items():
        used = [name for name in listed if name in ran]
        others = [name for name in listed if name not in ran]
        rows.append(f"| {section} | {len(used)} of {len(listed)} | {_folded(others)} |")
    return HEAD + "\n".join(rows) + "\n"


def _folded(names: list[str]) -> str:
    """Names by room: ``noise`` (gaussian, skellam)."""
    rooms: dict[str, list[str]] = {}
    for name in names:
        room, _, rest = name.partition(".")
        rooms.setdefault(room, []).append(rest or room)
    return "; ".join(f"`{room}` ({', '.join(inner)})" for room, inner in sorted(rooms.items()))


def stated() -> str:
    """The table of the page."""
    text = PAGE.read_text(encoding="utf-8")
    start = text.index(HEAD)
    return text[start : text.index("\n\n", start) + 1]


def main(arguments: list[str]) -> None:
    """``print`` prints the table; without it the page is written."""
    # what runs at an import is no part of an answer
    for name in (*TRUSTED["proof core"], *TRUSTED["runtime core"]):
        import_module(f"sfumato.{name}")
    with modules_that_run() as ran:
        ask_corpus()
    if arguments == ["print"]:
        sys.stdout.write(table(ran))
    else:
        text = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(text.replace(stated(), table(ran)), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
