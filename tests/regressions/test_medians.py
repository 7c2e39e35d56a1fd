# SPDX-License-Identifier: Apache-2.0
"""Stated errors of medians and quantiles hold, in ranks and in the units of the column."""

from contextlib import closing
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.engines.duckdb import DuckDB
from sfumato.metadata.dataset import Dataset
from sfumato.query import quantile_leaves
from sfumato.query.add_noise import noisy
from sfumato.query.choose import plan_for_price
from sfumato.query.curator import Curator
from sfumato.query.price import price
from sfumato.query.reserved import Reserved
from sfumato.query.statistic import Opened
from sfumato.sql.lower import understand
from sfumato.testing import assert_at_most

# Of incomes of up to about 10^6, most of them near 60,000, declared up to 10^7.
INCOMES = np.sort(np.round(np.exp(np.random.default_rng(1).normal(11, 0.7, 45_000))).astype(int))
RELEASES = 200


def released(sql, incomes=INCOMES, *, times=RELEASES, highest=10**7, interval=False):
    """So many releases of a question of incomes, read once, and their parts' only reading."""
    table = sf.Table(pa.table({"income": incomes}), columns={"income": sf.Integer(0, highest)})
    data = Dataset("d", {"t": table})
    paid = price(epsilon="0.2").buying(interval=interval)
    planned = plan_for_price(understand(sql, data), data, paid)
    with closing(DuckDB(data.tables)) as engine:
        exact = engine.run(planned.bounded, "key")
    for _ in range(times):
        opened = Opened(planned.bounded, lambda: exact)
        _, (part,) = noisy(planned, Curator("charge", Reserved(planned.event), opened))
        yield part


def rank_error(value, level, incomes=INCOMES):
    """How far the level's rank is from the ranks of a value, in rows."""
    aim = level * len(incomes)
    low, high = (np.searchsorted(incomes, float(value), side) for side in ("left", "right"))
    return max(low - aim, aim - high, 0)


@pytest.mark.parametrize("level", ["0.5", "0.9"])
def test_the_stated_rank_error_of_a_quantile_holds(level):
    sql = f"SELECT QUANTILE_CONT(income, {level}) FROM t"
    miss = Fraction(5, 100)
    failures = 0
    for part in released(sql, INCOMES[::3]):
        stated = part.rank_error(0, miss)
        failures += rank_error(part.point(0), Fraction(level), INCOMES[::3]) > stated
    assert_at_most(failures, RELEASES, 0.05, notices=0.6)
    # 10^7 values: (ln(10^7 / 0.05)) times twice the level's share over epsilon
    assert float(stated) == pytest.approx(2 * max(float(level), 0.5) / 0.2 * np.log(2e8), rel=1e-5)


