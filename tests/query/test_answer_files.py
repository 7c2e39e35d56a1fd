# SPDX-License-Identifier: Apache-2.0
"""Answers in files and frames, with their intervals and marks, read back by other libraries."""

import codecs
import csv
import datetime
import io
from fractions import Fraction
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from python_calamine import CalamineWorkbook

from sfumato.errors import UnknownName, WrongUse
from sfumato.query.answer import Answer
from sfumato.query.answer_files import Filled, csv_of, csv_text, filled, readable, without_formulas
from tests.contracts.people import session

SQL = "SELECT sex, COUNT(*) AS n, AVG(age) AS m FROM people GROUP BY sex ORDER BY sex"
WIDE = ["sex", "n", "n_low", "n_high", "m", "m_low", "m_high"]
ERROR = {"low": 1, "high": 3, "half_width": 1}
UNTOLD = {"low": 0, "high": 99, "half_width": 99, "untold": True}


@pytest.fixture(scope="module")
def answer(tmp_path_factory: pytest.TempPathFactory) -> Answer:
    with session(tmp_path_factory.mktemp("answer")) as opened:
        return opened.query(SQL, epsilon=20)


def test_every_file_has_the_cells_and_the_ends_of_error(answer: Answer, tmp_path: Path) -> None:
    answer.to_csv(tmp_path / "a.csv")
    answer.to_parquet(tmp_path / "a.parquet")
    answer.to_excel(tmp_path / "a.xlsx")
    expected = []
    for row, error in zip(answer.rows, answer.error(), strict=True):
        line = [row[0]]
        for name, value in zip(("n", "m"), row[1:], strict=True):
            line += [value, error[name]["low"], error[name]["high"]]
        expected.append(line)
    header, *lines = csv.reader(io.StringIO((tmp_path / "a.csv").read_text("utf-8")))
    assert header == WIDE
    assert [[line[0], *map(float, line[1:])] for line in lines] == expected
    table = pq.read_table(tmp_path / "a.parquet")
    assert (table.column_names, [list(row.values()) for row in table.to_pylist()]) == (
        WIDE, expected,
    )  # fmt: skip
    book = CalamineWorkbook.from_path(tmp_path / "a.xlsx")
    header, *lines = book.get_sheet_by_name("answer").to_python()
    assert header == WIDE
    # XlsxWriter writes 16 digits
    for line, cells in zip(lines, expected, strict=True):
        assert (line[0], line[1:]) == (cells[0], pytest.approx(cells[1:], rel=1e-15))
    about = book.get_sheet_by_name("about").to_python()
    assert about[0] == [SQL] and any("Charge: " in line[0] for line in about)
    assert answer.to_pandas(intervals=True).equals(pd.read_parquet(tmp_path / "a.parquet"))


def test_without_intervals_there_are_the_cells_alone(answer: Answer, tmp_path: Path) -> None:
    assert answer.to_csv(intervals=False).splitlines()[0] == "sex,n,m"
    answer.to_parquet(tmp_path / "a.parquet", intervals=False)
    assert pq.read_table(tmp_path / "a.parquet") == answer.to_arrow()
    assert list(answer.to_pandas().columns) == ["sex", "n", "m"]


def test_an_answer_is_a_sequence_of_rows_with_columns_by_name(answer: Answer) -> None:
    assert len(answer) == 2
    assert list(answer) == answer.to_dicts()
    assert answer["n"] == [row["n"] for row in answer]
    assert answer["n_low"] == [row["n"]["low"] for row in answer.error()]
    with pytest.raises(UnknownName, match="No column 'k'") as caught:
        answer["k"]
    assert "sex, n, n_low, n_high, m" in str(caught.value)


def test_an_answer_without_rows_is_an_answer(tmp_path: Path) -> None:
    with session(tmp_path) as opened:
        answer = opened.query(SQL.replace(" ORDER", " HAVING COUNT(*) > 1000000 ORDER"), epsilon=20)
    assert (len(answer), bool(answer), answer["n"]) == (0, True, [])
    assert answer.to_csv() == ",".join(WIDE) + "\n"
    for name in ("a.parquet", "a.xlsx"):
        getattr(answer, {"a.parquet": "to_parquet", "a.xlsx": "to_excel"}[name])(tmp_path / name)


def test_a_cell_that_cannot_be_told_is_empty_and_marked() -> None:
    columns = [
        {"name": "n", "type": "integer", "released": True},
        {"name": "n_low", "type": "text", "released": False},
    ]
    found = filled(columns, [[2, "a"], [None, "b"]], [[ERROR, None], [UNTOLD, None]])
    assert {column.name: list(column.values) for column in found} == {
        "n": [2, None], "n_low_": [1, 0], "n_high": [3, 99], "n_low": ["a", "b"],
        "marks": ["", "n: cannot be told"],
    }  # fmt: skip


