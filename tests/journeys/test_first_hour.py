# SPDX-License-Identifier: Apache-2.0
"""The first hour of a newcomer: files as offices export them, the commands in their order, and what
each must print. Wrong turns are part of it: each message leads on.
"""

import datetime
import json
import random
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
import xlsxwriter

from tests.architecture.structure import ROOT
from tests.contracts.shell import Shell

TOWNS = ("Köln", "Berlin", "München")


@pytest.fixture
def folder(shell: Shell) -> Shell:
    """A folder with nothing in it."""
    for path in shell.folder.iterdir():
        path.unlink()
    return shell


def fill(shell: Shell, **places: str) -> None:
    """Fills open places of sfumato.toml, and confirms every guess; each row is another person."""
    path = shell.folder / "sfumato.toml"
    text = re.sub(r"\[tables[^\n]*unit\]\n.*?\n\n", "", path.read_text("utf-8"), flags=re.DOTALL)
    text = text.replace("# type", "type").replace('epsilon = "?"', 'epsilon = "1000"')
    for sign in ("thousands", "decimal"):
        text = text.replace(f"# {sign} = ", f"{sign} = ")
    for column, lines in places.items():
        head, found, rest = text.partition(f"columns.{column}]\n")
        assert found, column
        section, blank, others = rest.partition("\n\n")
        section = "\n".join(line for line in section.splitlines() if '"?"' not in line)
        text = f"{head}{found}{section}\n{lines}{blank}{others}"
    path.write_text(text, encoding="utf-8")


def money(value: float) -> str:
    """A number as Germans write it."""
    return f"{value:,.2f}".translate(str.maketrans(",.", ".,"))


def german(path: Path) -> float:
    """Writes an export of a German office; returns the mean of its incomes."""
    made = random.Random(3)
    incomes = []
    lines = ["Kunden Nr;Ort der Geburt;Geburtstag;Einkommen"]
    for place in range(400):
        incomes.append(made.randint(100_000, 999_999) / 100)
        born = f"{made.randint(1, 28):02}.{made.randint(1, 12):02}.19{made.randint(40, 99)}"
        lines.append(f"K{place};{TOWNS[place % 3]};{born};{money(incomes[-1])}")
    path.write_bytes(("\r\n".join(lines) + "\r\n").encode("utf-8-sig"))
    return sum(incomes) / len(incomes)


def test_from_a_german_export_to_a_table_for_excel(folder: Shell) -> None:
    mean = german(folder.folder / "leute.csv")
    assert "table leute: 4 columns" in folder.run("init", "leute.csv").out
    refused = folder.run("check")
    assert "places are still open" in refused.err and "budget: epsilon" in refused.err
    drafted = (folder.folder / "sfumato.toml").read_text("utf-8")
    assert 'format = "?"  # "%d.%m.%Y" or "%m.%d.%Y"' in drafted
    fill(
        folder,
        **{
            '"Ort der Geburt"': f"values = {json.dumps(TOWNS, ensure_ascii=False)}",
            "Geburtstag": 'lower = "1900-01-01"\nupper = "2010-01-01"\nformat = "%d.%m.%Y"',
            "Einkommen": "lower = 0\nupper = 10000",
        },
    )
    checked = folder.run("check", "--data").out
    assert checked.count("100.0% (400)") == 3
    asked = "SELECT Ort der Geburt, COUNT(*) AS n FROM leute GROUP BY Ort der Geburt"
    refused = folder.run("query", asked, "--epsilon", "1")
    assert 'A name with a blank stands in double quotes: "der Geburt".' in refused.err
    wrong = 'SELECT COUNT(*) AS n FROM leute WHERE "Ort der Geburt" = Berlin'
    assert "in single quotes: 'Berlin'" in folder.run("query", wrong, "--epsilon", "1").err
    late = "SELECT COUNT(*) AS n FROM leute WHERE Geburtstag < '01.01.1960'"
    assert "DATE '2019-12-31'" in folder.run("query", late, "--epsilon", "1").err
    # every wrong turn was free
    assert "epsilon 0 spent of epsilon 1000" in folder.run("budget").out
    sql = 'SELECT "Ort der Geburt", AVG(Einkommen) AS m FROM leute GROUP BY "Ort der Geburt"'
    price = ("--epsilon", "100", "--format", "csv")
    ran = folder.run("query", sql, *price, "--excel", "--output", "m.csv")
    assert ran.code == 0
    text = (folder.folder / "m.csv").read_text("utf-8-sig")
    header, *rows = text.splitlines()
    assert header == "Ort der Geburt,m,m_low,m_high"
    means = [float(row.split(",")[1]) for row in rows]
    assert [row.split(",")[0] for row in rows] == list(TOWNS)
    # a third of the persons in each; the noise at epsilon 100 is far below the difference of means
    assert sum(means) / 3 == pytest.approx(mean, abs=50)


