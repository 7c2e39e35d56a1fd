# SPDX-License-Identifier: Apache-2.0
"""How accurately digits of MNIST are classified without public data, and what that costs.

``make bench-learning`` writes results/learning_pictures.json, where shared/data/mnist/mnist.npz is
in this folder or one above. One setting serves every epsilon; each fit has a process, a session and
a ledger of its own. ``python -m benchmarks.learning_pictures 3`` makes one fit at epsilon 3 and
writes nothing.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

from benchmarks.driver import ROOT
from benchmarks.learning_accuracy import Found, Row, line
from benchmarks.report import machine
from benchmarks.systems.pictures import mnist

RESULTS = ROOT / "benchmarks" / "results" / "learning_pictures.json"
RUNS = 5
# The least accuracy in percent, by epsilon; and the longest time by the clock.
LEAST = {"1": 97.5, "3": 98.2}
LONGEST = 300.0
PACKAGES = ("sfumato", "torch", "numpy")
# What a fit tells, by the name of its figure.
Figures = Mapping[str, float]


def fit(epsilon: str) -> Figures:
    """One fit in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.systems.digits", epsilon]
    told = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)  # noqa: S603 - our own
    found: Figures = json.loads(told.stdout)
    return found


def rows(
    epsilon: str,
    fits: Sequence[Figures],
) -> Iterator[Row]:
    """A row for each figure of some fits at one epsilon."""
    for metric in fits[0]:
        ours = Found.of([each[metric] for each in fits])
        bar, holds = None, None
        if metric == "accuracy":
            bar, holds = f">= {LEAST[epsilon]:g}", ours.mean >= LEAST[epsilon]
        elif metric == "wall s":
            bar, holds = f"<= {LONGEST:g}", ours.mean <= LONGEST
        case = f"MNIST, whitened features, epsilon {epsilon}"
        yield Row(case, metric, ours, None, None, None, bar, holds, len(fits))


def document(
    found: Sequence[Row],
    before: Mapping[str, Any],
    versions: Mapping[str, str],
) -> str:
    """The results as JSON, a row a line."""
    head = {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": before,
        "versions": dict(versions),
    }
    lines = ",\n".join(f"    {json.dumps(asdict(row))}" for row in found)
    return json.dumps(head, indent=2)[:-2] + f',\n  "rows": [\n{lines}\n  ]\n}}\n'


def main(words: Sequence[str]) -> None:
    """Fits, prints and writes."""
    if mnist() is None:
        print("MNIST is left out: there is no shared/data/mnist/mnist.npz")
        return
    if words:
        for epsilon in words:
            print(epsilon, json.dumps(fit(epsilon)), flush=True)
        return
    before, found = machine(), []
    for epsilon in LEAST:
        fits = [fit(epsilon) for _ in range(RUNS)]
        for row in rows(epsilon, fits):
            found.append(row)
            print(line(row), flush=True)
    versions = {name: metadata.version(name) for name in PACKAGES}
    RESULTS.write_text(document(found, before, versions), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
