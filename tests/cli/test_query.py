# SPDX-License-Identifier: Apache-2.0
"""``sfumato query``: the formats, the files, and one charge a question."""

import csv
import io
import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.contracts.shell import BY_SEX, COUNT, Shell

EXACTLY = ("--epsilon", "1000")


def test_a_table_shows_the_answer_and_the_account(shell: Shell) -> None:
    ran = shell.run("query", BY_SEX, *EXACTLY)
    assert ran.code == 0
    assert "female  20      [20, 20]" in ran.out
    assert "spent     epsilon 1000 of 1000000 (pure gate)" in ran.out


def test_json_has_the_form_of_the_design(shell: Shell) -> None:
    form = json.loads(shell.run("query", BY_SEX, *EXACTLY, "--format", "json").out)
    for name in ("charge_id", "dataset", "statement", "cost", "columns", "rows", "errors", "notes"):
        assert name in form
    assert form["rows"] == [["female", 20], ["male", 20]]
    assert form["columns"] == [{"name": "sex", "type": "text"}, {"name": "n", "type": "integer"}]
    assert form["errors"] == [[None, {"low": 20, "high": 20, "half_width": 0}]] * 2
    assert form["cost"]["epsilon"] == "1000"


def test_csv_has_the_interval_beside_each_released_column(shell: Shell) -> None:
    rows = list(
        csv.reader(io.StringIO(shell.run("query", BY_SEX, *EXACTLY, "--format", "csv").out))
    )
    assert rows == [
        ["sex", "n", "n_low", "n_high"],
        ["female", "20", "20", "20"],
        ["male", "20", "20", "20"],
    ]


def test_csv_for_excel_has_a_mark(shell: Shell) -> None:
    arguments = ("query", BY_SEX, *EXACTLY, "--excel", "--output", "a.csv")
    refused = shell.run(*arguments)
    assert refused.code == 2 and "--format csv" in refused.err
    assert shell.run(*arguments, "--format", "csv").code == 0
    assert (shell.folder / "a.csv").read_bytes().startswith(b"\xef\xbb\xbfsex,n,n_low,n_high\r\n")


def test_arrow_is_a_stream_of_the_table(shell: Shell) -> None:
    assert (
        shell.run("query", BY_SEX, *EXACTLY, "--format", "arrow", "--output", "a.arrow").out == ""
    )
    table = pa.ipc.open_stream((shell.folder / "a.arrow").read_bytes()).read_all()
    assert table.to_pylist() == [{"sex": "female", "n": 20}, {"sex": "male", "n": 20}]


def test_arrow_goes_to_a_pipe_as_bytes(shell: Shell) -> None:
    command = [sys.executable, "-m", "sfumato", "query", BY_SEX, *EXACTLY, "--format", "arrow"]
    ran = subprocess.run(command, cwd=shell.folder, capture_output=True, timeout=60, check=True)
    assert pa.ipc.open_stream(ran.stdout).read_all().num_rows == 2


@pytest.mark.parametrize("form", ["table", "json", "csv"])
def test_an_output_file_holds_what_would_be_printed(shell: Shell, form: str) -> None:
    printed = shell.run("query", COUNT, *EXACTLY, "--format", form).out
    assert shell.run("query", COUNT, *EXACTLY, "--format", form, "--output", "out.txt").out == ""
    written = (shell.folder / "out.txt").read_text(encoding="utf-8")
    assert printed.startswith(written.rstrip("\n").replace(" (paid before, nothing now)", ""))
    assert written.endswith("\n")


def test_a_plot_is_saved_as_svg(shell: Shell) -> None:
    assert shell.run("query", BY_SEX, *EXACTLY, "--save-plot", "p.svg").code == 0
    root = ElementTree.parse(shell.folder / "p.svg").getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"


def test_the_same_question_again_is_free_and_the_same(shell: Shell) -> None:
    first = shell.run("query", COUNT, "--epsilon", "0.1", "--format", "json").out
    assert shell.run("query", COUNT, "--epsilon", "0.1", "--format", "json").out == first
    assert "spent     epsilon 0.1 of" in shell.run("budget", "--details").out


@pytest.mark.parametrize(
    "price",
    [
        ("--rho", "0.5"),
        ("--error", "4", "--max-epsilon", "5"),
        ("--error", "50%", "--max-epsilon", "5"),
        ("--epsilon", "1/3"),
    ],
    ids=str,
)
def test_every_way_to_pay(shell: Shell, price: tuple[str, ...]) -> None:
    assert shell.run("query", COUNT, *price).code == 0


def test_another_file_is_named_with_c(
    shell: Shell, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = shell.folder / "other.toml"
    (shell.folder / "sfumato.toml").rename(other)
    assert shell.run("query", COUNT, *EXACTLY).code == 2
    assert shell.run("query", COUNT, *EXACTLY, "-c", other).code == 0
    assert shell.run("query", COUNT, *EXACTLY, "--config", other).code == 0


def test_a_refusal_writes_no_file_and_no_charge(shell: Shell) -> None:
    shell.run("query", COUNT, "--epsilon", "1")
    ran = shell.run(
        "query",
        "SELECT job, COUNT(*) FROM people GROUP BY job",
        "--epsilon",
        "1",
        "--output",
        "o.txt",
    )
    assert (ran.code, ran.out) == (1, "")
    assert not Path("o.txt").exists()
    assert "spent     epsilon 1 of" in shell.run("budget", "--details").out


def test_files_of_parquet_and_excel_need_a_name_and_have_intervals(shell: Shell) -> None:
    for form in ("parquet", "excel"):
        ran = shell.run("query", BY_SEX, "--epsilon", "1", "--format", form)
        assert (ran.code, f"--format {form} without --output" in ran.err) == (2, True)
    shell.run("query", BY_SEX, "--epsilon", "1", "--format", "parquet", "--output", "n.parquet")
    names = pq.read_schema(shell.folder / "n.parquet").names
    assert names == ["sex", "n", "n_low", "n_high"]
    ran = shell.run("query", BY_SEX, "--epsilon", "1", "--format", "excel", "--output", "n.xlsx")
    assert (ran.code, (shell.folder / "n.xlsx").read_bytes()[:2]) == (0, b"PK")
