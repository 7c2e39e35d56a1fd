# SPDX-License-Identifier: Apache-2.0
"""Questions in other libraries, for the cases; each is imported in its own environment alone."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any


def opendp() -> Any:
    """Returns OpenDP with the parts that its manual uses."""
    import opendp.prelude as dp  # type: ignore[import-not-found]

    dp.enable_features("contrib")
    return dp


def opendp_count(scale: float) -> Callable[[int], int]:
    """Returns OpenDP's discrete Laplace mechanism for counts."""
    dp = opendp()
    space = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    release: Callable[[int], int] = dp.m.make_laplace(*space, scale=scale)
    return release


def diffprivlib_count(rows: int, epsilon: float, **options: Any) -> int:
    """Counts with diffprivlib."""
    from diffprivlib.tools import count_nonzero  # type: ignore[import-not-found]

    return int(count_nonzero([1] * rows, epsilon=epsilon, **options))


def pydp(kind: str, epsilon: float, dtype: str = "int", **bounds: Any) -> Any:
    """Returns an algorithm of PyDP."""
    from pydp.algorithms import laplacian  # type: ignore[import-not-found]

    return getattr(laplacian, kind)(epsilon=epsilon, dtype=dtype, **bounds)


def smartnoise(rows: Mapping[str, Any], epsilon: float = 1.0, **columns: Any) -> Any:
    """Returns a SmartNoise reader of a table t, whose rows are its unit."""
    import pandas as pd
    from snsql import Privacy, from_df  # type: ignore[import-not-found]

    metadata = {"": {"": {"t": {"row_privacy": True, **columns}}}}
    privacy = Privacy(epsilon=epsilon, delta=1e-7)
    return from_df(pd.DataFrame(rows), privacy=privacy, metadata=metadata)


def pipelinedp(rows: Iterable[Any], metric: str, high: float = 5, public: Any = ("a",)) -> Any:
    """Aggregates rows of an id, a partition and a value with PipelineDP at epsilon 1."""
    import pipeline_dp as dp  # type: ignore[import-not-found]

    account = dp.NaiveBudgetAccountant(total_epsilon=1, total_delta=1e-6)
    parameters = dp.AggregateParams(
        metrics=[getattr(dp.Metrics, metric)],
        noise_kind=dp.NoiseKind.LAPLACE,
        max_partitions_contributed=1,
        max_contributions_per_partition=1,
        min_value=0,
        max_value=high,
    )
    places = [lambda row, place=place: row[place] for place in range(3)]
    names = ("privacy_id_extractor", "partition_extractor", "value_extractor")
    extractors = dp.DataExtractors(**dict(zip(names, places, strict=True)))
    engine = dp.DPEngine(account, dp.LocalBackend())
    result = engine.aggregate(list(rows), parameters, extractors, public_partitions=public)
    account.compute_budgets()
    return result