def test_a_grid_of_leaves_as_before_misses_every_time_and_is_noticed(monkeypatch):
    monkeypatch.setattr(
        quantile_leaves, "codes_of_leaf", lambda codes, groups, **engine: -(-codes // 1024)
    )
    failures = sum(
        rank_error(part.point(0), Fraction(1, 2)) > part.rank_error(0, Fraction(5, 100))
        for part in released("SELECT MEDIAN(income) FROM t", times=20)
    )
    assert failures == 20


def test_some_value_of_the_stated_leaf_has_the_stated_rank_error(monkeypatch):
    """What a grid states: both ends of a leaf, and the rank error of a value between them."""
    monkeypatch.setattr(
        quantile_leaves, "codes_of_leaf", lambda codes, groups, **engine: -(-codes // 1024)
    )
    failures = 0
    for part in released("SELECT MEDIAN(income) FROM t"):
        low, high = part.leaf(0, 0)
        assert high - low == 9765
        # the ranks of a leaf go from those below it to those up to its end
        below, upto = np.searchsorted(INCOMES, low), np.searchsorted(INCOMES, high, "right")
        off = max(below - 22_500, 22_500 - upto, 0)
        failures += off > part.rank_error(0, Fraction(5, 100))
    assert_at_most(failures, RELEASES, 0.05, notices=0.6)


def test_a_range_far_beyond_the_values_costs_little():
    """At most 1.2 times the rank error of a range of ten times the spread of the values."""
    errors = []
    for highest in (10**7, 3 * 10**6):
        (part,) = released("SELECT MEDIAN(income) FROM t", times=1, highest=highest)
        errors.append(part.rank_error(0, Fraction(5, 100)))
    assert errors[0] <= Fraction(12, 10) * errors[1]


@pytest.mark.parametrize("rows", [9_000, 300, 3])
def test_an_interval_and_the_rank_error_hold_together_of_many_rows_and_of_few(rows):
    incomes = INCOMES[:: len(INCOMES) // rows]
    true = float(np.quantile(incomes, 0.9, method="inverted_cdf"))
    failures = 0
    told = []
    for part in released("SELECT QUANTILE_CONT(income, 0.9) FROM t", incomes, interval=True):
        low, high = part.interval(0, Fraction(5, 100))
        assert low <= part.point(0) <= high
        far = rank_error(part.point(0), Fraction(9, 10), incomes)
        failures += not low <= true <= high or far > part.rank_error(0, Fraction(5, 100))
        told.append(high - low < 10**7)
    assert_at_most(failures, RELEASES, 0.05, notices=0.6)
    # with many rows every interval says something; with few it is the whole range, but for chance
    assert sum(told) == RELEASES if rows == 9_000 else rows == 300 or sum(told) < 20


def test_an_interval_is_narrow_where_there_are_many_rows():
    widths = []
    for part in released("SELECT MEDIAN(income) FROM t", times=20, interval=True):
        low, high = part.interval(0, Fraction(5, 100))
        widths.append(float(high - low))
    # 600 rows around the median of 45,000 are about 2,600 in income
    assert max(widths) < 4_000


@pytest.fixture
def session(tmp_path):
    table = sf.Table(pa.table({"income": INCOMES}), columns={"income": sf.Integer(0, 10**7)})
    with sf.connect(
        {"t": table}, dataset="d", budget=sf.Budget(9), ledger=tmp_path / "l.db"
    ) as opened:
        yield opened


def test_an_answer_without_interval_says_that_it_cannot_be_told_in_files_too(session):
    answer = session.query("SELECT MEDIAN(income) AS m FROM t", epsilon="0.2")
    (error,) = answer.error()
    assert (error["m"]["low"], error["m"]["high"], error["m"]["half_width"]) == (None, None, None)
    assert "interval cannot be told" in repr(answer)
    header, row, _ = answer.to_csv().split("\n")
    assert header == "m,m_low,m_high,m_rank_error,marks"
    assert row.split(",")[0] == str(answer.rows[0][0])
    assert row.split(",")[1:3] == ["", ""] and row.endswith(",interval of m: cannot be told")
    assert answer["m_rank_error"] == [error["m"]["rank_error"]]


def test_an_answer_with_an_interval_states_it_everywhere(session):
    sql = "SELECT MEDIAN(income) AS m, MEDIAN(income) / 2 AS half FROM t"
    preview = session.preview(sql, epsilon="0.6", interval=True)
    answer = session.query(sql, epsilon="0.6", interval=True)
    (error,) = answer.error()
    low, high = error["m"]["low"], error["m"]["high"]
    assert low < answer.rows[0][0] < high
    assert error["half"]["low"] <= low / 2 < high / 2 <= error["half"]["high"]
    assert f"[{low:,}, {high:,}]" in repr(answer)
    assert answer.to_csv().startswith("m,m_low,m_high,m_rank_error,half,half_low,half_high\n")
    expected = preview.error()[0]
    assert expected["rank_error"] == pytest.approx(error["m"]["rank_error"])
    ends = [np.searchsorted(INCOMES, end) - 22_500 for end in (low, high)]
    assert max(map(abs, ends)) <= expected["end_rank_error"]
    # the ends are for up to 99%
    assert answer.error("0.99")[0]["m"]["low"] == low
    assert answer.error("0.999")[0]["m"]["low"] is None
    # the same question is recalled, the one without an interval is another
    assert session.query(sql, epsilon="0.6", interval=True).recalled
    assert not session.query(sql, epsilon="0.6").recalled


def test_a_group_without_rows_cannot_be_told(session):
    answer = session.query(
        "SELECT MEDIAN(income) AS m FROM t WHERE income > 9000000", epsilon="0.2", interval=True
    )
    assert "cannot be told" in repr(answer)
    assert answer.to_dicts() == [{"m": None}]


def test_an_interval_of_anything_else_is_refused(session):
    for sql, options in (
        ("SELECT COUNT(*) FROM t", {"epsilon": 1, "interval": True}),
        ("SELECT MEDIAN(income) FROM t", {"epsilon": 1, "interval": 1}),
        ("SELECT SUM(income) FROM t", {"error": 9, "max_epsilon": 1, "interval": True}),
    ):
        with pytest.raises(sf.errors.WrongUse, match="interval="):
            session.query(sql, **options)
    assert session.budget.spent == "0"
