# SPDX-License-Identifier: Apache-2.0
"""``sfumato budget``: shows what is spent and left; sets limits of accounts from a file."""

import click

from sfumato.cli.ledger import opened
from sfumato.cli.limits_file import read_limits
from sfumato.cli.options import as_json, config, table_or_json
from sfumato.query.load import load


@click.command("budget")
@config
@table_or_json
@click.option(
    "--allocate",
    "limits",
    type=click.Path(),
    help="Set the limits of the accounts in a CSV or TOML file.",
)
@click.option("--reason", default="", help="Why, with --allocate; it is kept in the journal.")
def command(config: str, form: str, limits: str | None, reason: str) -> None:
    """The account of the dataset: limit, spent, left; every number exact."""
    if limits is not None:
        with opened(config) as (ledger, declared):
            wanted = read_limits(limits, declared.dataset.name)
            changed = ledger.allocate_all(wanted, reason=reason)
        click.echo(f"{changed} of {len(wanted)} accounts have another limit now")
        return
    with load(config) as session:
        budget = session.budget
        click.echo(as_json(budget.to_json()) if form == "json" else repr(budget))
