# SPDX-License-Identifier: Apache-2.0
"""The command line with a ledger on a PostgreSQL server."""

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


def test_the_password_of_a_server_is_not_shown(shell: Shell, database: str) -> None:
    shell.configure('ledger = "ledger.db"', f'ledger = "{database.replace("sfumato@", "sfumato:hunter2@")}"')
    shell.run("query", COUNT, "--epsilon", "1")
    for command in (("budget",), ("check",), ("ledger", "verify"), ("ledger", "accounts"), ("ledger", "log")):
        ran = shell.run(*command)
        assert "hunter2" not in ran.out + ran.err, command
