# SPDX-License-Identifier: Apache-2.0
"""``sfumato token``: tokens of the people of a service."""

import re

import click

from sfumato.cli.language import say
from sfumato.cli.service_options import OPERATOR, config, directory
from sfumato.errors import WrongUse
from sfumato.service.trail import moment

_DAYS = re.compile(r"(\d{1,4})d")


@click.group("token")
def command() -> None:
    """Tokens of the people of a service; works while it is running, too."""


@command.command("add")
@click.argument("name")
@click.option("--expires", default="90d", show_default=True, help="In how many days it ends.")
@click.option("--read-only", is_flag=True, help="It previews and reads, and charges nothing.")
@config
def add(name: str, config: str, expires: str, *, read_only: bool) -> None:
    """Make a token; prints it once, alone on the last line."""
    days = _DAYS.fullmatch(expires)
    if days is None:
        raise WrongUse(f"--expires {expires!r}.", allowed="a number of days: 90d")
    with directory(config) as (opened, _):
        token = opened.people.make_token(name, days=int(days[1]), read_only=read_only, by=OPERATOR)
    say(f"token {token.id} until {moment(token.expires)}; it is shown only now")
    click.echo(token.secret)
