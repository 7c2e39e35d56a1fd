# SPDX-License-Identifier: Apache-2.0
"""Declared formats of times: those of dates with a clock behind them, read as ``strptime`` does."""

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InvalidDeclaration
from sfumato.metadata import Timestamp
from sfumato.metadata.date_format import FORMATS as DATE_FORMATS
from sfumato.metadata.moment_format import (
    FORMATS,
    has_seconds,
    in_moment_format,
    iso_moment,
    moment_order,
    moment_pattern,
    require_moment_format,
)

MOMENTS = st.datetimes(datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31))  # noqa: DTZ001


def test_a_format_is_one_of_a_date_and_one_of_a_clock():
    assert len(FORMATS) == len(set(FORMATS)) == 5 * len(DATE_FORMATS)
    for form in FORMATS:
        require_moment_format(form)


@given(st.sampled_from(FORMATS), MOMENTS)
def test_what_is_written_in_a_format_is_read_in_it(form, moment):
    # strftime does not fill years with zeros everywhere
    written = moment.strftime(form.replace("%Y", f"{moment.year:04d}"))
    shown = " %H:%M:%S" if has_seconds(form) else " %H:%M" if "%H" in form else ""
    assert iso_moment(form, written) == f"{moment.date()}{moment.strftime(shown)}"
    assert in_moment_format(moment, form) == written
    date = form[: form.index("%H") - 1] if "%H" in form else form
    alone = in_moment_format(moment.date(), form)
    assert alone == moment.strftime(date.replace("%Y", f"{moment.year:04d}"))
    assert iso_moment(form, alone) == str(moment.date())


@given(st.sampled_from(FORMATS), st.text("0123456789/-.: T", max_size=20))
def test_what_is_read_is_what_strptime_reads(form, text):
    read = iso_moment(form, text)
    if read is None:
        return
    if ":" not in text and "%H" in form:
        # a date alone, without the sign and the clock behind it
        form = form[: form.index("%H") - 1]
    try:
        moment = datetime.datetime.strptime(text, form)  # noqa: DTZ007
    except ValueError:
        # a day that is in no calendar
        with pytest.raises(ValueError, match=r"month|day"):
            datetime.date.fromisoformat(read[:10])
    else:
        assert str(moment).startswith(read)


@pytest.mark.parametrize(
    "text",
    [
        "31/12/2024 ",
        "12/2024",
        "31/12/2024 9:30",
        "31/12/2024 09:30:15",
        "31/12/2024 09:30 PM",
        " 31/12/2024 09:30",
    ],
)
def test_what_is_written_otherwise_is_not_read(text):
    assert iso_moment("%d/%m/%Y %H:%M", text) is None


def test_the_date_is_put_in_the_order_of_iso():
    assert moment_order("%d.%m.%Y %H:%M") == r"\3-\2-\1"
    assert moment_pattern("%Y%m%dT%H:%M").endswith("(T([01][0-9]|2[0-3]):[0-5][0-9])?")


@pytest.mark.parametrize(
    "form",
    [
        "%d/%m",
        "%d/%m/%Y ",
        "%d/%m/%y %H:%M",
        "%d/%m/%Y %I:%M",
        "%d/%m/%Y  %H:%M",
        "%H:%M %d/%m/%Y",
        "",
        3,
        None,
    ],
)
def test_another_format_is_refused(form):
    with pytest.raises(InvalidDeclaration, match="format=") as refusal:
        require_moment_format(form)
    assert "%d/%m/%Y %H:%M" in refusal.value.allowed


def test_a_format_is_part_of_the_declaration():
    kind = Timestamp("2024-01-01", "2024-12-31", zone="Asia/Tokyo", format="%d/%m/%Y %H:%M")
    assert eval(repr(kind)) == kind and kind != Timestamp(
        "2024-01-01", "2024-12-31", zone="Asia/Tokyo"
    )
    assert str(kind.decode(kind.code_of_text("31/12/2024 09:30"))) == "2024-12-31 09:30:00+09:00"
    assert kind.code_of_text("2024-12-31 09:30") is None
    with pytest.raises(InvalidDeclaration, match="format="):
        Timestamp("2024-01-01", "2024-12-31", format="%H:%M")
