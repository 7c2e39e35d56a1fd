# SPDX-License-Identifier: Apache-2.0
"""What type strings look like depends on their form, and on no value (RULES 24)."""

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.cli.init_forms import (
    guess,
    has_decimal_comma,
    looks_like_values,
    orders_of,
    thousands_of,
    without_thousands,
)
from sfumato.metadata import Date, Timestamp


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "-20", ""], "integer"),
        (["1", "2.5", "1e9"], "real"),
        (["1,5", "2"], "real"),
        (["2024-01-31"], "date"),
        (["2024-01-31 10:00", "2024-01-31T10:00:01Z"], "timestamp"),
        (["2024-01-31 10:00", "2024-01-31"], "timestamp"),
        (["31.12.2024"], "date"),
        (["31.12.2024 10:30", "1.2.2024"], "timestamp"),
        (["2024/1/31T10:30:15"], "timestamp"),
        (["31.12/2024"], "category"),
        (["31.12.2024 soon"], "category"),
        (["True", "false"], "boolean"),
        (["01234", "80331"], "category"),
        (["1", "F"], "category"),
        (["2024-01-31", "soon"], "category"),
    ],
)
def test_forms(values: list[str], kind: str) -> None:
    assert guess(values)["type"] == kind


def test_the_order_of_day_and_month_stays_open_whatever_the_values_are() -> None:
    # 31 cannot be a month, which only a look at the value would tell
    slashes = {"type": "date", "format": "%d/%m/%Y"}
    assert guess(["31/12/2024"]) == guess(["12/31/2024"]) == guess(["01/02/2024"]) == slashes
    assert orders_of("%d/%m/%Y") == ("%d/%m/%Y", "%m/%d/%Y")


@pytest.mark.parametrize(
    ("values", "form"),
    [
        (["31.12.2024", "1.2.2024"], "%d.%m.%Y"),
        (["2024/12/31"], "%Y/%m/%d"),
        (["31-12-2024"], "%d-%m-%Y"),
        (["31.12.2024 09:30", "1.12.2024"], "%d.%m.%Y %H:%M"),
        (["31.12.2024 09:30:01"], "%d.%m.%Y %H:%M:%S"),
    ],
)
def test_the_signs_of_a_date_are_those_of_its_form(values: list[str], form: str) -> None:
    assert guess(values)["format"] == form
    kind = Date if guess(values)["type"] == "date" else Timestamp
    # a format that can be declared
    assert kind("2000-01-01", "2030-01-01", format=form).format == form


@given(st.lists(st.integers(), min_size=1), st.lists(st.integers(), min_size=1))
def test_no_integer_is_treated_in_another_way(one: list[int], other: list[int]) -> None:
    assert guess(map(str, one)) == guess(map(str, other)) == {"type": "integer"}


@given(st.lists(st.dates(min_value=datetime.date(1000, 1, 1)), min_size=1))
def test_no_day_is_treated_in_another_way(days: list[datetime.date]) -> None:
    assert guess(map(str, days)) == {"type": "date"}


def test_a_comma_for_the_fraction() -> None:
    assert has_decimal_comma(["", "-1,25"])
    assert not has_decimal_comma(["1,2,3", "1,", "12"])


@pytest.mark.parametrize(
    ("value", "delimiter", "sign"),
    [
        ("103,431", ",", ","),
        ("-1,234,567.25", ",", ","),
        ("103,43", ",", ""),
        ("0,431", ",", ""),
        ("103,431", ";", ""),
        ("1.234", ";", ""),
        ("1.234.567", ";", "."),
        ("1.234,5", ";", "."),
        ("1 234", ",", " "),
        ("1'234.5", ";", "'"),
        ("a 234", ",", ""),
    ],
)
def test_a_sign_between_thousands_is_a_form_that_is_no_fraction(
    value: str, delimiter: str, sign: str
) -> None:
    assert thousands_of([["x"], ["7", value]], delimiter) == sign


def test_only_numbers_lose_the_sign_between_thousands() -> None:
    assert without_thousands(["1,500", "a,b", "1,5"], ",") == ["1500", "a,b", "1,5"]
    assert without_thousands(["1,500"], "") == ["1,500"]


@pytest.mark.parametrize("name", ["1", "-2.5", "007", "2024-01-31", "24/03/1962", "TRUE", "1,500"])
def test_a_name_of_the_form_of_a_value_is_one(name: str) -> None:
    assert looks_like_values(["age", name])
    assert not looks_like_values(["age", f"q{name}", f"{name} years"])
