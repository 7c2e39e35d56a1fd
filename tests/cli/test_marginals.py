# SPDX-License-Identifier: Apache-2.0
"""``sfumato marginals``: formats, files, refusals, and one charge."""

import csv
import io
import json

import pyarrow as pa
import pytest

from tests.contracts.shell import Shell

EXACTLY = ("--by", "sex", "--by", "sex,born", "--epsilon", "10000")


def test_a_table_shows_each_marginal_and_the_account(shell: Shell) -> None:
    ran = shell.run("marginals", "people", *EXACTLY)
    assert (ran.code, ran.err) == (0, "")
    lines = [line.split() for line in ran.out.splitlines()]
    assert ["female", "20"] in lines and ["female", "1960-01-01", "7"] in lines
    assert "spent     epsilon 10000 of 1000000 (pure gate)" in ran.out


def test_asked_again_it_is_free(shell: Shell) -> None:
    first, again = (
        shell.run("marginals", "people", *EXACTLY, "--format", "json").out for _ in range(2)
    )
    assert first == again
    assert "spent     epsilon 10000 of" in shell.run("budget", "--details").out


def test_an_error_is_bought_and_what_was_chosen_is_said(shell: Shell) -> None:
    ran = shell.run("marginals", "people", "--by", "sex", "--error", "5", "--max-epsilon", "2")
    assert ran.code == 0 and "noise chosen as the cheaper" in ran.out
    assert "n: +- 5 in 95%" in ran.out.replace("+-5", "+- 5")


def test_json_and_csv_have_every_cell(shell: Shell) -> None:
    form = json.loads(shell.run("marginals", "people", *EXACTLY, "--format", "json").out)
    assert [each["by"] for each in form["marginals"]] == [["sex"], ["sex", "born"]]
    assert form["marginals"][0]["counts"] == [20, 20, 0]
    rows = list(
        csv.reader(io.StringIO(shell.run("marginals", "people", *EXACTLY, "--format", "csv").out))
    )
    assert rows[0] == ["marginal", "sex", "born", "n", "n_low", "n_high"]
    assert len(rows) == 1 + 3 + 12
    assert rows[1][:4] == ["sex", "female", "", "20.0"]


def test_csv_for_excel_has_a_mark_and_the_digits_of_its_error(shell: Shell) -> None:
    asked = ("marginals", "people", "--by", "sex", "--rho", "0.0001", "--excel")
    assert shell.run(*asked).code == 2
    path = shell.folder / "m.csv"
    assert shell.run(*asked, "--format", "csv", "--output", str(path)).code == 0
    lines = path.read_bytes().decode("utf-8-sig").split("\r\n")
    assert path.read_bytes().startswith(b"\xef\xbb\xbfmarginal,sex,n,n_low,n_high\r\n")
    # an error of about 240 has two digits: no number has a fraction, and all end in 0
    numbers = [cell for line in lines[1:-1] for cell in line.split(",")[2:]]
    assert numbers and all(number.endswith("0") for number in numbers)


def test_a_name_may_stand_in_quotes(shell: Shell) -> None:
    ran = shell.run("marginals", "people", "--by", '"sex", born', "--rho", "1", "--format", "csv")
    assert ran.out.splitlines()[0] == "marginal,sex,born,n,n_low,n_high"


def test_arrow_and_a_plot_are_written(shell: Shell) -> None:
    output = ("--format", "arrow", "--output", str(shell.folder / "m.arrow"))
    plot = ("--save-plot", str(shell.folder / "m.svg"))
    assert shell.run("marginals", "people", *EXACTLY, *output, *plot).code == 0
    assert pa.ipc.open_stream((shell.folder / "m.arrow").read_bytes()).read_all().num_rows == 15
    assert (shell.folder / "m.svg").read_text().startswith("<svg")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--by", "job", "--rho", "1"), "'job' is open"),
        (("--by", "sex,sex", "--rho", "1"), "twice"),
        (("--by", "sex"), "exactly one"),
        (("--by", "sex", "--error", "5"), "max_epsilon"),
        (("--by", "sex", "--error", "1", "--max-epsilon", "0.001"), "the least is about"),
        (("--by", "sex", "--rho", "1", "--delta", "1e-6"), "delta"),
        (("--rho", "1"), "--by"),
        (("--by", '"born,sex"', "--rho", "1"), "'born,sex'"),
        (("--by", "born\nsex", "--rho", "1"), "commas"),
    ],
)
def test_what_cannot_be_asked_is_refused_free(
    shell: Shell, arguments: tuple[str, ...], told: str
) -> None:
    ran = shell.run("marginals", "people", *arguments)
    assert ran.code in (1, 2) and told in ran.err
    assert "spent     epsilon 0 of" in shell.run("budget", "--details").out


def test_the_ledger_keeps_and_exports_answers_that_are_no_text(shell: Shell) -> None:
    assert shell.run("marginals", "people", *EXACTLY).code == 0
    export, page = shell.folder / "all.jsonl", shell.folder / "report.html"
    for command in (
        ("verify",),
        ("log",),
        ("report", "--output", str(page)),
        ("export", "--output", str(export)),
    ):
        ran = shell.run("ledger", *command)
        assert (ran.code, ran.err) == (0, "")
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert '"answer"' in export.read_text(encoding="utf-8")
