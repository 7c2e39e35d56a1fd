# SPDX-License-Identifier: Apache-2.0
"""Names, types and forms of sources: files in several encodings, folders, databases, sheets."""

import datetime
import sqlite3
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xlsxwriter

from sfumato.cli.init_sources import columns_of, place_in, sources_of, table_name
from sfumato.errors import InvalidSource, WrongUse


def write(folder: Path, text: str, encoding: str = "utf-8") -> str:
    path = folder / "people.csv"
    path.write_bytes(text.encode(encoding))
    return str(path)


@pytest.mark.parametrize("delimiter", [",", ";", "|", "\t"])
def test_the_delimiter_is_that_of_the_first_line(tmp_path: Path, delimiter: str) -> None:
    columns = columns_of(write(tmp_path, f"age{delimiter}sex\n1{delimiter}F\n"))
    assert list(columns.known) == ["age", "sex"]
    assert columns.options == ({} if delimiter == "," else {"delimiter": delimiter})
    assert columns.guesses["age"] == {"type": "integer"}


@pytest.mark.parametrize(
    ("encoding", "word", "declared"),
    [
        ("utf-8", "北京", None),
        ("utf-8-sig", "北京", None),
        ("utf-16", "北京", "utf-16"),
        ("gbk", "北京", "gb18030"),
        ("gb18030", "姓名 年龄 性别 收入 职业 城市 学历", "gb18030"),
        ("gb18030", "中华人民共和国", "gb18030"),
        ("cp1251", "Москва и Нижний Новгород", "cp1251"),
        ("cp1251", "САНКТ-ПЕТЕРБУРГ", "cp1251"),  # noqa: RUF001
        ("koi8-r", "Москва и Нижний Новгород", "koi8-r"),
        ("koi8-r", "САНКТ-ПЕТЕРБУРГ", "koi8-r"),  # noqa: RUF001
        ("koi8-r", "образование", "koi8-r"),
        ("cp1251", "образование", "cp1251"),
        ("latin-1", "Köln", "cp1252"),
        ("cp1252", "Gärtnerstraße Größe Äußerung Öl über", "cp1252"),
        ("cp1252", "größe", "cp1252"),
        ("cp1252", "AÇÃO", "cp1252"),
        ("cp1252", "päätös", "cp1252"),
        ("gb18030", "腧穴", "gb18030"),
        ("gb18030", "籍贯", "gb18030"),
        ("gb18030", "A型", "gb18030"),
        ("cp1252", "Bob\u2019s \u201cSão Paulo\u201d \u2013 5 €", "cp1252"),
        ("cp932", "東京都ひらがな", "cp932"),
        ("cp949", "서울 부산 대구 인천 광주 대전 울산 수원", "cp949"),
    ],
)
def test_the_encoding_of_names_is_declared_and_that_of_values_a_guess(
    tmp_path: Path, encoding: str, word: str, declared: str | None
) -> None:
    named = columns_of(write(tmp_path, f"{word},age\nx,1\n", encoding))
    assert (named.options.get("encoding"), list(named.known)) == (declared, [word, "age"])
    valued = columns_of(write(tmp_path, f"city,age\n{word},1\n", encoding))
    found = {**valued.options, **valued.guessed_options}
    assert found.get("encoding") == declared
    # a byte order mark is no guess
    assert ("encoding" in valued.options) == (declared == "utf-16")


def test_only_the_first_lines_are_looked_at(tmp_path: Path) -> None:
    rows = "\n".join(["1"] * 100_000)
    assert columns_of(write(tmp_path, f"n\n{rows}\nx\n")).guesses["n"] == {"type": "integer"}


def test_a_comma_for_the_fraction_is_a_guess(tmp_path: Path) -> None:
    columns = columns_of(write(tmp_path, "a;b\n1,5;x\n"))
    assert columns.guessed_options == {"decimal": ","}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no line 1"),
        ("a,,b\n", "no name for column 2 of 3"),
        ("a,b, \n", "no name for column 3 of 3"),
        ("qq,b,qq\n1,2,3\n", "one name twice, for its columns 1 and 3"),
        ("a,A\n1,2\n", "one name twice, for its columns 1 and 2"),
        ("a,\x00\n", "no name for column 2"),
        ("a,\x7f\n", "no name for column 2"),
        (
            "Survey of 2024\nid;pay\n1;2\n3;4\n",
            "names one column, and the lines below have 2 fields",
        ),
    ],
)
def test_a_first_line_that_does_not_name_each_column_is_refused(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(InvalidSource, match=message) as refusal:
        columns_of(write(tmp_path, text))
    assert "qq" not in str(refusal.value)


def test_names_below_a_title_are_read(tmp_path: Path) -> None:
    source = write(tmp_path, "Survey of 2024\n\nid;höhe\n1;2\n3;4\n", "cp1252")
    columns = columns_of(source, header_row=3)
    assert columns.options == {"header_row": 3, "delimiter": ";", "encoding": "cp1252"}
    assert columns.guesses == {"id": {"type": "integer"}, "höhe": {"type": "integer"}}
    with pytest.raises(InvalidSource, match="has no line 9"):
        columns_of(source, header_row=9)
    # a column of texts with a comma in each is a column, if its owner says so
    source = write(tmp_path, "remark\na, b\nc, d\n")
    assert list(columns_of(source, has_names=True).known) == ["remark"]


def test_a_sheet_is_read_below_its_title_and_its_cells_suggest_types(tmp_path: Path) -> None:
    path = tmp_path / "people.xlsx"
    with xlsxwriter.Workbook(path) as book:
        sheet = book.add_worksheet()
        sheet.merge_range(0, 0, 0, 2, "Survey of 2024", book.add_format())
        sheet.write_row(1, 0, ["age", "pay", "born"])
        days = book.add_format({"num_format": "dd.mm.yyyy"})
        for row in (2, 3):
            sheet.write_row(row, 0, [30 + row, 1.5])
            sheet.write_datetime(row, 2, datetime.datetime(1980, 1, row), days)  # noqa: DTZ001
    assert list(columns_of(str(path)).known) == ["Survey of 2024"]
    columns = columns_of(str(path), header_row=2)
    assert columns.guesses == {
        "age": {"type": "integer"}, "pay": {"type": "real"}, "born": {"type": "date"},
    }  # fmt: skip


def test_nested_columns_are_no_columns_of_questions(tmp_path: Path) -> None:
    rows = pa.table({
        "who": [{"age": 30}], "tags": [["x"]], "n": [1], "vector": [[0.5, 1.0]],
        "pairs": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())),
        "fixed": pa.array([[1, 2]], pa.list_(pa.int32(), 2)), "deep": [[[1]]],
    })  # fmt: skip
    pq.write_table(rows, tmp_path / "nested.parquet")
    columns = columns_of(str(tmp_path / "nested.parquet"))
    assert columns.known == {
        "n": {"type": "integer"}, "vector": {"type": "array"}, "fixed": {"type": "array"},
    }  # fmt: skip
    assert list(columns.nested) == ["who", "tags", "pairs", "deep"]


