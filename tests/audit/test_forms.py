# SPDX-License-Identifier: Apache-2.0
"""Every physical form of a table gives the integers of the reference engine, or is refused."""

import datetime

import psycopg
import pyarrow as pa
import pymysql
import pytest

import sfumato as sf
from sfumato.audit.forms import FORMS, Form, _days
from sfumato.audit.made_up import World
from sfumato.errors import InvalidDeclaration, InvalidSource
from sfumato.metadata.dataset import Dataset
from sfumato.query.price import price
from sfumato.query.witness import MadeUp, questions_of, reference_integers, sql_task

COLUMNS = {
    "w": sf.Category("a", "A", "b", "B", "\u00e9", "E\u0301"),
    "n": sf.Integer(0, 10),
    "x": sf.Real(0, 1, step="0.25"),
    "d": sf.Date("2000-01-01", "2000-12-31"),
    "f": sf.Boolean(),
    "t": sf.Timestamp("2020-01-01", "2020-12-31"),
    "m": sf.Timestamp("2020-01-01", "2020-12-31", zone="UTC", step=86_400),
    "z": sf.Text(),
}
STATEMENTS = (
    "SELECT COUNT(*) AS n FROM people",
    "SELECT w, COUNT(*) AS n, SUM(n) AS s FROM people GROUP BY w",
    "SELECT COUNT(w) AS n, COUNT(DISTINCT who) AS u, AVG(x) AS m FROM people",
    "SELECT COUNT(*) AS n FROM people WHERE w = 'a' OR w LIKE 'B%' OR z = 'x'",
    "SELECT MONTH(d) AS m, COUNT(*) AS n FROM people WHERE HOUR(t) < 12 GROUP BY MONTH(d)",
    "SELECT f, MEDIAN(n) AS m FROM people WHERE DAY(m) < 2 GROUP BY f",
)
UNIT = sf.Unit("who", max_rows=2, max_groups=2)
DATASET = Dataset("made-up", {"people": sf.Table("none.csv", columns=COLUMNS, unit=UNIT)})
# Refused when they are opened; all others give the integers.
REFUSED = {
    "parquet, times in s",
    "parquet, times in ms",
    "folder with a symbolic link",
    "duckdb, NOCASE unit",
    "duckdb, NOACCENT unit",
    "duckdb, NFC unit",
    "duckdb view",
    "duckdb, generated columns",
}


@pytest.fixture(scope="module")
def made():
    """Rows, the plans of the statements, and their integers by the reference engine."""
    frame = World(DATASET, 1).rows(24)["people"]
    plans = []
    for text in STATEMENTS:
        plans.extend(questions_of(sql_task(text, DATASET, price(epsilon=1)), DATASET))
    return frame, plans, reference_integers(plans, {"people": frame.to_pylist()})


def integers(form, made, folder):
    frame, plans, _ = made
    table = form.declare(frame, DATASET.tables["people"], folder)
    with MadeUp([{"people": table}]) as worlds:
        return worlds.integers(plans)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_a_form_gives_the_integers_of_the_reference_or_is_refused(form, made, tmp_path):
    if form.name in REFUSED:
        with pytest.raises((InvalidDeclaration, InvalidSource)):
            integers(form, made, tmp_path)
    else:
        assert integers(form, made, tmp_path) == made[2]


def test_forms_have_different_names():
    names = [form.name for form in FORMS]
    assert len(set(names)) == len(names) >= 30 and set(names) > REFUSED


def lowered(frame, table, folder):
    """What a source would give that compares texts by a collation."""
    texts = [None if text is None else text.lower() for text in frame["w"].to_pylist()]
    return frame.set_column(frame.column_names.index("w"), "w", [texts]), {}


def without_last(frame, table, folder):
    """What a folder would give whose linked part is left out."""
    return frame.slice(0, len(frame) - 1), {}


def a_day_later(frame, table, folder):
    """What a source would give that reads a date alone as the end of its day."""
    later = [None if day is None else day + datetime.timedelta(1) for day in frame["m"].to_pylist()]
    return frame.set_column(frame.column_names.index("m"), "m", [later]), {}


def test_midnights_are_written_as_days(made):
    days = _days(made[0]).schema
    assert days.field("m").type == pa.date32() and days.field("t").type == pa.timestamp("us")


