# SPDX-License-Identifier: Apache-2.0
"""Constraints as cells that cannot occur."""

import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import UnknownName, WrongUse
from sfumato.metadata.dataset import Dataset
from sfumato.synthetic.constraints import determines, implies, require, rules_of
from sfumato.synthetic.schema import schema_of

COLUMNS = {
    "age": sf.Integer(0, 9),
    "pay": sf.Integer(0, 3, missing=""),
    "job": sf.Category("none", "smith", missing=""),
    "rich": sf.Boolean(),
    "poor": sf.Boolean(),
}


def schema(**bins):
    people = sf.Table("people.csv", columns=COLUMNS)
    return schema_of(Dataset("town", {"people": people}), "people", bins=bins)


def test_an_implication_is_that_of_every_pair_of_values():
    (rule,) = rules_of(schema(), [implies("age < 3", "pay IS NULL")])
    assert rule.columns == (0, 1) and rule.allowed.shape == (11, 5)
    expected = np.ones((11, 5), bool)
    expected[:3, :4] = False
    # no age is missing, since none is declared to be
    expected[10] = False
    assert (rule.allowed == expected).all()


def test_what_is_null_is_not_false():
    (rule,) = rules_of(schema(), [require("pay <= age")])
    assert rule.allowed[0].tolist() == [True, False, False, False, True]


def test_a_dependence_allows_its_values_alone():
    (rule,) = rules_of(schema(), [determines("job", "pay", {"none": 0, "smith": 2, None: None})])
    assert rule.columns == (1, 2)
    assert np.argwhere(rule.allowed).tolist() == [[0, 0], [2, 1], [4, 2]]


def test_constraints_on_the_same_columns_are_one_rule():
    rules = rules_of(schema(), [require("age <> 1 OR pay = 1"), require("pay > 0 OR age > 5")])
    (rule,) = rules
    assert rule.allowed[1].tolist() == [False, True, False, False, True]


@pytest.mark.parametrize(
    "constraints",
    [
        [require("age < 3"), require("age > 5")],
        [require("age < 3"), implies("age < 5", "pay = 9")],
        [require("age = 1 AND pay IS NOT DISTINCT FROM 2"), require("coalesce(pay, 9) = 3")],
        # each two of the three can hold together
        [require("(age < 3) <> rich"), require("rich <> poor"), require("poor <> (age < 3)")],
        [require("age < job")],
        [require("coalesce(pay, 0) + age + 1 > 100")],
        ["age < 3"],
    ],
)
def test_contradictions_and_nonsense_are_named_before_the_charge(constraints):
    with pytest.raises(WrongUse):
        rules_of(schema(), constraints)


def test_constraints_of_other_columns_that_contradict_are_named():
    tests = [implies("age < 9", "pay = 3"), implies("pay = 3", "job = 'smith'")]
    tests += [require("job IS NOT NULL AND job <> 'smith'"), require("age < 5")]
    with pytest.raises(WrongUse, match="No row can satisfy the constraints") as refused:
        rules_of(schema(), tests)
    assert "smith" in str(refused.value) and "on 'age'" in str(refused.value)


def test_a_constraint_that_divides_a_bin_is_refused():
    assert rules_of(schema(age=[3, 6]), [implies("age < 3", "pay IS NULL")])
    with pytest.raises(WrongUse, match="divides bins of age"):
        rules_of(schema(age=[4, 6]), [implies("age < 3", "pay IS NULL")])
    with pytest.raises(WrongUse) as refused:
        rules_of(schema(age=[4, 6]), [require("age <= pay")])
    # the remedy can be written as it stands
    assert "bins={'age': 10}" in str(refused.value.remedy)
    assert rules_of(schema(age=10), [require("age <= pay")])


def test_unknown_columns_and_statements_are_refused():
    with pytest.raises(UnknownName):
        rules_of(schema(), [require("shoe < 3")])
    for test in (
        "random() > 0.5 OR age > 3",
        "age > uuid()",
        "born < today()",
        "current_date > born",
    ):
        with pytest.raises(WrongUse, match="functions that change"):
            require(test)
    for test in ("", "SELECT", "age < (SELECT 3)", "getenv('HOME') = age", "a, b", "x" * 10_001, 3):
        with pytest.raises(WrongUse):
            require(test)
    with pytest.raises(WrongUse):
        determines("job", "pay", {})
    with pytest.raises(WrongUse):
        rules_of(schema(), [require("1 = 1")])


def test_values_for_which_all_comparisons_are_alike_are_one():
    test = implies("age < 3", "pay IS NULL OR pay > 2 AND job = 'none'")
    assert test.tests("age") == ["age < 3"] and len(test.tests("pay")) == 2
    # a comparison of two columns, or a column outside of comparisons: none
    assert require("pay <= age").tests("age") == []
    assert require("age < 3 OR rich").tests("age") == []


def test_a_wide_column_costs_no_more_than_its_comparisons():
    columns = {"age": sf.Integer(0, 9), "pay": sf.Integer(0, 10**6, missing="")}
    table = sf.Table("people.csv", columns=columns)
    wide = schema_of(Dataset("town", {"people": table}), "people", bins={"pay": [5, 10**5]})
    (rule,) = rules_of(wide, [implies("age < 3", "pay IS NULL")])
    assert rule.allowed[:3].tolist() == [[False, False, False, True]] * 3
    assert rule.allowed[3:10].all()
    with pytest.raises(WrongUse, match="divides bins"):
        rules_of(wide, [require("pay < 6 OR age > 3")])
