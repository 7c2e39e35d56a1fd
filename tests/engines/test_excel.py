# SPDX-License-Identifier: Apache-2.0
"""One sheet of an Excel file: each cell as the string by which a value is compared."""

import datetime
import logging
import sys
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.engines import excel
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.excel import cell_text, read_sheet
from sfumato.engines.value_codes import code_of, text_of
from sfumato.errors import InvalidDeclaration, InvalidSource
from sfumato.metadata.column import Column
from tests.contracts.excel import (
    DAY,
    DURATION,
    EMPTY,
    LAST_OF_2024,
    MOMENT,
    TIME,
    error,
    formula,
    number,
    text,
    truth,
    workbook,
)

CANARY = "canary-4711"


def read(path, columns=None, **options):
    """The rows of the sheet that a table declares."""
    return read_sheet("t", sf.Table(path, columns=columns or {}, **options)).to_pylist()


# Cells, and the strings that they are.
CELLS = [
    (number(7), "7"),
    (number("1e20"), "1e+20"),
    (number("0.1"), "0.1"),
    (number(-3), "-3"),
    (truth(True), "true"),
    (truth(False), "false"),
    (text("x"), "x"),
    (text(" 1,5 "), " 1,5 "),
    (text("空"), "空"),
    (EMPTY, None),
    (text(""), None),
    (error("#N/A"), None),
    (error("#DIV/0!"), None),
    (formula("2"), "2"),
    (formula("abc", "str"), "abc"),
    (formula(""), None),
    (number(LAST_OF_2024, DAY), "2024-12-31"),
    (number(LAST_OF_2024 + 0.5, MOMENT), "2024-12-31 12:00:00"),
    (number(0.25, TIME), "06:00:00"),
    (number(1.5, DURATION), "1 day, 12:00:00"),
    (number(-5, DAY), "00:00:00"),
    (number("9e9", DAY), "9000000000"),
    ("<c><v>odd</v></c>", "odd"),
]


@pytest.mark.parametrize(("cell", "string"), CELLS, ids=[cell for cell, _ in CELLS])
def test_a_cell_is_the_string_by_which_it_is_compared(tmp_path, cell, string):
    rows = [[text("a"), text("b")], [cell, text("here")]]
    path = workbook(tmp_path / "data.xlsx", {"Data": rows})
    assert read(path) == [{"a": string, "b": "here"}]


@given(
    st.one_of(
        st.floats(), st.booleans(), st.text(min_size=1), st.dates(), st.datetimes(), st.timedeltas()
    )
)
def test_every_cell_has_a_string_and_it_is_that_of_the_reference(cell):
    assert cell_text(cell) == text_of(cell)
    for kind in (
        sf.Date("2024-01-01", "2024-12-31", format="%d/%m/%Y"),
        sf.Timestamp("2024-01-01", "2024-12-31"),
    ):
        assert isinstance(cell_text(cell, kind), str)


@pytest.mark.parametrize("form", [None, "%d/%m/%Y", "%Y%m%d"])
def test_a_day_is_read_whatever_format_its_column_declares(tmp_path, form):
    rows = [[text("d")], [number(LAST_OF_2024, DAY)], [number(LAST_OF_2024 + 0.5, MOMENT)]]
    path = workbook(tmp_path / "data.xlsx", {"Data": rows})
    kind = sf.Date("2024-01-01", "2024-12-31", format=form)
    codes = [code_of(Column("d", kind), row["d"]) for row in read(path, {"d": kind})]
    assert codes == [(datetime.date(2024, 12, 31) - datetime.date(1970, 1, 1)).days] * 2


def test_a_day_in_a_column_of_times_is_its_first_second(tmp_path):
    rows = [[text("t")], [number(LAST_OF_2024, DAY)], [number(LAST_OF_2024 + 0.5, MOMENT)]]
    path = workbook(tmp_path / "data.xlsx", {"Data": [*rows, [text("2024-12-31 18:00:00")]]})
    kind = sf.Timestamp("2024-12-31", "2025-01-31")
    codes = [code_of(Column("t", kind), row["t"]) for row in read(path, {"t": kind})]
    start = int(datetime.datetime(2024, 12, 31, tzinfo=datetime.UTC).timestamp())
    assert codes == [start, start + 12 * 3600, start + 18 * 3600]
    formed = sf.Timestamp("2024-12-31", "2025-01-31", format="%d/%m/%Y %H:%M")
    codes = [code_of(Column("t", formed), row["t"]) for row in read(path, {"t": formed})]
    assert codes == [start, start + 12 * 3600, None]