@pytest.mark.parametrize("write", [lowered, without_last, a_day_later])
def test_mutants_of_a_source(write, made, tmp_path):
    assert integers(Form("mutant", write), made, tmp_path) != made[2]


KINDS = {pa.int64(): "BIGINT", pa.float64(): "DOUBLE PRECISION", pa.date32(): "DATE"}
KINDS |= {pa.bool_(): "BOOLEAN", pa.timestamp("us"): "TIMESTAMP"}


def created(frame, texts, units, kinds=KINDS):
    """The columns of a table of a server, with a type of its texts and one of its units."""
    kinds = kinds | {pa.string(): texts}
    return ", ".join(
        f"{c.name} {units if c.name == 'who' else kinds[c.type]}" for c in frame.schema
    )


def filled(cursor, frame, name="t"):
    """Inserts all rows of a frame into a table of a server."""
    places = ", ".join(["%s"] * frame.num_columns)
    columns = [column.to_pylist() for column in frame.columns]
    rows = list(zip(*columns, strict=True))
    cursor.executemany(f"INSERT INTO {name} VALUES ({places})", rows)


WITHOUT_CASE = (
    "CREATE COLLATION without_case (provider = icu, locale = 'und-u-ks-level2', "
    "deterministic = false)"
)
IN_POSTGRES = {
    # the type of texts and of units, what follows the columns, what comes after, the table to read
    "plain": ("text", "text", "", (), "t"),
    "collated values": ("text COLLATE without_case", "text", "", (), "t"),
    "collated unit": ("text", "text COLLATE without_case", "", (), "t"),
    "partitions": (
        "text",
        "text",
        "PARTITION BY HASH (n)",
        tuple(
            f"CREATE TABLE t{part} PARTITION OF t FOR VALUES WITH (modulus 2, remainder {part})"
            for part in range(2)
        ),
        "t",
    ),
    "view": ("text", "text", "", ("CREATE VIEW v AS SELECT * FROM t",), "v"),
}


@pytest.mark.parametrize("name", IN_POSTGRES)
def test_a_form_of_postgres_gives_the_integers_or_is_refused(name, made, tmp_path, database):
    texts, units, after, more, read = IN_POSTGRES[name]

    def write(frame, table, folder):
        with psycopg.connect(database, autocommit=True) as connection:
            for statement in ("DROP SCHEMA public CASCADE", "CREATE SCHEMA public", WITHOUT_CASE):
                connection.execute(statement)
            connection.execute(f"CREATE TABLE t ({created(frame, texts, units)}) {after}")
            for statement in more:
                connection.execute(statement)
            filled(connection.cursor(), frame)
        return database, {"table": read}

    if name == "view":
        with pytest.raises((InvalidDeclaration, InvalidSource)):
            integers(Form(name, write), made, tmp_path)
    else:
        assert integers(Form(name, write), made, tmp_path) == made[2]


EXACT = "varchar(99) COLLATE utf8mb4_nopad_bin"
IN_MYSQL = {
    "plain": (EXACT, EXACT, "", (), "t"),
    "collated values": ("varchar(99) COLLATE utf8mb4_general_ci", EXACT, "", (), "t"),
    "collated unit": (EXACT, "varchar(99) COLLATE utf8mb4_general_ci", "", (), "t"),
    "partitions": (EXACT, EXACT, "PARTITION BY HASH (n) PARTITIONS 3", (), "t"),
    "view": (EXACT, EXACT, "", ("CREATE VIEW v AS SELECT * FROM t",), "v"),
}


@pytest.mark.parametrize("name", IN_MYSQL)
def test_a_form_of_mysql_gives_the_integers_or_is_refused(name, made, tmp_path, mariadb, clinic):
    texts, units, after, more, read = IN_MYSQL[name]
    kinds = KINDS | {pa.timestamp("us"): "DATETIME(6)"}

    def write(frame, table, folder):
        connection = pymysql.connect(
            unix_socket=str(mariadb.socket), user="root", database="clinic", autocommit=True
        )
        with connection as root:
            cursor = root.cursor()
            cursor.execute(f"CREATE TABLE t ({created(frame, texts, units, kinds)}) {after}")
            for statement in more:
                cursor.execute(statement)
            filled(cursor, frame)
        return clinic, {"table": read}

    if name == "view":
        with pytest.raises((InvalidDeclaration, InvalidSource)):
            integers(Form(name, write), made, tmp_path)
    else:
        assert integers(Form(name, write), made, tmp_path) == made[2]
