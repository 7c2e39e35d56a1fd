# SPDX-License-Identifier: Apache-2.0
"""Features of doubles against their hexadecimal form, and floating-point Laplace noise caught by
them.
"""

import math
import secrets
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.audit import Verdict, audit, region
from sfumato.audit.float_bits import (
    FEATURES,
    decimals,
    exponent,
    fraction,
    grid,
    last_bits,
    lowest_bit,
    of_first,
    spare_bits,
)
from sfumato.noise import DiscreteLaplace
from sfumato.privacy import PureDP

FINITE = st.floats(allow_nan=False, allow_infinity=False).filter(bool)
NORMAL = FINITE.filter(lambda value: abs(value) >= 2.0**-1022)
CLAIM = PureDP(Fraction(1))
SYSTEM = secrets.SystemRandom()


def from_hex(value):
    """The digits after the point and the exponent of ``float.hex``: 0x1.8000000000000p+0."""
    mantissa, _, power = abs(value).hex().partition("p")
    return int(mantissa.partition(".")[2], 16), int(power)


@given(NORMAL)
def test_bits_are_those_of_the_hexadecimal_form(value):
    digits, power = from_hex(value)
    whole = (1 << 52) | digits
    zeros = (whole & -whole).bit_length() - 1
    assert (exponent(value), lowest_bit(value)) == (power, power - 52 + zeros)
    assert (grid(value), spare_bits(value), last_bits(value)) == (
        (power, power - 52 + zeros),
        zeros,
        whole % 256,
    )


@given(FINITE)
def test_the_lowest_bit_divides_the_value(value):
    steps = Fraction(value) / Fraction(2) ** lowest_bit(value)
    assert steps.denominator == 1 and steps.numerator % 2 == 1


@pytest.mark.parametrize(
    ("value", "digits"), [(1.0, 0), (0.25, 2), (-3.125, 3), (1e-7, 7), (1.5e-7, 8), (1e22, 0)]
)
def test_decimals_are_those_written(value, digits):
    assert decimals(value) == digits


@given(st.integers(-(2**40), 2**40), st.integers(0, 1023))
def test_integer_noise_leaves_the_fraction(whole, part):
    assert fraction(whole + part / 1024) == part / 1024


@pytest.mark.parametrize("value", [0.0, math.inf, -math.inf, math.nan])
def test_what_has_no_bits_has_no_feature(value):
    assert lowest_bit(value) is exponent(value) is grid(value) is spare_bits(value) is None
    if not math.isfinite(value):
        assert last_bits(value) is fraction(value) is decimals(value) is None


def test_the_first_entry_of_a_sequence_is_looked_at_and_nothing_else():
    look = of_first(exponent)
    assert [look(each) for each in (4.0, np.float32(4), [4.0, 1.0], np.array([[4.0]]))] == [2] * 4
    assert [look(each) for each in (4, "4.0", [], {"a": 4.0}, None, [4, 1.0])] == [None] * 6


def numpy_laplace(count):
    """What a tutorial writes."""
    return count + np.random.default_rng().laplace(scale=1.0)


def four_uniforms(count):
    """The Laplace noise of diffprivlib 0.6 (Holohan and Braghin, 2021), as a double added to a
    double.
    """
    one, two, three, four = (SYSTEM.random() for _ in range(4))
    noise = math.log(1 - one) * math.cos(math.pi * two) + math.log(1 - three) * math.cos(
        math.pi * four
    )
    return count + noise


def on_a_lattice(count):
    """Right: integers, shown as a double."""
    return float(count + DiscreteLaplace(1).sample_one())


FLOATING = [numpy_laplace, four_uniforms]


@pytest.mark.parametrize("mechanism", FLOATING)
def test_floating_laplace_noise_is_violated(mechanism):
    result = audit(mechanism, (0, 1), 6000, claim=CLAIM)
    assert result.verdict is Verdict.VIOLATED and result.epsilon > 2
    assert any(
        "lowest set bit" in trial.region or "spare bits" in trial.region for trial in result.trials
    )


@pytest.mark.parametrize("mechanism", FLOATING)
def test_without_these_features_it_is_not_noticed(mechanism, monkeypatch):
    monkeypatch.setattr(
        region, "VIEWS", tuple(each for each in region.VIEWS if each not in FEATURES)
    )
    assert audit(mechanism, (0, 1), 6000, claim=CLAIM).verdict is Verdict.UNDECIDED


def test_exact_noise_shown_as_a_double_is_not_called_violated():
    assert audit(on_a_lattice, (0, 1), 3000, claim=CLAIM).verdict is Verdict.UNDECIDED


def test_the_fraction_that_integer_noise_leaves_is_seen():
    wide = DiscreteLaplace(1000)
    result = audit(lambda value: value + wide.sample_one(), (0.25, 0.75), 1000, claim=CLAIM)
    assert result.verdict is Verdict.VIOLATED
