# SPDX-License-Identifier: Apache-2.0
"""``sfumato synopsis``: planned free, measured once, asked from its file, refused with a remedy."""

import json

import pytest

from tests.contracts.shell import Shell

DECLARED = """
[synopses.both]
table = "people"
rho = 30000
wanted = [
  {ranges = "age", cells = ["sex"]},
  {marginals = ["sex", "born"], up_to = 2, weight = "2"},
  {queries = ["SELECT sex, SUM(age) FROM people WHERE age >= 18 GROUP BY sex"]},
]
[synopses.ages]
table = "people"
epsilon = 30000
strategy = "identity"
wanted = [{prefixes = "age"}]
[synopses.wished]
table = "people"
worst = "10"
max_rho = 1
wanted = [{ranges = ["age"]}]
"""


@pytest.fixture
def shell(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    opened = Shell(tmp_path, capsys)
    opened.configure("[tables.people]", f"{DECLARED}\n[tables.people]")
    return opened


def test_a_synopsis_is_planned_measured_and_asked(shell):
    planned = shell.run("synopsis", "plan", "both", "--confidence", "0.9")
    assert "trees of 2" in planned.out
    assert "all queries at once: +- " in planned.out
    assert not (shell.folder / "ledger.db").exists()
    first = shell.run("synopsis", "measure", "both", "--output", "both.json")
    assert first.code == 0
    # another dataset of the same ledger has no account, and gets none
    text = (shell.folder / "sfumato.toml").read_text()
    (shell.folder / "other.toml").write_text(text.replace('dataset = "shop"', 'dataset = "other"'))
    other = shell.run("synopsis", "plan", "both", "-c", "other.toml")
    assert other.code == 0 and "left now" not in other.out
    assert "other" not in shell.run("ledger", "accounts").out
    left = shell.run("synopsis", "plan", "both").out
    assert "left now    pure gate closed, rho" in left and "left after  pure gate closed" in left
    again = shell.run("synopsis", "measure", "both", "--output", "both.json")
    assert again.out.splitlines()[-1] == first.out.splitlines()[-1]
    said = shell.run(
        "synopsis", "answer", "both.json", "age < 30 AND sex = 'female'", "--format", "json"
    )
    assert json.loads(said.out)[0]["rows"][0]["n"] == pytest.approx(10, abs=0.5)
    sql = "SELECT born, COUNT(*) AS n FROM people GROUP BY born"
    asked = shell.run(
        "synopsis", "answer", "both.json", sql, "TRUE", "--format", "json", "--output", "a.json"
    )
    assert (asked.code, asked.out) == (0, "")
    days, all_rows = json.loads((shell.folder / "a.json").read_text())
    assert [row["born"] for row in days["rows"]] == [f"1960-01-0{day}" for day in (1, 2, 3)]
    assert all_rows["rows"][0]["n"] == pytest.approx(40, abs=0.5)


def test_a_strategy_and_a_wanted_error_may_be_declared(shell):
    assert (
        "identity, 1 layers" in shell.run("synopsis", "measure", "ages", "--output", "a.json").out
    )
    table = shell.run("synopsis", "answer", "a.json", "age < 30", "age = 30").out
    assert table.count("n_low") == 2
    wished = shell.run("synopsis", "plan", "wished").out
    stated = shell.run("synopsis", "plan", "wished", "--rho", "1").out
    assert "expected error" in wished
    assert wished != stated


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["plan"], 2, "3 tables [synopses.NAME]"),
        (["plan", "others"], 2, "both, ages, wished"),
        (["plan", "wished", "--error", "1", "--max-rho", "0.001"], 1, "the least is"),
        (["plan", "wished", "--error", "1"], 2, "max_rho="),
        (["measure", "both"], 2, "--output"),
        (["measure", "both", "--output", "people.csv"], 2, "data of table"),
        (["measure", "both", "--output", "x.json", "--strategy", "best"], 2, "marginals"),
        (["answer", "nowhere.json", "TRUE"], 2, "cannot be read"),
        (["answer", "people.csv", "TRUE"], 2, "not a synopsis"),
    ],
)
def test_what_is_wrong_is_refused(shell, arguments, code, said):
    ran = shell.run("synopsis", *arguments)
    assert ran.code == code
    assert said in ran.err
