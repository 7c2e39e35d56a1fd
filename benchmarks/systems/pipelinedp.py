# SPDX-License-Identifier: Apache-2.0
"""PipelineDP on its local backend: the questions that it can say, under the same limits.

Its rows are Python tuples, made before anything is measured.
"""

from collections.abc import Callable
from datetime import date, timedelta
from functools import cache, partial
from pathlib import Path
from typing import Any

import pipeline_dp as dp  # type: ignore[import-not-found]
import pyarrow.parquet as pq

from benchmarks.systems import Call, Make
from benchmarks.systems.truth import errors

PACKAGES = ("pipeline-dp", "pyarrow")
_DATA = Path(__file__).resolve().parents[2] / ".bench" / "data"
_ROWS, _GROUPS, _MOST = 10, 5, 200.0
_KEYS: dict[str, Callable[[Any], Any]] = {
    "W1": lambda row: 0,
    "W2": lambda row: row[1],
    "W3": lambda row: row[2],
    "W4": lambda row: row[3],
}
_PUBLIC: dict[str, list[Any] | None] = {
    "W1": [0],
    "W2": [f"R{index:02}" for index in range(50)],
    "W3": None,
    "W4": [date(2024, 1, 1) + timedelta(days=day) for day in range(365)],
}


@cache
def _rows(n: int) -> list[tuple[Any, ...]]:
    """User, region, product, day and amount, where it is a number."""
    read = pq.read_table(_DATA / f"events-{n}" / "events.parquet").to_pydict()  # type: ignore[no-untyped-call, unused-ignore]
    amounts = [0.0 if each is None or each != each else each for each in read["amount"]]
    return list(
        zip(read["user_id"], read["region"], read["product"], read["day"], amounts, strict=True)
    )


def _work(name: str, scale: float, n: int) -> Call:
    rows = _rows(n)
    sums = [dp.Metrics.COUNT, dp.Metrics.SUM, dp.Metrics.MEAN]
    metrics = {"W3": [dp.Metrics.COUNT], "W4": [dp.Metrics.PRIVACY_ID_COUNT]}.get(name, sums)
    limits = {"min_value": 0.0, "max_value": _MOST} if metrics is sums else {}
    parameters = dp.AggregateParams(
        metrics=metrics,
        noise_kind=dp.NoiseKind.LAPLACE,
        max_partitions_contributed=1 if name == "W1" else _GROUPS,
        max_contributions_per_partition=1 if name == "W4" else _ROWS,
        **limits,
    )
    reads = dp.DataExtractors(
        privacy_id_extractor=lambda row: row[0],
        partition_extractor=_KEYS[name],
        value_extractor=lambda row: row[4],
    )

    def call() -> object:
        budget = dp.NaiveBudgetAccountant(total_epsilon=1, total_delta=1e-6)
        engine = dp.DPEngine(budget, dp.LocalBackend())
        found = engine.aggregate(rows, parameters, reads, public_partitions=_PUBLIC[name])
        budget.compute_budgets()
        return list(found)

    return call


_WORKS: dict[str, Make] = {name: partial(_work, name) for name in _KEYS}
_SHOWN: dict[str, Callable[[Any], Any]] = {
    "W1": lambda found: {"all": found[0][1].count},
    "W2": lambda found: {region: told.count for region, told in found},
    "W4": lambda found: {day: told.privacy_id_count for day, told in found},
}
WORKS = _WORKS | errors(_WORKS, _SHOWN)
