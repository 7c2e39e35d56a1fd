# SPDX-License-Identifier: Apache-2.0
"""Column types: their codes, what decodes them, and what cannot be declared."""

import datetime
import os
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import InvalidDeclaration, InvalidNumber
from sfumato.metadata import Array, Boolean, Category, Column, Date, Integer, Real, Text
from sfumato.metadata.coded import MAX_CODE
from sfumato.metadata.column import date_code

WHOLE = st.integers(-MAX_CODE, MAX_CODE)
DATES = st.dates()
EVERY = [
    Integer(0, 9, missing="N"),
    Real(0, 1, missing="N"),
    Date("2020-01-01", "2020-12-31", missing="N"),
    Category("a", "b", missing="N"),
    Boolean(missing="N"),
    Text(missing="N"),
]
BUILDERS = {
    "Integer": lambda missing: Integer(0, 9, missing=missing),
    "Real": lambda missing: Real(0, 1, missing=missing),
    "Date": lambda missing: Date("2020-01-01", "2020-12-31", missing=missing),
    "Category": lambda missing: Category("a", "b", missing=missing),
    "Boolean": lambda missing: Boolean(missing=missing),
    "Text": lambda missing: Text(missing=missing),
}
BAD_BOUNDS = [
    (0, float("nan")),
    (float("nan"), 0),
    (0, float("inf")),
    (-float("inf"), 0),
    ("low", "high"),
    (None, 1),
    (False, True),
    (0, "1e-400000000"),
]


@given(WHOLE, WHOLE)
@settings(deadline=None)
def test_an_integer_is_its_own_code(one, other):
    lower, upper = sorted((one, other))
    if lower == upper:
        with pytest.raises(InvalidDeclaration):
            Integer(lower, upper)
        return
    kind = Integer(lower, upper)
    assert (kind.lower_code, kind.upper_code, kind.step, kind.size) == (
        lower,
        upper,
        1,
        upper - lower + 1,
    )
    assert [kind.decode(code) for code in (lower, upper)] == [lower, upper]


@given(
    st.fractions(max_denominator=10**9), st.fractions(min_value=Fraction(1, 10**6), max_value=10**6)
)
@settings(deadline=None)
def test_a_real_lies_on_a_lattice_of_a_power_of_two(lower, width):
    if abs(lower) > 10**9 * width:
        return
    kind = Real(lower, lower + width)
    larger = max(kind.step.numerator, kind.step.denominator)
    assert min(kind.step.numerator, kind.step.denominator) == 1
    assert larger & (larger - 1) == 0
    assert kind.step <= width / 2**20 < 2 * kind.step
    assert abs(kind.lower_code * kind.step - lower) <= kind.step / 2
    assert abs(kind.upper_code * kind.step - lower - width) <= kind.step / 2
    assert kind.decode(kind.upper_code) == float(kind.upper_code * kind.step)


def test_a_declared_step_is_kept():
    kind = Real(0, "1.5", step="0.25")
    assert (kind.lower_code, kind.upper_code, kind.size) == (0, 6, 7)
    assert [kind.decode(code) for code in range(7)] == [0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5]
    assert repr(kind) == "Real(0, 1.5, step=0.25)"


def test_the_bounds_of_a_real_round_half_to_even():
    assert (Real("0.5", "2.5", step=1).lower_code, Real("0.5", "2.5", step=1).upper_code) == (0, 2)
    assert (Real("1.5", "3.5", step=1).lower_code, Real("1.5", "3.5", step=1).upper_code) == (2, 4)


@given(DATES, DATES)
@settings(deadline=None)
def test_a_date_is_its_days_since_1970(one, other):
    lower, upper = sorted((one, other))
    if lower == upper:
        with pytest.raises(InvalidDeclaration):
            Date(lower, upper)
        return
    kind = Date(lower.isoformat(), upper)
    assert kind.size == (upper - lower).days + 1
    assert (kind.decode(kind.lower_code), kind.decode(kind.upper_code)) == (lower, upper)
    assert kind.lower_code == lower.toordinal() - datetime.date(1970, 1, 1).toordinal()


