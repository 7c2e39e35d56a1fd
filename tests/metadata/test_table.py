# SPDX-License-Identifier: Apache-2.0
"""A table is checked when it is declared, and finds a column whatever its case."""

import copy
import os
import pickle
import re
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import InvalidDeclaration, WrongUse
from sfumato.metadata import Category, Column, Integer, Table, Text
from sfumato.metadata.file_text import PLAIN, Numerals
from sfumato.privacy import Unit

AGE = Integer(0, 125)


@given(st.permutations(["Age", "age", "AGE", "aGe"]))
@settings(deadline=None)
def test_a_column_is_found_whatever_the_case(names):
    table = Table("people.csv", columns={names[0]: AGE})
    assert all(table.column(name) == Column(names[0], AGE) for name in names)


def test_a_column_that_is_not_declared_does_not_exist():
    assert Table("people.csv", columns={"age": AGE}).column("agee") is None
    assert Table("people.csv").column("age") is None


def test_columns_that_differ_only_in_case_are_refused():
    with pytest.raises(InvalidDeclaration, match="case"):
        Table("people.csv", columns={"age": AGE, "Age": Text()})


@pytest.mark.parametrize(
    "kind", [int, "Integer", None, (0, 9), Integer, Column("age", AGE)], ids=repr
)
def test_a_column_of_no_type_is_refused_by_name(kind):
    with pytest.raises(InvalidDeclaration, match="'age'") as caught:
        Table("people.csv", columns={"age": kind})
    assert "sf.Integer" in caught.value.allowed


@pytest.mark.parametrize("unit", ["person_id", 1, ("person_id",), Unit])
def test_a_unit_that_is_none_is_refused(unit):
    with pytest.raises(InvalidDeclaration, match="unit="):
        Table("people.csv", unit=unit)


@pytest.mark.parametrize("size", [0, -1, True, 1.0, "100", float("nan")])
def test_a_size_that_is_no_number_of_rows_is_refused(size):
    with pytest.raises(InvalidDeclaration, match="size="):
        Table("people.csv", size=size)


def test_a_table_keeps_what_it_was_given():
    unit = Unit("person_id", max_rows=3)
    table = Table("people.csv", unit=unit, columns={"age": AGE, "sex": Category("F", "M")}, size=1)
    assert (table.source, table.unit, table.size) == ("people.csv", unit, 1)
    assert list(table.columns) == ["age", "sex"]


def test_a_declaration_does_not_change_with_the_mapping_it_came_from():
    columns = {"age": AGE}
    table = Table("people.csv", columns=columns)
    columns["secret"] = Text()
    assert table.column("secret") is None


@pytest.mark.parametrize("public", [1, "yes", None, "false"])
def test_public_is_yes_or_no(public):
    with pytest.raises(InvalidDeclaration, match="public="):
        Table("drugs.csv", public=public)


def test_a_table_is_about_units_or_about_nobody():
    assert Table("drugs.csv", public=True).unit is None
    assert not Table("drugs.csv").public
    with pytest.raises(InvalidDeclaration, match="public table with a unit"):
        Table("drugs.csv", unit=Unit("drug"), public=True)


def test_a_table_says_whom_it_is_about():
    unit = Unit("visit_id", via="visits.patient_id", max_rows=3)
    assert [Table("t.csv", **each).about for each in ({}, {"public": True}, {"unit": unit})] == [
        "each row is one unit", "nobody: the table is public", repr(unit),
    ]  # fmt: skip


def test_a_place_is_the_same_whatever_path_leads_there(tmp_path, monkeypatch):
    (tmp_path / "people.csv").touch()
    (tmp_path / "link.csv").symlink_to(tmp_path / "people.csv")
    monkeypatch.chdir(tmp_path)
    paths = (
        "people.csv",
        Path("people.csv"),
        "./people.csv",
        tmp_path / "people.csv",
        "link.csv",
        "../" + tmp_path.name + "/people.csv",
    )
    assert {Table(each).place for each in paths} == {
        f"file {os.path.realpath(tmp_path)}/people.csv"
    }
    folders = ("data", "data/", "data/*.parquet", "data/**/*.parquet", "data/**")
    assert len({Table(each).place for each in folders}) == 1
    assert (
        len({Table(each).place for each in ("a.csv", "b.csv", "data/2024-*.parquet", "data/*.csv")})
        == 4
    )
    assert Table("x.duckdb", table="a").place != Table("x.duckdb", table="b").place


