# SPDX-License-Identifier: Apache-2.0
"""No command shows the password of an address, whatever argument it is given as, and whether it
works or not.
"""

from collections.abc import Iterator

import click
import pytest

from sfumato.cli import main as cli
from sfumato.cli.main import sfumato
from tests.contracts.shell import COUNT, Shell

SECRET = "hunter2"
ADDRESSES = (
    f"postgresql://ada:{SECRET}@127.0.0.1:1/clinic",
    f"ftp://ada:{SECRET}@127.0.0.1:1/clinic",
    f"https://ada:{SECRET}@127.0.0.1:1/head?token={SECRET}",
    f"host=127.0.0.1 password={SECRET}",
)
# What a command needs besides the argument that is tried.
NEEDED = {"output": "out.bin", "epsilon": "0.1", "reason": "why", "sql": COUNT, "sql_file": COUNT}


def commands(
    group: click.Group, above: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command, by its words."""
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        assert found is not None
        if isinstance(found, click.Group):
            yield from commands(found, (*above, name))
        else:
            yield (*above, name), found


def lines(command: click.Command, address: str) -> Iterator[list[str]]:
    """Command lines in which one argument after the other is the address.

    The last has one too many.
    """

    def given(each: click.Parameter, value: str) -> list[str]:
        return [each.opts[0], value] if isinstance(each, click.Option) else [value]

    taking = [
        each for each in command.params if not (isinstance(each, click.Option) and each.is_flag)
    ]
    plain = [
        part
        for each in taking
        if each.required
        for part in given(each, NEEDED.get(str(each.name), "file"))
    ]
    for tried in taking:
        if not isinstance(tried.type, click.IntRange | click.Choice):
            others = [each for each in taking if each.required and each is not tried]
            rest = [
                part for each in others for part in given(each, NEEDED.get(str(each.name), "file"))
            ]
            yield [*given(tried, address), *rest]
    yield [*plain, address]


LEDGER = [
    (words, found)
    for words, found in commands(sfumato)
    if words[0] in ("ledger", "check", "query", "budget")
]


@pytest.mark.parametrize(("words", "command"), LEDGER, ids=["-".join(words) for words, _ in LEDGER])
def test_no_command_shows_the_password_of_an_argument(
    shell: Shell, words: tuple[str, ...], command: click.Command
) -> None:
    for address in (ADDRESSES[0], ADDRESSES[-1]):
        for line in lines(command, address):
            ran = shell.run(*words, *line)
            assert SECRET not in ran.out + ran.err, line


def test_a_message_that_quotes_its_argument_is_noticed(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli, "without_secrets", str)
    words, command = next(each for each in LEDGER if each[0] == ("ledger", "migrate"))
    with pytest.raises(AssertionError):
        test_no_command_shows_the_password_of_an_argument(shell, words, command)


@pytest.mark.parametrize("key", ["ledger", "source", "prepared", "ledger_heads", "ledger_key"])
def test_no_command_shows_a_password_of_the_file(shell: Shell, key: str) -> None:
    original = (shell.folder / "sfumato.toml").read_text()
    for address in ADDRESSES:
        if key in ("ledger", "source"):
            shell.configure(
                f'{key} = "{"ledger.db" if key == "ledger" else "people.csv"}"',
                f'{key} = "{address}"',
            )
        else:
            value = f'["{address}"]' if key == "ledger_heads" else f'"{address}"'
            shell.configure("[budget]", f"{key} = {value}\n[budget]")
        for line in (["check"], ["query", COUNT, "--epsilon", "1"], ["prepare"], ["ledger", "verify"],
                     ["ledger", "recover", "--accept-loss", "--reason", "why"],
                     ["ledger", "backup", "b"], ["ledger", "migrate", "--to", "to.db"]):  # fmt: skip
            ran = shell.run(*line)
            assert SECRET not in ran.out + ran.err, (line, address)
        assert not [each for each in shell.folder.rglob("*") if SECRET in str(each)], address
        shell.write("sfumato.toml", original)
        (shell.folder / "ledger.db").unlink(missing_ok=True)
        for each in shell.folder.glob("ledger.db*"):
            each.unlink()


def test_a_migration_that_succeeds_does_not_show_the_password_of_its_target(
    shell: Shell, database: str
) -> None:
    shell.run("query", COUNT, "--epsilon", "1")
    secret = database.replace("sfumato@", f"sfumato:{SECRET}@")
    assert secret != database
    ran = shell.run("ledger", "migrate", "--to", secret)
    assert (ran.code, SECRET in ran.out) == (0, False)
    assert "entries moved and verified to 'postgresql://" in ran.out
    again = shell.run("query", COUNT, "--epsilon", "1")
    assert (again.code, SECRET in again.err) == (3, False)
