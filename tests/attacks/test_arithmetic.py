# SPDX-License-Identifier: Apache-2.0
"""Attacks on arithmetic and on selection: sums that wrap or round, degenerate bounds, ties, levels
mixed up.

Asked through a session with so much epsilon that there is no noise, but for a chance below
1e-50: what comes out are the exact integers, as worked out in Python.
"""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.engines import linear_aggregates, sql_tree, value_sql
from sfumato.engines.duckdb import DuckDB
from sfumato.errors import InvalidDeclaration, WrongUse
from sfumato.mechanisms.grid import GridQuantiles
from sfumato.metadata.dataset import Dataset
from sfumato.plan import aggregate
from sfumato.plan.aggregate import Sum
from sfumato.privacy.distance import Norm
from sfumato.query.pipeline import compile_plan
from sfumato.sql import understand
from tests.attacks import shop
from tests.attacks.questions import ANSWERED
from tests.contracts.verbatim import Verbatim

UNIT = sf.Unit("who", max_rows=10**6)


def session(
    folder: Path, values: pa.Array, kind: object, *, unit: sf.Unit | None = UNIT, name: str = "l"
) -> sf.Session:
    """One column of one person each."""
    frame = pa.table({"v": values, "who": [str(place % 997) for place in range(len(values))]})
    tables = {"t": sf.Table(frame, unit=unit, columns={"v": kind})}
    return sf.connect(tables, dataset="d", budget=sf.Budget(10**6), ledger=folder / f"{name}.db")


def integers(values: pa.Array, kind: object, ask: str) -> list[tuple[int, ...]]:
    """What an engine gives of each part of a question, each row its own unit."""
    data = Dataset("d", {"t": sf.Table(pa.table({"v": values}), columns={"v": kind})})
    engine = DuckDB(data.tables)
    found = engine.run(
        compile_plan(understand(f"SELECT {ask} FROM t", data).raw, data, Norm.L1), "key"
    )
    engine.close()
    return [part.get((), (0,)) for part in found]


def exact(
    folder: Path, values: pa.Array, kind: object, ask: str, *, name: str = "l"
) -> list[object]:
    """An answer without noise, each row its own unit."""
    with session(folder, values, kind, unit=None, name=name) as opened:
        return opened.query(f"SELECT {ask} FROM t", epsilon=10**6).rows[0]


# --- sums ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "stored", [pa.int32(), pa.int64(), pa.uint32(), pa.float64(), pa.string()], ids=str
)
def test_a_sum_does_not_wrap(stored):
    values = pa.array([2**30] * 100).cast(stored)
    assert integers(values, sf.Integer(0, 2**31), "SUM(v), COUNT(v)") == [(2**30 * 100,), (100,)]


def test_a_sum_of_the_largest_codes_is_exact():
    top = 2**52
    values = pa.array([top] * 3000 + [-top] * 1000 + [1])
    assert integers(values, sf.Integer(-top, top), "SUM(v)") == [(top * 2000 + 1,)]


def test_the_order_of_a_sum_does_not_matter(monkeypatch):
    """A large value swallows small ones in floats: with it or without, they would differ by more
    than it.
    """
    small, large = [1] * 2048, [2**52]

    def apart() -> list[int]:
        found = [
            integers(pa.array(values), sf.Integer(-(2**52), 2**52), "SUM(v)")[0][0]
            for values in (large * 3 + small, small + large * 3, small)
        ]
        return [each - found[-1] - 3 * 2**52 for each in found[:-1]]

    assert apart() == [0, 0]
    honest = linear_aggregates._sum
    monkeypatch.setattr(
        linear_aggregates,
        "_sum",
        lambda name, *, narrow: dict.fromkeys(
            honest(name, narrow=narrow),
            Verbatim(f"TRY_CAST(coalesce(sum(CAST({name} AS FLOAT)), 0) AS HUGEINT)"),
        ),
    )
    assert apart() != [0, 0]


