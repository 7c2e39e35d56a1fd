# SPDX-License-Identifier: Apache-2.0
"""A preview is free and says what a fit will do."""

import pytest

import sfumato as sf
from sfumato import synthetic as sy
from sfumato.errors import InvalidNumber
from tests.synthetic.towns import session


def test_a_preview_is_free_and_says_the_cost_of_the_fit(tmp_path):
    with session(tmp_path) as opened:
        found = sy.preview(opened, ["people"], rho="0.1")
        assert opened.budget.spent == "rho 0" or "0" in str(opened.budget.spent)
        model = sy.fit(opened, ["people"], rho="0.1")
        assert model.cost == found.cost
        assert found.cells == {"age": 101, "job": 5, "rich": 3, "pay": 65}
        # 1.96 standard deviations: rho of 0.1 x 0.95 x a tenth or a fifth over 4 columns
        assert found.error == pytest.approx(1.96 * (4 / (2 * 0.0095)) ** 0.5, rel=0.5)
        # half of the mean of |normal| for each cell, over the 30,000 rows that are taken
        assert found.off_by["rich"] == pytest.approx(
            3 * 0.4072 * found.error / 30_000 / 2, rel=1e-3
        )
        assert found.off_by["age"] == pytest.approx(101 / 3 * found.off_by["rich"])
        assert "job can be missing" in repr(found) and "nothing was charged" in repr(found)


def test_what_a_tiny_budget_buys_is_said(tmp_path):
    with session(tmp_path) as opened:
        bare = sy.preview(opened, "people", rho="0.000001", options=sy.Options(rounds=0))
        assert any("single columns only" in note for note in bare.notes)
        assert bare.pair_error == 0.0
        small = sy.preview(opened, "people", rho="0.0001")
        assert any("only a tree" in note for note in small.notes)
        with pytest.raises(InvalidNumber):
            sy.preview(opened, "people", rho=0)


def test_rows_of_a_unit_beyond_its_limit_are_mentioned(tmp_path):
    unit = sf.Unit("age", max_rows_total=5)
    with session(tmp_path, unit=unit) as opened:
        found = sy.preview(opened, "people", rho="0.1")
        assert "age" not in found.cells and any("beyond 5" in note for note in found.notes)


def test_time_and_memory_grow_with_what_is_measured(tmp_path):
    with session(tmp_path) as opened:
        few, many = (
            sy.preview(opened, "people", rho=rho, options=sy.Options(rounds=rounds))
            for rho, rounds in (("0.001", 2), ("10", 6))
        )
        assert 1 < few.seconds < many.seconds < 10 and 3e8 < few.memory < many.memory < 1e9
        assert "CPU seconds and 0." in repr(many)
        assert sy.preview(opened, "people", rho="1e-9").off_by["age"] == 1
