# SPDX-License-Identifier: Apache-2.0
"""FROM items of files: what is read is what is declared, and nothing else is told.

See also test_duckdb.py.
"""

import logging
import os
import shutil
from pathlib import Path

import duckdb
import pytest

from sfumato.engines import files
from sfumato.engines.files import from_file, marks, unreadable, utf8_copy
from sfumato.errors import InvalidSource


@pytest.fixture
def connection():
    with duckdb.connect() as opened:
        yield opened


def test_a_csv_is_read_as_text(connection, tmp_path):
    path = tmp_path / "it's.csv"
    path.write_bytes(b'a,"b c"\n1,NULL\n,\n')
    item = from_file(connection, "t", path)
    assert connection.execute(f"SELECT * FROM {item}").fetchall() == [("1", "NULL"), (None, None)]
    assert [row[:2] for row in connection.execute(f"DESCRIBE SELECT * FROM {item}").fetchall()] == [
        ("a", "VARCHAR"),
        ("b c", "VARCHAR"),
    ]


@pytest.mark.parametrize(
    ("written", "names"),
    [
        ('id,"age\nin years"\n1,30\n2,"4\n0"\n', ["id", "age\nin years"]),
        ('id,"age\r\nin ""years"""\r\n1,30\r\n2,"4\n0"\r\n', ["id", 'age\r\nin "years"']),
        ('"\n\nid","age"\n1,30\n2,"4\n0"\n', ["\n\nid", "age"]),
        ('id,age\r1,30\r2,"4\n0"\r', ["id", "age"]),
        ('id,"age\rin years"\r1,30\r2,"4\n0"', ["id", "age\rin years"]),
        ('id,ag\u2028e\n1,30\n2,"4\n0"\n', ["id", "ag\u2028e"]),
    ],
)
def test_names_end_where_their_record_does(connection, tmp_path, written, names):
    path = tmp_path / "data.csv"
    path.write_text(written, encoding="utf-8", newline="")
    rows = connection.execute(f"SELECT * FROM {from_file(connection, 't', path)}")
    assert [column[0] for column in rows.description] == names
    assert rows.fetchall() == [("1", "30"), ("2", "4\n0")]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize(
    "above", [["a title"], ["", ""], ["a, b, c", "it's, 5", ""], ["x" * 5000, ",,,", " "]]
)
def test_what_is_above_the_names_is_not_read(connection, tmp_path, above, mark, end):
    path = tmp_path / "data.csv"
    lines = [*above, '"id",age', "1,30", '2,"4,0"']
    path.write_text(mark + "".join(line + end for line in lines), encoding="utf-8", newline="")
    item = from_file(connection, "t", path, header_row=len(above) + 1)
    rows = connection.execute(f"SELECT * FROM {item}")
    assert [column[0] for column in rows.description] == ["id", "age"]
    assert rows.fetchall() == [("1", "30"), ("2", "4,0")]


@pytest.mark.parametrize("above", ['say "no"\n', '5" disks\n', "", 'x\r\ny "z"\r\n'])
def test_a_quote_above_the_names_or_no_such_line_is_refused(connection, tmp_path, above):
    # DuckDB would take what follows an open quote for part of that line, and read no row
    path = tmp_path / "data.csv"
    path.write_text(f"{above}id,age\n", encoding="utf-8", newline="")
    with pytest.raises(InvalidSource, match=r"line 3 of 'data.csv' does not name each column, or"):
        from_file(connection, "t", path, header_row=3)


@pytest.mark.parametrize("content", ["", "\n", " \r\n\r\n"])
def test_an_empty_file_is_named_empty(connection, tmp_path, content):
    path = tmp_path / "data.csv"
    path.write_text(content, encoding="utf-8", newline="")
    with pytest.raises(InvalidSource, match=r"'data.csv' is empty\.") as refusal:
        from_file(connection, "t", path)
    assert "header_row" not in str(refusal.value)


