# SPDX-License-Identifier: Apache-2.0
"""An interval holds its own ends and nothing outside."""

import dataclasses
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.exact.bracket import Bracket

FINITE = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300)


@given(FINITE, FINITE, FINITE)
@settings(deadline=None)
def test_a_bracket_holds_exactly_what_lies_between_its_ends(
    one: float, other: float, value: float
) -> None:
    lower, upper = sorted((one, other))
    held = value in Bracket(lower, upper)
    assert held == (sorted((lower, value, upper)) == [lower, value, upper])


@given(FINITE, FINITE)
@settings(deadline=None)
def test_a_bracket_holds_its_ends_and_not_their_outer_neighbours(one: float, other: float) -> None:
    bracket = Bracket(min(one, other), max(one, other))
    assert bracket.lower in bracket
    assert bracket.upper in bracket
    assert math.nextafter(bracket.lower, -math.inf) not in bracket
    assert math.nextafter(bracket.upper, math.inf) not in bracket


def test_width_is_upper_minus_lower() -> None:
    assert Bracket(0.25, 1.0).width == 0.75
    assert Bracket(2.0, 2.0).width == 0.0


def test_nan_is_in_no_bracket() -> None:
    assert math.nan not in Bracket(-math.inf, math.inf)


def test_a_bracket_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Bracket(0.0, 1.0).lower = 0.5
