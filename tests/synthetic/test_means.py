# SPDX-License-Identifier: Apache-2.0
"""Means of columns with empty tails, and values that many rows have: numbers that hold."""

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato import synthetic as sy
from sfumato.synthetic.merging import Merging
from sfumato.testing import assert_at_most
from tests.synthetic.towns import session

# Hours of work: half of the rows at 40, the others about it, and nearly nobody beyond 80.
_DRAWN = np.random.RandomState(7)  # fixed rows, no noise
_USUAL = np.clip(np.rint(_DRAWN.normal(38, 9, 30_000)), 1, 99).astype(np.int64)
HOURS = np.where(_DRAWN.uniform(size=30_000) < 0.5, 40, _USUAL)
SEX = np.where(_DRAWN.uniform(size=30_000) < 0.4, "F", "M")
ROWS = pa.table({"hours": HOURS, "sex": SEX})
COLUMNS = {"hours": sf.Integer(1, 99), "sex": sf.Category("F", "M")}


def fitted(tmp_path, epsilon):
    """A fit of its own."""
    with session(tmp_path, ROWS, columns=COLUMNS) as opened:
        return sy.fit(opened, "people", epsilon=epsilon, delta="1e-9")


def bias(tmp_path_factory, fits):
    """By how much the means of some fits at a small cost are too high, on average."""
    means = []
    for _ in range(fits):
        rows = fitted(tmp_path_factory.mktemp("fit"), "0.03").sample()["people"]
        means.append(rows["hours"].to_numpy().mean())
    return np.mean(means) - HOURS.mean()


def test_an_empty_tail_does_not_raise_a_mean(tmp_path_factory, monkeypatch):
    # with one rest of all rare values, the noise of 60 empty ones is cut at zero: + 4.3 for + 1.1;
    # nine fits have a standard deviation of .4
    assert abs(bias(tmp_path_factory, 9)) < 2.5
    monkeypatch.setattr(Merging, "of_neighbours", lambda counts, least: Merging.of(counts, least))
    assert bias(tmp_path_factory, 9) > 2.5


@pytest.mark.long
@pytest.mark.parametrize("epsilon", ["0.1", "1"])
def test_intervals_of_means_hold(tmp_path_factory, epsilon):
    misses = 0
    for _ in range(120):
        model = fitted(tmp_path_factory.mktemp("fit"), epsilon)
        (row,) = model.query("SELECT AVG(hours) AS h FROM people", copies=10).to_pylist()
        misses += not row["h_low"] <= HOURS.mean() <= row["h_high"]
    assert_at_most(misses, 120, 0.05, notices=0.65)


@pytest.mark.parametrize("top", [300, 4000, 5000])
def test_a_value_that_many_rows_have_is_kept(tmp_path, top):
    numbers = np.where(np.arange(5000) % 10 < 7, 0, 1 + np.arange(5000) * 7919 % top)
    table = pa.table({"z": numbers})
    with session(tmp_path, table, columns={"z": sf.Integer(0, top)}) as opened:
        model = sy.fit(opened, "people", epsilon=10, delta="1e-9")
    rows = model.sample(rows=5000)["people"]["z"].to_numpy()
    assert abs((rows == 0).sum() - 3500) < 60
    counted = model.query("SELECT COUNT(*) AS n FROM people WHERE z = 0", copies=5).to_pylist()[0]
    assert abs(counted["n"] - 3500) < 60


def test_bins_of_ones_own_say_that_they_lose_a_frequent_value(tmp_path):
    table = pa.table({"z": [0] * 9})
    with session(tmp_path, table, columns={"z": sf.Integer(0, 999)}) as opened:
        kept = sy.preview(opened, "people", epsilon=1)
        lost = sy.preview(opened, "people", epsilon=1, options=sy.Options(bins={"z": 10}))
    note = "z: a frequent value inside one of its bins is not kept"
    assert note in lost.notes and note not in kept.notes
