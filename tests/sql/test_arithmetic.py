# SPDX-License-Identifier: Apache-2.0
"""Arithmetic on codes is arithmetic on values: by property, NULL and ranges included."""

import itertools
import math
import operator
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import UnsupportedSql
from sfumato.metadata.column import Column, Real
from sfumato.plan.evaluate import evaluate
from sfumato.plan.scalar import Constant, Field
from sfumato.plan.value_range import span
from sfumato.sql import arithmetic
from sfumato.sql.lattice import floored
from sfumato.sql.typed import Number, known, number

STEP = st.sampled_from([Fraction(1), Fraction(1, 4), Fraction(1, 10), Fraction(3), Fraction(2, 3)])


@st.composite
def numbers(draw, name):
    """A column of a few codes on some lattice."""
    step, low, size = draw(STEP), draw(st.integers(-6, 6)), draw(st.integers(1, 6))
    return Number(Field(Column(name, Real(low * step, (low + size) * step, step=step))), step)


def codes(one):
    kind = one.expression.column.type
    return [None, *range(kind.lower_code, kind.upper_code + 1)]


def at(result, row):
    """The value of a result in a row, which must lie within its span."""
    code = evaluate(result.expression, lambda leaf: row[leaf.column.name])
    found = span(result.expression)
    assert code is None or found[0] <= code <= found[1]
    return None if code is None else code * result.step


@settings(deadline=None)
@given(numbers("x"), numbers("y"), st.sampled_from(["add", "multiply"]))
def test_sums_and_products_are_exact(x, y, name):
    result = getattr(arithmetic, name)(x, y)
    exact = {"add": operator.add, "multiply": operator.mul}[name]
    for one in codes(x):
        for other in codes(y):
            want = None if one is None or other is None else exact(one * x.step, other * y.step)
            assert at(result, {"x": one, "y": other}) == want


UNARY = {
    "negate": lambda v: -v,
    "absolute": abs,
    "sign": lambda v: (v > 0) - (v < 0),
    "floor": math.floor,
    "ceiling": math.ceil,
    "truncated": int,
    "rounded": lambda v: math.floor(abs(v) + Fraction(1, 2)) * (1 if v >= 0 else -1),
}


@settings(deadline=None)
@given(numbers("x"), st.sampled_from(sorted(UNARY)))
def test_functions_of_a_number_are_exact(x, name):
    result = getattr(arithmetic, name)(x)
    for code in codes(x):
        assert at(result, {"x": code}) == (None if code is None else UNARY[name](code * x.step))


@settings(deadline=None)
@given(numbers("x"), st.builds(Fraction, st.integers(-9, 9).filter(bool), st.integers(1, 9)))
def test_a_constant_divisor_or_factor_changes_the_step_alone(x, factor):
    for result, want in (
        (arithmetic.divide(x, number(factor)), 1 / factor),
        (arithmetic.multiply(number(factor), x), factor),
    ):
        low, high = span(result.expression)
        assert high - low == x.expression.column.type.size - 1
        for code in codes(x):
            assert at(result, {"x": code}) == (None if code is None else code * x.step * want)


@settings(deadline=None)
@given(numbers("x"), numbers("y"), st.booleans())
def test_a_quotient_is_truncated_toward_zero_by_less_than_a_step(x, y, skips_zero):
    kind = y.expression.column.type
    if kind.lower_code <= 0 <= kind.upper_code and not skips_zero:
        with pytest.raises(UnsupportedSql, match="can be zero") as refusal:
            arithmetic.divide(x, y)
        assert "NULLIF" in refusal.value.remedy
        return
    result = arithmetic.divide(x, y, skips_zero=skips_zero)
    for one in codes(x):
        for other in codes(y):
            found = at(result, {"x": one, "y": other})
            if one is None or not other:
                assert found is None or other == 0
                continue
            exact = one * x.step / (other * y.step)
            assert 0 <= abs(exact) - abs(found) < result.step and found * exact >= 0


