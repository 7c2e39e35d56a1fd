# SPDX-License-Identifier: Apache-2.0
"""``sfumato ledger accounts|allocate|refresh|freeze|thaw|share``."""

import json

import pytest

from tests.contracts.shell import COUNT, Shell

ALLOCATE = ("ledger", "allocate", "--purpose", "unstated")


@pytest.fixture
def asked(shell: Shell) -> Shell:
    """A folder whose ledger has one answer."""
    shell.run("query", COUNT, "--epsilon", "1")
    return shell


def test_accounts_lists_limits_and_what_is_left(asked: Shell) -> None:
    asked.run(*ALLOCATE, "--epsilon", "3")
    lines = asked.run("ledger", "accounts").out.splitlines()
    assert [line.split()[0] for line in lines] == ["shop", "shop/unstated", "shop/unstated/owner"]
    assert (
        "limit Budget(epsilon=3, delta=0)  spent epsilon 1, rho 0.5  left epsilon 2 or rho 0"
        in lines[1]
    )
    assert "limit as above" in lines[2]


def test_accounts_as_json(asked: Shell) -> None:
    form = json.loads(asked.run("ledger", "accounts", "--format", "json").out)
    assert form[0]["limit"] == {"epsilon": "1000000", "delta": "0.000001"}
    assert (form[2]["limit"], form[2]["spent"]) == (
        None,
        {"epsilon": "1", "rho": "0.5", "delta": "0"},
    )


def test_a_question_beyond_an_analysts_limit_is_refused(asked: Shell) -> None:
    ran = asked.run(*ALLOCATE, "--analyst", "owner", "--epsilon", "1.5")
    assert (
        ran.out == "shop/unstated/owner: Budget(epsilon=1.5, delta=0), left epsilon 0.5 or rho 0\n"
    )
    ran = asked.run("query", COUNT, "--epsilon", "2")
    assert (ran.code, ran.err.split(":")[0]) == (1, "BudgetExceeded")
    assert "(account 'shop/unstated/owner')" in ran.err


def test_a_limit_can_be_taken_away_below_the_dataset_only(asked: Shell) -> None:
    asked.run(*ALLOCATE, "--epsilon", "1")
    assert asked.run(*ALLOCATE, "--none").out.startswith("shop/unstated: no limit of its own")
    assert asked.run("ledger", "allocate", "--none").code == 2


@pytest.mark.parametrize(
    "more", [(), ("--epsilon", "1", "--none"), ("--epsilon", "-1"), ("--epsilon", "nan")]
)
def test_a_limit_that_is_none_is_wrong_use(asked: Shell, more: tuple[str, ...]) -> None:
    assert asked.run(*ALLOCATE, *more).code == 2


def test_an_analyst_needs_a_purpose(asked: Shell) -> None:
    ran = asked.run("ledger", "freeze", "--analyst", "ann")
    assert (ran.code, ran.err.split(":")[0]) == (2, "WrongUse")


def test_the_limit_of_the_dataset_is_also_written_into_the_file(asked: Shell) -> None:
    ran = asked.run("ledger", "allocate", "--epsilon", "5", "--delta", "1e-6")
    assert "write Budget(epsilon=5, delta=0.000001) into sfumato.toml" in ran.out
    assert asked.run("query", COUNT, "--epsilon", "2").err.startswith("ContractMismatch")
    asked.configure('epsilon = "1000000"', 'epsilon = "5"')
    assert asked.run("query", COUNT, "--epsilon", "2").code == 0


def test_a_frozen_account_is_refused_until_it_is_thawed(asked: Shell) -> None:
    ran = asked.run("ledger", "freeze", "--reason", "an audit")
    assert ran.out.endswith("frozen (shop: an audit)\n")
    ran = asked.run("query", COUNT, "--epsilon", "2")
    assert (ran.code, "is frozen: an audit" in ran.err) == (1, True)
    assert asked.run("query", COUNT, "--epsilon", "1").code == 1, "no stored answer either"
    assert "FROZEN" in asked.run("ledger", "accounts").out
    assert asked.run("ledger", "thaw").out == "0 failures acknowledged\n"
    assert asked.run("query", COUNT, "--epsilon", "2").code == 0