def test_the_place_of_a_table_on_a_server_has_no_password():
    servers = [
        "postgresql://ada:secret@db.example/clinic",
        "postgres://bob@DB.example:5432/clinic?sslmode=require",
        "postgresql://db.example/clinic?port=5432",
    ]
    assert {Table(each, table=name).place for each in servers for name in ("t", "public.t")} == {
        "postgresql://db.example:5432/clinic t"
    }
    assert Table("postgresql://db.example:5433/clinic", table="t").place.startswith(
        "postgresql://db.example:5433/"
    )
    assert (
        Table("postgresql:///clinic?host=/tmp/a", table="t").place
        == "postgresql:///tmp/a:5432/clinic t"
    )


def test_two_names_of_a_server_are_one_place():
    servers = [
        "mysql://ada:secret@db.example/clinic",
        "mariadb://bob@DB.example:3306/clinic?ssl_disabled=true",
        "mysql://db.example/clinic?port=3306",
    ]
    assert {Table(each, table="t").place for each in servers} == {
        "mysql://db.example:3306/clinic t"
    }
    socket = Table("mysql:///clinic?unix_socket=/run/a&ssl_disabled=true", table="t")
    assert socket.place == "mysql:///run/a/clinic t"


def test_an_object_of_a_store_is_one_place():
    table = Table("s3://clinic/people.CSV?region=x", columns={"age": AGE}, delimiter=";")
    assert table.place == Table("s3://clinic/people.CSV").place == "s3://clinic/people.CSV"
    assert repr(table).startswith("Table(s3://clinic/people.CSV, columns=")
    assert repr(table.described).startswith("Table(<server>, ")
    with pytest.raises(WrongUse, match="not pickled"):
        pickle.dumps(table)
    with pytest.raises(InvalidDeclaration, match="no CSV file"):
        Table("s3://clinic/people.parquet", delimiter=";")


def test_what_is_in_memory_has_no_place():
    assert Table(object()).place == ""


# --- what a table shows ------------------------------------------------------------------------

FRAME = pd.DataFrame({"age": [30], "ssn": ["078-05"]})
URL = "postgresql://ada:secret@db.example/clinic"
SHOWN = [
    (Table(FRAME, columns={"age": AGE}), "Table(<DataFrame>, columns={'age': Integer(0, 125)})"),
    (
        Table("people.csv", Unit("who"), {"age": AGE}, size=9),
        "Table('people.csv', unit=Unit('who'), columns={'age': Integer(0, 125)}, size=9)",
    ),
    (Table("days.csv", public=True), "Table('days.csv', columns={}, public=True)"),
    (
        Table(URL, table="people"),
        "Table(postgresql://db.example/clinic, columns={}, table='people')",
    ),
]


@pytest.mark.parametrize(("table", "text"), SHOWN, ids=[text for _, text in SHOWN])
def test_a_table_shows_nothing_of_its_source_that_is_not_declared(table, text):
    assert repr(table) == str(table) == text
    assert repr(table.described).startswith("Table(<") and repr(table.described.described) == repr(
        table.described
    )
    described = table.described
    assert (described.columns, described.unit, described.size) == (
        table.columns,
        table.unit,
        table.size,
    )
    assert copy.copy(table) is copy.deepcopy(table) is table


@pytest.mark.parametrize("source", [FRAME, URL])
def test_rows_and_passwords_are_not_pickled(source):
    name = "people" if source is URL else None
    with pytest.raises(WrongUse, match="not pickled"):
        pickle.dumps(Table(source, columns={"age": AGE}, table=name))


