# SPDX-License-Identifier: Apache-2.0
"""``sfumato advise``: the expected error of a question under other clips, costs and groupings."""

from typing import Any

import click

from sfumato.cli.asking import Asking, asks
from sfumato.cli.options import (
    as_json,
    named,
    parameters,
    require_outputs,
    table_or_json,
    write_file,
)


@click.command("advise")
@click.argument("sql")
@asks
@click.option("--epsilon", help="The cost in pure differential privacy (discrete Laplace noise).")
@click.option("--rho", help="The cost in zCDP (discrete Gaussian noise).")
@click.option("--delta", help="What showing groups that are not public may cost.")
@click.option("--rows", type=click.IntRange(min=1), help="The rows of a group.")
@click.option("--beyond", help="An epsilon that is charged: how many units lie beyond each clip.")
@parameters
@table_or_json
@click.option("--save-plot", type=click.Path(dir_okay=False), help="Write a bar chart as SVG.")
def command(
    sql: str,
    asking: Asking,
    parameters: tuple[str, ...],
    form: str,
    save_plot: str | None,
    **how: Any,
) -> None:
    """Which clip, which cost, which groups: the noise of SQL if it were asked otherwise.

    Free, but for --beyond, which is charged once for each column.
    """
    require_outputs(asking.config, save_plot)
    with asking.session() as session:
        advice = session.advise(sql, parameters=named(parameters), **how)
    click.echo(as_json(advice.to_json()) if form == "json" else repr(advice))
    if save_plot:
        write_file(save_plot, advice.plot().svg.encode())
