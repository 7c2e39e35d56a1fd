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


def errors(wholes, form, hidden, value):
    """The interval of one row with the value and these hidden columns."""
    return wholes.errors(form, [[cell] for cell in hidden], [value])


@pytest.mark.parametrize("miss", [MISS, Fraction(1, 300)])
def test_ends_in_whole_numbers_are_those_of_the_interval(miss):
    values = [100 + place for place in range(90)]
    own = answer(values)
    wholes = WholeEnds(Releases([own]), miss)
    forms = [(CELL, [code(7)], 107), (replace(CELL, chosen=True), [code(7)], 107)]
    forms += [(DIFFERENCE, [code(7), code(2)], 5), (DIFFERENCE, [code(7), code(7)], 0)]
    for count in (1, 12, 64, 65, 90):
        form, hidden = total(values, rows=range(count))
        forms.append((form, hidden, hidden[0]))
    for form, hidden, value in forms:
        low, high = interval(form, hidden, own, miss=miss)
        assert errors(wholes, form, hidden, value) == [
            {"low": low, "high": high, "half_width": high - value}
        ]


def test_the_half_width_reaches_both_ends_from_the_value():
    wholes = WholeEnds(Releases([answer([100])]), MISS)
    (around,) = errors(wholes, CELL, [code(0)], 100)
    low, high = around["low"], around["high"]
    assert errors(wholes, CELL, [code(0)], 98.0) == [{**around, "half_width": high - 98}]
    assert errors(wholes, CELL, [code(0)], 103) == [{**around, "half_width": 103 - low}]
    # such a value has no error in whole numbers
    assert errors(wholes, CELL, [code(0)], 98.5) == [None]
    assert errors(wholes, CELL, [code(0)], None) == [None]


def test_ends_that_doubles_do_not_tell_apart_are_left_to_the_interval():
    for value in (2**53 - 1, 1 - 2**53):
        wholes = WholeEnds(Releases([answer([value])]), MISS)
        assert errors(wholes, CELL, [code(0)], value) == [None]
    value = 2**53 - 1000
    wholes = WholeEnds(Releases([answer([value])]), MISS)
    assert errors(wholes, CELL, [code(0)], value) != [None]


def test_what_is_not_in_whole_numbers_is_left_to_the_interval():
    values = [5, 7, 9]
    wholes = WholeEnds(Releases([answer(values), answer(values)]), MISS)
    leaf, hidden = total(values)
    for wrong in (
        [*hidden[:2], 2, *hidden[3:]],
        [*hidden[:4], code(2, place=1)],
        [20.5, *hidden[1:]],
    ):
        assert errors(wholes, leaf, wrong, 21) == [None]
    assert errors(wholes, replace(leaf, chosen=True), hidden, 21) == [None]
    mean, cells = total(values, Kind.MEAN)
    assert errors(wholes, mean, cells, 7) == [None]
    assert errors(wholes, DIFFERENCE, [code(0), code(1, place=1)], -2) == [None]
    assert errors(wholes, DIFFERENCE, [code(0), None], 5) == [None]


def test_sums_beyond_exact_doubles_are_wider():
    values = [2**52, 2**52, 5]
    own = answer(values)
    leaf, hidden = total(values, rows=[0, 1])
    assert errors(WholeEnds(Releases([own]), MISS), leaf, hidden, 2**53) == [None]
    assert width(leaf, hidden, own) > 2 * 41