@pytest.mark.parametrize(
    "value",
    [
        "",
        "2020-13-01",
        "2020-02-30",
        "yesterday",
        5,
        None,
        datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC),
    ],
)
def test_what_is_no_date_has_no_code(value):
    assert date_code(value) is None
    with pytest.raises(InvalidDeclaration, match="Date"):
        Date(value, "2021-01-01")
    with pytest.raises(InvalidDeclaration, match="Date"):
        Date("1900-01-01", value)


@given(st.lists(st.text(min_size=1) | st.integers(), min_size=2))
@settings(deadline=None)
def test_a_category_codes_its_values_in_their_order(values):
    texts = [str(value) for value in values]
    if len(set(texts)) != len(texts):
        with pytest.raises(InvalidDeclaration):
            Category(*values)
        return
    kind = Category(*values)
    assert kind.texts() == tuple((text, code) for code, text in enumerate(texts))
    assert [kind.decode(code) for code in range(kind.size)] == texts
    assert Category(values) == kind


def test_a_category_decodes_to_its_labels():
    kind = Category({"1": "Male", 2: "Female"})
    assert kind.texts() == (("1", 0), ("2", 1))
    assert (kind.decode(0), kind.decode(1)) == ("Male", "Female")
    assert repr(kind) == "Category({'1': 'Male', '2': 'Female'})"


@pytest.mark.parametrize(
    "values",
    [
        (),
        ([],),
        ({},),
        ("a", "a"),
        (1, "1"),
        ("",),
        ("a", ""),
        (1.5,),
        (None,),
        (["a"], ["b"]),
        ({"1": "x", "2": "x"},),
    ],
    ids=repr,
)
def test_a_category_without_distinct_texts_is_refused(values):
    with pytest.raises(InvalidDeclaration, match="Category"):
        Category(*values)


def test_a_category_value_cannot_also_be_missing():
    with pytest.raises(InvalidDeclaration, match="marker for missing"):
        Category("a", "b", missing=["c", "b"])
    assert Category({"a": "b", "c": "d"}, missing="b").missing == ("b",)


