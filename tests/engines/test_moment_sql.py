# SPDX-License-Identifier: Apache-2.0
"""The engine reads the moments that ``zoneinfo`` names, around every change of clocks."""

import datetime

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.engines import moment_sql, sql_tree
from sfumato.engines.duckdb_printer import printed, quote
from sfumato.engines.sql_tree import Column
from sfumato.engines.value_codes import code_of
from sfumato.engines.value_sql import Source, code, reading
from sfumato.metadata import Column as Declared
from sfumato.metadata import Timestamp
from sfumato.metadata.moment_format import FORMATS
from sfumato.metadata.zones import DAY
from tests.contracts.effort import examples
from tests.contracts.zones import NAIVE, ZONES, around, first_shown, offset, shown, turns
from tests.metadata.test_timestamp import UNWRITTEN, WRITTEN

SECOND = datetime.timedelta(seconds=1)
READ = Column("r")


def codes(source, kind):
    """The codes that the engine reads of the column x."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'America/St_Johns'")
    relation = quote(str(source)) if isinstance(source, str) else "source"
    if not isinstance(source, str):
        connection.register("source", source)
    described = connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()
    types = {row[0]: row[1] for row in described}
    read = printed(reading("x", kind, Source(relation, types)))
    outer = printed(code(kind, READ, short=False))
    statement = f"SELECT {outer} FROM (SELECT {read} AS r, i FROM {relation}) ORDER BY i"
    return [row[0] for row in connection.execute(statement).fetchall()]


def table(cells, physical):
    return pa.table({"x": pa.array(cells, physical), "i": range(len(cells))})


def whole(zone, step=1, form=None):
    """The type with any step, also those that a declaration of this zone may not have."""
    kind = Timestamp("1970-01-03", "2037-12-29", zone=zone, format=form)
    codes = kind.lower_code // step, kind.upper_code // step
    return Timestamp.of_codes(*codes, step=step, zone=zone, like=kind)


def wanted(kind, second):
    if second is None:
        return None
    return min(max(second // int(kind.step), kind.lower_code), kind.upper_code)


def agree(zone, step, every):
    """By ``zoneinfo`` alone: the codes of local times, and of moments with an offset."""
    kind = whole(zone, step)
    seconds = around(zone)[::every]
    clocks = [shown(zone, second) for second in seconds]
    # an hour before what clocks show may be what they leave out
    clocks += [clock - 3600 * SECOND for clock in clocks]
    local = [wanted(kind, first_shown(zone, (clock - NAIVE) // SECOND)) for clock in clocks]
    assert codes(table([f"{clock}.75" for clock in clocks], pa.string()), kind) == local
    stored = [clock + SECOND / 2 for clock in clocks]
    assert codes(table(stored, pa.timestamp("us")), kind) == local
    moments = [wanted(kind, second) for second in seconds]
    stored = [second * 10**6 + 500_000 for second in seconds]
    assert codes(table(stored, pa.timestamp("us", "Asia/Tokyo")), kind) == moments
    # an offset is written in hours and minutes
    written = [each for each in seconds if offset(zone, each) % 60 == 0]
    known = [f"{shown(zone, each)}{_written(offset(zone, each))}" for each in written]
    assert codes(table(known, pa.string()), kind) == [wanted(kind, each) for each in written]
    return local


def _written(seconds):
    sign = "-" if seconds < 0 else "+"
    return f"{sign}{abs(seconds) // 3600:02d}:{abs(seconds) // 60 % 60:02d}"


@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize("zone", ZONES)
def test_the_engine_gives_the_moments_of_the_reference(zone, every):
    """Of the twelve moments around each change two at least."""
    local = agree(zone, 1, every)
    assert (None in local) is (len(turns(zone)) > 1 or (every == 1 and len(turns(zone)) > 0))
    assert None not in local[: len(local) // 2]


@pytest.mark.parametrize("step", [60, 7000, 86_400])
@pytest.mark.parametrize("zone", ["Europe/London", "Australia/Lord_Howe", "Asia/Kolkata"])
def test_moments_are_rounded_down_to_the_step(zone, step):
    agree(zone, step, every=5)


def later(periods):
    """The table of a zone with the second showing of what clocks show twice."""
    first, before = periods[0]
    found = [(first + before, before)]
    for start, after in periods[1:]:
        found.append((start + min(before, after), after))
        before = after
    return tuple(found)


def one_bucket(periods, start, width):
    """A bucket in which the offset never changes."""
    place = max(sum(each <= start for each, _ in periods) - 1, 0)
    return start + width, start + width, periods[place][1] or 0, periods[place][1] or 0


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("local_periods", later),
        ("_bucket", one_bucket),
        ("_number", lambda digits: sql_tree.Constant(0)),
    ],
)
def test_a_wrong_table_or_a_wrong_number_is_noticed(monkeypatch, name, wrong):
    monkeypatch.setattr(moment_sql, name, wrong)
    with pytest.raises(AssertionError):
        agree("Europe/London", 1, every=5)


@pytest.mark.parametrize("zone", ["UTC", "Europe/London"])
def test_a_string_is_read_like_the_reference(zone):
    words = [*WRITTEN, *UNWRITTEN, "2020-03-29 01:30:00", "2020-03-29 01:30:00Z", "N", None]
    kind = Timestamp("1960-01-01", "2037-12-29", zone=zone, missing=("N", "1970-01-01 00:00"))
    found = codes(table(words, pa.string()), kind)
    assert found == [code_of(Declared("x", kind), word) for word in words]
    assert found[0] is None and found[1] == 0
    coded = table(words, pa.string())
    coded = coded.set_column(0, "x", coded["x"].combine_chunks().dictionary_encode())
    assert codes(coded, kind) == found


CLOCKS = (" 09:30", "T09:30", " 09:30:15", " 9:30", " 24:00", " 09:60", " 09:30:60", " 09:30Z", "")
DATES = ("31/12/2024", "1/2/2024", "29/02/2023", "12-31-2024", "2024-03-31", "20241231", "2024.1.9")


@pytest.mark.parametrize("form", FORMATS[::7])
def test_a_string_of_a_declared_format_is_read_like_the_reference(form):
    kind = Timestamp("2000-01-01", "2037-12-29", zone="Europe/London", format=form)
    words = [date + clock for date in DATES for clock in CLOCKS]
    moment = datetime.datetime(2024, 3, 31, 18, 5, 9)  # noqa: DTZ001
    words += [moment.strftime(form), moment.replace(hour=1).strftime(form), None]
    found = codes(table(words, pa.string()), kind)
    assert found == [code_of(Declared("x", kind), word) for word in words]
    second = (moment - NAIVE) // SECOND - 3600 - (0 if form.endswith("%S") else 9)
    # clocks of London leave out the hour from 1 on this day; midnight is before it
    midnight = (moment.date() - NAIVE.date()).days * DAY
    wanted = [second, None, None] if "%H" in form else [midnight, midnight, None]
    assert found[-3:] == wanted
    alone = moment.strftime(form.partition("%H")[0].rstrip(" T"))
    assert codes(table([alone], pa.string()), kind) == [midnight]


@settings(deadline=None, max_examples=examples(0.2))
@given(st.lists(st.text("0123456789-:T Z+.", max_size=26) | st.text(max_size=6), max_size=30))
def test_no_string_can_make_a_reading_fail(words):
    kind = whole("Europe/London")
    words = [word for word in words if "\0" not in word]
    assert codes(table(words, pa.string()), kind) == [
        code_of(Declared("x", kind), word) for word in words
    ]


MOST, LEAST = 2**63 - 1, -(2**63)


@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Tokyo"])
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_no_timestamp_can_make_a_reading_fail(tmp_path, unit, zone):
    """A moment beyond what an engine can count is a bound or missing; the others are themselves."""
    if zone is not None and unit in ("s", "ms"):
        return  # refused: test_physical_types
    kind = whole("UTC")
    per = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    whole_numbers = [0, MOST, LEAST, LEAST + 1, 200_000 * per - 1, 200_000 * per, None] * 40
    cells = pa.array(whole_numbers, pa.int64()).cast(pa.timestamp(unit, zone), safe=False)
    found = codes(pa.table({"x": cells, "i": range(len(cells))}), kind)
    assert found[4:7] == [199_999, 200_000, None]
    assert found[0] == kind.lower_code
    assert found[1] == kind.upper_code and set(found[2:4]) <= {kind.lower_code, None}
    if unit == "us":
        assert found[2] == found[3] == kind.lower_code
        path = tmp_path / "data.parquet"
        pq.write_table(pa.table({"x": cells, "i": range(len(cells))}), path)
        assert codes(str(path), kind) == found


@pytest.mark.parametrize("step", [1, 7000, 86_400])
@pytest.mark.parametrize("zone", ["UTC", "Europe/London", "America/Sao_Paulo"])
def test_a_date_alone_is_its_midnight_in_the_zone(zone, step):
    """As a string, as a string of a format, and as a stored date: by ``zoneinfo`` alone."""
    days = [
        each // DAY for second in turns(zone) for each in range(second - DAY, second + 2 * DAY, DAY)
    ]
    dates = [NAIVE.date() + datetime.timedelta(day) for day in days]
    kind = whole(zone, step)
    found = [wanted(kind, first_shown(zone, day * DAY)) for day in days]
    assert codes(table(list(map(str, dates)), pa.string()), kind) == found
    assert codes(table(dates, pa.date32()), kind) == found
    assert [code_of(Declared("x", kind), date) for date in dates] == found
    formed = whole(zone, step, "%d.%m.%Y %H:%M")
    written = [f"{date:%d.%m.%Y}" for date in dates]
    assert codes(table(written, pa.string()), formed) == found
    # clocks of Sao Paulo left out some midnights
    assert (None in found) is (zone == "America/Sao_Paulo")


def test_no_date_can_make_a_reading_fail():
    kind = whole("Europe/London")
    days = [2**31 - 1, -(2**31) + 2, -(2**31) + 1, 10_957, None]
    found = codes(table(pa.array(days, pa.int32()).cast(pa.date32()), pa.date32()), kind)
    assert found == [kind.upper_code, kind.lower_code, kind.lower_code, 10_957 * DAY, None]


def test_a_column_without_a_value_has_no_moment():
    assert codes(table([None, None], pa.null()), whole("Europe/London")) == [None, None]


def test_seconds_are_those_of_the_reading_unclipped():
    kind = Timestamp("2020-01-01", "2020-12-31", zone="Europe/London")
    connection = duckdb.connect()
    for text, second in (
        ("2019-07-01 01:00:00", 1_561_939_200),
        ("2021-01-01 00:00", 1_609_459_200),
    ):
        read = printed(moment_sql.moment_reading(sql_tree.Constant(text), "text"))
        value = printed(moment_sql.seconds(kind, READ))
        statement = f"SELECT {value} FROM (SELECT {read} AS r)"
        # before the first entry of the table its offset holds
        assert connection.execute(statement).fetchall()[0][0] in (second, second + 3600)
