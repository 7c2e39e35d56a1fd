# SPDX-License-Identifier: Apache-2.0
"""A declared format of dates is one of nineteen, and its pattern is that of its parts."""

import datetime
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.errors import InvalidDeclaration
from sfumato.metadata.date_format import FORMATS, YEAR_PATTERN, date_pattern, places


def test_there_are_three_parts_in_any_order_with_one_of_three_separators():
    assert len(FORMATS) == len(set(FORMATS)) == 6 * 3 + 1
    for form in FORMATS:
        assert sorted(part[0] for part in form.split("%")[1:]) == ["Y", "d", "m"]
        assert len(set(re.sub("%[dmY]", "", form))) == (form != "%Y%m%d")


@pytest.mark.parametrize(
    "form",
    [
        "",
        "%d/%m",
        "%d/%m/%y",
        "%d/%m.%Y",
        "%d %m %Y",
        "%d%m%Y",
        "%d/%m/%Y %H",
        "%D",
        "dd/mm/yyyy",
        1,
        "%d/%d/%Y",
    ],
)
def test_another_format_is_refused_with_those_that_are_allowed(form):
    with pytest.raises(InvalidDeclaration, match="format=") as refused:
        sf.Date("2024-01-01", "2024-12-31", format=form)
    assert "%Y%m%d" in refused.value.allowed


@given(st.dates(), st.sampled_from(FORMATS), st.booleans())
def test_the_groups_of_a_pattern_are_year_month_and_day(day, form, short):
    written = form.replace("%Y", f"{day.year:04}")
    width = 1 if short and form != "%Y%m%d" else 2
    written = written.replace("%m", f"{day.month:0{width}}").replace("%d", f"{day.day:0{width}}")
    match = re.fullmatch(date_pattern(form), written)
    assert datetime.date(*(int(match[place]) for place in places(form))) == day


@pytest.mark.parametrize("form", FORMATS)
def test_a_pattern_accepts_nothing_beside_the_parts(form):
    written = form.replace("%Y", "2024").replace("%m", "11").replace("%d", "12")
    pattern = date_pattern(form)
    assert re.fullmatch(pattern, written)
    for other in (f" {written}", f"{written} ", f"{written}\n", f"0{written}0"):
        assert not re.fullmatch(pattern, other)
    for sign in "/.-":
        if sign in written:
            assert not re.fullmatch(pattern, written.replace(sign, "x"))
            assert not re.fullmatch(pattern, written.replace(sign, ""))


def test_years_have_four_digits_from_0001():
    for year in range(10000):
        assert bool(re.fullmatch(YEAR_PATTERN, f"{year:04}")) == (year > 0)


def test_a_format_is_shown_and_compared():
    kind = sf.Date("2024-01-01", "2024-12-31", format="%d/%m/%Y", missing="N")
    assert repr(kind) == "Date('2024-01-01', '2024-12-31', format='%d/%m/%Y', missing='N')"
    assert kind != sf.Date("2024-01-01", "2024-12-31", missing="N")
    assert "format" not in repr(sf.Date("2024-01-01", "2024-12-31"))
