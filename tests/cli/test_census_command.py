# SPDX-License-Identifier: Apache-2.0
"""``sfumato census``: plan, measure once, files, a page, and refusals that cost nothing."""

import csv
import io

import pyarrow as pa
import pyarrow.parquet
import pytest

from tests.cli.census_folder import CENSUS, write_folder
from tests.contracts.shell import Shell


@pytest.fixture(autouse=True)
def folder(shell: Shell) -> None:
    write_folder(shell.folder)


def test_the_plan_is_free(shell: Shell):
    ran = shell.run("census", "--plan")
    assert ran.code == 0
    assert "least error" in ran.out and "nothing was charged" in ran.out
    assert "left now    epsilon " in ran.out and "left after  " in ran.out
    assert "epsilon 0 of" in shell.run("budget", "--details").out


def test_it_is_charged_once_and_says_its_quality_and_the_account(shell: Shell):
    ran = shell.run("census", "residents", "--rho", "1000", "--output", "t.csv", "--page", "c.html")
    assert (ran.code, ran.err) == (0, "")
    assert "published" in ran.out and "spent" in ran.out
    rows = list(csv.DictReader(io.StringIO((shell.folder / "t.csv").read_text())))
    totals = {row["geography"]: row["estimate"] for row in rows if row["table"] == "total"}
    # the total of A is public, and stated wrongly: it is kept all the same
    assert totals["A"] == "9"
    assert (shell.folder / "c.html").read_text().startswith("<!doctype html>")
    first = shell.run("budget", "--details").out
    assert shell.run("census", "--rho", "1000").code == 0
    assert shell.run("budget", "--details").out == first


def test_csv_for_excel_has_a_mark_and_estimates_that_add_up(shell: Shell):
    refused = shell.run("census", "--output", "t.parquet", "--excel")
    assert refused.code == 2 and "--excel with parquet" in refused.err
    assert shell.run("census", "--excel").code == 2
    assert "epsilon 0 of" in shell.run("budget", "--details").out
    for path, option in (("t.csv", ()), ("e.csv", ("--excel",))):
        assert shell.run("census", "--output", path, "--runs", "1", *option).code == 0
    content = (shell.folder / "e.csv").read_bytes()
    assert content.startswith(b"\xef\xbb\xbf") and content.count(b"\r\n") == 2 * 4 + 2 + 3 * 2 + 1
    plain = list(csv.DictReader(io.StringIO((shell.folder / "t.csv").read_text())))
    rows = list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"))))
    assert [row["estimate"] for row in rows] == [row["estimate"] for row in plain]
    for row, exact in zip(rows, plain, strict=True):
        assert row["margin"] == str(float(f"{float(exact['margin']):.6g}"))


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_tables_are_written_in_each_format(shell: Shell, suffix: str):
    assert shell.run("census", "--output", f"t.{suffix}", "--runs", "1").code == 0
    path = shell.folder / f"t.{suffix}"
    read = {
        "parquet": pa.parquet.read_table,
        "arrow": lambda path: pa.ipc.open_stream(path.read_bytes()).read_all(),
    }
    table = read[suffix](path)
    assert table.num_rows == 2 * 4 + 2 + 3 * 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nobody",), "No [census.nobody]"),
        (("--output", "t.xlsx"), ".parquet"),
        (("--output", "people.csv"), "data of table"),
        (("--split", "best"), "least error"),
        (("--rho", "0"), "rho"),
        (("--rho", "1", "--delta", "1e-6"), "delta"),
        (("--runs", "0"), "runs"),
    ],
)
def test_what_cannot_be_asked_is_refused_free(shell: Shell, arguments, said):
    ran = shell.run("census", *arguments)
    assert ran.code in (1, 2) and said in ran.err
    assert "epsilon 0 of" in shell.run("budget", "--details").out


def test_totals_that_contradict_one_another_are_refused_free(shell: Shell):
    wrong = CENSUS.replace("{state = {A = 9}}", "{state = {A = 9}, county = {a1 = 8, a2 = 3}}")
    write_folder(shell.folder, wrong)
    ran = shell.run("census")
    assert ran.code == 2 and "add up to 11" in ran.err
    write_folder(shell.folder, CENSUS.replace("{state = {A = 9}}", '"state"'))
    ran = shell.run("census")
    assert ran.code == 2 and "outside differential privacy" in ran.err
    assert "epsilon 0 of" in shell.run("budget", "--details").out