def test_a_day_without_its_format_is_missing_and_that_is_noticed(tmp_path, monkeypatch):
    rows = [[text("d")], [number(LAST_OF_2024, DAY)]]
    path = workbook(tmp_path / "data.xlsx", {"Data": rows})
    kind = sf.Date("2024-01-01", "2024-12-31", format="%d/%m/%Y")
    monkeypatch.setattr(excel, "in_format", lambda day, form: day.isoformat())
    assert code_of(Column("d", kind), read(path, {"d": kind})[0]["d"]) is None


def test_only_the_first_of_merged_cells_has_a_value(tmp_path):
    rows = [[text("a"), text("b")], [number(1), text("x")], [EMPTY, text("y")]]
    path = workbook(tmp_path / "data.xlsx", {"Data": rows}, merged="A2:A3")
    assert read(path) == [{"a": "1", "b": "x"}, {"a": None, "b": "y"}]


SHEETS = {
    "Notes": [[text("read me")]],
    "Data 2024": [
        [text("Survey of 2024")],
        [],
        [EMPTY, text("id"), EMPTY, number(2024), text("")],
        [text("aside"), text("p"), text("no name"), number(1)],
        [text("aside"), EMPTY, text("no name"), EMPTY],
        [],
        [EMPTY, text("q"), EMPTY, number(2)],
    ],
}


def test_the_declared_sheet_is_read_below_the_declared_row(tmp_path):
    path = workbook(tmp_path / "data.xlsx", SHEETS)
    found = read(path, sheet="Data 2024", header_row=3)
    # what has no name is not read, and a row of it alone is no row
    assert found == [{"id": "p", "2024": "1"}, {"id": "q", "2024": "2"}]
    assert read(path) == []
    below = workbook(tmp_path / "below.xlsx", {"Data": [[text("a")], [number(1)]]}, first=3)
    assert read(below, header_row=3) == [{"a": "1"}]


def test_a_row_is_counted_from_the_first_of_the_sheet(tmp_path):
    below = workbook(tmp_path / "below.xlsx", {"Data": [[text("a")], [number(1)]]}, first=3)
    for row in (1, 2, 5, 2**20):
        with pytest.raises(InvalidSource, match=f"row {row} .* names no column"):
            read(below, header_row=row)


def test_an_empty_sheet_is_named_empty(tmp_path):
    path = workbook(tmp_path / "data.xlsx", {"Data": []})
    with pytest.raises(InvalidSource, match=r"the sheet in 'data\.xlsx' is empty"):
        read(path)


def test_a_sheet_that_is_not_there_is_refused_and_the_others_are_not_named(tmp_path, caplog):
    path = workbook(tmp_path / "data.xlsx", {CANARY: [[text("a")]]})
    with (
        caplog.at_level(logging.ERROR, "sfumato.owner"),
        pytest.raises(InvalidSource, match="has no sheet 'Data'") as refused,
    ):
        read(path, sheet="Data")
    assert CANARY not in str(refused.value)
    assert CANARY in caplog.text


def test_two_columns_of_one_name_are_refused(tmp_path):
    path = workbook(tmp_path / "data.xlsx", {"Data": [[text(CANARY), text(CANARY.upper())]]})
    with pytest.raises(InvalidSource, match="one name twice") as refused:
        read(path)
    assert CANARY not in str(refused.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600, "protected by a password"),
        (b"", "cannot be read"),
        (b"a,b\n1,canary-4711\n", "cannot be read"),
        (b"PK\x03\x04canary-4711", "cannot be read"),
    ],
    ids=["password", "empty", "csv", "zip"],
)
def test_what_is_no_open_workbook_is_refused_without_its_content(tmp_path, content, said):
    path = tmp_path / "data.xlsx"
    path.write_bytes(content)
    with pytest.raises(InvalidSource, match=said) as refused:
        read(path)
    assert CANARY not in str(refused.value)
    assert refused.value.__context__ is None


