# SPDX-License-Identifier: Apache-2.0
"""OpenDP over polars: the questions that it can say, under the same limits."""

from collections.abc import Callable, Sequence
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import opendp.prelude as dp  # type: ignore[import-not-found]
import polars as pl  # type: ignore[import-not-found, unused-ignore]

from benchmarks.systems import Call, Make
from benchmarks.systems.areas import AREAS, GROUPS, MOST, ROWS, amounts, rank_error
from benchmarks.systems.truth import errors

PACKAGES = ("opendp", "polars")
_DATA = Path(__file__).resolve().parents[2] / ".bench" / "data"
_ROWS, _GROUPS, _MOST = 10, 5, 200.0

dp.enable_features("contrib")


def _asked(keys: Sequence[str], n: int, delta: float | None) -> Any:
    """A query whose users have so many rows a group, in so many groups."""
    context = dp.Context.compositor(
        data=pl.scan_parquet(_DATA / f"events-{n}" / "events.parquet"),
        privacy_unit=dp.unit_of(contributions=1, identifier=pl.col("user_id")),
        privacy_loss=dp.loss_of(epsilon=1.0)
        if delta is None
        else dp.loss_of(epsilon=1.0, delta=delta),
        split_evenly_over=1,
        margins=[dp.polars.Margin(by=list(keys), max_length=n)],
    )
    return context.query()


def _grouped(key: str, n: int, rows: int = _ROWS, delta: float | None = None) -> Any:
    # with a sample of the groups, its default, it fails on this version of polars
    asked = _asked([key], n, delta).truncate_num_groups(_GROUPS, by=[key], keep="first")
    return asked.truncate_per_group(rows, by=[key]).group_by(key)


def _amount() -> Any:
    return pl.col("amount").fill_null(0.0).fill_nan(0.0)


def _sums() -> list[Any]:
    # a mean is the quotient of the two
    return [dp.len(signed=True).alias("n"), _amount().dp.sum((0.0, _MOST)).alias("s")]


def _regions() -> Any:
    return pl.LazyFrame({"region": [f"R{index:02}" for index in range(50)]})


def _days() -> Any:
    return pl.LazyFrame({"day": [date(2024, 1, 1) + timedelta(days=day) for day in range(365)]})


def _quantiles() -> list[Any]:
    candidates = [float(each) for each in range(int(_MOST) + 1)]
    return [_amount().dp.quantile(level, candidates).alias(f"p{level}") for level in (0.5, 0.9)]


def _work(make: Callable[[int], Any], scale: float, n: int) -> Call:
    return lambda: make(n).release().collect()


_WORKS: dict[str, Make] = {
    name: partial(_work, make)
    for name, make in {
        "W1": lambda n: _asked([], n, None).truncate_per_group(_ROWS).select(_sums()),
        "W2": lambda n: _grouped("region", n).agg(_sums()).with_keys(_regions()),
        "W3": lambda n: _grouped("product", n, delta=1e-6).agg(dp.len(signed=True).alias("n")),
        "W4": lambda n: (
            _grouped("day", n, rows=1).agg(dp.len(signed=True).alias("n")).with_keys(_days())
        ),
        "W5": lambda n: _grouped("region", n).agg(_quantiles()).with_keys(_regions()),
    }.items()
}


def _medians(n: int) -> dict[int, float]:
    """The median of every area, of 201 candidates at even distances."""
    context = dp.Context.compositor(
        data=pl.scan_parquet(amounts(n)),
        privacy_unit=dp.unit_of(contributions=1, identifier=pl.col("person")),
        privacy_loss=dp.loss_of(epsilon=0.2),
        split_evenly_over=1,
        margins=[dp.polars.Margin(by=["area"], max_length=n)],
    )
    cut = context.query().truncate_num_groups(GROUPS, by=["area"], keep="first")
    candidates = [MOST * step / 200 for step in range(201)]
    middle = _amount().dp.quantile(0.5, candidates).alias("m")
    areas = pl.LazyFrame({"area": list(range(AREAS))})
    asked = cut.truncate_per_group(ROWS, by=["area"]).group_by("area").agg([middle])
    return dict(asked.with_keys(areas).release().collect().select("area", "m").iter_rows())


_COLUMNS = {"W2": ("region", "n"), "W4": ("day", "n"), "W5": ("region", "p0.5")}
_SHOWN: dict[str, Callable[[Any], Any]] = {
    name: lambda frame, columns=columns: dict(frame.select(columns).iter_rows())  # type: ignore[misc]
    for name, columns in _COLUMNS.items()
}
_OF_AREAS: dict[str, Make] = {
    "medians": lambda scale, n: partial(_medians, n),
    "medians error": lambda scale, n: lambda: rank_error(n, _medians(n)),
}
WORKS = _WORKS | _OF_AREAS | errors(_WORKS, _SHOWN | {"W1": lambda frame: {"all": frame["n"][0]}})
