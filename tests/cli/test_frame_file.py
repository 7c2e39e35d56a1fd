# SPDX-License-Identifier: Apache-2.0
"""Values of files as the columns of a model read them."""

import re
from fractions import Fraction

import pyarrow as pa
import pytest

from sfumato.cli.frame_file import (
    read_rows,
    require_columns,
    require_rows_file,
    unread,
    with_plain_numbers,
    write_rows,
)
from sfumato.errors import UnknownName, WrongUse
from sfumato.learning.frames import FrameColumn, codes_of
from sfumato.metadata.file_text import Numerals
from sfumato.metadata.table import Table
from sfumato.plan.rows import MISSING

COLUMNS = (
    FrameColumn("age", 0),
    FrameColumn("code", 0, ("01", "2")),
    FrameColumn("smoker", 0, ("False", "True")),
    FrameColumn("born", 0, is_date=True),
)


def test_strings_are_read_as_the_columns_say(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("age;code;smoker;born\n40;01;true;1970-01-02\nN;1;FALSE;soon\n;;;\n")
    rows = read_rows(str(path), Table(path, delimiter=";"))
    codes = [each.tolist() for each in codes_of(rows, COLUMNS)]
    assert codes == [
        [40, MISSING, MISSING],
        [0, MISSING, MISSING],
        [1, 0, MISSING],
        [1, MISSING, MISSING],
    ]
    assert unread(rows, COLUMNS) == [
        f"note: 1 of 3 values of {name!r} are {said}"
        for name in ("age", "code", "smoker", "born")
        for said in ("no value that the model knows, and count as missing", "missing")
        if (name, said) != ("smoker", "no value that the model knows, and count as missing")
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "'rows.csv' is empty"),
        ("a,b\n1,2\nsecret\n", r"cannot be read \(.*Expected 2 columns, got 1\)"),
        ("a,b\nK\xf6ln,2\n", r"cannot be read .*CSV in UTF-8"),
    ],
)
def test_a_file_that_cannot_be_read_is_told_why(tmp_path, monkeypatch, content, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text(content, encoding="latin-1")
    with pytest.raises(WrongUse) as refusal:
        read_rows("rows.csv")
    text = str(refusal.value)
    assert re.search(message, text, re.DOTALL) and "secret" not in text


def test_values_with_a_type_stay(tmp_path):
    rows = pa.table({"age": [1, None], "smoker": [True, False], "p": [[1.0, 2.0], None]})
    columns = (
        FrameColumn("age", 0),
        COLUMNS[2],
        FrameColumn("p", 0, step=Fraction(1), length=2),
    )
    write_rows(rows, str(tmp_path / "rows.parquet"))
    back = read_rows(str(tmp_path / "rows.parquet"))
    assert [each.tolist() for each in codes_of(back, columns)] == [
        *([1, MISSING], [1, 0]),
        *([1, MISSING], [2, MISSING]),
    ]
    assert unread(back, columns) == [
        f"note: 1 of 2 values of {name!r} are missing" for name in ("age", "p")
    ]
    write_rows(rows.drop_columns(["p"]), str(tmp_path / "rows.csv"))
    assert read_rows(str(tmp_path / "rows.csv"))["smoker"].to_pylist() == ["true", "false"]


def test_what_is_no_file_of_rows_is_refused(tmp_path):
    (tmp_path / "bad.parquet").write_text("no")
    (tmp_path / "rows.csv").write_text("p\n[1]\n")
    for path in ("nothing.csv", "bad.parquet", "rows.txt"):
        with pytest.raises(WrongUse):
            read_rows(str(tmp_path / path))
    with pytest.raises(WrongUse, match="Lists"):
        require_columns(read_rows(str(tmp_path / "rows.csv")), [FrameColumn("p", 0, length=1)])
    with pytest.raises(UnknownName):
        require_columns(read_rows(str(tmp_path / "rows.csv")), COLUMNS)
    with pytest.raises(WrongUse, match="written"):
        write_rows(pa.table({"a": [1]}), str(tmp_path / "no" / "folder.csv"))
    require_rows_file(None)
    with pytest.raises(WrongUse, match="no file of rows"):
        require_rows_file("out.json")


def test_a_csv_file_is_read_as_it_is_declared(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes("Umfrage 2024\nAlter;Ort\n40;Köln\n".encode("cp1252"))
    declared = Table(path, delimiter=";", encoding="cp1252", header_row=2)
    assert read_rows(str(path), declared).to_pylist() == [{"Alter": "40", "Ort": "Köln"}]


def test_one_column_with_semicolons_is_told_the_delimiter(tmp_path):
    (tmp_path / "rows.csv").write_text("age;code;smoker;born\n40;01;true;1970-01-02\n")
    with pytest.raises(UnknownName, match="--delimiter ';'"):
        require_columns(read_rows(str(tmp_path / "rows.csv")), COLUMNS)


def test_numbers_of_another_form_are_plain_and_others_are_none():
    written = ["1.234,5", "-0,5", "1.5", "N", "-9", "", None]
    rows = pa.table({"pay": written, "code": written, "age": range(7)})
    read = with_plain_numbers(rows, Numerals(",", "."), {"pay": ("-9",), "age": ()})
    codes = FrameColumn("pay", 0, step=Fraction(1, 2), missing=("-9",)).codes
    assert codes(read["pay"].to_pylist()).tolist() == [2469, -1] + [MISSING] * 5
    assert read["code"] == rows["code"] and read["age"] == rows["age"]
