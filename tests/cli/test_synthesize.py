# SPDX-License-Identifier: Apache-2.0
"""``sfumato synthesize``: files, a report, and refusals that cost nothing."""

import pyarrow.csv as csv
import pyarrow.parquet as parquet
import pytest

from tests.contracts.shell import Shell
from tests.synthetic.clinics import clinic
from tests.synthetic.towns import town

FILE = """
dataset = "town"
ledger = "l.db"
[budget]
epsilon = "100"
delta = "1e-5"
[tables.people]
source = "people.parquet"
columns.age = {type = "integer", lower = 0, upper = 99}
columns.job = {type = "category", values = ["none", "nurse", "smith", "clerk"]}
columns.pay = {type = "real", lower = 0, upper = 100000}
[synthetic.workers]
table = "people"
rho = 2
columns = ["age", "job"]
implies = [["age < 18", "job = 'none'"]]
"""
CLINIC = """
dataset = "clinic"
ledger = "l.db"
[budget]
epsilon = "100"
delta = "1e-5"
[tables.patients]
source = "patients.parquet"
unit = {column = "pid", max_rows_total = 1}
columns.age = {type = "integer", lower = 0, upper = 99}
[tables.visits]
source = "visits.parquet"
unit = {column = "pid", max_rows_total = 5}
columns.ward = {type = "category", values = ["eye", "heart", "skin"]}
"""


@pytest.fixture(autouse=True)
def folder(shell: Shell) -> None:
    (shell.folder / "sfumato.toml").write_text(FILE)
    parquet.write_table(town(1000), shell.folder / "people.parquet")


def test_two_commands_lead_from_a_table_to_rows_and_a_report(shell: Shell):
    asked = ("synthesize", "people", "--epsilon", "1", "--delta", "1e-9")
    ran = shell.run(*asked, "-o", "out", "--report", "quality.html", "--rows", "50")
    assert (ran.code, ran.err) == (0, "")
    assert "wrote out/people.csv" in ran.out and "spent" in ran.out and "check " in ran.out
    rows = csv.read_csv(shell.folder / "out" / "people.csv")
    assert rows.column_names == ["age", "job", "pay"] and len(rows) == 50
    assert (shell.folder / "quality.html").read_text().startswith("<!doctype html>")
    spent = shell.run("budget", "--details").out
    assert shell.run(*asked).code == 0
    assert shell.run("budget", "--details").out == spent


def test_csv_for_excel_has_a_mark(shell: Shell):
    asked = ("synthesize", "people", "--rho", "1", "--rows", "5", "--excel")
    refused = shell.run(*asked)
    assert refused.code == 2 and "-o FOLDER" in refused.err
    assert shell.run(*asked, "-o", "out").code == 0
    text = (shell.folder / "out" / "people.csv").read_bytes()
    assert text.startswith(b"\xef\xbb\xbfage,job,pay\r\n") and text.count(b"\r\n") == 6


def test_a_classifier_of_the_rows_is_tested_under_a_charge(shell: Shell):
    asked = ("synthesize", "people", "--rho", "5", "--score", "job")
    ran = shell.run(*asked, "--score-epsilon", "2", "--report", "quality.html")
    assert (ran.code, ran.err) == (0, "")
    assert "trained on these rows: job: accuracy" in ran.out
    assert "Trained on these rows" in (shell.folder / "quality.html").read_text()
    assert shell.run(*asked).code == 2


def test_a_number_is_tested_and_a_public_table_is_compared_with(shell: Shell):
    """A private table is refused before any charge, and so is its file under another name."""
    parquet.write_table(town(1000, seed=2), shell.folder / "known.parquet")
    public = (
        FILE
        + """
[tables.known]
source = "known.parquet"
public = true
columns.age = {type = "integer", lower = 0, upper = 99}
columns.pay = {type = "real", lower = 0, upper = 100000}
"""
    )
    (shell.folder / "sfumato.toml").write_text(public)
    asked = ("synthesize", "people", "--rho", "5", "--report", "quality.html")
    (shell.folder / "sfumato.toml").write_text(public.replace("known.parquet", "people.parquet"))
    ran = shell.run(*asked, "--beside", "known")
    assert ran.code == 2 and "same data as a private one" in ran.err
    (shell.folder / "sfumato.toml").write_text(public)
    assert shell.run(*asked, "--beside", "people").code == 2
    assert "epsilon 0 of" in shell.run("budget", "--details").out
    tested = ("--score", "pay", "--score-within", "9000", "--score-epsilon", "2")
    ran = shell.run(*asked, "--beside", "known", *tested)
    assert (ran.code, ran.err) == (0, "")
    assert "pay within 9000: accuracy" in ran.out and "public ones" in ran.out
    assert "Beside the public table" in (shell.folder / "quality.html").read_text()


