# SPDX-License-Identifier: Apache-2.0
"""How far estimates of telemetry are from real columns: ``make bench-telemetry``.

Each column of the census extract is resampled, row by row, to a million devices. Every oracle
estimates the number of devices of each value; the error is the root of the mean square over the
values, as a share of the devices, beside the one that the estimates state.
"""

import csv
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

import sfumato as sf
from benchmarks.driver import ROOT
from sfumato.exact.rational import Number
from sfumato.telemetry import Texts, oracles, report_task, simulate
from sfumato.telemetry.domain import Declared
from sfumato.telemetry.intervals import Floats
from sfumato.telemetry.oracles.form import AnyOracle

RESULTS = ROOT / "benchmarks" / "results" / "telemetry_accuracy.json"
COUNTS = Path(__file__).parent / "data" / "acs_counts.csv"
COLUMNS = {"PUMA": "areas", "INDP": "industries", "AGEP": "ages"}
DEVICES = 1_000_000
EPSILONS = ("0.5", "1", "2", "4")
LISTED: dict[str, Callable[[int, Number], AnyOracle]] = {
    "category": oracles.category,
    "projective": oracles.projective,
    "bit": oracles.bit,
    "hashed": oracles.hashed,
    "unary": oracles.unary,
}
SKETCHES: dict[str, Callable[[Number], AnyOracle]] = {
    "sketch": oracles.sketch,
    "count_mean": oracles.count_mean,
    "hadamard_count_mean": oracles.hadamard_count_mean,
}
# The estimates and the errors that are stated of them.
Found: TypeAlias = tuple[Floats, Floats]


@dataclass(frozen=True, slots=True)
class Accuracy:
    """The error of an oracle on a column: what it was, and what was stated, as shares."""

    column: str
    values: int
    oracle: str
    epsilon: float
    error: float
    stated: float


def counts() -> dict[str, dict[str, int]]:
    """The rows of each value of each column."""
    found: dict[str, dict[str, int]] = {}
    with COUNTS.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            found.setdefault(row["column"], {})[row["value"]] = int(row["rows"])
    return found


def resampled(rows: dict[str, int]) -> dict[str, int]:
    """A million devices, each with the value of a row that is drawn at random."""
    shares = np.array(list(rows.values()), np.float64)
    drawn = np.random.default_rng().multinomial(DEVICES, shares / shares.sum())
    return dict(zip(rows, drawn.tolist(), strict=True))


def estimated(oracle: AnyOracle, domain: Declared, held: dict[str, int]) -> Found:
    """What an oracle says of each value."""
    memory = int(isinstance(oracle, oracles.RapporOracle))
    task = report_task("acs", "?", domain, oracle=oracle, start=0, periods=1, memory=memory)
    if isinstance(domain, sf.Integer):
        numbers: dict[object, int] = {int(label): count for label, count in held.items()}
        shape = simulate(task, numbers).distribution()
        each = [shape.between(int(label), int(label)) for label in held]
        errors = np.array([one.standard_error for one in each])
        return DEVICES * np.array([one.estimate for one in each]), DEVICES * errors
    known: dict[object, int] = {str(label): count for label, count in held.items()}
    sums = simulate(task, known)
    if isinstance(domain, Texts):
        texts = sums.texts(list(held))
        return texts.estimate, texts.standard_error
    found = sums.estimate(list(held))
    return found.estimate, found.standard_error


def makers(column: str, held: dict[str, int]) -> Iterator[tuple[str, float, AnyOracle, Declared]]:
    """The oracles for a column, with their names, epsilons and domains."""
    listed = list(held)
    for epsilon in EPSILONS:
        for name, make in LISTED.items():
            yield name, float(epsilon), make(len(listed) + 1, epsilon), listed
        for name, sketch in SKETCHES.items():
            yield name, float(epsilon), sketch(epsilon), Texts()
        if column == "AGEP":
            ages = sf.Integer(0, max(map(int, listed)))
            size = max(map(int, listed)) + 1
            yield "levels", float(epsilon), oracles.levels(size, epsilon), ages
    rappor = oracles.rappor()
    # an epoch of reports; the first alone costs 1.02
    yield "rappor", 2.197, rappor, Texts()


def measured(column: str, rows: dict[str, int]) -> Iterator[Accuracy]:
    """Every oracle on a column."""
    held = resampled(rows)
    true = np.array(list(held.values()))
    for name, epsilon, oracle, domain in makers(column, held):
        found, errors = estimated(oracle, domain, held)
        error = float(np.sqrt(np.mean((found - true) ** 2))) / DEVICES
        stated = float(np.sqrt(np.mean(errors**2))) / DEVICES
        yield Accuracy(
            column, len(held), name, epsilon, float(f"{error:.4g}"), float(f"{stated:.4g}")
        )


def main() -> None:
    """Measures, prints and writes all of them."""
    found = []
    for column, rows in counts().items():
        for one in measured(column, rows):
            print(
                f"{column:<5} {one.oracle:<20} {one.epsilon:>5} {one.error:.3%} {one.stated:.3%}",
                flush=True,
            )
            found.append(asdict(one))
    lines = ",\n".join(json.dumps(one) for one in found)
    RESULTS.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
