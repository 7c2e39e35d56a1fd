# SPDX-License-Identifier: Apache-2.0
"""Numbers enter exactly, and nothing but numbers enters."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import InvalidNumber
from sfumato.exact import rational
from sfumato.exact.rational import (
    decimal_text,
    positive,
    power_of_two_at_most,
    to_fraction,
    two_digits,
)
from tests.contracts.effort import examples
from tests.contracts.labels import label

NOT_NUMBERS = [
    True,
    False,
    None,
    b"1",
    1j,
    [1],
    (1, 2),
    {"1": 1},
    object(),
    float("nan"),
    float("inf"),
    -float("inf"),
    Decimal("NaN"),
    Decimal("sNaN"),
    Decimal("Infinity"),
    Decimal("1e-400000000"),
    Decimal("1e400000000"),
    "",
    " ",
    "nan",
    "inf",
    "-Infinity",
    "one",
    "0x10",
    "1,5",
    "1 2",
    "--1",
    "1e",
    "1\x00",
    "\ud800",
    "epsilon",
    "1e-401",
    "1e401",
    "1e-400000000",
    "1e400000000",
    "1e99999999999999999999",
    "9" * 401,
    "9" * 1_000_000,
    "0." + "1" * 401,
    "/",
    "1/",
    "/2",
    "1/0",
    "1/0.0",
    "1/2/3",
    "1/nan",
    "inf/1",
    "1/1e-400000000",
]
FRACTIONS = st.fractions(max_denominator=10**40)


def refused(value: object) -> bool:
    """Whether ``value`` is refused as a number, by the right error."""
    try:
        to_fraction("epsilon", value)
    except InvalidNumber as error:
        return str(error).startswith("epsilon ") and error.exit_code == 2
    return False


@given(st.floats(allow_nan=False, allow_infinity=False))
@settings(deadline=None, max_examples=examples(2))
def test_a_float_is_its_shortest_decimal(value: float) -> None:
    exact = to_fraction("x", value)
    assert exact == Fraction(repr(value))
    assert float(exact) == value


def test_a_float_tenth_ten_times_is_exactly_one() -> None:
    assert sum(to_fraction("x", 0.1) for _ in range(10)) == 1
    assert Fraction(0.1) * 10 != 1


@pytest.mark.parametrize("value", NOT_NUMBERS, ids=label)
def test_nothing_but_a_finite_number_gets_through(value: object) -> None:
    assert refused(value)


@given(st.text(max_size=30))
@settings(deadline=None, max_examples=examples(4))
def test_any_text_is_a_number_or_is_refused(text: str) -> None:
    try:
        assert isinstance(to_fraction("x", text), Fraction)
    except InvalidNumber as error:
        assert len(str(error)) < 300


def test_the_refusal_notices_a_reader_that_takes_what_float_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        rational, "_decimal", lambda _, text, written: Fraction(min(float(text), 1e300))
    )
    assert not refused("inf")
    assert to_fraction("x", 0.1) * 10 != 1


@pytest.mark.parametrize(
    ("value", "exact"),
    [
        (3, Fraction(3)),
        (-3, Fraction(-3)),
        (0.1, Fraction(1, 10)),
        (1e-6, Fraction(1, 10**6)),
        (1e300, Fraction(10**300)),
        (5e-324, Fraction(5, 10**324)),
        (-0.0, Fraction(0)),
        ("0.1", Fraction(1, 10)),
        (" 1e-6 ", Fraction(1, 10**6)),
        ("1/3", Fraction(1, 3)),
        (" 1 / 3 ", Fraction(1, 3)),
        ("-1/3", Fraction(-1, 3)),
        ("0.5/1e-2", Fraction(50)),
        ("1e-400", Fraction(1, 10**400)),
        ("1e400", Fraction(10**400)),
        ("0e-400000000", Fraction(0)),
        (Decimal("0.1"), Fraction(1, 10)),
        (Decimal("1e-30"), Fraction(1, 10**30)),
        (Fraction(2, 6), Fraction(1, 3)),
    ],
    ids=repr,
)
def test_what_people_write_enters_exactly(value: object, exact: Fraction) -> None:
    assert to_fraction("x", value) == exact


@given(st.decimals(allow_nan=False, allow_infinity=False, places=20))
@settings(deadline=None)
def test_a_decimal_and_its_text_are_the_same_number(value: Decimal) -> None:
    assert to_fraction("x", value) == Fraction(value) == to_fraction("x", str(value))


@given(FRACTIONS)
@settings(deadline=None)
def test_a_fraction_survives_its_text(number: Fraction) -> None:
    assert to_fraction("x", f"{number.numerator}/{number.denominator}") == number
    assert to_fraction("x", decimal_text(number)) == number


@given(FRACTIONS)
@settings(deadline=None)
def test_positive_takes_what_is_above_zero_and_no_more_than_the_limit(number: Fraction) -> None:
    limit = Fraction(7, 2)
    if 0 < number <= limit:
        assert positive("scale", number, at_most=limit) == number
    else:
        with pytest.raises(InvalidNumber, match=r"scale = .* out of range"):
            positive("scale", number, at_most=limit)


def test_positive_says_the_limit() -> None:
    with pytest.raises(InvalidNumber) as caught:
        positive("delta", "1.5", at_most=Fraction(1, 40))
    assert caught.value.allowed == "greater than 0 and at most 0.025"
    assert positive("x", Fraction(10**50)) == 10**50


def test_a_float_that_underflowed_is_told_how_to_be_written() -> None:
    assert 1e-400 == 0.0
    with pytest.raises(InvalidNumber) as caught:
        positive("epsilon", 1e-400)
    assert "'1e-400'" in caught.value.remedy
    with pytest.raises(InvalidNumber) as written:
        positive("epsilon", 0)
    assert not written.value.remedy
    assert positive("epsilon", "1e-400") > 0


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (Fraction(0), "0"),
        (Fraction(-7), "-7"),
        (Fraction(1, 8), "0.125"),
        (Fraction(-1, 40), "-0.025"),
        (Fraction(1234, 10), "123.4"),
        (Fraction(1, 10**30), "0." + "0" * 29 + "1"),
        (Fraction(1, 10**31), f"1/{10**31}"),
        (Fraction(-22, 7), "-22/7"),
    ],
    ids=str,
)
def test_decimal_text_is_exact_or_a_ratio(number: Fraction, text: str) -> None:
    assert decimal_text(number) == text


@given(st.fractions(min_value=Fraction(1, 10**30), max_denominator=10**30))
@settings(deadline=None)
def test_power_of_two_at_most_is_the_largest_below(number: Fraction) -> None:
    power = power_of_two_at_most(number)
    assert power <= number < 2 * power
    larger = max(power.numerator, power.denominator)
    assert min(power.numerator, power.denominator) == 1
    assert larger & (larger - 1) == 0


@given(st.integers(-300, 300))
@settings(deadline=None)
def test_power_of_two_at_most_keeps_a_power_of_two(exponent: int) -> None:
    assert power_of_two_at_most(Fraction(2) ** exponent) == Fraction(2) ** exponent
    assert power_of_two_at_most(Fraction(2) ** exponent * Fraction(999, 1000)) == Fraction(2) ** (
        exponent - 1
    )


def test_an_integer_of_numpy_is_one():
    assert to_fraction("n", np.int64(-7)) == -7 and to_fraction("n", np.uint8(7)) == 7
    with pytest.raises(InvalidNumber):
        to_fraction("n", np.bool_(True))


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1, "1"),
        ("0.333", "0.34"),
        ("0.34", "0.34"),
        (99, "99"),
        ("99.1", "100"),
        ("1e-30", "0." + "0" * 29 + "1"),
        (1001, "1100"),
    ],
)
def test_two_digits_are_never_too_few(number, text):
    assert two_digits(Fraction(number)) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (Fraction(1, 2**30), "0." + str(5**30).rjust(30, "0")),
        (Fraction(10**40), "1" + "0" * 40),
        (Fraction(10**31 + 1, 10**30), "10." + "0" * 29 + "1"),
        (Fraction(1, 2**31), f"1/{2**31}"),
    ],
)
def test_nothing_is_cut_off_a_decimal(number: Fraction, text: str) -> None:
    assert decimal_text(number) == text
