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
from typing import Any

from benchmarks.attacks.ask import PACKAGES
from benchmarks.attacks.case import BROKEN, NOT_EXPRESSED, NOT_RUN, Case
from benchmarks.driver import ROOT

CASES = (
    "differencing",
    "averaging",
    "reconstruction",
    "float_bits",
    "overflow",
    "nan",
    "sensitivity",
    "oracle",
    "seeds",
    "budget",
    "sampler",
    "clipping",
    "reports",
    "ties",
    "keys",
    "rollback",
)
PAGE = ROOT / "docs" / "attacks.md"
RESULTS = ROOT / "benchmarks" / "results" / "attacks.json"
_SECONDS = 120


def outcome_of(name: str, system: str, case: Case) -> dict[str, str]:
    """Tries a case on a system; what would be broken without a public source is not run."""
    if system in case.not_expressed:
        return {"outcome": NOT_EXPRESSED, "seen": "", "version": ""}
    if system not in case.systems:
        return {"outcome": NOT_RUN, "seen": "", "version": ""}
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
        return {"outcome": NOT_RUN, "seen": "it is not installed here", "version": ""}
    except subprocess.TimeoutExpired:
        return {"outcome": NOT_RUN, "seen": f"no end after {_SECONDS} seconds", "version": ""}
    except (subprocess.CalledProcessError, json.JSONDecodeError, IndexError):
        return {"outcome": NOT_RUN, "seen": "it failed", "version": ""}
    if found["outcome"] == BROKEN and system != "sfumato" and system not in case.sources:
        return {"outcome": NOT_RUN, "seen": "", "version": found["version"]}
    return found


def page(results: Mapping[str, Mapping[str, Mapping[str, str]]]) -> str:
    """Returns the page: a table of outcomes, then each case with what was seen."""
    return "\n".join([*_head(results), *_table(results), *_cases(results), ""])


def _head(results: Mapping[str, Mapping[str, Mapping[str, str]]]) -> Iterator[str]:
    versions = {
        system: next(
            (each[system]["version"] for each in results.values() if each[system]["version"]), ""
        )
        for system in PACKAGES
    }
    listed = ", ".join(f"{system} {version}".strip() for system, version in versions.items())
    yield "# Published attacks, tried on sfumato and on others"
    yield ""
    yield (
        "Afterwards you can see what published attacks do to sfumato and to other libraries, and repeat "
        "each. `make bench-attacks` writes this page. Each case is one file of `benchmarks/attacks/`, each "
        "system has a short function in it, in its own environment (`benchmarks/peers/`). A cell is "
        "reproduced from the root of the repository by the command below each case; for sfumato the "
        "Python is `.venv/bin/python`."
    )
    yield ""
    yield (
        "*right*: the answer keeps the promise. *refused*: there is no answer. *broken*: seen here, and "
        "described in the public thread or page that is linked. *cannot be expressed*: the library has "
        "no such question. *not run*: there is no function for it, it does not install here, or nobody "
        "has published what was seen."
    )
    yield ""
    yield f"Versions: {listed}."
    yield ""


def _table(results: Mapping[str, Mapping[str, Mapping[str, str]]]) -> Iterator[str]:
    yield f"| case | {' | '.join(PACKAGES)} |"
    yield f"|---|{'---|' * len(PACKAGES)}"
    for name, seen in results.items():
        case: Case = import_module(f"benchmarks.attacks.{name}").CASE
        cells = []
        for system in PACKAGES:
            outcome = seen[system]["outcome"]
            source = case.sources.get(system)
            is_linked = outcome == BROKEN and source is not None
            cells.append(f"[{outcome}]({source})" if is_linked else outcome)
        yield f"| {case.title} | {' | '.join(cells)} |"


def _cases(results: Mapping[str, Mapping[str, Mapping[str, str]]]) -> Iterator[str]:
    for name, seen in results.items():
        case: Case = import_module(f"benchmarks.attacks.{name}").CASE
        yield ""
        yield f"## {case.title}"
        yield ""
        yield f"Given: {case.given}. Broken: {case.broken}. Right: {case.right}. Source: {case.source}."
        yield ""
        for system, result in seen.items():
            if result["seen"]:
                yield f"* {system}: {result['outcome']}; {result['seen']}"
        yield ""
        yield f"`.bench/SYSTEM/bin/python -m benchmarks.attacks.ask {name} SYSTEM`"


def main(chosen: Sequence[str]) -> None:
    """Tries the cases, all by default, and writes the page; fails if sfumato is broken."""
    results: dict[str, Any] = {}
    if chosen and RESULTS.exists():
        results = json.loads(RESULTS.read_text("utf-8"))
    for name in chosen or CASES:
        case: Case = import_module(f"benchmarks.attacks.{name}").CASE
        results[name] = {system: outcome_of(name, system, case) for system in PACKAGES}
        print(name, {system: each["outcome"] for system, each in results[name].items()}, flush=True)
    results = {name: results[name] for name in CASES if name in results}
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", "utf-8")
    PAGE.write_text(page(results), "utf-8")
    ours = {results[name]["sfumato"]["outcome"] for name in results}
    if not ours <= {"right", "refused"}:
        raise SystemExit(f"sfumato: {ours}")


if __name__ == "__main__":
    main(sys.argv[1:])
