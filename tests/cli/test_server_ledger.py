# SPDX-License-Identifier: Apache-2.0
"""The command line with a ledger on a PostgreSQL server."""

import re

from tests.contracts.shell import COUNT, Shell


def test_the_commands_take_the_address_of_a_server(shell: Shell, database: str) -> None:
    shell.configure('ledger = "ledger.db"', f'ledger = "{database}"')
    asked = shell.run("query", COUNT, "--epsilon", "1")
    again = shell.run("query", COUNT, "--epsilon", "1")
    assert (asked.code, again.code) == (0, 0), asked.err
    assert not (shell.folder / "ledger.db").exists()
    for command in (("budget",), ("check",), ("ledger", "verify")):
        ran = shell.run(*command)
        assert ran.code == 0, ran.err


def test_check_says_that_a_ledger_on_a_server_will_be_made(shell: Shell, database: str) -> None:
    secret = database.replace("sfumato@", "sfumato:hunter2@")
    shell.configure('ledger = "ledger.db"', f'ledger = "{secret}"')
    for _ in range(2):  # it makes none itself
        ran = shell.run("check")
        assert (ran.code, "hunter2" in ran.out) == (0, False)
        assert re.search(
            r"ledger: No ledger in postgresql://\S+\. It will be made on first use with Budget",
            ran.out,
        )
    shell.configure('[budget]\nepsilon = "1000000"\ndelta = "1e-6"\n', "")
    ran = shell.run("check")
    assert (ran.code, ran.err.split(".")[0]) == (
        2,
        "InvalidConfig: No ledger yet, and no [budget] to open one with",
    )


def test_check_does_not_take_a_server_that_is_away_for_an_empty_one(
    shell: Shell, database: str
) -> None:
    away = database.replace("sfumato@", "nobody@", 1)
    assert away != database
    shell.configure('ledger = "ledger.db"', f'ledger = "{away}"')
    ran = shell.run("check")
    assert (ran.code, ran.out.count("will be made")) == (3, 0)
    assert "LedgerUnavailable" in ran.err


def test_the_password_of_a_server_is_not_shown(shell: Shell, database: str) -> None:
    shell.configure(
        'ledger = "ledger.db"', f'ledger = "{database.replace("sfumato@", "sfumato:hunter2@")}"'
    )
    shell.run("query", COUNT, "--epsilon", "1")
    for command in (
        ("budget",),
        ("check",),
        ("ledger", "verify"),
        ("ledger", "accounts"),
        ("ledger", "log"),
    ):
        ran = shell.run(*command)
        assert "hunter2" not in ran.out + ran.err, command
