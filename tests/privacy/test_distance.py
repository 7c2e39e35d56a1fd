# SPDX-License-Identifier: Apache-2.0
"""A sensitivity is a positive number in a named norm."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import InvalidNumber
from sfumato.privacy import Distance, Norm


@given(st.sampled_from((Norm.L1, Norm.L2)), st.fractions())
@settings(deadline=None)
def test_a_distance_is_kept_where_it_is_positive(norm, value):
    if value > 0:
        distance = Distance(norm, value)
        assert (distance.norm, distance.value) == (norm, value)
    else:
        with pytest.raises(InvalidNumber, match="sensitivity"):
            Distance(norm, value)


def test_the_same_value_in_another_norm_is_another_distance():
    assert Distance(Norm.L1, Fraction(1)) != Distance(Norm.L2, Fraction(1))


def test_a_refused_sensitivity_says_what_is_allowed():
    with pytest.raises(InvalidNumber) as caught:
        Distance(Norm.L2, Fraction(0))
    assert caught.value.allowed == "greater than 0"
