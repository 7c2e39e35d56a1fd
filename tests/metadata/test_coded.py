# SPDX-License-Identifier: Apache-2.0
"""What the types of columns share: a range of codes within 2^52, and markers that are strings."""

from dataclasses import dataclass
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InvalidDeclaration
from sfumato.metadata.coded import MAX_CODE, Coded, markers, set_codes, shown_missing


@dataclass(frozen=True, slots=True, init=False)
class Made(Coded):
    def __init__(self, lower, upper, missing=None):
        set_codes(self, lower, upper, Fraction(1), missing)


@given(st.integers(-MAX_CODE, MAX_CODE), st.integers(-MAX_CODE, MAX_CODE))
def test_a_range_counts_both_of_its_ends(one, other):
    low, high = sorted((one, other))
    made = Made(low, high)
    assert (made.lower_code, made.upper_code, made.size) == (low, high, high - low + 1)


@pytest.mark.parametrize("codes", [(0, MAX_CODE + 1), (-MAX_CODE - 1, 0)])
def test_codes_that_a_double_cannot_hold_are_refused(codes):
    with pytest.raises(InvalidDeclaration, match=r"2\^52"):
        Made(*codes)


@given(st.lists(st.text(), max_size=4))
def test_markers_keep_their_order_but_those_of_a_set(words):
    assert markers(words) == markers(tuple(words)) == tuple(words)
    assert markers(set(words)) == tuple(sorted(set(words)))


@pytest.mark.parametrize("given_", [1, [1], ["N", None], [["N"]], {"a": "b"}])
def test_a_marker_that_is_no_string_is_refused(given_):
    with pytest.raises(InvalidDeclaration, match="missing="):
        markers(given_)


@given(st.none() | st.lists(st.text(), max_size=3))
def test_the_argument_is_shown_as_it_is_written(words):
    written = shown_missing(markers(words))
    assert eval(f"dict({written.removeprefix(', ')})").get("missing") in (
        words,
        None if words is None else tuple(words),
        None if not words else words[0],
    )
