# SPDX-License-Identifier: Apache-2.0
"""Who asks: by options of the shell, by the file, and in Python."""

import json

import pytest

import sfumato as sf
from tests.contracts.shell import BY_SEX, COUNT, Shell

ADVISED = "SELECT AVG(age) AS m FROM people"


def spent(shell: Shell) -> dict[str, str]:
    rows = json.loads(shell.run("ledger", "accounts", "--format", "json").out)
    return {row["account"]: row["spent"]["epsilon"] for row in rows}


def test_an_analyst_pays_from_the_account_of_a_purpose(shell: Shell) -> None:
    for arguments in (
        ("query", COUNT, "--epsilon", "1"),
        ("marginals", "people", "--by", "sex", "--epsilon", "2", "--delta", "1e-9"),
        ("diagnose", ADVISED, "--epsilon", "4"),
    ):
        ran = shell.run(*arguments, "--analyst", "ann", "--purpose", "research")
        assert ran.code == 0, ran.err
    assert set(spent(shell)) == {"shop", "shop/research", "shop/research/ann"}


@pytest.mark.parametrize(
    "arguments", [("preview", COUNT, "--epsilon", "1"), ("advise", ADVISED, "--epsilon", "1")]
)
def test_what_is_free_takes_a_name_too(shell: Shell, arguments: tuple[str, ...]) -> None:
    assert shell.run(*arguments, "--analyst", "ann").code == 0
    ran = shell.run(*arguments, "--analyst", "")
    assert (ran.code, "WrongUse: analyst=''." in ran.err) == (2, True)


def test_the_file_names_who_asks_and_an_option_another(shell: Shell) -> None:
    shell.configure("[budget]", 'analyst = "ann"\npurpose = "research"\n[budget]')
    shell.run("query", COUNT, "--epsilon", "1")
    shell.run("query", BY_SEX, "--epsilon", "2", "--analyst", "bob")
    found = spent(shell)
    assert (found["shop/research/ann"], found["shop/research/bob"]) == ("1", "2")
    assert "shop/unstated/owner" not in found


def test_python_takes_the_same_names(shell: Shell) -> None:
    shell.configure("[budget]", 'analyst = "ann"\n[budget]')
    with sf.load() as session:
        assert session.budget.standing.scope.id == "shop/unstated/ann"
    with sf.load(analyst="bob", purpose="teaching") as session:
        assert session.budget.standing.scope.id == "shop/teaching/bob"


@pytest.mark.parametrize("line", ['analyst = ""', "analyst = 3", 'purpose = ""'])
def test_a_name_that_is_none_is_refused(shell: Shell, line: str) -> None:
    shell.configure("[budget]", f"{line}\n[budget]")
    assert shell.run("check").code == 2


def test_analysts_do_not_get_answers_of_each_other_for_free(shell: Shell) -> None:
    shell.run("query", COUNT, "--epsilon", "1", "--analyst", "ann")
    shell.run("query", COUNT, "--epsilon", "1", "--analyst", "bob")
    assert spent(shell)["shop"] == "2"