def test_a_set_of_markers_has_the_same_order_in_every_process():
    text = "from sfumato.metadata import Boolean; print(Boolean(true={'a', 'b', 'c', 'd'}, missing={'N', 'x', '-', '?'}))"
    shown = {
        subprocess.run(
            [sys.executable, "-c", text],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in "1234"
    }
    assert len(shown) == 1


@pytest.mark.parametrize("name", ["true", "false", "missing"])
def test_texts_that_are_none_are_refused_by_the_name_that_was_given(name):
    with pytest.raises(InvalidDeclaration, match=f"^{name}=1\\."):
        Boolean(**{name: 1})


def test_a_boolean_codes_its_texts():
    kind = Boolean(true=["Y", "J"], false="N", missing=("", "?"))
    assert kind.texts() == (("N", 0), ("Y", 1), ("J", 1))
    assert (kind.decode(0), kind.decode(1), kind.size) == (False, True, 2)
    assert {text for text, code in Boolean().texts() if code} == {"true", "True", "TRUE", "1"}


@pytest.mark.parametrize(
    "texts",
    [
        {"true": "1", "false": "1"},
        {"true": []},
        {"false": ()},
        {"missing": "1"},
        {"true": ["a", "a"]},
        {"true": "0"},
    ],
    ids=repr,
)
def test_a_boolean_whose_texts_are_not_different_is_refused(texts):
    with pytest.raises(InvalidDeclaration, match="Boolean"):
        Boolean(**texts)


@pytest.mark.parametrize("bounds", BAD_BOUNDS, ids=repr)
@pytest.mark.parametrize("kind", [Integer, Real])
def test_bounds_that_are_no_finite_numbers_are_refused(kind, bounds):
    with pytest.raises(InvalidNumber):
        kind(*bounds)


@pytest.mark.parametrize("bounds", [(1, 0), (0, 0), (0.5, 0.5), ("1", "0.999"), (0, -1)], ids=repr)
@pytest.mark.parametrize("kind", [Integer, Real])
def test_bounds_reversed_or_equal_are_refused(kind, bounds):
    with pytest.raises(InvalidDeclaration) as caught:
        kind(*bounds)
    assert caught.value.allowed == "lower < upper"
    assert "Swap" in caught.value.remedy


def test_an_integer_needs_whole_bounds():
    assert Integer(0.0, "1e1") == Integer(0, 10)
    with pytest.raises(InvalidDeclaration, match=r"0\.5"):
        Integer(0.5, 10)


@pytest.mark.parametrize(
    "declare",
    [
        lambda: Integer(0, MAX_CODE + 1),
        lambda: Integer(-MAX_CODE - 1, 0),
        lambda: Integer(0, "1e400"),
        lambda: Real(0, MAX_CODE, step="0.5"),
        lambda: Real(10**12, 10**12 + 1),
    ],
)
def test_codes_beyond_exact_doubles_are_refused(declare):
    with pytest.raises(InvalidDeclaration, match=r"2\^52"):
        declare()
    assert Integer(-MAX_CODE, MAX_CODE).size == 2 * MAX_CODE + 1


@pytest.mark.parametrize("step", [0, -1, 2, "1.0001"])
def test_a_step_that_does_not_fit_is_refused(step):
    with pytest.raises(InvalidDeclaration, match="step"):
        Real(0, 1, step=step)


@pytest.mark.parametrize("step", [float("nan"), float("inf"), "wide", True])
def test_a_step_that_is_no_number_is_refused(step):
    with pytest.raises(InvalidNumber, match="step"):
        Real(0, 1, step=step)


@pytest.mark.parametrize("name", BUILDERS)
def test_markers_are_kept_one_or_several(name):
    build = BUILDERS[name]
    assert build(None).missing is None
    assert build("N").missing == ("N",)
    assert build(["N", ""]).missing == ("N", "")


@pytest.mark.parametrize("name", BUILDERS)
@pytest.mark.parametrize("missing", [[1], ["N", None], [["N"]]], ids=repr)
def test_markers_that_are_no_texts_are_refused(name, missing):
    with pytest.raises(InvalidDeclaration, match="missing="):
        BUILDERS[name](missing)


@pytest.mark.parametrize("kind", EVERY, ids=lambda kind: type(kind).__name__)
def test_a_declaration_shows_how_it_is_written(kind):
    shown = repr(kind)
    assert shown.startswith(type(kind).__name__) and shown.endswith("missing='N')")
    names = {each.__name__: each for each in (Integer, Real, Date, Category, Boolean, Text)}
    assert eval(shown, names) == kind


def test_a_text_has_no_codes():
    assert not hasattr(Text(), "size")
    assert repr(Text()) == "Text()"


def test_types_are_values():
    assert Column("age", Integer(0, 9)) == Column("age", Integer(0, 9))
    assert len({hash(kind) for kind in EVERY}) == len(EVERY)
    with pytest.raises(AttributeError):
        Integer(0, 9).lower_code = -1


def test_an_array_has_the_codes_of_its_numbers():
    whole, real = Array((2, 3), -1, 9), Array([4], 0, 1, step="0.25")
    assert (whole.length, whole.element, repr(whole)) == (6, Integer(-1, 9), "Array((2, 3), -1, 9)")
    assert (real.length, real.element) == (4, Real(0, 1, step="0.25"))
    assert repr(real) == "Array(4, 0, 1, step=0.25)"
    assert eval(repr(whole)) == whole and eval(repr(real)) == real
    for array in (whole, real):
        kind = array.element
        assert (array.lower_code, array.upper_code) == (kind.lower_code, kind.upper_code)
        assert (array.size, array.step, array.missing) == (kind.size, kind.step, None)
        assert array.decode(1) == kind.decode(1)


@pytest.mark.parametrize(
    "shape", [0, -1, (), [], (2, 0), (2, 2.0), True, "3", None, 2**20 + 1, (1024, 1025), {3}]
)
def test_an_array_has_a_shape(shape):
    with pytest.raises(InvalidDeclaration, match="An Array "):
        Array(shape, 0, 1)


def test_lengths_of_an_array_may_come_from_numpy():
    assert Array(np.int64(3), 0, 1) == Array(3, 0, 1)
    assert Array((np.int32(2), 3), 0, 1) == Array((2, 3), 0, 1)


@pytest.mark.parametrize("bounds", [*BAD_BOUNDS, (1, 1), (2, 1), (0, 0.5)])
def test_an_array_has_bounds(bounds):
    with pytest.raises((InvalidDeclaration, InvalidNumber)):
        Array(3, *bounds)
