# SPDX-License-Identifier: Apache-2.0
"""Questions about timestamps, from a file to the shown answer: the counts are those of the table."""

import datetime
from collections import Counter

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import InvalidNumber, UnsupportedSql
from tests.contracts.people import EXACTLY
from tests.contracts.zones import shown

ZONE = "Europe/London"
# every 25 minutes around both changes of clocks of 2020
SECONDS = [
    *range(1_585_440_000 - 7200, 1_585_440_000 + 14_400, 1500),
    *range(1_603_584_000 - 7200, 1_603_584_000 + 14_400, 1500),
]
CLOCKS = [shown(ZONE, second) for second in SECONDS]
SEEN = sf.Timestamp("2020-03-01", "2020-11-30", zone=ZONE, missing="-")


def written(second):
    """A moment with its offset from UTC, in one of the ways that are read."""
    moment = datetime.datetime.fromtimestamp(second, datetime.UTC)
    forms = moment.strftime("%Y-%m-%dT%H:%M:%SZ"), str(moment), f"{moment:%Y-%m-%d %H:%M}+00"
    return forms[second % 3]


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    folder = tmp_path_factory.mktemp("visits")
    rows = [f"p{place},{written(second)}" for place, second in enumerate(SECONDS)]
    rows += ["q0,-", "q1,", "q2,29/03/2020 10:00", "q3,1999-01-01 00:00", "q4,2020-03-29 01:30"]
    path = folder / "visits.csv"
    path.write_text("\n".join(["person,seen", *rows]), encoding="utf-8")
    unit = sf.Unit("person", max_rows_total=1)
    table = sf.Table(path, unit=unit, columns={"seen": SEEN})
    with sf.connect(
        {"visits": table},
        dataset="visits",
        budget=sf.Budget(10**6),
        ledger=folder / "ledger.db",
        engine=sf.Local(threads=1),
    ) as opened:
        yield opened


def asked(session, text, **options):
    return session.query(text, epsilon=EXACTLY, **options)


def counts(session, key, where="seen > TIMESTAMP '2020-03-02 00:00:00'"):
    text = f"SELECT {key} AS k, COUNT(*) AS n FROM visits WHERE {where} GROUP BY k"
    found = asked(session, text).to_dicts()
    return {row["k"]: round(row["n"]) for row in found if round(row["n"])}


def test_hours_and_days_are_those_of_the_zone(session):
    assert counts(session, "HOUR(seen)") == Counter(clock.hour for clock in CLOCKS)
    assert counts(session, "EXTRACT(MINUTE FROM seen)") == Counter(each.minute for each in CLOCKS)
    assert counts(session, "CAST(seen AS DATE)") == Counter(each.date() for each in CLOCKS)
    assert counts(session, "ISODOW(seen)") == Counter(each.isoweekday() for each in CLOCKS)
    months = Counter(each.date().replace(day=1) for each in CLOCKS)
    assert counts(session, "DATE_TRUNC('month', seen)") == months


def test_an_hour_of_local_time_is_one_group(session):
    where = "DATE_TRUNC('hour', seen) BETWEEN '2020-10-25 00:00:00' AND '2020-10-25 02:00:00'"
    wanted = Counter(
        each.replace(minute=0) for each in CLOCKS if each.month == 10 and each.hour < 3
    )
    wanted = {hour: count for hour, count in wanted.items() if hour.day == 25}
    assert counts(session, "DATE_TRUNC('hour', seen)", where) == wanted
    text = (
        f"SELECT DATE_TRUNC('hour', seen) AS k, COUNT(*) AS n FROM visits WHERE {where} GROUP BY k"
    )
    later = asked(
        session,
        f"{text} HAVING k > TIMESTAMP '2020-10-25 00:00:00' AND k <> '2020-10-25 03:00' "
        "ORDER BY k DESC",
    )
    assert [row["k"].hour for row in later.to_dicts()] == [2, 1]
    assert later.columns[0]["type"] == "local time"
    assert later.to_arrow().schema.field("k").type == pa.timestamp("s")
    assert later.rows[0][0] == "2020-10-25 02:00:00"
    some = asked(session, f"{text} HAVING k IN (TIMESTAMP '2020-10-25 01:00:00', '2020-01-01')")
    assert len(some.rows) == 1


def test_a_moment_is_shown_with_its_offset(session):
    where = "seen BETWEEN '2020-10-25 00:19:59Z' AND '2020-10-25 00:20:01+00:00'"
    text = f"SELECT seen, COUNT(*) AS n FROM visits WHERE {where} GROUP BY seen"
    answer = asked(session, text)
    assert [row[0] for row in answer.rows] == [
        "2020-10-25 01:19:59+01:00",
        "2020-10-25 01:20:00+01:00",
        "2020-10-25 01:20:01+01:00",
    ]
    assert answer.columns[0]["type"] == "timestamp"
    first = answer.to_dicts()[0]["seen"]
    assert first == datetime.datetime(2020, 10, 25, 0, 19, 59, tzinfo=datetime.UTC)
    stored = answer.to_arrow()
    assert stored.schema.field("seen").type == pa.timestamp("s", "UTC")
    assert stored["seen"][0].as_py() == first
    assert "2020-10-25 01:19:59+01:00" in str(answer)