def test_declarations_and_paths_are_pickled():
    for table in (
        Table("people.csv", Unit("who"), {"age": AGE}),
        Table(FRAME, columns={"age": AGE}).described,
    ):
        assert pickle.loads(pickle.dumps(table)) == table


@pytest.mark.parametrize(
    "address",
    [
        "POSTGRESQL://db/clinic",
        " postgres://db/clinic",
        "postgres://ada:a/b@db/clinic",
        Path("postgresql://ada:secret@db/clinic"),
        "host=db dbname=postgres password=secret",
    ],
)
def test_an_address_that_is_not_written_as_one_is_refused(address):
    with pytest.raises(InvalidDeclaration, match="not written as one") as refused:
        Table(address, table="people")
    assert "%40" in refused.value.allowed
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "address",
    [
        "https://ada:secret@host/people.csv?token=secret",
        "HTTP://ada:secret@host/people.csv",
        "ftp://ada:secr://et@host/people.csv",
        "oracle+thin://ada:secret@host/people",
        "file:///home/secret.csv",
        " gs://secret/people.parquet",
        "https:/ada:secret@host/people.csv",
        Path("https://ada:secret@host/people.csv"),
    ],
)
def test_an_address_that_is_not_supported_is_refused_by_its_scheme(address):
    scheme = str(address).strip().lower().partition(":")[0]
    with pytest.raises(InvalidDeclaration, match=re.escape(f"'{scheme}://'")) as refused:
        Table(address, columns={"age": AGE})
    text = str(refused.value)
    assert all(word not in text for word in ("ada", "secr", "host", "people", "home"))
    assert "postgresql://" in text


@pytest.mark.parametrize("address", ["s3://clinic", "s3://ada:secret@clinic/people.parquet"])
def test_an_address_of_an_object_that_is_badly_written_says_how(address):
    with pytest.raises(InvalidDeclaration, match="not written as one") as refused:
        Table(address)
    assert "s3://bucket/key.parquet" in refused.value.allowed
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("address", ["MySQL://db/clinic", "mariadb://ada:a/b@db/clinic"])
def test_an_address_of_mysql_that_is_badly_written_says_how(address):
    with pytest.raises(InvalidDeclaration, match="not written as one") as refused:
        Table(address, table="people")
    assert "mysql://user@host/database" in refused.value.allowed


@pytest.mark.parametrize(
    "address", ["sqlite://people.db", "sqlite:///people.db?mode=rw", Path("sqlite:///people.db")]
)
def test_an_address_of_an_sqlite_file_that_is_badly_written_says_how(address):
    with pytest.raises(InvalidDeclaration, match="not written as one") as refused:
        Table(address, table="people")
    assert "sqlite:////srv/people.db" in refused.value.allowed


def test_an_address_of_an_sqlite_file_is_its_path(tmp_path):
    table = Table(f"sqlite:///{tmp_path}/people.db", table="people")
    assert table == Table(f"{tmp_path}/people.db", table="people")
    assert table.place == f"file {tmp_path}/people.db people"
    with pytest.raises(InvalidDeclaration, match="A database without the name of a table"):
        Table("sqlite:///people.db")


@pytest.mark.parametrize("path", ["C:/people.csv", "a:b/people.csv", "token=a/people.csv", "a:"])
def test_a_path_with_a_colon_is_no_address(path):
    assert Table(path).source == path


@pytest.mark.parametrize("delimiter", ["", ";;", "a", '"', " ", 1, b";"])
def test_a_delimiter_is_one_of_four(delimiter):
    with pytest.raises(InvalidDeclaration, match="delimiter="):
        Table("people.csv", columns={"age": AGE}, delimiter=delimiter)


@pytest.mark.parametrize("source", ["people.parquet", "people", object()])
def test_a_delimiter_is_of_a_csv_file(source):
    with pytest.raises(InvalidDeclaration, match="no CSV file"):
        Table(source, columns={"age": AGE}, delimiter=";")


