# SPDX-License-Identifier: Apache-2.0
"""``sfumato diagnose``: estimates how many units and values are clipped or dropped."""

import click
from rich.console import Console

from sfumato.cli.asking import Asking, asks
from sfumato.cli.options import as_json, named, parameters, table_or_json


@click.command("diagnose")
@click.argument("sql")
@asks
@click.option("--epsilon", help="The cost in pure differential privacy (discrete Laplace noise).")
@click.option("--rho", help="The cost in zCDP (discrete Gaussian noise).")
@parameters
@table_or_json
def command(
    sql: str,
    asking: Asking,
    epsilon: str | None,
    rho: str | None,
    parameters: tuple[str, ...],
    form: str,
) -> None:
    """How many units and which share of the values SQL clips or drops; it is charged."""
    with asking.session() as session:
        with Console(stderr=True).status("asking the data"):
            diagnosis = session.diagnose(
                sql, parameters=named(parameters), epsilon=epsilon, rho=rho
            )
        click.echo(as_json(diagnosis.to_json()) if form == "json" else repr(diagnosis))
