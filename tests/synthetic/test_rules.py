# SPDX-License-Identifier: Apache-2.0
"""Rules in cells and in blocks."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sfumato.synthetic.merging import Merging
from sfumato.synthetic.rules import IMPOSSIBLE, Rule, Together, together


def test_cells_are_told_apart_where_the_rule_does():
    rule = Rule((2, 5), np.array([[1, 1, 0], [1, 1, 0], [0, 1, 1]], bool))
    assert rule.classes(2)[0] == rule.classes(2)[1] != rule.classes(2)[2]
    assert len(set(rule.classes(5).tolist())) == 3


def test_logarithms_are_those_of_the_blocks():
    rule = Rule((0, 1), np.array([[True, False], [True, False], [False, True]]))
    merges = (Merging((1, 1, 0)), Merging((0, 1)))
    found = rule.logarithms(merges)
    # block 0 is the cell 2, block 1 are the cells 0 and 1
    assert found.tolist() == [[IMPOSSIBLE, 0.0], [0.0, IMPOSSIBLE]]
    assert np.exp(IMPOSSIBLE) == 0.0


SIZES = (3, 2, 4, 2, 5)


@given(st.integers(0, 10**6), st.sampled_from([(), (0,), (1, 2), (0, 4)]))
def test_cells_are_allowed_that_some_row_has_and_no_others(seed, asked):
    random = np.random.default_rng(seed)
    rules = []
    for clique in ((0, 1), (1, 2), (0, 2), (2, 3)):
        shape = [SIZES[each] for each in clique]
        rules.append(Rule(clique, random.uniform(size=shape) < random.choice([0.2, 0.5])))
    expected = np.zeros([SIZES[each] for each in asked], bool)
    for row in itertools.product(*map(range, SIZES)):
        if all(rule.allowed[tuple(row[each] for each in rule.columns)] for rule in rules):
            expected[tuple(row[each] for each in asked)] = True
    found = Together(tuple(rules), SIZES, asked).allowed()
    assert np.array_equal(found, expected)


def test_rules_go_together_through_one_another():
    free = np.ones((2, 2), bool)
    rules = [Rule(clique, free) for clique in ((0, 3), (1, 2), (3, 4))]
    found = together(rules, (2,) * 6)
    assert [each.columns for each in found] == [(0, 3, 4), (1, 2)]
    # cells that no rule tells apart are of one kind
    assert [each.cells for each in found] == [2, 1]