def test_a_damaged_sheet_is_refused_when_it_is_opened(tmp_path):
    path = workbook(tmp_path / "data.xlsx", {"Data": [[text("a")], [f"<c><v>{CANARY}"]]})
    with pytest.raises(InvalidSource, match="cannot be read") as refused:
        DuckDB({"t": sf.Table(path, columns={"a": sf.Text()})})
    assert CANARY not in str(refused.value)
    with pytest.raises(InvalidSource, match="no file"):
        read(tmp_path / "nowhere.xlsx")


def test_without_the_package_the_extra_is_named(tmp_path, monkeypatch):
    path = workbook(tmp_path / "data.xlsx", {"Data": [[text("a")]]})
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    with pytest.raises(InvalidSource, match="python-calamine") as refused:
        read(path)
    assert "sfumato[excel]" in refused.value.remedy


# --- as the source of a session -------------------------------------------------------------------

VISITS = [
    [text("patient"), text("cost"), text("day"), text("smoker")],
    [number(1), number("10.5"), number(LAST_OF_2024, DAY), truth(True)],
    [number(1), text("1,000"), text("31/12/2024"), text("Y")],
    [text("2"), formula("20"), EMPTY, number(0)],
    [EMPTY, number(99), EMPTY, EMPTY],
]
COLUMNS = {
    "cost": sf.Real(0, 100),
    "day": sf.Date("2024-01-01", "2024-12-31"),
    "smoker": sf.Boolean(),
}
COUNTS = "SELECT COUNT(*) AS n, COUNT(cost) AS c, COUNT(day) AS d, COUNT(smoker) AS s FROM t"


def session(path, folder, **options):
    table = sf.Table(path, unit=sf.Unit("patient", max_rows=2), columns=COLUMNS, **options)
    return sf.connect(
        {"t": table}, dataset="d", budget=sf.Budget(10**6), ledger=folder / "ledger.db"
    )


def test_a_sheet_answers_questions_as_any_table_does(tmp_path):
    path = workbook(tmp_path / "visits.xlsx", {"Visits": VISITS})
    with session(path, tmp_path) as asked:
        answer = asked.query(COUNTS, epsilon=1000)
        assert [round(float(value)) for value in answer.rows[0]] == [3, 2, 1, 2]
        check = asked.check_data()
        assert [facts.unread for facts in check.tables[0].columns] == [1, 1, 1]


def test_a_workbook_that_has_changed_is_refused_and_nothing_is_charged(tmp_path):
    path = workbook(tmp_path / "visits.xlsx", {"Visits": VISITS})
    with session(path, tmp_path) as asked:
        workbook(path, {"Visits": VISITS[:2]})
        with pytest.raises(InvalidSource, match="is not the file that was checked"):
            asked.query(COUNTS, epsilon=1)
        assert asked.budget.left == 10**6


def test_a_declared_column_that_the_sheet_lacks_is_named(tmp_path):
    path = workbook(tmp_path / "visits.xlsx", {"Visits": VISITS})
    with pytest.raises(InvalidDeclaration, match="no column 'costs' among its 4"):
        DuckDB({"t": sf.Table(path, columns={"costs": sf.Real(0, 9)})})


def test_many_rows_are_read_batch_by_batch(tmp_path, monkeypatch):
    monkeypatch.setattr(excel, "_BATCH", 3)
    rows = [[text("a")], *([number(each)] for each in range(10))]
    path = workbook(tmp_path / "data.xlsx", {"Data": rows})
    assert [row["a"] for row in read(path)] == [str(each) for each in range(10)]
    with closing(DuckDB({"t": sf.Table(path, columns={"a": sf.Integer(0, 9)})})) as engine:
        count = engine.unprotected({"t": {"a"}}, lambda s: f"SELECT count(a) FROM {s['t'].sql}")
    assert count == [(10,)]
