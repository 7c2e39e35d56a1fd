# SPDX-License-Identifier: Apache-2.0
"""Rows on a lattice: one code each, of its own, rounded half to even, whatever they are."""

import math
from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sfumato.errors import InvalidDeclaration, InvalidNumber
from sfumato.mechanisms import rows
from sfumato.mechanisms.rows import on_lattice, rows_apart
from sfumato.metadata import Integer, Real
from sfumato.privacy import Distance, Norm, Relation

LATTICES = [
    Integer(-3, 7),
    Integer(0, 2**52),
    Integer(-(2**52), -5),
    Real(0, 99),
    Real(-1, 1, step="0.1"),
    Real("-1e-9", "1e-9"),
    Real("1e290", "3e290", step=Fraction(2) ** 950),
    Real(0, "1e-280", step=Fraction(1, 2**950)),
]
UGLY = [
    None,
    "5",
    b"5",
    3 + 2j,
    object(),
    np.datetime64("NaT"),
    np.timedelta64("NaT"),
    np.timedelta64(3, "D"),
    math.nan,
    math.inf,
    -math.inf,
    -0.0,
    5e-324,
    1.7976931348623157e308,
    10**400,
    -(10**400),
    True,
    Fraction(1, 3),
    Decimal("NaN"),
    Decimal("sNaN"),
    Decimal("-Infinity"),
    Decimal("1e999999"),
    Decimal("-1e-999999"),
    Decimal("0e999999"),
    np.float16(0.5),
    np.longdouble("1.5"),
    np.longdouble("inf"),
    np.longdouble("nan"),
    np.int8(-3),
    np.uint64(2**64 - 1),
    np.bool_(True),
]
MISSING = 12  # of the ugly ones


def half_even(value, within):
    """The code by the decimal module: its quotient has 60 digits, and the doubles here are no ties
    beyond that.
    """
    if value == math.inf or value == -math.inf:
        return within.upper_code if value > 0 else within.lower_code
    exact = Fraction(value)
    exact = (
        min(max(exact, within.lower_code * within.step), within.upper_code * within.step)
        / within.step
    )
    whole = exact.numerator // exact.denominator
    rest = exact - whole
    up = rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2 == 1)
    return whole + up


@given(st.lists(st.floats(allow_nan=False)), st.sampled_from(LATTICES))
@example([0.5, 1.5, 2.5, -0.5, -1.5], Integer(-3, 7))
@example([5e-324, -5e-324, 1e-310], LATTICES[-1])
def test_codes_are_rounded_half_to_even(values, within):
    expected = [half_even(value, within) for value in values]
    assert on_lattice(values, within).tolist() == expected
    assert on_lattice(np.array(values), within).tolist() == expected


def test_the_comparison_notices_rounding_away_from_zero(monkeypatch):
    monkeypatch.setattr(np, "rint", lambda x: np.trunc(x + np.copysign(0.5, x)))
    assert on_lattice(np.array([0.5, 2.5]), Integer(-3, 7)).tolist() != [0, 2]


@given(st.lists(st.integers(0, 1000)))
def test_ties_agree_with_the_decimal_module(values):
    halves = [Decimal(value) / 2 for value in values]
    expected = [int(half.to_integral_value(ROUND_HALF_EVEN)) for half in halves]
    assert on_lattice(halves, Integer(0, 10**6)).tolist() == expected


@given(st.lists(st.sampled_from(UGLY)), st.lists(st.sampled_from(UGLY)), st.sampled_from(LATTICES))
def test_each_row_gives_one_code_of_its_own(some, others, within):
    together = on_lattice([*some, *others], within).tolist()
    apart = [code for value in [*some, *others] for code in on_lattice([value], within).tolist()]
    assert together == apart
    assert all(within.lower_code <= code <= within.upper_code for code in together)
    filled = on_lattice([*some, *others], within, imputed=within.upper_code * within.step)
    assert len(filled) == len(some) + len(others)


def test_the_check_notices_codes_that_depend_on_other_rows(monkeypatch):
    ranked = lambda values, within, imputed=None: np.argsort(np.array(values, float))  # noqa: E731
    monkeypatch.setattr(rows, "on_lattice", ranked)
    assert rows.on_lattice([5, 1], Integer(0, 9)).tolist() != [
        *rows.on_lattice([5], Integer(0, 9)),
        *rows.on_lattice([1], Integer(0, 9)),
    ]


def test_what_is_no_number_is_dropped_or_imputed():
    within = Integer(-3, 7)
    assert len(on_lattice(UGLY, within)) == len(UGLY) - MISSING
    filled = on_lattice(UGLY, within, imputed=2)
    assert len(filled) == len(UGLY)
    assert on_lattice([math.nan, None, 5], within, imputed=-1).tolist() == [-1, -1, 5]
    assert on_lattice(np.array([math.nan, 5.0]), within, imputed=-1).tolist() == [-1, 5]
    assert on_lattice(np.ma.masked_array([1, 2], [True, False]), within).tolist() == [2]


@pytest.mark.parametrize(
    "dtype", ["i1", "u1", "i4", "u4", "i8", "u8", "?", "f2", "f4", "f8", ">f8", ">i4", "g", "O"]
)
@pytest.mark.parametrize(
    "within", [Integer(-3, 7), Integer(-(2**52), -5), Real(0, 50, step="0.25")]
)
def test_arrays_of_every_dtype_give_the_codes_of_their_elements(dtype, within):
    values = np.array([0, 1, 3, 100], dtype)
    assert on_lattice(values, within).tolist() == [
        half_even(int(value), within) for value in values.tolist()
    ]


@given(st.lists(st.one_of(st.none(), st.integers(-(2**70), 2**70))))
def test_lists_of_integers_of_any_size_are_clipped(values):
    expected = [min(max(value, -3), 7) for value in values if value is not None]
    assert on_lattice(values, Integer(-3, 7)).tolist() == expected
    assert (
        on_lattice(iter([value for value in values if value is not None]), Integer(-3, 7)).tolist()
        == expected
    )


def test_the_widest_unsigned_integers_are_clipped():
    assert on_lattice(np.array([2**64 - 1, 3], np.uint64), Integer(-9, 9)).tolist() == [9, 3]


def test_no_floating_point_setting_of_the_caller_matters():
    with np.errstate(all="raise"):
        assert on_lattice(
            np.array([1e308, -1e308, 5e-324]), Real(0, 2**30, step=2**10)
        ).tolist() == [2**20, 0, 0]


@pytest.mark.parametrize("imputed", [8, -4, "nan", math.inf])
def test_an_imputed_value_is_declared_within_the_bounds(imputed):
    with pytest.raises(InvalidNumber, match="imputed"):
        on_lattice([1], Integer(-3, 7), imputed=imputed)


def test_a_table_is_refused():
    with pytest.raises(InvalidDeclaration, match=r"\(2, 2\)"):
        on_lattice(np.ones((2, 2)), Integer(0, 1))


def test_a_distance_of_rows_is_an_l1_distance():
    assert rows_apart(Distance(Norm.L1, Fraction(3), Relation.REPLACE_ONE)) == 3
    for norm in (Norm.L2, Norm.LINF):
        with pytest.raises(InvalidDeclaration, match=norm.value):
            rows_apart(Distance(norm, Fraction(3)))