@pytest.mark.parametrize(
    "line", ["17,F", "qq,24/03/1962", 'qq,"103,431"', "007,qq", "qq,true", "qq,2.5"]
)
def test_a_first_row_becomes_no_names(tmp_path: Path, line: str) -> None:
    source = write(tmp_path, f"{line}\n{line}\n")
    with pytest.raises(InvalidSource, match="has numbers, dates or truth values") as refusal:
        columns_of(source)
    assert not any(value in str(refusal.value) for value in ("17", "qq", "1962", "431", "2.5"))
    assert len(columns_of(source, has_names=True).known) == 2


def test_a_first_row_of_a_sheet_becomes_no_names(tmp_path: Path) -> None:
    path = tmp_path / "people.xlsx"
    with xlsxwriter.Workbook(path) as book:
        book.add_worksheet().write_row(0, 0, ["F", 17])
    with pytest.raises(InvalidSource, match="has numbers, dates or truth values"):
        columns_of(str(path))
    assert list(columns_of(str(path), has_names=True).known) == ["F", "17"]


def test_a_sign_between_thousands_is_a_guess(tmp_path: Path) -> None:
    columns = columns_of(write(tmp_path, 'pay,name\n"103,431",x\n7,"a,b"\n'))
    assert columns.guessed_options == {"thousands": ","}
    assert columns.guesses == {"pay": {"type": "integer"}, "name": {"type": "category"}}
    columns = columns_of(write(tmp_path, "pay;n\n1.234,5;1\n7;2\n"))
    assert columns.guessed_options == {"thousands": ".", "decimal": ","}
    assert columns.guesses["pay"] == {"type": "real"}


def test_types_of_parquet_are_known(tmp_path: Path) -> None:
    schema = pa.schema(
        {"n": pa.int32(), "x": pa.float64(), "d": pa.date32(), "t": pa.timestamp("us"),
         "b": pa.bool_(), "s": pa.string()}
    )  # fmt: skip
    path = tmp_path / "people.parquet"
    pq.write_table(schema.empty_table(), path)
    kinds = [each.get("type") for each in columns_of(str(path)).known.values()]
    assert kinds == ["integer", "real", "date", "timestamp", "boolean", None]


def test_a_folder_is_its_files_and_parts_of_one_table_are_one(tmp_path: Path) -> None:
    for name in ("a", "b"):
        pq.write_table(pa.table({"n": [1]}), tmp_path / f"{name}.parquet")
    assert sources_of(str(tmp_path)) == [str(tmp_path)]
    (tmp_path / "c.csv").write_text("n\n1\n")
    assert [Path(source).name for source in sources_of(str(tmp_path))] == [
        "a.parquet", "b.parquet", "c.csv",
    ]  # fmt: skip
    (tmp_path / "empty").mkdir()
    with pytest.raises(WrongUse, match="No table"):
        sources_of(str(tmp_path / "empty"))


def test_databases_and_sheets_have_names_alone(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "shop.db") as shop:
        shop.execute("CREATE TABLE people (id INTEGER, age INTEGER)")
    shop.close()
    assert columns_of(str(tmp_path / "shop.db"), "people").known == {"id": {}, "age": {}}
    with xlsxwriter.Workbook(tmp_path / "people.xlsx") as book:
        sheet = book.add_worksheet()
        sheet.write_row(0, 0, ["age", "sex"])
        sheet.write_row(1, 0, [30, "F"])
    assert columns_of(str(tmp_path / "people.xlsx")).known == {"age": {}, "sex": {}}


def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    for name in ("people.csv", "people.parquet", "people.xlsx"):
        with pytest.raises(InvalidSource):
            columns_of(str(tmp_path / name))


def test_names_and_places(tmp_path: Path) -> None:
    assert table_name("/data/Visits 2024.csv") == "visits_2024"
    assert table_name("2024.csv") == "t_2024"
    assert place_in(str(tmp_path / "a" / "b.csv"), tmp_path) == "a/b.csv"
    assert place_in("/elsewhere/b.csv", tmp_path) == "/elsewhere/b.csv"
    assert place_in("postgresql://db/clinic", tmp_path) == "postgresql://db/clinic"
