# SPDX-License-Identifier: Apache-2.0
"""``sfumato publish``: a plan that is free, tables and a page, what is resumed, what is refused."""

from unittest.mock import patch

import pyarrow.parquet as parquet
import pytest

from sfumato.query.session import Session
from tests.contracts.shell import Shell

FILE = """
title = "The shop & its people"
epsilon = 1000
[questions.all]
sql = "SELECT COUNT(*) AS n FROM people"
title = "How many"
[questions.by-sex]
sql = "SELECT sex, COUNT(*) AS n, AVG(age) AS age FROM people GROUP BY sex"
weight = 0.5
"""
CONFIRMED = ("publish", "tables.toml", "--yes")


@pytest.fixture(autouse=True)
def publication(shell: Shell) -> None:
    shell.write("tables.toml", FILE)


def spent(shell: Shell) -> str:
    return shell.run("budget", "--format", "json").out


def test_a_plan_is_free(shell: Shell) -> None:
    before = spent(shell)
    ran = shell.run("publish", "tables.toml", "--plan")
    assert ran.code == 0 and "2 questions cost epsilon" in ran.out
    assert "nothing was charged" in ran.out and spent(shell) == before


def test_tables_and_a_page_are_written_and_the_same_again_is_free(shell: Shell) -> None:
    ran = shell.run(*CONFIRMED, "-o", "out")
    assert ran.code == 0, ran.err
    assert "wrote out/by-sex.csv" in ran.out and "left " in ran.out
    table = (shell.folder / "out" / "by-sex.csv").read_text().splitlines()
    assert table[0] == "sex,n,n_low,n_high,age,age_low,age_high" and len(table) == 3
    assert table[1].startswith("female,20,")
    page = (shell.folder / "out" / "index.html").read_text()
    assert "The shop &amp; its people" in page and "How many" in page and "<svg" in page
    paid = spent(shell)
    again = shell.run("publish", "tables.toml", "-o", "out", "--form", "parquet")
    assert again.code == 0 and "answered already" in again.out and spent(shell) == paid
    assert len(parquet.read_table(shell.folder / "out" / "by-sex.parquet")) == 2


def test_nothing_is_charged_without_a_yes(shell: Shell) -> None:
    before = spent(shell)
    ran = shell.run("publish", "tables.toml", "-o", "out")
    assert ran.code != 0 and spent(shell) == before


def test_after_a_crash_it_goes_on(shell: Shell) -> None:
    honest = Session.query
    asked = []

    def dies(self: Session, sql: str, **more: object) -> object:
        asked.append(sql)
        if len(asked) == 2:
            raise KeyboardInterrupt
        return honest(self, sql, **more)  # type: ignore[arg-type]

    with patch.object(Session, "query", dies):
        assert shell.run(*CONFIRMED).code != 0
    half = spent(shell)
    ran = shell.run(*CONFIRMED)
    assert ran.code == 0 and "1 of them are answered already" in ran.out
    assert spent(shell) != half


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("epsilon = 1000", "epsilon = 1000\ncolour = 1", "colour"),
        ("epsilon = 1000", "epsilon = 0", "epsilon"),
        ("epsilon = 1000", "", "exactly one"),
        ("weight = 0.5", "weight = -1", "weights"),
        ("weight = 0.5", "wieght = 1", "questions.by-sex"),
        ("[questions.all]", '[questions."../all"]', "the name"),
        ("sex, COUNT", "shoe, COUNT", "shoe"),
        ("[questions.all]", "[questions.all", "not TOML"),
    ],
)
def test_what_cannot_be_published_is_refused_and_free(
    shell: Shell, old: str, new: str, said: str
) -> None:
    before = spent(shell)
    shell.write("tables.toml", FILE.replace(old, new))
    ran = shell.run(*CONFIRMED)
    assert ran.code in (1, 2) and said in ran.err and spent(shell) == before


def test_no_table_overwrites_the_data(shell: Shell) -> None:
    data = (shell.folder / "people.csv").read_text()
    shell.write("tables.toml", FILE.replace("[questions.all]", "[questions.people]"))
    ran = shell.run(*CONFIRMED, "-o", ".")
    assert ran.code == 2 and (shell.folder / "people.csv").read_text() == data
    assert shell.run("publish", "none.toml").code == 2


def test_the_page_is_in_the_language_of_the_shell(shell: Shell) -> None:
    ran = shell.run("--language", "zh", "publish", "tables.toml", "--yes", "-o", "out")
    assert ran.code == 0, ran.err
    page = (shell.folder / "out" / "index.html").read_text("utf-8")
    assert 'lang="zh"' in page and "95% 区间" in page and "如何提问" in page
    assert "95% interval" not in page
