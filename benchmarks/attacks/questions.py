# SPDX-License-Identifier: Apache-2.0
"""Questions in each system, for the cases; each is imported in its own environment alone."""

import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from benchmarks.attacks.case import Seen, Try

ALL = "SELECT COUNT(*) AS n FROM t"
SUM = "SELECT SUM(x) AS s FROM t"


@contextmanager
def session(rows: Mapping[str, Any], epsilon: Any = 1000, **columns: Any) -> Iterator[Any]:
    """Opens a session of sfumato over rows of one table t; nothing is left of it."""
    import pyarrow as pa

    import sfumato as sf

    table = sf.Table(pa.table(rows), columns=columns)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_STATE_HOME"] = folder
        place, budget = f"{folder}/ledger.db", sf.Budget(epsilon, "1e-6")
        with sf.connect({"t": table}, dataset="attacked", budget=budget, ledger=place) as opened:
            yield opened


def asked(rows: Mapping[str, Any], text: str, price: Mapping[str, Any], **columns: Any) -> Any:
    """Asks sfumato one question; returns the rows of its answer."""
    with session(rows, **columns) as opened:
        return opened.query(text, **price).rows


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


def tumult(rows: Mapping[str, Any], epsilon: Any, delta: float = 0) -> Any:
    """Returns a session of Tumult Analytics over rows of one table t, and its query builder."""
    import pandas as pd
    from pyspark.sql import SparkSession
    from tmlt.analytics import (  # type: ignore[import-not-found]
        AddOneRow,
        ApproxDPBudget,
        PureDPBudget,
        QueryBuilder,
        Session,
    )

    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    spark = SparkSession.builder.master("local[1]").config("spark.sql.shuffle.partitions", 1)
    frame = spark.getOrCreate().createDataFrame(pd.DataFrame(rows))
    budget = ApproxDPBudget(epsilon, delta) if delta else PureDPBudget(epsilon)
    return Session.from_dataframe(budget, "t", frame, AddOneRow()), QueryBuilder("t")


def _tumult_sum(values: Sequence[Any], high: float) -> float:
    from tmlt.analytics import PureDPBudget

    opened, query = tumult({"x": values}, 1)
    return float(opened.evaluate(query.sum("x", 0, high, "n"), PureDPBudget(1)).collect()[0]["n"])


def _sfumato_sum(values: Sequence[Any], high: Any) -> float:
    import pyarrow as pa

    import sfumato as sf

    if isinstance(high, float):
        return float(
            asked({"x": values}, SUM, {"epsilon": 1}, x=sf.Real(0, high, step="0.25"))[0][0]
        )
    rows = {"x": pa.array(values, pa.int32())}
    return float(asked(rows, SUM, {"epsilon": 1}, x=sf.Integer(0, high))[0][0])


def _opendp_sum(values: Sequence[Any], high: Any) -> float:
    dp = opendp()
    if isinstance(high, float):
        raw = dp.vector_domain(dp.atom_domain(T=float, nan=True)), dp.symmetric_distance()
        whole = dp.t.make_impute_constant(*raw, 0.0)
        bounded = whole >> dp.t.then_clamp((0.0, high)) >> dp.t.then_resize(len(values), 0.0)
    else:
        raw = dp.vector_domain(dp.atom_domain(T="i64")), dp.symmetric_distance()
        bounded = dp.t.make_clamp(*raw, (0, high))
    return float((bounded >> dp.t.then_sum() >> dp.m.then_laplace(scale=float(high)))(values))


def _diffprivlib_sum(values: Sequence[Any], high: float) -> float:
    from diffprivlib import tools  # type: ignore[import-not-found]

    return float(tools.sum(values, epsilon=1, bounds=(0, high)))


def _pydp_sum(values: Sequence[Any], high: float) -> float:
    bounds = {"lower_bound": type(high)(0), "upper_bound": high}
    return float(pydp("BoundedSum", 1.0, type(high).__name__, **bounds).quick_result(values))


def _smartnoise_sum(values: Sequence[Any], high: float) -> float:
    column = {"type": type(high).__name__, "lower": 0, "upper": high}
    return float(smartnoise({"x": values}, x=column).execute(SUM)[1][0])


# The number of rows, at an epsilon.
COUNTS: Mapping[str, Callable[[int, float], float]] = {
    "opendp": lambda rows, epsilon: opendp_count(1 / epsilon)(rows),
    "diffprivlib": diffprivlib_count,
    "python-dp": lambda rows, epsilon: pydp("Count", epsilon).quick_result([1] * rows),
    "smartnoise": lambda rows, epsilon: float(
        smartnoise({"x": [1] * rows}, epsilon, x={"type": "int"}).execute(ALL)[1][0]
    ),
}
# The sum of values that are cut to 0 and an upper bound of their type, at epsilon 1.
SUMS: Mapping[str, Callable[[Sequence[Any], Any], float]] = {
    "sfumato": _sfumato_sum,
    "opendp": _opendp_sum,
    "diffprivlib": _diffprivlib_sum,
    "pipelinedp": lambda values, high: (
        next(iter(pipelinedp([(row, "a", x) for row, x in enumerate(values)], "SUM", high)))[1].sum
    ),
    "python-dp": _pydp_sum,
    "smartnoise": _smartnoise_sum,
    "tumult": _tumult_sum,
}


def sums(judge: Callable[[float], Seen], values: Any, high: Any, *systems: str) -> dict[str, Try]:
    """Judges the sum of values in each of some systems."""
    return {name: partial(_judged_sum, judge, name, values, high) for name in systems}


def _judged_sum(judge: Callable[[float], Seen], system: str, values: Any, high: Any) -> Seen:
    return judge(SUMS[system](values, high))
