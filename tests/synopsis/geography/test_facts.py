# SPDX-License-Identifier: Apache-2.0
"""Impossible cells and public totals: what they mean, and contradictions by name."""

import pytest

from sfumato.errors import InvalidDeclaration, UnknownName, WrongUse
from sfumato.synopsis.geography.facts import impossible_cells, public_totals
from sfumato.synopsis.geography.population import population
from tests.synopsis.geography.surveys import DATA, GROUPS, SPINE

AXES = population(DATA, "people", SPINE, ["age_group", "sex"], {"age_group": GROUPS}).axes
TREE = SPINE.tree


def test_cells_with_a_label_on_every_named_axis_are_impossible():
    found = impossible_cells(AXES, [{"age_group": ["young", "old"], "sex": "F"}])
    assert found.tolist() == [[True, False], [False, False], [True, False]]
    both = impossible_cells(AXES, [{"age_group": ["young"]}, {"sex": ["M"], "age_group": ["old"]}])
    assert both.tolist() == [[True, True], [False, False], [False, True]]
    assert not impossible_cells(AXES, []).any()


@pytest.mark.parametrize(
    ("zeros", "error", "said"),
    [
        ([{"height": ["tall"]}], UnknownName, "by 'height'"),
        ([{"sex": ["X"]}], UnknownName, "no value 'X'"),
        ([{}], InvalidDeclaration, "without an axis"),
        ([{"sex": ["F"]}, {"sex": ["M"]}], InvalidDeclaration, "Every cell"),
        ({"sex": ["F"]}, WrongUse, "zeros="),
        ("sex", WrongUse, "zeros="),
    ],
)
def test_impossible_cells_that_are_none_are_refused(zeros, error, said):
    with pytest.raises(error, match=said):
        impossible_cells(AXES, zeros)


def test_totals_that_follow_are_public_too():
    stated = {"state": {"s0": 70}, "county": {"c3": 10, "c4": 20, "c5": 0, "c0": 5}}
    found = public_totals(SPINE, TREE, stated)
    assert found.known[2].tolist() == [True, False, False, True, True, True]
    # the counties of s1 are all known, and then the nation is
    assert found.totals[1].tolist() == [70, 30]
    assert (found.known[0].tolist(), found.totals[0].tolist()) == ([True], [100])
    none = public_totals(SPINE, TREE, {})
    assert not any(known.any() for known in none.known)


@pytest.mark.parametrize(
    ("stated", "error", "said"),
    [
        ({"state": {"s0": 10}, "county": {"c0": 7, "c1": 4}}, InvalidDeclaration, "add up to 11"),
        (
            {"state": {"s0": 10}, "county": {"c0": 1, "c1": 1, "c2": 1}},
            InvalidDeclaration,
            "add up to 3",
        ),
        ({"nation": {"all": 9}, "county": {"c0": 10}}, InvalidDeclaration, "nation 'all' is 9"),
        ({"state": {"s7": 10}}, UnknownName, "no state 's7'"),
        ({"tract": {"s0": 10}}, WrongUse, "no level 'tract'"),
        ({"state": {"s0": -1}}, InvalidDeclaration, "-1"),
        ({"state": {"s0": 2.5}}, InvalidDeclaration, "2.5"),
        ({"state": {"s0": True}}, InvalidDeclaration, "True"),
        ({"state": {"s0": 2**60}}, InvalidDeclaration, "total"),
        # those of the private data
        ("state", WrongUse, "outside differential privacy"),
        ({"state": True}, WrongUse, "cannot be kept"),
        (["state"], WrongUse, "outside differential privacy"),
    ],
)
def test_totals_that_are_no_public_numbers_are_refused_by_name(stated, error, said):
    with pytest.raises(error) as refusal:
        public_totals(SPINE, TREE, stated)
    assert said in str(refusal.value)


def test_totals_below_the_last_table_are_refused():
    with pytest.raises(WrongUse, match="no table"):
        public_totals(SPINE, TREE.upto(1), {"county": {"c0": 4}})
