# SPDX-License-Identifier: Apache-2.0
"""``sfumato budget``: what is spent and what is left."""

import click

from sfumato.cli.options import as_json, config
from sfumato.query.load import load


@click.command("budget")
@config
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
def command(config: str, form: str) -> None:
    """The account of the dataset: limit, spent, left; every number exact."""
    with load(config) as session:
        click.echo(as_json(session.budget.to_json()) if form == "json" else repr(session.budget))