def test_moments_of_large_numbers_are_exact():
    """Squared deviations of 2^50 +- 1 in floats are noise of their own (opendp/opendp#2923)."""
    top = 2**50
    values = [top - 1, top + 1] * 50
    (pair, triple) = integers(pa.array(values), sf.Integer(0, 2 * top), "AVG(v), VAR_POP(v + 1)")
    assert pair == (sum(values), sum(2 * top - value for value in values))
    # 2^26 levels of 2^25 codes
    most = 2**26
    levels = [(value + 1 - 1) // -(-2 * top // most) for value in values]
    assert triple == (
        sum(u * u for u in levels),
        sum(2 * u * (most - u) for u in levels),
        sum((most - u) ** 2 for u in levels),
    )


CLIPPED = (
    "SUM(v), AVG(v), VARIANCE(v * 2), MEDIAN(v), COUNT(DISTINCT v), COUNT_IF(v > 499), SUM(v * v)"
)


def test_what_is_beyond_the_bounds_is_the_bound_in_every_aggregate(monkeypatch):
    """After the clip nothing reads the value that was there before (smartnoise-sdk#622)."""
    inside = pa.array([500.0] * 60 + [1.0])
    beyond = pa.array([1e308] * 30 + [float("inf")] * 30 + [1.0])
    kind = sf.Real(0, 500, step=1)
    one = integers(inside, kind, CLIPPED)
    assert one[0] == (30_001, 61 * 500 - 30_001) and one[-1] == (60 * 500**2 + 1,)
    assert integers(beyond, kind, CLIPPED) == one
    monkeypatch.setattr(
        value_sql,
        "_clip_reading",
        lambda value, ends, kind, inside, present: sql_tree.TryCast(value, sql_tree.SqlType.BIGINT),
    )
    assert integers(pa.array([600.0] * 60 + [1.0]), kind, "SUM(v)") != one[:1]


# --- bounds --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "declare",
    [
        lambda: sf.Integer(5, 5),
        lambda: sf.Real(0, 0),
        lambda: sf.Real(3, 3),
        lambda: sf.Integer(9, 1),
        lambda: sf.Real(0, float("inf")),
        lambda: sf.Real(float("nan"), 1),
        lambda: sf.Integer(0, 2**53),
        lambda: sf.Date("2024-01-01", "2024-01-01"),
        lambda: sf.Unit("who", max_rows=0),
        lambda: sf.Unit("who", max_groups=-1),
        lambda: sf.Unit("who", max_rows=True),
        lambda: sf.Unit("who", max_rows=2.5),
    ],
)
def test_bounds_that_bound_nothing_are_refused_when_declared(declare):
    with pytest.raises((InvalidDeclaration, WrongUse)):
        declare()


def claimed(kind: object, ask: str, rows: int = 3) -> Fraction:
    """The claimed distance of the first part of a question."""
    data = Dataset(
        "d", {"t": sf.Table("t.csv", unit=sf.Unit("who", max_rows=rows), columns={"v": kind})}
    )
    return (
        compile_plan(understand(f"SELECT {ask} FROM t", data).raw, data, Norm.L1)
        .parts[0]
        .distance.value
    )


BOUNDS = [
    (sf.Integer(0, 1000), "SUM(v)", 3000),
    (sf.Integer(-1000, 10), "SUM(v)", 3000),
    (sf.Integer(900, 1000), "SUM(v)", 3000),
    (sf.Integer(900, 1000), "AVG(v)", 300),
    (sf.Integer(-7, -5), "SUM(v)", 21),
    # a range of one value, or of zero alone, still hides whether a row is there
    (sf.Integer(0, 1000), "SUM(LEAST(v, 0))", 3),
    (sf.Integer(0, 1000), "SUM(GREATEST(v, 1000))", 3000),
    (sf.Integer(0, 1000), "SUM(v - v)", 3000),
    (sf.Integer(0, 1000), "SUM(CASE WHEN v > 3 THEN 7 ELSE -9 END)", 27),
    (sf.Boolean(), "SUM(v)", 3),
    (sf.Integer(0, 1000), "MEDIAN(v)", 3 * 2**20),
]


@pytest.mark.parametrize(("kind", "ask", "value"), BOUNDS)
def test_a_claim_is_of_the_bound_that_is_farther_from_zero_and_never_nothing(kind, ask, value):
    assert claimed(kind, ask) == value


def test_a_claim_of_the_upper_bound_alone_is_noticed(monkeypatch):
    upper = property(lambda part: max(part.value.numeric.upper_code, 1))
    monkeypatch.setattr(Sum, "largest", upper)
    found = [claimed(kind, ask) for kind, ask, _ in BOUNDS if ask.startswith("SUM")]
    assert found != [value for _, ask, value in BOUNDS if ask.startswith("SUM")]


