# SPDX-License-Identifier: Apache-2.0
"""Points of rows: inside the box, and functions of their own row."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.errors import WrongUse
from sfumato.learning.points import STEPS, Box, bounds
from sfumato.plan.rows import MISSING

CODES = st.one_of(
    st.integers(-(2**63), 2**63 - 1), st.integers(-20, 20), st.sampled_from([MISSING, 2**52])
)
ENDS = st.tuples(st.integers(-(2**52), 2**52), st.integers(1, 2**52))


@given(st.lists(CODES, min_size=1, max_size=9), ENDS)
def test_a_point_lies_in_the_box(codes: list[int], ends: tuple[int, int]) -> None:
    lower, size = ends
    found = Box((lower,), (lower + size,)).points([np.array(codes, np.int64)])
    assert found.known.tolist() == [code != MISSING for code in codes]
    for code, number in zip(codes, found.matrix[:, 0].tolist(), strict=True):
        inside = min(max(code, lower), lower + size)
        exact = Fraction(2 * (inside - lower) - size, size) * STEPS
        assert abs(number - exact) <= Fraction(1, 2) + Fraction(1, 2**20) or code == MISSING
        assert abs(number) <= STEPS


def test_a_point_depends_on_its_own_row_alone() -> None:
    random = np.random.default_rng(1)
    box = Box((0, -50), (90, 50))
    columns = [random.integers(-99, 99, 40) for _ in range(2)]
    columns[1][3] = MISSING
    whole = box.points(columns)
    order = random.permutation(40)
    moved = box.points([column[order] for column in columns])
    assert (moved.matrix == whole.matrix[order]).all()
    part = whole.part(10, 20)
    alone = box.points([column[10:20] for column in columns])
    assert part.count == 10 and (part.matrix == alone.matrix).all()


def test_a_row_with_a_missing_number_is_the_middle() -> None:
    found = Box((0, 0), (9, 9)).points([np.array([9, 9]), np.array([9, MISSING])])
    assert found.matrix.tolist() == [[STEPS, STEPS], [0, 0]]
    assert found.known.tolist() == [True, False]


def test_bounds_are_declared() -> None:
    assert bounds("on", sf.Boolean()) == (0, 1)
    assert bounds("pay", sf.Integer(0, 99, clip=(5, 50))) == (5, 50)
    with pytest.raises(WrongUse, match="tests of it"):
        bounds("city", sf.Category("a", "b"))
