# SPDX-License-Identifier: Apache-2.0
"""Guarantees are exact values, and the ones of one number are ordered by strength."""

import dataclasses
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.privacy import ApproxDP, PureDP, ZeroConcentratedDP

AMOUNTS = st.fractions(min_value=0)


@pytest.mark.parametrize("kind", [PureDP, ZeroConcentratedDP])
@given(one=AMOUNTS, other=AMOUNTS)
@settings(deadline=None)
def test_a_guarantee_of_one_number_is_ordered_by_it(kind, one, other):
    assert (kind(one) < kind(other)) == (one < other)


def test_guarantees_of_different_kinds_do_not_compare():
    assert PureDP(Fraction(1)) != ZeroConcentratedDP(Fraction(1))
    with pytest.raises(TypeError):
        sorted([PureDP(Fraction(1)), ZeroConcentratedDP(Fraction(1))])


def test_an_approximate_guarantee_has_no_order():
    with pytest.raises(TypeError):
        sorted([ApproxDP(Fraction(1), Fraction(0)), ApproxDP(Fraction(2), Fraction(0))])


@pytest.mark.parametrize("guarantee", [PureDP(Fraction(1)), ZeroConcentratedDP(Fraction(1))], ids=repr)
def test_a_guarantee_cannot_be_changed(guarantee):
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(guarantee, dataclasses.fields(guarantee)[0].name, Fraction(0))