def test_the_noise_of_a_mean_does_not_know_how_many_there_are(tmp_path):
    """(smartnoise-core#356) Of neighbours of any size the same noise is charged and the same error
    is shown.
    """
    costs = []
    for size in (0, 1, 5000):
        with session(
            tmp_path, pa.array([5] * size, pa.int64()), sf.Integer(0, 9), name=str(size)
        ) as opened:
            costs.append(opened.query("SELECT AVG(v), STDDEV(v) FROM t", epsilon=1).cost)
    assert costs[0] == costs[1] == costs[2]


# --- nobody, one, ties ---------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [[], [3]], ids=["nobody", "one"])
def test_a_statistic_of_nobody_or_of_one_row_is_an_ordinary_answer(tmp_path, rows):
    asks = "COUNT(*), SUM(v), AVG(v), VAR_SAMP(v), STDDEV_SAMP(v), MEDIAN(v), MIN(v), MAX(v), SUM(v) / COUNT(v)"
    with session(tmp_path, pa.array(rows, pa.int64()), sf.Integer(0, 9)) as opened:
        for epsilon in ("1e-6", 1, 10**5):
            answer = opened.query(f"SELECT {asks} FROM t", epsilon=epsilon)
            assert len(answer.rows) == 1
            assert all(cell is None or math.isfinite(cell) for cell in answer.rows[0])
            assert answer.to_arrow().num_rows == 1


def test_every_question_has_an_answer_where_there_is_nobody(tmp_path):
    empty: Mapping[str, Sequence] = {name: [] for name in shop.data()}
    with shop.connected(tmp_path, empty) as opened:
        for text in ANSWERED:
            price: dict[str, object] = {"epsilon": "0.5"}
            try:
                answer = opened.query(text, **price)
            except sf.SfumatoError as error:
                assert "spends delta" in str(error)
                answer = opened.query(text, **price, delta="1e-9")
                assert answer.rows == []
            answer.error("0.99")


def quantiles(folder: Path, values: pa.Array, name: str = "l") -> list[object]:
    """Five quantiles without noise, each row its own unit."""
    asks = "MIN(v), QUANTILE_CONT(v, 0.25), MEDIAN(v), QUANTILE_DISC(v, 0.9), MAX(v)"
    return exact(folder, values, sf.Integer(0, 1000), asks, name=name)


def test_quantiles_of_wide_scores_with_ties_are_those_of_the_data(tmp_path, monkeypatch):
    """Four in five agree (diffprivlib#107).

    The largest is not the smallest (opendp/opendp#2912).
    """
    values = pa.array([700] * 80_000 + list(range(1000)) * 20)
    low, quarter, median, high, top = quantiles(tmp_path, values)
    assert (quarter, median) == (700, 700)
    ordered = sorted(values.to_pylist())
    assert (
        abs(low - ordered[500]) <= 2
        and abs(high - ordered[90_000]) <= 2
        and abs(top - ordered[99_500]) <= 2
    )
    honest = GridQuantiles.release
    monkeypatch.setattr(GridQuantiles, "release", lambda *given: tuple(reversed(honest(*given))))
    low, *_, top = quantiles(tmp_path, values, "broken")
    assert low > top


def test_a_quantile_with_little_epsilon_is_anywhere_on_the_public_grid(tmp_path):
    """Not only among values that occur: with one value in the data, other leaves are chosen all the
    time.
    """
    found = set()
    with session(tmp_path, pa.array([500] * 3), sf.Integer(0, 1000)) as opened:
        # each costs a little more, or the one before would do
        for place in range(25):
            found.add(
                opened.query("SELECT MEDIAN(v) FROM t", epsilon=Fraction(1, 10**9 - place)).rows[0][
                    0
                ]
            )
    # a thousand leaves, nearly uniform: at most five different ones in 25 draws, below (5 /
    # 1000)^20 C(1000, 5) < 1e-30
    assert len(found) > 5


def test_the_grid_of_a_quantile_is_of_the_declaration():
    data = Dataset("d", {"t": sf.Table("t.csv", columns={"v": sf.Real(0, 1)})})
    (part,) = understand("SELECT MEDIAN(v) FROM t", data).raw.aggregates
    assert isinstance(part, aggregate.CodeQuantiles)
    assert (part.coarse, part.leaves) == (1, part.value.type.size)
