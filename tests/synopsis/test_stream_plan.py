# SPDX-License-Identifier: Apache-2.0
"""The choice of an encoder: exact errors against closed forms, and the bars of the issue."""

import math

import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import WrongUse
from sfumato.metadata.dataset import Dataset
from sfumato.synopsis import Totals, Windows, plan_stream, stream_plan
from sfumato.synopsis.stream_plan import StreamPlan

TRIPS = sf.Table(
    "trips.csv",
    unit=sf.Unit("rider"),
    columns={
        "day": sf.Date("2026-01-01", "2028-12-31"),
        "hour": sf.Integer(0, 10**6),
        "line": sf.Category("A", "B"),
    },
)
CITY = Dataset("city", {"trips": TRIPS})


def planned(horizon: int | None = 1024, **options: object) -> StreamPlan:
    chosen = {"time": "day", "horizon": horizon, "rho": "0.5", **options}
    return plan_stream(CITY, "trips", **chosen)


def variance(plan: StreamPlan, name: str) -> float:
    """The mean variance of a candidate."""
    (found,) = [each for each in plan.candidates if each.name == name]
    return found.mean


def test_the_running_count_of_1024_ticks_is_within_the_bar():
    plan = planned()
    assert plan.best.mean <= 9.7
    # the closed form of the square root: its norm times that of its inverse
    squares = np.cumprod([1, *((2 * k - 1) / (2 * k) for k in range(1, 1024))]) ** 2
    exact = squares.sum() * np.cumsum(squares).mean()
    assert variance(plan, "square root") == pytest.approx(exact, rel=1e-4)
    assert variance(plan, "buffered square root") <= 9.7


def square_root(ends: np.ndarray, steps: int) -> np.ndarray:
    """The variance of running totals at rho = 0.5 by the closed form of the square root."""
    squares = np.cumprod([1, *((2 * k - 1) / (2 * k) for k in range(1, steps))]) ** 2
    return squares.sum() * np.cumsum(squares)[ends - 1]


def test_where_no_end_is_known_each_doubling_weighs_the_same(monkeypatch):
    """As if a day were drawn, whose number is log-uniform: told from equal days (a third more)."""
    monkeypatch.setattr(stream_plan, "MOST_TICKS", 4096)
    plan = planned(None)
    # the chance of tick t is log2((t + 1) / t) of 12 doublings
    ticks = np.arange(1, 4096)
    exact = square_root(ticks, 4096) @ np.log2((ticks + 1) / ticks) / 12
    assert variance(plan, "square root") == pytest.approx(exact, rel=0.002)
    assert square_root(ticks, 4096).mean() > 1.3 * exact
    assert plan.horizon is None and "no end known" in repr(plan)
    assert "no end known" not in repr(planned(8))


def test_one_encoder_for_2_21_ticks_beats_epochs_of_doubling_length():
    """Epochs at their best: each with the whole cost, since a row is in one. Better for 31 ticks."""
    squares = np.cumprod([1, *((2 * k - 1) / (2 * k) for k in range(1, 4096))]) ** 2
    norms = np.cumsum(squares)
    # an epoch of 2^k ticks that is over adds the variance of its total
    epochs = np.cumsum(norms[2 ** np.arange(12) - 1] ** 2)
    endless = (math.log(16 * 2**21) + np.euler_gamma) / math.pi * norms[2 ** np.arange(1, 13) - 2]
    assert (epochs[5:] > endless[5:]).all() and (epochs[:5] < endless[:5]).all()


def test_a_single_tick_by_itself_costs_its_sum():
    """Without a matrix, the total of t ticks has the variance t / (2 rho)."""
    assert variance(planned(64), "each tick by itself") == pytest.approx(65 / 2)
    assert variance(planned(64, wanted=Windows(7)), "each tick by itself") == pytest.approx(7)
    assert planned(1).best.mean == pytest.approx(1)


def test_under_pure_epsilon_a_tree_beats_single_ticks():
    plan = planned(rho=None, epsilon=1)
    assert plan.best.name.startswith("tree of")
    assert plan.best.mean < variance(plan, "each tick by itself") / 3
    # a tree of 2 with equal weights: the mean number of blocks is half the levels
    assert planned(8, rho=None, epsilon=1).best.mean < 2 * 16


def test_the_wanted_counts_choose_the_encoder():
    windows = planned(wanted=Windows(7))
    assert windows.best.name == "square root, 7 bands"
    assert windows.best.mean < variance(windows, "square root")
    # a window longer than the stream is the whole stream
    assert planned(8, wanted=Windows(99)).best.mean > 0
    for plan in (windows, planned()):
        assert plan.best.mean == min(each.mean for each in plan.candidates)
        assert plan.best.worst >= plan.best.mean


def test_a_larger_unit_makes_the_same_stream_dearer():
    once, days, user = (
        planned(participations=each, separation=gap).best.mean
        for each, gap in ((1, 1), (12, 30), (1024, 1))
    )
    assert once < days < user
    # a user in every tick, each by itself: 1024 times the variance of one participation
    assert user == pytest.approx(1024 * 1025 / 2)
    assert planned(rows=3).best.mean == pytest.approx(9 * once)
    # there are no more participations than ticks
    assert planned(10, participations=500).best.ticks.participations == 10


def test_each_row_that_is_its_own_unit_is_in_one_tick():
    alone = sf.Table("trips.csv", columns=TRIPS.columns)
    plan = plan_stream(
        Dataset("city", {"trips": alone}), "trips", time="day", horizon=64, rho=1, participations=9
    )
    assert plan.best.ticks.participations == 1 and plan.best.ticks.plan.most == 1


def test_a_plan_says_what_it_compared():
    shown = repr(planned(16, by=["line"]))
    assert "running totals over 16 ticks, 3 cells" in shown and "nothing was charged" in shown
    assert "each tick by itself" in shown and "a unit counts in 1 ticks" in shown
    assert str(Totals()) == "running totals" and str(Windows(1)) == "single ticks"


def test_whole_numbers_may_be_times():
    assert planned(16, time="hour").time.decode(3) == 3


def test_intervals_and_errors_follow_the_price():
    ratio = planned(rho="0.5").best.mean / planned(rho="0.25").best.mean
    assert math.isclose(ratio, 0.5, rel_tol=1e-3)


@pytest.mark.parametrize("ticks", [0, -1, "7", True])
def test_no_such_window(ticks):
    with pytest.raises(WrongUse, match="window"):
        Windows(ticks)


def test_noise_beyond_what_a_number_holds_is_refused():
    with pytest.raises(WrongUse, match="2\\^56"):
        planned(rho="0.000000000001", rows=2**20)