NESTED = {
    "x / (y / z)": lambda y, z: (arithmetic.divide(y, z, skips_zero=True), lambda y, z: y / z),
    "x / |y / z|": lambda y, z: (arithmetic.absolute(arithmetic.divide(y, z, skips_zero=True)), lambda y, z: abs(y / z)),
    "x / (2 - y / z)": lambda y, z: (
        arithmetic.add(number(2), arithmetic.negate(arithmetic.divide(y, z, skips_zero=True))), lambda y, z: 2 - y / z
    ),
}  # fmt: skip


@settings(deadline=None)
@given(numbers("x"), numbers("y"), numbers("z"), st.sampled_from(sorted(NESTED)))
def test_a_quotient_of_a_quotient_is_null_only_where_that_is_zero(x, y, z, form):
    divisor, exactly = NESTED[form](y, z)
    result = arithmetic.divide(x, divisor, skips_zero=True)
    for one, up, down in itertools.product(codes(x), codes(y), codes(z)):
        found = at(result, {"x": one, "y": up, "z": down})
        if (
            None in (one, up, down)
            or not down
            or not (below := exactly(up * y.step, down * z.step))
        ):
            assert found is None
            continue
        assert abs(one * x.step / below - found) <= result.rounding


def test_a_divisor_that_is_rounded_to_zero_is_not_zero(monkeypatch):
    def column(name, largest):
        return Number(Field(Column(name, Real(0, largest, step=1))), Fraction(1))

    row = {"x": 3, "a": 1, "b": 10**9, "c": 10**9}
    tiny = arithmetic.divide(column("a", 10**9), column("b", 10**9), skips_zero=True)

    def found():
        return at(arithmetic.divide(column("x", 10**3), tiny, skips_zero=True), row)

    assert found() == 3 * 10**9
    monkeypatch.setattr(arithmetic, "Ratio", lambda *parts: None)
    tiny = arithmetic.divide(column("a", 10**9), column("b", 10**9), skips_zero=True)
    assert found() is None


@settings(deadline=None)
@given(numbers("x"), st.builds(Fraction, st.integers(1, 9), st.integers(1, 4)))
def test_a_remainder_has_the_sign_of_its_dividend(x, divisor):
    result = arithmetic.remainder(x, number(divisor))
    for code in codes(x):
        want = None if code is None else code * x.step - divisor * int(code * x.step / divisor)
        assert at(result, {"x": code}) == want
    low, high = (end * result.step for end in span(result.expression))
    assert -divisor < low <= high < divisor


@settings(deadline=None)
@given(numbers("x"), st.integers(-2, 2))
def test_rounding_to_places_is_half_away_from_zero(x, places):
    unit = Fraction(10) ** -places
    for code in codes(x):
        value = None if code is None else code * x.step
        want = (
            None
            if value is None
            else math.floor(abs(value) / unit + Fraction(1, 2)) * unit * (1 if value >= 0 else -1)
        )
        assert at(arithmetic.rounded(x, places), {"x": code}) == want


@settings(deadline=None)
@given(
    numbers("x"),
    st.fractions(-5, 5, max_denominator=7),
    st.fractions("1/3", 5, max_denominator=7),
    st.integers(1, 7),
)
def test_a_bucket_is_that_of_the_standard(x, low, width, count):
    result = arithmetic.bucket(x, low, low + width, count)
    for code in codes(x):
        value = None if code is None else code * x.step
        if value is None:
            want = None
        elif value < low:
            want = 0
        else:
            want = min(math.floor((value - low) * count / width) + 1, count + 1)
        assert at(result, {"x": code}) == want


def test_constants_are_computed_at_once():
    one, other = number(Fraction(1, 3)), number(2)
    for result, value in (
        (arithmetic.add(one, other), Fraction(7, 3)), (arithmetic.multiply(one, other), Fraction(2, 3)),
        (arithmetic.divide(one, other), Fraction(1, 6)), (arithmetic.negate(one), Fraction(-1, 3)), (arithmetic.truncated(one), 0),
    ):  # fmt: skip
        assert isinstance(result.expression, Constant) and known(result) == value


