# SPDX-License-Identifier: Apache-2.0
"""Values of files as the columns of a model read them."""

import datetime
from fractions import Fraction

import pyarrow as pa
import pytest

from sfumato.cli.frame_file import frame_of, read_rows, require_rows_file, unread, write_rows
from sfumato.errors import UnknownName, WrongUse
from sfumato.learning.frames import FrameColumn
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
    rows = read_rows(str(path), ";")
    frame = frame_of(rows, COLUMNS)
    assert frame == {
        "age": [40.0, None, None],
        "code": ["01", "1", ""],
        "smoker": ["True", "False", ""],
        "born": [datetime.date(1970, 1, 2), None, None],
    }
    codes = {each.name: each.codes(frame[each.name]).tolist() for each in COLUMNS}
    assert codes["code"] == [0, MISSING, MISSING] and codes["smoker"] == [1, 0, MISSING]
    assert [note.split("'")[1] for note in unread(rows, COLUMNS)] == ["age", "code", "born"]


def test_values_with_a_type_stay(tmp_path):
    rows = pa.table({"age": [1, None], "smoker": [True, False], "p": [[1.0, 2.0], None]})
    columns = (
        FrameColumn("age", 0),
        COLUMNS[2],
        FrameColumn("p", 0, step=Fraction(1), length=2),
    )
    write_rows(rows, str(tmp_path / "rows.parquet"))
    back = read_rows(str(tmp_path / "rows.parquet"))
    assert frame_of(back, columns) == rows.to_pydict() and unread(back, columns) == []
    write_rows(rows.drop_columns(["p"]), str(tmp_path / "rows.csv"))
    assert read_rows(str(tmp_path / "rows.csv"))["smoker"].to_pylist() == ["true", "false"]


def test_what_is_no_file_of_rows_is_refused(tmp_path):
    (tmp_path / "bad.parquet").write_text("no")
    (tmp_path / "rows.csv").write_text("p\n[1]\n")
    for path in ("nothing.csv", "bad.parquet", "rows.txt"):
        with pytest.raises(WrongUse):
            read_rows(str(tmp_path / path))
    with pytest.raises(WrongUse, match="Lists"):
        frame_of(read_rows(str(tmp_path / "rows.csv")), [FrameColumn("p", 0, length=1)])
    with pytest.raises(UnknownName):
        frame_of(read_rows(str(tmp_path / "rows.csv")), COLUMNS)
    with pytest.raises(WrongUse, match="written"):
        write_rows(pa.table({"a": [1]}), str(tmp_path / "no" / "folder.csv"))
    require_rows_file(None)
    with pytest.raises(WrongUse, match="no file of rows"):
        require_rows_file("out.json")