@pytest.mark.parametrize("head", ['id,"age\n', 'id,"age\n1,30\n2,"4"\n', 'i"d,age\n1,"30\n'])
def test_an_open_quote_makes_no_names_of_rows(connection, tmp_path, head):
    path = tmp_path / "data.csv"
    path.write_text(f"{head}canary,30\n", encoding="utf-8")
    with pytest.raises(InvalidSource) as refusal:
        from_file(connection, "t", path)
    assert "canary" not in str(refusal.value) and refusal.value.__context__ is None


def test_a_byte_order_mark_before_a_name_of_two_lines_is_read_without_it(connection, tmp_path):
    # DuckDB would read the second line of the name as a row
    path = tmp_path / "data.csv"
    path.write_bytes(b'\xef\xbb\xbf"a\nb",c\n1,2\n')
    with pytest.raises(InvalidSource, match="a byte order mark, and one of its names"):
        from_file(connection, "t", path)
    copy = utf8_copy("t", path, "utf-8", tmp_path)
    item = from_file(connection, "t", path, copy=copy)
    assert connection.execute(f"SELECT * FROM {item}").fetchall() == [("1", "2")]


@pytest.mark.parametrize("delimiter", [";", "|", "\t"])
def test_the_declared_delimiter_separates_and_a_comma_does_not(connection, tmp_path, delimiter):
    path = tmp_path / "data.csv"
    rows = [["a", "b c"], ["1,5", ""], [f'"x{delimiter}y"', "2"]]
    path.write_text("".join(delimiter.join(row) + "\n" for row in rows), encoding="utf-8")
    item = from_file(connection, "t", path, delimiter)
    found = connection.execute(f"SELECT * FROM {item}")
    assert [column[0] for column in found.description] == ["a", "b c"]
    assert found.fetchall() == [("1,5", None), (f"x{delimiter}y", "2")]
    for other in {",", ";", "|", "\t"} - {delimiter}:
        # one column, whose name has the delimiter in it: the lines do not fit together, or the
        # declared column is not there; with the right one the error would be gone
        assert delimiter in files._form("t", path, other).header[0]


@pytest.mark.parametrize("line", ["1", "1;2;3", '1;"2'])
def test_a_line_that_does_not_fit_is_refused_under_any_delimiter(connection, tmp_path, line):
    path = tmp_path / "data.csv"
    path.write_text(f"a;b\n1;2\n{line}\n", encoding="utf-8")
    with pytest.raises(InvalidSource, match="fields separated by ';'"):
        from_file(connection, "t", path, ";")


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("a,b\n1,2\n\n3,4\n\n", [("1", "2"), ("3", "4")]),
        ("a\n1\n\n2\n", [("1",), (None,), ("2",)]),
        ("a,b\n1,2,\n3,4,,\n5,\n", [("1", "2"), ("3", "4"), ("5", None)]),
        ("a\n1,\n", [("1",)]),
    ],
    ids=[
        "empty lines",
        "empty lines of one column",
        "commas at the end",
        "a comma after one column",
    ],
)
def test_empty_lines_and_ends(connection, tmp_path, text, rows):
    path = tmp_path / "data.csv"
    path.write_text(text)
    assert (
        connection.execute(f"SELECT * FROM {from_file(connection, 't', path)}").fetchall() == rows
    )


@pytest.mark.parametrize("text", ["", "\n", "\ufeff", "a,\n1,2\n"])
def test_a_first_line_that_names_no_column_says_what_to_do(connection, tmp_path, text):
    path = tmp_path / "data.csv"
    path.write_text(text)
    with pytest.raises(InvalidSource, match="names of the columns"):
        from_file(connection, "t", path)


@pytest.mark.parametrize("name", ["data[1].csv", "data*.parquet", "dat?.csv"])
def test_a_pattern_is_no_file(connection, tmp_path, name):
    (tmp_path / name).write_bytes(b"a\n1\n")
    with pytest.raises(InvalidSource, match="is a pattern"):
        from_file(connection, "t", tmp_path / name)


def test_a_file_that_was_not_checked_is_noticed(connection, tmp_path, monkeypatch):
    path = tmp_path / "data.csv"
    path.write_bytes(b'a,b\n1,"x\n2,y\n3,z\n')
    with pytest.raises(InvalidSource, match="not well-formed"):
        from_file(connection, "t", path)
    monkeypatch.setattr(files, "_is_well_formed", lambda *_: True)
    # the open quote has swallowed the lines behind it
    assert (
        len(connection.execute(f"SELECT * FROM {from_file(connection, 't', path)}").fetchall()) == 1
    )


