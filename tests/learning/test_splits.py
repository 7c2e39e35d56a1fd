# SPDX-License-Identifier: Apache-2.0
"""Which leaf a row reaches, against a walk down the tree."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sfumato.learning.features import Binned, Features, Listed
from sfumato.learning.splits import Candidates, coordinates_of
from sfumato.plan.rows import MISSING

FEATURES = Features((Listed("city", 0, 2), Binned("age", (30, 60))))
CODES = st.tuples(st.sampled_from([0, 1, 7, MISSING]), st.sampled_from([10, 30, 59, 99, MISSING]))
TESTS = st.lists(st.integers(0, 6), min_size=7, max_size=7)


def passes(test: int, city: int, age: int) -> bool:
    if test < 3:
        return city == test if test < 2 else city not in (0, 1)
    if age == MISSING:
        return True
    return test == 3 or (test == 4 and age >= 30) or (test == 5 and age >= 60)


@given(st.lists(CODES, min_size=1, max_size=9), TESTS)
def test_a_row_reaches_its_leaf(rows: list[tuple[int, int]], tests: list[int]) -> None:
    levels = [np.array(tests[:1]), np.array(tests[1:3]), np.array(tests[3:])]
    columns = [np.array(column, np.int64) for column in zip(*rows, strict=True)]
    found = Candidates(FEATURES).leaves(coordinates_of(FEATURES, columns), levels)
    for (city, age), leaf in zip(rows, found.tolist(), strict=True):
        node = 0
        for level in levels:
            node = 2 * node + passes(int(level[node]), city, age)
        assert leaf == node


def test_every_coordinate_is_a_test() -> None:
    candidates = Candidates(FEATURES)
    assert candidates.count == 7 and candidates.listed == [True, False]
