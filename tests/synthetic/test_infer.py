# SPDX-License-Identifier: Apache-2.0
"""Copies spread as the noise does, and combine by the stated rule."""

import math

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import t as student

import sfumato as sf
from sfumato import synthetic as sy
from sfumato.errors import WrongUse
from sfumato.query.allowance import allowance
from sfumato.synthetic import infer
from sfumato.synthetic.fit import _fit_task
from sfumato.synthetic.fitting import whole_fit, whole_fits
from sfumato.synthetic.infer import combine, copied, interval, with_noise
from sfumato.synthetic.model import TableModel
from tests.synthetic.towns import session, town


def test_copies_of_a_count_spread_as_its_noise(tmp_path):
    with session(tmp_path) as opened:
        # the single columns alone, so that a count has one noise
        options = {"rounds": 0, "check": 0}
        from sfumato.synthetic.fit import Options

        task = _fit_task(
            opened.dataset, "people", allowance(rho="0.01"), options=Options(**options)
        )
        model = TableModel(task, opened.ask(task), opened.price(task))
        base = model.released.base
        rich = base.schema.place("rich")
        copies = copied(base, (), model.fitted, count=200)
        found = [copy.base.measured[rich].counts[0] for copy in copies]
        # the variance of 200 draws is within 40% of its mean, but for a chance below 1e-5
        assert np.var(found) == pytest.approx(base.sigma[0] ** 2, rel=0.4)


class Drawn:
    """A mechanism, its law and a base at once: draws are 0, 4, 8 and so on; 4 to a row."""

    refinement = 4

    def __init__(self):
        self.noise, self.draws = self, []

    def sample(self, size):
        self.draws.append(size)
        return 4 * np.arange(size)


def test_the_noise_of_all_tables_of_a_copy_is_drawn_at_once():
    drawn = Drawn()
    tables = [np.array([10.0, 20.0]), np.full((2, 2), 100.0)]
    first, second = with_noise(drawn, drawn, tables)
    assert first.tolist() == [10, 21] and second.tolist() == [[102, 103], [104, 105]]
    assert drawn.draws == [6]


def test_a_copy_is_fitted_from_nothing(tmp_path, monkeypatch):
    """As the model was: begun at the model, a fit stops early, and copies spread too little."""
    with session(tmp_path, town(500)) as opened:
        model = sy.fit(opened, "people", rho="0.05")
    base, pairs, given = model.released.base, model.released.pairs, []

    def recorded(measured, estimator):
        given.extend(measured)
        return whole_fits(measured, estimator)

    monkeypatch.setattr(infer, "whole_fits", recorded)
    copies = copied(base, pairs, model.fitted, count=3)
    for copy, (noisy, again) in zip(copies, given, strict=True):
        assert noisy is copy.base
        for one, other in zip(pairs, again, strict=True):
            assert one.columns == other.columns and (one.counts != other.counts).any()
        found = whole_fit(noisy, again)
        for one, other in zip(copy.fitted.marginals, found.marginals, strict=True):
            # both have converged; the noise of a count is a thousand times as wide
            assert np.allclose(one, other, rtol=1e-3, atol=1e-2)


def test_combined_estimates_follow_the_rule():
    estimates, variances = [3.0, 5.0, 4.0], [2.0, 4.0, 3.0]
    found = combine(estimates, variances, "0.9")
    # within 3, between 1 times 4/3
    total = 3 + 4 / 3
    freedom = 2 * (total / (4 / 3)) ** 2
    far = student.ppf(0.95, freedom) * math.sqrt(total)
    assert (found.value, found.standard_error) == (4.0, pytest.approx(math.sqrt(total)))
    assert (found.low, found.high) == (pytest.approx(4 - far), pytest.approx(4 + far))


def test_equal_copies_leave_the_variance_of_the_rows():
    found = combine([2.0, 2.0], [9.0, 9.0])
    assert found.standard_error == 3.0 and found.high == pytest.approx(2 + 1.959964 * 3)


@pytest.mark.parametrize(
    ("estimates", "variances"),
    [
        ([1.0], None),
        ([1.0, 2.0], [1.0]),
        ([1.0, 2.0], [1.0, -1.0]),
        ([], []),
        ([1.0, np.nan], None),
        ([1.0, 2.0], [np.inf, 1.0]),
    ],
)
def test_too_few_and_wrong_variances_are_refused(estimates, variances):
    with pytest.raises(WrongUse):
        combine(estimates, variances)


def test_an_interval_has_the_spread_and_the_bias_of_the_copies():
    low, high = interval(10.0, np.array([11.0, 13.0, 12.0, 12.0]), "0.95")
    spread = math.sqrt(1.25 * 2 / 3)
    assert high - 10 == pytest.approx(student.ppf(0.975, 3) * spread + 2)
    assert 10 - low == pytest.approx(high - 10)
    assert interval(1.0, np.array([math.nan, 2.0]), "0.95") == (-math.inf, math.inf)
    with pytest.raises(WrongUse):
        interval(1.0, np.array([1.0, 2.0]), 2)


@pytest.mark.long
def test_intervals_of_what_was_measured_cover_as_often_as_stated(tmp_path):
    """Of 20 fits, the intervals of single columns and measured pairs; naive ones beside them."""
    random = np.random.default_rng(1)
    size = 5000
    first, third = random.integers(0, 5, size), random.integers(0, 4, size)
    second = (first + random.integers(0, 2, size)) % 6
    fourth = (second + third + random.integers(0, 3, size)) % 7
    fifth = random.choice(3, size, p=[0.7, 0.25, 0.05])
    sixth = (fifth * 2 + random.integers(0, 2, size)) % 8
    named = dict(zip("abcdef", (first, second, third, fourth, fifth, sixth), strict=True))
    columns = {name: sf.Integer(0, int(each.max())) for name, each in named.items()}
    covered, naive = [], []
    for place in range(20):
        (tmp_path / str(place)).mkdir()
        opened = session(tmp_path / str(place), pa.table(named), columns=columns)
        with opened:
            model = sy.fit(opened, "people", rho="0.05")
        pair = model.released.pairs[0].columns
        for by in (("a",), tuple("abcdef"[at] for at in pair)):
            keys = ", ".join(by)
            sql = f"SELECT {keys}, COUNT(*) AS n FROM people GROUP BY {keys}"
            for row in model.query(sql).to_pylist():
                true = np.logical_and.reduce([named[key] == row[key] for key in by]).sum()
                covered.append(row["n_low"] - 0.5 <= true <= row["n_high"] + 0.5)
                far = 1.96 * math.sqrt(row["n"])
                naive.append(abs(row["n"] - true) <= far)
    # 95% is stated; the cells of one fit err together
    assert np.mean(covered) >= 0.9
    # intervals that take the rows for a sample of people lie far more often
    assert np.mean(naive) < np.mean(covered) - 0.05
