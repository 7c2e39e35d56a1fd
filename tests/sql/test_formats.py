# SPDX-License-Identifier: Apache-2.0
"""Values as strings: what Python's strftime writes, for every code; test_meaning asks DuckDB."""

import datetime

import pytest

import sfumato as sf
from sfumato.errors import UnsupportedSql
from sfumato.metadata.column import Column
from sfumato.plan.evaluate import evaluate
from sfumato.sql import formats
from sfumato.sql.formats import (
    as_text,
    day_name,
    formatted,
    month_name,
    read_moment,
    strftime_of,
)
from sfumato.sql.typed import number, read, text

FIRST = datetime.date(2023, 12, 20)
DAY = Column("d", sf.Date(FIRST, FIRST + datetime.timedelta(days=400)))


def strings(label, codes):
    """The string of each code of the only column, and of NULL."""
    for code in (*codes, None):
        place = evaluate(label.expression, lambda leaf, code=code: code)
        yield None if place is None else label.labels[place]


def wrong_days(label, wanted):
    days = [FIRST + datetime.timedelta(days=days) for days in range(401)]
    codes = [(day - datetime.date(1970, 1, 1)).days for day in days]
    shown = list(strings(label, codes))
    assert shown.pop() is None
    return [day for day, string in zip(days, shown, strict=True) if string != wanted(day)]


@pytest.mark.parametrize(
    "pattern", ["%Y-%m", "%d.%m.%y", "%G week %V", "%j", "%a %A %b %B", "100%%", "%H:%M:%S"]
)
def test_a_date_is_written_as_python_writes_it(pattern):
    assert not wrong_days(formatted(read(DAY), pattern), lambda day: day.strftime(pattern))


def test_a_format_that_writes_another_day_is_noticed(monkeypatch):
    monkeypatch.setitem(formats._DIRECTIVES, "m", lambda moment: f"{moment.day:02}")
    assert wrong_days(formatted(read(DAY), "%m"), lambda day: day.strftime("%m"))


def test_days_and_months_have_english_names():
    assert not wrong_days(day_name(read(DAY)), lambda day: day.strftime("%A"))
    assert not wrong_days(month_name(read(DAY)), lambda day: day.strftime("%B"))
    assert len(month_name(read(DAY)).labels) == 12


def test_a_timestamp_is_written_by_its_local_time():
    kind = sf.Timestamp("2024-03-31", "2024-04-01", zone="Europe/Berlin", step=1800)
    moment = read(Column("at", kind))
    codes = range(kind.lower_code, kind.upper_code + 1)
    for pattern in ("%Y-%m-%d %H", "%H:%M", "%d"):
        for code, string in zip(codes, strings(formatted(moment, pattern), codes), strict=False):
            told = kind.decode(code)
            local = datetime.datetime.fromisoformat(str(told))
            assert string == local.strftime(pattern)


def test_numbers_and_truths_are_texts():
    assert as_text(number(-3)) == text("-3")
    whole = as_text(read(Column("n", sf.Integer(-1, 1))))
    assert list(strings(whole, (-1, 0, 1))) == ["-1", "0", "1", None]
    truth = as_text(read(Column("b", sf.Boolean())))
    assert list(strings(truth, (0, 1))) == ["false", "true", None]
    with pytest.raises(UnsupportedSql, match="VARCHAR of something else"):
        as_text(read(Column("x", sf.Real(0, 1, step="0.5"))))
    with pytest.raises(UnsupportedSql, match="A text of 10,001 values"):
        as_text(read(Column("n", sf.Integer(0, 10_000))))


def test_formats_of_to_char_are_those_of_strftime():
    assert strftime_of('YYYY/MM/DD HH24:MI:SS "day" DDD') == "%Y/%m/%d %H:%M:%S day %j"
    assert strftime_of("Dy Mon Month YY IYYY-IW 5%") == "%a %b %B %y %G-%V 5%%"
    for pattern in ("HH", "YYYYY", "quarter", "MONTH"):
        with pytest.raises(UnsupportedSql, match="The pattern") as refusal:
            strftime_of(pattern)
        assert "YYYY" in refusal.value.allowed
    with pytest.raises(UnsupportedSql, match="The directive %Q"):
        formatted(read(DAY), "%Q")


def test_a_constant_is_read_in_its_format():
    assert read_moment("31/12/2023", "%d/%m/%Y") == datetime.datetime.fromisoformat("2023-12-31")
    with pytest.raises(UnsupportedSql, match="does not have its format"):
        read_moment("2023", "%d/%m/%Y")
