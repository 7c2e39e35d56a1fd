# SPDX-License-Identifier: Apache-2.0
"""Rows of levels that were measured apart; totals of one level are in test_table."""

from sfumato.noise import DiscreteLaplace
from sfumato.query.answer_rows import by_level
from tests.contracts.released import numbers


def test_each_row_is_read_from_its_own_level() -> None:
    finest, total = numbers([1, 2, 3], DiscreteLaplace(2)), numbers([7], DiscreteLaplace(9))
    (part,) = by_level([finest, total], 2, [[0], [1], [2], [0, 1], [3]])
    assert [part.point(row) for row in range(part.count)] == [1, 2, 3, 3, 7]
    assert part.places == ((0, 0), (0, 1), (0, 2), (0, 3), (1, 0))