def test_what_cannot_be_read_is_not_quoted_at_length():
    assert len(str(unreadable("t", Path("x" * 5_000), "OSError"))) < 500


def _longer(path):
    facts = path.stat()
    path.write_bytes(path.read_bytes() + b"2\n")
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))


def _later(path):
    facts = path.stat()
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns + 1))


def _another_one(path):
    shutil.copy2(path, path.with_name("copy"))
    path.with_name("copy").replace(path)


@pytest.mark.parametrize("change", [_longer, _later, _another_one])
def test_a_file_that_has_changed_has_another_mark(tmp_path, change):
    paths = [tmp_path / "one.csv", tmp_path / "two.csv", tmp_path / "none.csv"]
    for path in paths[:2]:
        path.write_bytes(b"a\n1\n")
    before = marks(paths)
    assert marks(paths) == before and before[2] is None and before[0] != before[1]
    change(paths[0])
    after = marks(paths)
    assert after[0] not in (None, before[0]) and after[1:] == before[1:]
    paths[0].unlink()
    assert marks(paths) == (None, *before[1:])


# --- encodings -----------------------------------------------------------------------------------

WRONG = [
    ("utf-16", "utf-8", "is not the declared encoding"),
    ("gbk", "utf-8", "is not the declared encoding"),
    ("gbk", None, "is not UTF-8"),
    ("utf-16", None, "is not UTF-8"),
    ("utf-8", "utf-16", "does not begin with a byte order mark"),
]


@pytest.mark.parametrize(("written", "declared", "said"), WRONG)
def test_a_wrong_encoding_names_those_that_may_be_declared(
    connection, tmp_path, written, declared, said
):
    path = tmp_path / "data.csv"
    path.write_bytes("姓名,n\n张三,1\n".encode(written))
    with pytest.raises(InvalidSource, match=said) as refused:
        copy = utf8_copy("t", path, declared, tmp_path) if declared else None
        from_file(connection, "t", path, None, copy)
    assert "gb18030" in refused.value.allowed and "encoding" in refused.value.remedy
    assert refused.value.__context__ is None


def test_rows_that_are_not_utf8_are_refused_unless_an_encoding_is_declared(
    connection, tmp_path, caplog
):
    path = tmp_path / "data.csv"
    path.write_bytes(b"a,b\n\xff,2\nx,3\n")
    with pytest.raises(InvalidSource, match="not well-formed") as refused:
        from_file(connection, "t", path)
    assert "encoding=" in refused.value.remedy
    with caplog.at_level(logging.WARNING, "sfumato.owner"):
        copy = utf8_copy("t", path, "utf-8", tmp_path)
    item = from_file(connection, "t", path, None, copy)
    assert connection.execute(f"SELECT * FROM {item}").fetchall() == [(None, "2"), ("x", "3")]
    assert "do not decode as utf-8: 1;" in caplog.text


@pytest.mark.parametrize("line", [b'\xd5\xc5"', b"1", b"1,2,3", b'"\xd5\xc5'])
def test_a_copy_is_checked_as_every_csv_is(connection, tmp_path, line):
    path = tmp_path / "data.csv"
    path.write_bytes(b"a,b\n1,2\n" + line + b"\n")
    with pytest.raises(InvalidSource, match=r"data\.csv' is not well-formed"):
        from_file(connection, "t", path, None, utf8_copy("t", path, "gbk", tmp_path))


def test_a_file_that_is_not_there_is_no_file_in_any_encoding(tmp_path):
    with pytest.raises(InvalidSource, match="no file"):
        utf8_copy("t", tmp_path / "data.csv", "gbk", tmp_path)
    path = tmp_path / "data.csv"
    path.write_bytes(b"a\n")
    with pytest.raises(InvalidSource, match="cannot be read"):
        utf8_copy("t", path, "gbk", tmp_path / "nowhere")
