# SPDX-License-Identifier: Apache-2.0
"""How far answers are off the raw data: of each group in percent, the middle one of all groups."""

import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.systems import Call, Make

_DATA = Path(__file__).resolve().parents[2] / ".bench" / "data"


@cache
def exact(name: str, n: int) -> Mapping[str, float]:
    """The true numbers of the groups, which ``benchmarks.events`` has written beside the data."""
    found: Mapping[str, Mapping[str, float]] = json.loads(
        (_DATA / f"events-{n}" / "exact.json").read_text()
    )
    return found[name]


def error(name: str, n: int, told: Mapping[str, Any]) -> float:
    """The median over the groups that were told; a group that was not told is off by all that it has."""
    truth = exact(name, n)
    return 100 * median(
        abs(float(told.get(group, 0)) / number - 1) for group, number in truth.items()
    )


def errors(
    works: Mapping[str, Make], shown: Mapping[str, Callable[[Any], Mapping[str, Any]]]
) -> dict[str, Make]:
    """For each work whose groups can be ``shown`` from what it gives, one that gives its error: ``W2 error``."""

    def make(name: str, scale: float, n: int) -> Call:
        call, read = works[name](scale, n), shown[name]
        return lambda: error(
            name, n, {str(group): number for group, number in read(call()).items()}
        )

    return {f"{name} error": lambda scale, n, name=name: make(name, scale, n) for name in shown}  # type: ignore[misc]