def test_a_square_is_never_negative():
    x = Number(Field(Column("x", Real(-3, 2, step=1))), Fraction(1))
    assert span(arithmetic.multiply(x, x).expression) == (0, 9)


def up_to(name, largest):
    return Number(Field(Column(name, Real(0, largest, step=1))), Fraction(1))


def test_a_product_of_up_to_62_bits_is_exact():
    product = arithmetic.multiply(up_to("x", 2**40), up_to("y", 2**20))
    assert product.step == 1 and product.rounding == 0 and product.is_precise
    assert at(product, {"x": 2**40 - 1, "y": 999}) == (2**40 - 1) * 999
    # as many rows as there can be, squared: its last codes are kept for what is compared with it
    square = arithmetic.multiply(up_to("n", 2**31), up_to("n", 2**31))
    assert (
        square.is_precise
        and at(square, {"n": 3}) == 9
        and at(square, {"n": 2**31 - 1}) == (2**31 - 1) ** 2
    )
    assert at(square, {"n": 2**31}) == 2**62 - 2 and square.rounding == 2


def test_a_product_beyond_62_bits_is_rounded_and_says_so():
    product = arithmetic.multiply(up_to("x", 2**40), up_to("y", 2**30))
    assert product.cut and not product.is_precise
    for x, y in ((2**40 - 1, 999), (1, 2**30), (2**40, 1), (77, 2)):
        assert abs(at(product, {"x": x, "y": y}) - x * y) <= product.rounding


@pytest.mark.parametrize(
    "stepped",
    [
        arithmetic.floor, arithmetic.ceiling, arithmetic.sign, arithmetic.truncated, arithmetic.rounded,
        lambda one: arithmetic.remainder(one, number(1024)), lambda one: arithmetic.bucket(one, Fraction(0), Fraction(9), 3),
    ],
)  # fmt: skip
def test_what_jumps_is_off_by_no_more_than_it_says(stepped):
    exact = arithmetic.multiply(up_to("x", 2**20), up_to("y", 2**20))
    rounded = replace(
        exact,
        expression=floored(exact.expression, Fraction(1, 2**9)),
        step=Fraction(2**9),
        cut=True,
    )
    rounded = replace(rounded, rounding=Fraction(2**9))
    for x, y in ((1, 1), (31, 33), (1023, 1), (5, 205), (1, 511)):
        row = {"x": x, "y": y}
        found = stepped(rounded)
        assert abs(at(found, row) - at(stepped(exact), row)) <= found.rounding
        assert not found.is_precise


def test_a_product_that_drops_digits_in_silence_is_noticed(monkeypatch):
    def silent(one, bits):
        return replace(
            one, expression=floored(one.expression, Fraction(1, 2**bits)), step=one.step * 2**bits
        )

    monkeypatch.setattr(arithmetic, "_drop_bits", silent)
    product = arithmetic.multiply(up_to("x", 2**40), up_to("y", 2**30))
    assert product.rounding == 0 != abs(at(product, {"x": 77, "y": 3}) - 77 * 3)


@pytest.mark.parametrize(
    "divisor", [number(0), number(-3), Number(Field(Column("y", Real(1, 2, step=1))), Fraction(1))]
)
def test_a_modulus_is_a_positive_constant(divisor):
    with pytest.raises(UnsupportedSql, match="positive constant"):
        arithmetic.remainder(number(5), divisor)


def test_a_quotient_without_its_clip_is_noticed(monkeypatch):
    x = Number(Field(Column("x", Real(5, 6, step=1))), Fraction(1))
    y = Number(Field(Column("y", Real(-21, 21, step=3))), Fraction(3))
    found = arithmetic.divide(x, y, skips_zero=True)
    assert [end * found.step for end in span(found.expression)] == [-2, 2]
    monkeypatch.setattr(
        arithmetic, "_clip_quotient", lambda expression, low, high, step: expression
    )
    # without it a mean would have a larger sensitivity than it needs
    found = arithmetic.divide(x, y, skips_zero=True)
    assert [end * found.step for end in span(found.expression)] == [-6, 6]
