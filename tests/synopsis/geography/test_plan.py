# SPDX-License-Identifier: Apache-2.0
"""The plan of a census: free, exact, and what it refuses."""

import math

import pytest

from sfumato.errors import InvalidNumber, UnknownName, WrongUse
from sfumato.privacy.distance import Norm
from sfumato.synopsis.geography.plan import census_plan, reach
from tests.synopsis.geography.surveys import ASKED, DATA, SPINE, TABLES, opened


def test_a_plan_is_free_and_its_best_split_comes_first(tmp_path):
    with opened(tmp_path) as session:
        planned = census_plan(session.dataset, "people", SPINE, rho="0.1", **ASKED)
        assert planned.splits[0].name == "least error"
        assert {split.name for split in planned.splits} == {
            "least error", "even by level", "even by table",
        }  # fmt: skip
        text = repr(planned)
        assert "rho 0 of" in repr(session.budget)
    assert "age_group x sex" in text and "nothing was charged" in text
    assert "weights of the levels: nation 1, state 1, county 1" in text
    squared = []
    for split in planned.splits:
        errors = planned.standard_errors(split)
        by_table = [error**2 for error in errors]
        # the nation has two tables, which count half each
        squared.append(sum(by_table[:2]) / 2 + by_table[2] + by_table[3])
    assert squared == sorted(squared)


def test_the_error_of_one_table_is_that_of_its_noise():
    planned = census_plan(DATA, "people", SPINE, rho="0.5", tables={"county": ["sex"]})
    (error,) = planned.standard_errors(planned.splits[0])
    assert error == pytest.approx(1, rel=1e-6)
    planned = census_plan(DATA, "people", SPINE, epsilon="0.1", tables={"county": ["sex"]})
    (error,) = planned.standard_errors(planned.splits[0])
    assert error == pytest.approx(math.sqrt(2) / 0.1, rel=1e-3)


def test_a_weight_moves_the_cost_to_its_level():
    plain = census_plan(DATA, "people", SPINE, rho=1, **ASKED)
    heavy = census_plan(DATA, "people", SPINE, rho=1, weights={"county": 100}, **ASKED)
    assert heavy.splits[0].shares[-1] > plain.splits[0].shares[-1]
    assert heavy.standard_errors(heavy.splits[0])[-1] < plain.standard_errors(plain.splits[0])[-1]


def test_the_lowest_level_alone_is_compared_where_it_determines_all_tables():
    tables = {"nation": ["sex"], "county": ["sex"]}
    names = {
        split.name for split in census_plan(DATA, "people", SPINE, rho=1, tables=tables).splits
    }
    assert "lowest level alone" in names


def test_an_error_is_reached_by_the_stated_share():
    # of a Gaussian 95% lie within 1.96 deviations, and of any law within 4.48
    assert reach(Norm.L2) == pytest.approx(2.716, abs=1e-3)
    assert reach(Norm.L1) == pytest.approx(math.sqrt(20))
    with pytest.raises(InvalidNumber):
        reach(Norm.L2, 1)


@pytest.mark.parametrize(
    ("changed", "error", "said"),
    [
        ({"tables": {}}, WrongUse, "without tables"),
        ({"tables": []}, WrongUse, "without tables"),
        ({"tables": {"tract": ["sex"]}}, WrongUse, "no level 'tract'"),
        ({"tables": {"state": "sex"}}, WrongUse, "tables of 'state'"),
        ({"tables": {"state": [["sex"], "age"]}}, WrongUse, "table of 'state'"),
        ({"tables": {"state": ["sex", "sex"]}}, WrongUse, "twice"),
        ({"tables": {"state": ["height"]}}, UnknownName, "height"),
        ({"weights": {"tract": 1}}, WrongUse, "no level"),
        ({"weights": [1]}, WrongUse, "weights="),
        ({"recodes": ["age"]}, WrongUse, "recodes="),
        ({"recodes": {"age_group": 5}}, WrongUse, "recodes="),
        ({"weights": {"state": 0}}, WrongUse, "weight 0"),
        ({"rho": None}, WrongUse, "exactly one"),
        ({"rho": 0}, InvalidNumber, "rho"),
        ({"public_totals": {"state": {"s0": 5}, "county": {"c0": 6}}}, WrongUse, "add up"),
        ({"zeros": [{"sex": ["F", "M"]}]}, WrongUse, "Every cell"),
    ],
)
def test_what_cannot_be_planned_is_refused(changed, error, said):
    asked = {"rho": 1, **ASKED, **changed}
    with pytest.raises(error, match=said):
        census_plan(DATA, "people", SPINE, **asked)


def test_a_spine_is_no_path():
    with pytest.raises(WrongUse, match=r"spine='spine.csv'"):
        census_plan(DATA, "people", "spine.csv", rho=1, **ASKED)


def test_a_table_that_is_named_twice_is_measured_once():
    tables = {"state": [["sex", "age_group"], ["age_group", "sex"], []], "county": [["sex"]]}
    planned = census_plan(DATA, "people", SPINE, rho=1, **{**ASKED, "tables": tables})
    assert len(planned.design.tables) == 3
    assert len(TABLES) == 3
