# SPDX-License-Identifier: Apache-2.0
"""Tries every case on every system, each in a process: ``make bench-attacks``.

A system that hangs, fails or is not installed is "not run". It writes benchmarks/results and
docs/attacks.md.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, TypeAlias

from benchmarks.attacks.ask import PACKAGES
from benchmarks.attacks.case import BROKEN, NOT_EXPRESSED, NOT_RUN, REFUSED, RIGHT, Case
from benchmarks.driver import ROOT

CASES = (
    *("differencing", "averaging", "reconstruction", "float_bits", "overflow", "nan"),
    *("sensitivity", "oracle", "seeds", "budget", "sampler", "clipping", "reports", "ties"),
    *("keys", "rollback"),
)
# It trains networks, and answers nothing else.
_TRAINS_ALONE = "opacus"
PAGE = ROOT / "docs" / "attacks.md"
RESULTS = ROOT / "benchmarks" / "results" / "attacks.json"
_SECONDS = 600
_HEAD = """\
# Published attacks, tried on sfumato and on others

Afterwards you can see what published attacks do to sfumato and to other libraries, and repeat each. \
`make bench-attacks` writes this page. Each case is one file of `benchmarks/attacks/`, each system has \
a short function in it, in its own environment (`benchmarks/peers/`). A cell is reproduced from the \
root of the repository by the command below each case; for sfumato the Python is `.venv/bin/python`.

*right*: the answer keeps the promise. *refused*: there is no answer. *broken*: seen here, and \
described in the public thread or page that is linked. *cannot be expressed*: the library has no such \
question. *not run*: there is no function for it, it does not install here, or nobody has published \
what was seen. Opacus trains networks and has no other questions. Tumult asks Spark, which takes \
seconds for each question: there is no function for the cases of many questions.
"""
Results: TypeAlias = Mapping[str, Mapping[str, Mapping[str, str]]]


def case_of(name: str) -> Case:
    """Returns a case by the name of its file."""
    case: Case = import_module(f"benchmarks.attacks.{name}").CASE
    return case


def outcome_of(name: str, system: str, case: Case) -> dict[str, str]:
    """Tries a case on a system; what would be broken without a public source is not run."""
    if system not in case.systems:
        is_none = system in (*case.not_expressed, _TRAINS_ALONE)
        return _without_answer(NOT_EXPRESSED if is_none else NOT_RUN)
    python = sys.executable
    if system != "sfumato":
        python = str(ROOT / ".bench" / system / "bin" / "python")
    command = [python, "-m", "benchmarks.attacks.ask", name, system]
    try:
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=_SECONDS, check=True
        )
        found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    except FileNotFoundError:
        return _without_answer(NOT_RUN, "it is not installed here")
    except subprocess.TimeoutExpired:
        return _without_answer(NOT_RUN, f"no end after {_SECONDS} seconds")
    except (subprocess.CalledProcessError, json.JSONDecodeError, IndexError):
        return _without_answer(NOT_RUN, "it failed")
    if found["outcome"] == BROKEN and system != "sfumato" and system not in case.sources:
        return _without_answer(NOT_RUN) | {"version": found["version"]}
    return found


def _without_answer(outcome: str, seen: str = "") -> dict[str, str]:
    return {"outcome": outcome, "seen": seen, "version": ""}


def page(results: Results) -> str:
    """Returns the page: a table of outcomes, then each case with what was seen."""
    seen = list(results.values())
    versions = {name: max(each[name]["version"] for each in seen) for name in PACKAGES}
    listed = ", ".join(f"{name} {number}".strip() for name, number in versions.items())
    rows = [f"| case | {' | '.join(PACKAGES)} |", f"|---|{'---|' * len(PACKAGES)}"]
    rows += [_row(case_of(name), each) for name, each in results.items()]
    parts = [line for name, each in results.items() for line in _part(name, each)]
    return "\n".join([_HEAD, f"Versions: {listed}.", "", *rows, *parts, ""])


def _row(case: Case, seen: Mapping[str, Mapping[str, str]]) -> str:
    """Returns the line of a case in the table."""
    cells = []
    for system in PACKAGES:
        outcome, source = seen[system]["outcome"], case.sources.get(system)
        cells.append(f"[{outcome}]({source})" if outcome == BROKEN and source else outcome)
    return f"| {case.title} | {' | '.join(cells)} |"


def _part(name: str, seen: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Yields the lines on a case below the table."""
    case = case_of(name)
    yield from ("", f"## {case.title}", "", case.facts, "")
    for system, result in seen.items():
        if result["seen"]:
            yield f"* {system}: {result['outcome']}; {result['seen']}"
    yield from ("", f"`.bench/SYSTEM/bin/python -m benchmarks.attacks.ask {name} SYSTEM`")


def main(chosen: Sequence[str]) -> None:
    """Tries the cases, all by default, and writes the page; fails if sfumato is broken."""
    results: dict[str, Any] = {}
    if chosen and RESULTS.exists():
        results = json.loads(RESULTS.read_text("utf-8"))
    for name in chosen or CASES:
        case = case_of(name)
        results[name] = {system: outcome_of(name, system, case) for system in PACKAGES}
        print(name, {system: each["outcome"] for system, each in results[name].items()}, flush=True)
    results = {name: results[name] for name in CASES if name in results}
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", "utf-8")
    PAGE.write_text(page(results), "utf-8")
    ours = {results[name]["sfumato"]["outcome"] for name in results}
    if not ours <= {RIGHT, REFUSED}:
        raise SystemExit(f"sfumato: {ours}")


if __name__ == "__main__":
    main(sys.argv[1:])
