# SPDX-License-Identifier: Apache-2.0
"""``sfumato user``: the people of a service."""

import click

from sfumato.cli.language import say
from sfumato.cli.service_options import OPERATOR, config, directory, read_password
from sfumato.errors import WrongUse
from sfumato.service.people import Role
from sfumato.service.settings import Settings

_file = click.option("--password-file", help="A file with the password, in one line.")


@click.group("user")
def command() -> None:
    """The people of a service; works while it is running, too."""


@command.command("add")
@click.argument("name")
@click.option("--owner", is_flag=True, help="Sets limits, decides on requests, adds people.")
@click.option("--auditor", is_flag=True, help="Reads log, report and answers; never asks.")
@_file
@config
def add(name: str, config: str, password_file: str | None, *, owner: bool, auditor: bool) -> None:
    """Add a person; prints an invitation, with which they set a password."""
    if owner and auditor:
        raise WrongUse("--owner and --auditor.", allowed="one of them")
    role = Role.OWNER if owner else Role.AUDITOR if auditor else Role.ANALYST
    password = None if password_file is None else read_password(password_file)
    with directory(config) as (opened, settings):
        with opened.state.changing():
            opened.people.add(name, role, by=OPERATOR)
            if password is not None:
                opened.people.set_password(name, password, by=OPERATOR)
                return
            secret = opened.people.invite(name, by=OPERATOR)
        say(_invitation(settings, secret))


@command.command("list")
@config
def listed(config: str) -> None:
    """Show everybody: name, role, whether disabled."""
    with directory(config) as (opened, _):
        for person in opened.people.everybody():
            click.echo(f"{person.name}  {person.role.value}{'  disabled' * person.disabled}")


@command.command("password")
@click.argument("name")
@_file
@config
def password(name: str, config: str, password_file: str | None) -> None:
    """Set a password; the person's tokens end."""
    secret = read_password(password_file)
    with directory(config) as (opened, _):
        opened.people.set_password(name, secret, by=OPERATOR)


@command.command("reset")
@click.argument("name")
@config
def reset(name: str, config: str) -> None:
    """End a person's password and tokens; prints a new invitation."""
    with directory(config) as (opened, settings):
        say(_invitation(settings, opened.people.reset(name, by=OPERATOR)))


@command.command("disable")
@click.argument("name")
@config
def disable(name: str, config: str) -> None:
    """Close the service to a person for good; the name is never given again."""
    with directory(config) as (opened, _):
        opened.people.disable(name, by=OPERATOR)


def _invitation(settings: Settings, secret: str) -> str:
    return f"invitation: {settings.address}/setup/{secret}   (once, within a week)"