def test_a_declared_fit_has_its_columns_constraints_and_cost(shell: Shell):
    ran = shell.run("synthesize", "workers", "-o", "out")
    assert ran.code == 0 and "rho = 2" in ran.out
    rows = parquet.read_table(shell.folder / "out" / "people.parquet")
    assert rows.column_names == ["age", "job"]
    young = rows.to_pandas().query("age < 18")
    assert set(young["job"]) == {"none"}


def test_a_preview_is_free(shell: Shell):
    ran = shell.run("synthesize", "people", "--rho", "0.1", "--preview")
    assert ran.code == 0 and "nothing was charged" in ran.out
    assert "epsilon 0 of" in shell.run("budget", "--details").out


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("nobody", "--rho", "1"), 1),
        (("people",), 2),
        (("people", "people", "--rho", "1"), 2),
        (("people", "--rho", "x"), 2),
        (("people", "--rho", "1", "--report", "no/such/folder.html"), 2),
    ],
)
def test_wrong_use_is_no_charge(shell: Shell, arguments, code):
    assert shell.run("synthesize", *arguments).code == code
    assert "epsilon 0 of" in shell.run("budget", "--details").out


def test_several_tables_are_written_with_keys_that_fit(shell: Shell):
    for name, rows in clinic(300).items():
        parquet.write_table(rows, shell.folder / f"{name}.parquet")
    (shell.folder / "sfumato.toml").write_text(CLINIC)
    asked = ("synthesize", "patients", "visits", "--rho", "5")
    shown = shell.run(*asked, "--preview")
    assert "number of visits" in shown.out and "nothing was charged" in shown.out
    ran = shell.run(*asked, "-o", "out", "--rows", "40", "--report", "quality.html")
    assert (ran.code, ran.err) == (0, "") and "wrote out/visits.csv" in ran.out
    patients = csv.read_csv(shell.folder / "out" / "patients.csv")["pid"].to_pylist()
    visits = csv.read_csv(shell.folder / "out" / "visits.csv")["pid"].to_pylist()
    assert len(patients) == 40 and set(visits) <= set(patients)


def test_a_score_of_no_column_is_refused_before_the_rows_are_paid(shell: Shell) -> None:
    asked = ("synthesize", "people", "--rho", "5", "--score-epsilon", "2")
    for wrong in (
        ("--score", "jbo"),
        ("--score", "pay"),
        ("--score", "job", "--score-within", "1"),
        ("--score", "job", "--score-epsilon", "much"),
    ):
        for more in ((), ("--preview",)):
            ran = shell.run(*asked, *wrong, *more)
            assert ran.code != 0 and "Allowed:" in ran.err
    shown = shell.run(*asked, "--score", "job", "--preview").out
    assert "the score of job costs epsilon 2 at each call" in shown
    assert "epsilon 0 of" in shell.run("budget", "--details").out


@pytest.mark.parametrize("rows", ["-1", "1000000000000"])
def test_a_number_of_rows_that_cannot_be_is_refused_before_the_charge(
    shell: Shell, rows: str
) -> None:
    asked = ("synthesize", "people", "--epsilon", "1", "--delta", "1e-9")
    ran = shell.run(*asked, "-o", "out", "--rows", rows)
    assert ran.code == 2 and "from 0 to 100,000,000" in ran.err
    assert "epsilon 0 of" in shell.run("budget", "--details").out


def test_the_private_rows_are_not_overwritten_and_nothing_is_charged(shell: Shell) -> None:
    before = (shell.folder / "people.parquet").read_bytes()
    for name in ("workers", "people"):
        ran = shell.run("synthesize", name, "--rho", "2", "-o", ".")
        assert ran.code == 2 and "people.parquet" in ran.err and "data of table" in ran.err
    (shell.folder / "out").mkdir()
    (shell.folder / "out" / "people.csv").write_text("age\n7\n")
    ran = shell.run("synthesize", "workers", "-o", "out")
    assert ran.code == 2 and "not marked as synthetic" in ran.err
    assert (shell.folder / "people.parquet").read_bytes() == before
    assert "epsilon 0 spent" in shell.run("budget").out
