# SPDX-License-Identifier: Apache-2.0
"""``sfumato frontier``: a table, a picture and JSON of public rows; no ledger is opened."""

import json

import pytest

from tests.cli.models_folder import write_models
from tests.contracts.shell import Shell


@pytest.fixture(autouse=True)
def folder(shell: Shell) -> None:
    write_models(shell)


def test_a_frontier_is_free_and_reads_public_rows_alone(shell: Shell) -> None:
    (shell.folder / "people.csv").unlink()
    ran = shell.run("frontier", "bayes", "-o", "boundary.svg")
    assert ran.code == 0 and "2 fits each" in ran.out and "wrote boundary.svg" in ran.out
    assert [line.split()[0] for line in ran.out.splitlines()[1:2]] == ["8"]
    assert (shell.folder / "boundary.svg").read_text().startswith("<svg")
    assert not (shell.folder / "l.db").exists()


def test_options_replace_the_file_and_json_is_json(shell: Shell) -> None:
    asked = ("frontier", "bayes", "--public", "public.csv", "--epsilons", "2", "--folds", "3")
    ran = shell.run(*asked, "--delta", "0.01", "--format", "json", "-o", "boundary.json")
    told = json.loads(ran.out)
    assert (told["folds"], told["delta"], told["points"][0]["epsilon"]) == (3, "0.01", "2")
    assert json.loads((shell.folder / "boundary.json").read_text()) == told


def test_public_csv_is_written_as_the_private_is(shell: Shell) -> None:
    sql = 'SELECT age, city, ill FROM people"\nlabel = "ill"\nepsilon'
    shell.configure(sql, sql.replace("age", "pay"))
    plain = json.loads(shell.run("frontier", "bayes", "--format", "json").out)
    shell.configure('source = "people.csv"', 'source = "people.csv"\ndelimiter = ";"\n'
                    'encoding = "gb18030"\ndecimal = ","\nthousands = "."')  # fmt: skip
    shell.configure("columns.pay", 'columns."收入"')
    shell.configure("SELECT pay", "SELECT 收入")
    text = (shell.folder / "public.csv").read_text().replace(",", ";").replace(".", ",")
    (shell.folder / "public.csv").write_bytes(text.replace("pay", "收入").encode("gb18030"))
    ran = shell.run("frontier", "bayes", "--format", "json")
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["without_noise"] == plain["without_noise"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("illness",), 2, "without public rows"),
        (("groups", "--public", "public.csv"), 2, "without a label"),
        (("bayes", "--public", "nothing.csv"), 2, "No file"),
        (("bayes", "--epsilons", "3,1"), 2, "ascending"),
        (("bayes", "--epsilons", "x"), 2, "epsilons"),
        (("bayes", "--folds", "1"), 2, "folds=1"),
        (("bayes", "-o", "boundary.png"), 2, "no picture"),
        (("nobody",), 1, "No model"),
    ],
)
def test_what_cannot_be_measured_is_refused(
    shell: Shell, arguments: tuple[str, ...], code: int, words: str
) -> None:
    ran = shell.run("frontier", *arguments)
    assert ran.code == code and words in ran.err


def test_rows_of_two_tables_are_refused(shell: Shell) -> None:
    text = (shell.folder / "sfumato.toml").read_text()
    wards = '[tables.wards]\nsource = "w.csv"\nunit = {column = "city", max_rows_total = 1}\n'
    beds = 'columns.beds = {type = "integer", lower = 0, upper = 9}\n'
    shell.write("sfumato.toml", text.replace("[models.illness]", wards + beds + "[models.illness]"))
    shell.configure("age, city, ill FROM people\"\nlabel = \"ill\"\nepsilon",
                    "age, beds, ill FROM people JOIN wards USING (city)\"\nlabel = \"ill\"\nepsilon")  # fmt: skip
    ran = shell.run("frontier", "bayes")
    assert ran.code != 0
    shell.configure("epsilons = [8]", "epsilons = 3")
    assert shell.run("frontier", "bayes").code == 2