def test_what_cannot_be_read_is_missing_and_what_is_outside_is_clipped(session):
    text = "SELECT COUNT(*) AS n, COUNT(seen) AS m FROM visits WHERE seen IS NULL"
    assert asked(session, text).rows == [[4, 0]]
    text = "SELECT COUNT(*) FROM visits WHERE seen = TIMESTAMP '2020-03-01 00:00:00'"
    assert asked(session, text).rows == [[1]]
    assert any(
        "seen is compared as declared: clipped" in line for line in asked(session, text).bias
    )
    text = "SELECT AVG(EXTRACT(EPOCH FROM seen)) FROM visits"
    assert (
        "[2020-03-01 00:00:00+00:00, 2020-11-30 23:59:59+00:00]"
        in session.preview(text, epsilon=1).explain()
    )


def test_a_datetime_is_a_parameter(session):
    after = sum(clock > datetime.datetime(2020, 10, 25, 1) for clock in CLOCKS)  # noqa: DTZ001
    for value in (
        datetime.datetime(2020, 10, 25, 1),  # noqa: DTZ001
        datetime.datetime(2020, 10, 25, 0, tzinfo=datetime.UTC),
    ):
        text = "SELECT COUNT(*) FROM visits WHERE seen > $1"
        (row,) = asked(session, text, parameters=[value]).rows
        utc = datetime.datetime(2020, 10, 25, tzinfo=datetime.UTC).timestamp()
        assert row == [sum(second > utc for second in SECONDS)]
    assert after < row[0] + 3
    with pytest.raises(InvalidNumber, match="datetime"):
        asked(session, "SELECT COUNT(*) FROM visits WHERE seen > $1", parameters=[object()])


def test_a_frame_compares_with_a_datetime(session):
    late = datetime.datetime(2020, 10, 1)  # noqa: DTZ001
    question = session.table("visits").where(sf.col("seen") > late).agg(n=sf.count())
    assert "TIMESTAMP '2020-10-01 00:00:00'" in question.sql
    (row,) = question.query(epsilon=EXACTLY).rows
    assert row == [sum(clock > late for clock in CLOCKS)]


def test_the_first_visit_of_a_person_is_a_timestamp(session):
    inner = "SELECT person, MIN(seen) AS first, MAX(seen) - MIN(seen) AS length FROM visits GROUP BY person"
    text = f"SELECT COUNT(*) FROM ({inner}) WHERE HOUR(first) = 1 AND length = 0"
    assert asked(session, text).rows == [[sum(clock.hour == 1 for clock in CLOCKS)]]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("MEDIAN(seen)", "CAST(seen AS DATE)"),
        ("SUM(seen)", "EXTRACT(EPOCH FROM seen)"),
        ("COUNT_IF(seen::VARCHAR = 'x')", "DATE_TRUNC"),
        ("COUNT_IF(seen::TIME > '10:00')", "HOUR(column)"),
        ("COUNT_IF(seen + INTERVAL 1 DAY > '2020-05-01')", "24 HOUR"),
        ("COUNT_IF(TIMESTAMP '2020-05-01 10:00:00' + INTERVAL 1 HOUR < seen)", "the later time"),
        ("COUNT_IF(EXTRACT(MILLISECOND FROM seen) = 0)", "HOUR, MINUTE, SECOND"),
        ("COUNT_IF(seen > 'tomorrow')", "TIMESTAMP '2019-12-31 18:30:00'"),
        ("COUNT_IF(seen > '2020-03-29 01:30:00')", "its offset"),
        ("COUNT_IF(seen = 3)", "TIMESTAMP '2019-12-31 18:30:00'"),
        ("COUNT_IF(seen AT TIME ZONE 'UTC' > '2020-05-01')", "EXTRACT"),
    ],
)
def test_what_is_not_supported_is_refused_and_says_what_to_do(session, text, words):
    with pytest.raises(UnsupportedSql) as refusal:
        session.preview(f"SELECT {text} FROM visits", epsilon=1)
    assert words in str(refusal.value)


def test_the_owner_sees_how_times_are_written(session):
    facts = session.check_data()
    assert "99/99/9999" in str(facts) or "dd/mm/yyyy" in str(facts)
    assert "YYYY-MM-DD HH:MM:SS" in str(facts)


@pytest.mark.parametrize("form", ["text", "written", "date32", "pandas"])
def test_a_column_of_dates_alone_has_times(form, tmp_path):
    """100 rows of one day under a declared time: all are at its midnight, in the zone."""
    day, zone = datetime.date(2024, 7, 1), "Asia/Tokyo"
    cells = {"text": str(day), "written": f"{day:%d/%m/%Y}"}.get(form, day)
    pattern = "%d/%m/%Y %H:%M" if form == "written" else None
    frame = pa.table({"t": [cells] * 100})
    source = frame.to_pandas() if form == "pandas" else frame
    kind = sf.Timestamp("2024-01-01", "2024-12-31", zone=zone, format=pattern)
    with sf.connect(
        {"t": sf.Table(source, columns={"t": kind})},
        dataset="days",
        budget=sf.Budget(10**6),
        ledger=tmp_path / "ledger.db",
    ) as opened:
        text = "SELECT COUNT(t) AS n, COUNT_IF(t = '2024-06-30 15:00:00Z') AS m FROM t"
        assert asked(opened, text).rows == [[100, 100]]
