# SPDX-License-Identifier: Apache-2.0
"""``sfumato mine``: formats, files, a preview, one charge, refusals."""

import csv
import io
import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.contracts.shell import Shell

NOTES = """
[tables.notes]
source = "notes.csv"
unit = {column = "who", max_rows_total = 1, name = "person"}
columns.note = {type = "text", tokens = {stop = ["the"]}}
columns.ward = {type = "category", values = ["eye", "ear"]}

[mining.words]
recipe = "Terms"
data = "SELECT note, ward FROM notes"
text = "note"
by = "ward"
rho = 5
delta = "1e-9"

[mining.sets]
recipe = "Itemsets"
data = "SELECT note FROM notes"
rho = 5
delta = "1e-9"

[tables.scans]
source = "scans.parquet"
columns.scan = {type = "array", shape = [2, 2], lower = 0, upper = 9}
columns.ward = {type = "category", values = ["eye", "ear"]}

[mining.faces]
recipe = "Means"
data = "SELECT scan, ward FROM scans"
picture = "scan"
by = "ward"
rho = 5
"""


@pytest.fixture
def notes(shell: Shell) -> Shell:
    """Notes of 600 people in two wards."""
    rows = [f"{who},{'the red eye' if who % 2 else 'left ear'},{'eye' if who % 2 else 'ear'}"
            for who in range(600)]  # fmt: skip
    shell.write("notes.csv", "\n".join(["who,note,ward", *rows]))
    scans = [[9, 1, 2, 8] if who % 2 else [1, 7, 7, 1] for who in range(600)]
    wards = ["eye" if who % 2 else "ear" for who in range(600)]
    parquet.write_table(pa.table({"scan": scans, "ward": wards}), shell.folder / "scans.parquet")
    shell.configure('columns.job = {type = "text"}\n', f'columns.job = {{type = "text"}}\n{NOTES}')
    return shell


def test_a_question_is_answered_once_with_its_notes_and_the_account(notes: Shell) -> None:
    ran = notes.run("mine", "words")
    assert (ran.code, ran.err) == (0, "")
    assert "red" in ran.out and "lift" in ran.out and "not shown" in ran.out
    spent = notes.run("budget").out
    again = notes.run("mine", "words", "--format", "json")
    assert {row["term"] for row in json.loads(again.out)["rows"]} == {"red", "eye", "left", "ear"}
    assert notes.run("budget").out == spent


def test_a_preview_is_free(notes: Shell) -> None:
    ran = notes.run("mine", "words", "--preview")
    assert ran.code == 0 and "people needed" in ran.out and "nothing was charged" in ran.out


def test_mean_pictures_are_printed_drawn_and_written(notes: Shell, tmp_path: Path) -> None:
    ran = notes.run("mine", "faces", "--format", "json", "--save-plot", "faces.svg")
    means = {row["ward"]: row["mean"] for row in json.loads(ran.out)["rows"]}
    assert max(abs(x - y) for x, y in zip(means["eye"], [9, 1, 2, 8], strict=True)) < 1
    assert max(abs(x - y) for x, y in zip(means["ear"], [1, 7, 7, 1], strict=True)) < 1
    assert "<svg" in (tmp_path / "faces.svg").read_text(encoding="utf-8")
    assert "ward" in notes.run("mine", "faces").out
    assert notes.run("mine", "faces", "--output", "faces.arrow", "--format", "arrow").code == 0
    table = pa.ipc.open_stream((tmp_path / "faces.arrow").read_bytes()).read_all()
    assert table["ward"].to_pylist() == ["eye", "ear", None]
    listed = list(csv.reader(io.StringIO(notes.run("mine", "faces", "--format", "csv").out)))
    assert listed[0] == table.column_names


def test_files_have_their_formats(notes: Shell, tmp_path: Path) -> None:
    asked = ("mine", "sets", "--save-plot", "sets.svg", "--output")
    assert notes.run(*asked, "sets.arrow", "--format", "arrow").code == 0
    table = pa.ipc.open_stream((tmp_path / "sets.arrow").read_bytes()).read_all()
    listed = list(csv.reader(io.StringIO(notes.run("mine", "sets", "--format", "csv").out)))
    assert notes.run("mine", "sets", "--format", "csv", "--excel").out.startswith("\ufeff")
    assert listed[0] == table.column_names and len(listed) == table.num_rows + 1
    assert "<svg" in (tmp_path / "sets.svg").read_text(encoding="utf-8")


def test_what_cannot_be_asked_is_refused_free(notes: Shell) -> None:
    assert "none is named" in notes.run("mine").err
    assert "nowhere" in notes.run("mine", "nowhere").err
    assert "delta" in notes.run("mine", "words", "--rho", "1").err
    assert "ledger" in notes.run("mine", "words", "--output", "ledger.db").err


def test_it_speaks_chinese(notes: Shell) -> None:
    assert "不显示" in notes.run("--language", "zh", "mine", "words").out