def test_days_are_days_and_a_string_is_no_formula(tmp_path: Path) -> None:
    with session(tmp_path) as opened:
        answer = opened.query("SELECT MAX(born) AS last FROM people", epsilon=20)
    assert isinstance(answer["last"][0], datetime.date)
    assert answer["last_low"] == [None]
    answer.to_excel(tmp_path / "a.xlsx")
    book = CalamineWorkbook.from_path(tmp_path / "a.xlsx")
    assert book.get_sheet_by_name("answer").to_python()[1][0] == answer["last"][0]


def test_what_cannot_be_written_is_refused(
    answer: Answer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for write in (answer.to_csv, answer.to_parquet, answer.to_excel):
        with pytest.raises(WrongUse, match="cannot be written"):
            write(tmp_path / "nowhere" / "a")
    monkeypatch.setattr("sfumato.query.answer.find_spec", lambda _: None)
    with pytest.raises(WrongUse, match=r"pip install 'sfumato\[excel\]'"):
        answer.to_excel(tmp_path / "a.xlsx")


NUMBERS = st.integers(-(10**9), 10**9) | st.floats(-1e9, 1e9)


@given(NUMBERS, NUMBERS, NUMBERS)
def test_readable_numbers_have_two_digits_of_the_error_and_the_interval_holds(
    one: float, two: float, three: float
) -> None:
    low, value, high = sorted((one, two, three))
    shown, first, last = readable(value, low, high)
    half = (Fraction(high) - Fraction(low)) / 2
    if not half:
        assert (shown, first, last) == (value, low, high)
        return
    # the ends move outwards, by less than a tenth of half the length each; the value by half of it
    slack = half * Fraction(1, 10**9)
    assert 0 <= Fraction(low) - Fraction(first) + slack <= half / 10 + 2 * slack
    assert 0 <= Fraction(last) - Fraction(high) + slack <= half / 10 + 2 * slack
    assert abs(Fraction(shown) - Fraction(value)) <= half / 20 + slack


@pytest.mark.parametrize(
    ("exact", "shown"),
    [
        ((741, 681, 801), (741, 681, 801)),
        ((33291.39, 31294.24, 35288.55), (33300, 31200, 35300)),
        ((48.730889, 46.719005, 50.738218), (48.7, 46.7, 50.8)),
        ((0.012345, 0.01, 0.02), (0.0123, 0.01, 0.02)),
        ((5, 5, 5), (5, 5, 5)),
        ((5, None, None), (5, None, None)),
        (("2024-01-01", "2023-12-01", "2024-02-01"), ("2024-01-01", "2023-12-01", "2024-02-01")),
    ],
)
def test_the_digits_of_an_error(exact: tuple[object, ...], shown: tuple[object, ...]) -> None:
    assert readable(*exact) == shown  # type: ignore[arg-type]


def test_csv_for_excel(answer: Answer, tmp_path: Path) -> None:
    text = answer.to_csv(tmp_path / "a.csv", excel=True)
    data = (tmp_path / "a.csv").read_bytes()
    assert data == text.encode() and data.startswith(codecs.BOM_UTF8 + b"sex,n,n_low")
    assert data.count(b"\r\n") == data.count(b"\n") == len(answer) + 1
    lines = list(csv.DictReader(io.StringIO(data.decode("utf-8-sig"), newline="")))
    for line, row, error in zip(lines, answer.rows, answer.error(), strict=True):
        ends = error["m"]["low"], error["m"]["high"]
        assert tuple(float(line[name]) for name in ("m", "m_low", "m_high")) == readable(
            row[2], *ends
        )
        # a noisy mean may have few digits by itself
        assert len(line["m"]) <= len(str(row[2]))
    assert answer.to_csv(intervals=False, excel=True).startswith("\ufeffsex,n,m\r\n")


def test_no_text_is_a_formula_of_excel() -> None:
    column = Filled("job", "text", ["=1+1", "-", "@x", "a=b", None, "+49"])
    assert csv_text(without_formulas([column])).split() == [
        *("job", "'=1+1", "'-", "'@x", "a=b"),
        *('""', "'+49"),
    ]
    numbers = Filled("n", "integer", [-1])
    assert without_formulas([numbers]) == [numbers]
    # a title is what the asker wrote
    assert csv_of(["=1+1"], [["-"]], excel=True) == "\ufeff'=1+1\r\n'-\r\n"
    (titled,) = without_formulas([Filled("@x", "integer", [1])])
    assert titled.name == "'@x"
