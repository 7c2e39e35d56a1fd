# SPDX-License-Identifier: Apache-2.0
"""``sfumato preview``: the cost and the expected error of a question."""

from typing import Any

import click

from sfumato.cli.asking import Asking, asks
from sfumato.cli.language import say
from sfumato.cli.options import as_json, asked, named, parameters, priced, table_or_json
from sfumato.privacy.event import Json


@click.command("preview")
@click.argument("sql")
@asks
@priced
@parameters
@table_or_json
@click.option("--statement", is_flag=True, help="Show the SQL that would run on the data.")
def command(
    sql: str, asking: Asking, parameters: tuple[str, ...], form: str, statement: bool, **price: Any
) -> None:
    """Cost and expected error of SQL, from the declarations alone; nothing is charged."""
    with asking.session() as session:
        preview = session.preview(sql, parameters=named(parameters), **asked(**price))
        if form == "json":
            facts: dict[str, Json] = {
                "cost": preview.cost.to_json(),
                "errors": preview.error(),
                "statement": preview.statement,
            }
            click.echo(as_json(facts))
            return
        say(f"{preview!r}\n\n{preview.explain()}")
        if statement:
            say(f"\n{preview.statement}")