def test_a_delimiter_is_shown_and_is_no_part_of_what_a_table_means():
    table = Table("people.csv", columns={"age": AGE}, delimiter=";")
    assert "delimiter=';'" in repr(table)
    assert "delimiter" not in repr(Table("people.csv", columns={"age": AGE}))
    assert table.described == Table("people.csv", columns={"age": AGE}).described
    assert pickle.loads(pickle.dumps(table)) == table


@pytest.mark.parametrize(
    ("spelling", "name"),
    [("UTF8", "utf-8"), ("utf-8-sig", "utf-8"), ("Windows-1252", "cp1252"), ("sjis", "shift_jis")],
)
def test_an_encoding_has_one_name_whatever_its_spelling(spelling: str, name: str) -> None:
    assert Table("a.csv", encoding=spelling) == Table("a.csv", encoding=name)
    assert Table("a.csv", encoding=spelling).encoding == name


READING = {"encoding": "gbk", "decimal": ",", "thousands": "."}


@pytest.mark.parametrize("name", READING)
def test_how_text_is_written_is_declared_of_a_csv_file(name):
    for source in ("people.parquet", "people", object(), "postgresql://db/clinic"):
        with pytest.raises(InvalidDeclaration, match=f"{name}= of a source that is no CSV file"):
            table = "people" if str(source).startswith("postgresql") else None
            Table(source, table=table, **{name: " " if name == "thousands" else READING[name]})
    with pytest.raises(InvalidDeclaration, match=f"{name}='x'"):
        Table("people.csv", **{name: "x"})


def test_how_text_is_written_is_part_of_what_a_table_means():
    table = Table("people.CSV", columns={"age": AGE}, delimiter=";", **READING)
    assert "encoding='gbk', decimal=',', thousands='.'" in repr(table)
    assert table.reading == table.described.reading == READING
    assert Table("people.csv", delimiter=";").reading == {}
    assert table.numerals == table.described.numerals == Numerals(",", ".")
    assert Table("people.csv").numerals == PLAIN
    assert pickle.loads(pickle.dumps(table)) == table


@pytest.mark.parametrize("rows", [-1, 1.0, "1", True, 2**20])
def test_skipped_rows_are_those_above_the_header(rows):
    for source in ("people.csv", "people.xlsx"):
        for above in (0, 2):
            table = Table(source, skip_rows=above)
            assert table == Table(source, header_row=above + 1)
            assert replace(table, size=9).header_row == above + 1
            assert pickle.loads(pickle.dumps(table)) == table
        with pytest.raises(InvalidDeclaration, match="_row"):
            Table(source, skip_rows=rows)
        with pytest.raises(InvalidDeclaration, match="skip_rows= and header_row="):
            Table(source, skip_rows=2, header_row=3)
    with pytest.raises(InvalidDeclaration, match="header_row= of a source"):
        Table("people.parquet", skip_rows=2)


@pytest.mark.parametrize("options", [{"sheet": "Data"}, {"header_row": 3}])
def test_a_sheet_is_of_an_excel_file(options):
    (name,) = options
    kinds = "Excel" if name == "sheet" else "CSV or Excel"
    for source in ("people.parquet", "people.xls", object()):
        with pytest.raises(
            InvalidDeclaration, match=f"{name}= of a source that is no {kinds} file"
        ):
            Table(source, **options)
    table = Table("people.XLSX", **options)
    assert table.reading == table.described.reading == {name: str(options[name])}
    assert Table("people.xlsx").reading == {}
    # the sheets of a workbook are one place: another one of them is no other source
    assert table.place == Table("people.XLSX").place


def test_a_table_of_an_excel_file_is_its_sheet():
    with pytest.raises(InvalidDeclaration, match="table='Data' of an Excel file") as refused:
        Table("people.xlsx", table="Data")
    assert "sheet=" in refused.value.remedy
    with pytest.raises(InvalidDeclaration, match="encoding= of a source that is no CSV file"):
        Table("people.xlsx", encoding="gbk")