def test_from_a_question_to_a_report(folder: Shell) -> None:
    lines = [f"{20 + place % 60},{place % 97 * 1000 + 0.25}" for place in range(970)]
    folder.write("people.csv", "\n".join(["age,income", *lines]))
    folder.run("init", "people.csv")
    fill(folder, age="lower = 0\nupper = 120", income="lower = 0\nupper = 100000")
    assert "will be made on first use" in folder.run("check").out
    sql = "SELECT SUM(income) AS total FROM people"
    seen = folder.run("preview", sql, "--epsilon", "1")
    # 100,000 times the logarithm of 20
    assert "+- 299,573" in seen.out and "nothing was charged" in seen.out
    first = folder.run("query", sql, "--epsilon", "1")
    row = first.out.splitlines()[2]
    # the sum is 46,560,242.5: six digits on the screen, all of them in JSON
    assert re.fullmatch(r" *4\d,\d{3},\d00  \[4\d,\d{3},\d00, 4\d,\d{3},\d00\]", row), row
    assert "spent     epsilon 1 of 1000" in first.out
    again = folder.run("query", sql, "--epsilon", "1", "--format", "json").out
    exact = json.loads(again)["rows"][0][0]
    assert f"{exact:.6g}" == f"{float(row.split()[0].replace(',', '')):.6g}"
    assert "epsilon 1 spent of epsilon 1000" in folder.run("budget").out
    assert folder.run("report", "dpia", "-o", "dpia.html").code == 0
    assert "epsilon" in (folder.folder / "dpia.html").read_text("utf-8")
    assert folder.run("ledger", "verify").code == 0


def test_from_a_sheet_below_a_title(folder: Shell) -> None:
    with xlsxwriter.Workbook(folder.folder / "survey.xlsx") as book:
        sheet = book.add_worksheet("Daten")
        sheet.merge_range(0, 0, 0, 2, "Survey of households, 2024", book.add_format())
        sheet.write_row(2, 0, ["size", "pay", "born"])
        days = book.add_format({"num_format": "dd.mm.yyyy"})
        for row in range(3, 103):
            sheet.write_row(row, 0, [1 + row % 6, 100.5])
            day = datetime.datetime(1950 + row % 50, 1, 1)  # noqa: DTZ001
            sheet.write_datetime(row, 2, day, days)
    ran = folder.run("init", "survey.xlsx")
    assert "survey: 1 columns" in ran.out and "--header-row 3" in ran.out
    (folder.folder / "sfumato.toml").unlink()
    assert "survey: 3 columns" in folder.run("init", "survey.xlsx", "--header-row", "3").out
    fill(
        folder,
        size="lower = 1\nupper = 9",
        pay="lower = 0\nupper = 1000",
        born='lower = "1900-01-01"\nupper = "2010-01-01"',
    )
    assert folder.run("check", "--data").out.count("100.0% (100)") == 3
    sql = "SELECT AVG(pay) AS pay FROM survey WHERE born >= DATE '1900-01-01'"
    answer = json.loads(folder.run("query", sql, "--epsilon", "100", "--format", "json").out)
    assert answer["rows"][0][0] == pytest.approx(100.5, abs=5)


def test_from_nested_rows(folder: Shell) -> None:
    rows = pa.table({"who": [{"age": 30}] * 50, "with space": [2] * 50})
    parquet.write_table(rows, folder.folder / "nested.parquet")
    folder.run("init", "nested.parquet")
    text = (folder.folder / "sfumato.toml").read_text("utf-8")
    assert '# "who": nested values' in text
    fill(folder, **{'"with space"': "lower = 0\nupper = 9"})
    sql = 'SELECT SUM("with space") AS s FROM nested'
    answer = json.loads(folder.run("query", sql, "--epsilon", "100", "--format", "json").out)
    assert answer["rows"][0][0] == pytest.approx(100, abs=5)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "has no line 1"),
        ("id,pay,\n1,2,\n", "no name for column 3 of 3"),
        ("id,pay,Pay\n1,2,3\n", "one name twice, for its columns 2 and 3"),
        ("Survey\n\nid;pay\n1;2\n2;3\n4;5\n", "sfumato init --header-row 3"),
        ("24/03/1962,7\n25/03/1962,8\n", "sfumato init --header yes"),
    ],
)
def test_a_file_that_cannot_be_drafted_is_told_what_to_do(
    folder: Shell, content: str, said: str
) -> None:
    folder.write("data.csv", content)
    ran = folder.run("init", "data.csv")
    assert ran.code == 2 and said in ran.err
    assert not (folder.folder / "sfumato.toml").exists()


def test_pages_whose_examples_take_pandas_say_to_install_it() -> None:
    # requirements/run.txt has none, and no extra brings it
    texts = {page: page.read_text("utf-8") for page in (ROOT / "docs").rglob("*.md")}
    taking = {
        p for p, text in texts.items() if re.search(r">>> .*(import pandas|to_pandas\()", text)
    }
    silent = [page.name for page in taking if not re.search("pip install .*pandas", texts[page])]
    assert taking and not silent
