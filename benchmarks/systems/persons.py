# SPDX-License-Identifier: Apache-2.0
"""Adult for classifiers: rows in arrays, the bins of its numbers, accuracy and area under the curve.

``benchmarks.learning_accuracy`` writes the rows to a file that every system can read.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.systems import Call, Make

DATA = Path(__file__).resolve().parents[2] / ".bench" / "learning"
LABEL = "income"
# Round numbers, as codes: a year of age from 17 on, an hour from 1 on, 1,000 and 50 dollars.
EDGES: Mapping[str, tuple[int, ...]] = {
    "age": tuple(age - 17 for age in range(20, 71, 5)),
    "education-num": tuple(range(1, 16)),
    "capital-gain": (1, 3, 5, 7, 10, 20),
    "capital-loss": (1, 30, 36, 40, 50),
    "hours-per-week": tuple(hours - 1 for hours in (20, 30, 35, 40, 41, 45, 50, 55, 60)),
}
# Left out: the weight of the sample, and education as words, which the number says too.
UNUSED = ("fnlwgt", "education", "split", LABEL)
Numbers = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Persons:
    """Codes of columns, their numbers of values, and whether the income is above 50,000."""

    codes: Mapping[str, Numbers]
    sizes: Mapping[str, int]
    rich: Numbers


@cache
def persons(split: str) -> Persons:
    """The "train" or the "test" rows."""
    with np.load(DATA / "adult.npz") as file:
        read = {name: file[name] for name in file.files}
    prefix = f"{split} "
    codes = {}
    for name, values in read.items():
        if name.startswith(prefix):
            codes[name.removeprefix(prefix)] = values
    rich = codes.pop(LABEL) == 1
    return Persons(codes, {name: int(read[f"size {name}"]) for name in codes}, rich)


def one_hot(split: str, *, binned: bool) -> Numbers:
    """A row of zeros and ones for each person; a number is one share of its range, or a bin."""
    found = persons(split)
    parts = []
    for name, codes in found.codes.items():
        size = found.sizes[name]
        if name in EDGES and not binned:
            parts.append(codes[:, np.newaxis] / (size - 1))
            continue
        if name in EDGES:
            codes = np.searchsorted(EDGES[name], codes, side="right")
            size = len(EDGES[name]) + 1
        parts.append(np.eye(size)[codes])
    return np.hstack(parts)


def accuracy(chances: Numbers) -> float:
    """The percentage of test rows that are predicted rightly."""
    return 100 * float(((chances > 0.5) == persons("test").rich).mean())


def area(chances: Numbers) -> float:
    """The area under the curve of a prediction of the test rows; ties count half."""
    rich = persons("test").rich
    _, place, counts = np.unique(chances, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[place]
    positive = int(rich.sum())
    above = ranks[rich].sum() - positive * (positive + 1) / 2
    return float(above / (positive * (len(rich) - positive)))


def works(fits: Mapping[str, Callable[[float], Numbers]]) -> dict[str, Make]:
    """For each fit, which gives the chances of the test rows at an epsilon, its two measures.

    ``n`` is the number of the run: both measures of a run are those of one fit.
    """
    found: dict[str, Make] = {}
    for name, fit in fits.items():
        once = cache(_of_run(fit))
        for metric, measure in (("accuracy", accuracy), ("AUC", area)):
            found[f"{name}, {metric}"] = _make(once, measure)
    return found


def _of_run(fit: Callable[[float], Numbers]) -> Callable[[float, int], Numbers]:
    return lambda epsilon, run: fit(epsilon)


def _make(
    fitted: Callable[[float, int], Numbers],
    measure: Callable[[Numbers], float],
) -> Make:
    def make(epsilon: float, run: int) -> Call:
        return lambda: measure(fitted(epsilon, run))

    return make
