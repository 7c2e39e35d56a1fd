# SPDX-License-Identifier: Apache-2.0
"""Ends in whole numbers are those of the intervals in fractions."""

from dataclasses import replace
from fractions import Fraction

import pytest

from sfumato.query.outer_errors import Releases
from sfumato.query.whole_ends import WholeEnds
from sfumato.sql.outer_forms import Kind
from tests.query.test_outer_errors import (
    CELL,
    DIFFERENCE,
    MISS,
    answer,
    code,
    interval,
    total,
    width,
)


@pytest.mark.parametrize("miss", [MISS, Fraction(1, 300)])
def test_ends_in_whole_numbers_are_those_of_the_interval(miss):
    values = [100 + place for place in range(90)]
    own = answer(values)
    wholes = WholeEnds(Releases([own]), miss)
    forms = [(CELL, [code(7)]), (replace(CELL, chosen=True), [code(7)])]
    forms += [(DIFFERENCE, [code(7), code(2)]), (DIFFERENCE, [code(7), code(7)])]
    forms += [total(values, rows=range(count)) for count in (1, 12, 64, 65, 90)]
    for form, hidden in forms:
        (ends,) = wholes.column(form, [[cell] for cell in hidden])
        assert ends is not None and ends == interval(form, hidden, own, miss=miss)


def test_what_is_not_in_whole_numbers_is_left_to_the_interval():
    values = [5, 7, 9]
    wholes = WholeEnds(Releases([answer(values), answer(values)]), MISS)
    leaf, hidden = total(values)
    for wrong in (
        [*hidden[:2], 2, *hidden[3:]],
        [*hidden[:4], code(2, place=1)],
        [20.5, *hidden[1:]],
    ):
        assert wholes.column(leaf, [[cell] for cell in wrong]) == [None]
    assert wholes.column(replace(leaf, chosen=True), [[cell] for cell in hidden]) == [None]
    mean, cells = total(values, Kind.MEAN)
    assert wholes.column(mean, [[cell] for cell in cells]) == [None]
    assert wholes.column(DIFFERENCE, [[code(0)], [code(1, place=1)]]) == [None]
    assert wholes.column(DIFFERENCE, [[code(0)], [None]]) == [None]


def test_sums_beyond_exact_doubles_are_wider():
    values = [2**52, 2**52, 5]
    own = answer(values)
    leaf, hidden = total(values, rows=[0, 1])
    assert WholeEnds(Releases([own]), MISS).column(leaf, [[cell] for cell in hidden]) == [None]
    assert width(leaf, hidden, own) > 2 * 41