def test_a_new_period_says_what_it_means_for_the_rows(asked: Shell) -> None:
    ran = asked.run("ledger", "refresh", "--epsilon", "2", "--reason", "a new year")
    assert "left epsilon 2 or rho 0" in ran.out
    assert "over the lifetime of the rows: epsilon 1000002, delta 0.000001" in ran.out
    assert asked.run("ledger", "refresh", "--epsilon", "2").code == 2


def test_sharing_is_switched_by_the_owner(asked: Shell) -> None:
    assert asked.run("ledger", "share", "--allow").out == "answers are shared\n"
    assert asked.run("ledger", "share", "--forbid").out == "answers are not shared\n"
    assert asked.run("ledger", "share").code == 2
    assert asked.run("ledger", "verify").code == 0


def test_no_command_makes_a_ledger(shell: Shell) -> None:
    for command in (
        ("accounts",),
        ("freeze",),
        ("share", "--allow"),
        ("allocate", "--epsilon", "1"),
    ):
        assert shell.run("ledger", *command).err.startswith("LedgerMissing")
    assert not (shell.folder / "ledger.db").exists()


@pytest.mark.parametrize("option", ["--purpose", "--analyst"])
@pytest.mark.parametrize(
    "act",
    [
        ("allocate", "--epsilon", "1"),
        ("freeze",),
        ("thaw",),
        ("refresh", "--epsilon", "1", "--reason", "x"),
    ],
)
def test_an_empty_name_is_not_the_account_above(
    asked: Shell, act: tuple[str, ...], option: str
) -> None:
    before = asked.run("ledger", "log").out
    above = ("--purpose", "research") if option == "--analyst" else ()
    ran = asked.run("ledger", *act, *above, option, "")
    assert (ran.code, ran.err.split(":")[0]) == (2, "WrongUse")
    assert asked.run("ledger", "log").out == before


def test_the_journal_keeps_who_did_it_and_why(asked: Shell) -> None:
    asked.run(*ALLOCATE, "--epsilon", "2", "--actor", "Dora", "--reason", "a new study")
    asked.run("ledger", "share", "--allow", "--reason", "one team")
    acts = [
        json.loads(line) for line in asked.run("ledger", "log", "--format", "json").out.splitlines()
    ]
    told = {act["kind"]: (act["actor"], act["reason"]) for act in acts if "reason" in act}
    assert told["allocate"] == ("Dora", "a new study")
    assert told["policy"][1] == "one team"


def test_a_list_of_names_is_opened_and_closed(shell: Shell) -> None:
    shell.run("budget")
    assert (
        shell.run("ledger", "restrict", "--closed").out
        == "only accounts that were opened may spend\n"
    )
    ran = shell.run("query", COUNT, "--epsilon", "2")
    assert (ran.code, ran.err.split(":")[0]) == (1, "NotListed")
    assert shell.run("ledger", "restrict", "--open").out == "any name may spend\n"
    assert shell.run("query", COUNT, "--epsilon", "2").code == 0


def test_an_account_is_opened_without_a_limit(shell: Shell) -> None:
    shell.run("budget")
    shell.run("ledger", "restrict", "--closed")
    assert (
        shell.run(
            "ledger", "allocate", "--purpose", "unstated", "--analyst", "owner", "--none"
        ).code
        == 0
    )
    assert shell.run("query", COUNT, "--epsilon", "2").code == 0


def test_the_shell_does_not_contradict_the_file(asked: Shell) -> None:
    asked.configure("[budget]", "[budget]\nclosed = true")
    ran = asked.run("ledger", "restrict", "--open")
    assert (ran.code, "says otherwise" in ran.err) == (2, True)


def test_limits_can_be_set_before_anybody_asks(shell: Shell) -> None:
    """The ledger is made with the declared budget; without one it is still missing."""
    assert not (shell.folder / "ledger.db").exists()
    opened = shell.run("ledger", "allocate", "--purpose", "study", "--epsilon", "0.5")
    assert opened.code == 0, opened.err
    assert "study" in shell.run("ledger", "accounts").out
    (shell.folder / "ledger.db").rename(shell.folder / "away.db")
    shell.configure('[budget]\nepsilon = "1000000"\ndelta = "1e-6"\n', "")
    missing = shell.run("ledger", "allocate", "--purpose", "study", "--epsilon", "0.5")
    assert missing.code != 0 and "LedgerMissing" in missing.err
