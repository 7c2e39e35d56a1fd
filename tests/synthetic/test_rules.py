# SPDX-License-Identifier: Apache-2.0
"""Rules in cells and in blocks."""

import numpy as np

from sfumato.synthetic.merging import Merging
from sfumato.synthetic.rules import IMPOSSIBLE, Rule


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
