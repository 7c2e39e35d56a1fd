# SPDX-License-Identifier: Apache-2.0
"""``sfumato marginals``: noisy marginals of one table."""

import csv
import io

import click

from sfumato.cli.options import (
    as_json,
    config,
    require_outputs,
    write_bytes,
    write_file,
    write_text,
)
from sfumato.cli.waiting import waiting
from sfumato.errors import WrongUse, shown
from sfumato.query.load import load
from sfumato.query.marginal_table import Marginals


@click.command("marginals")
@click.argument("table")
@config
@click.option(
    "--by",
    multiple=True,
    required=True,
    metavar="A,B",
    help="The columns of one marginal; repeatable.",
)
@click.option("--rho", help="The cost in zCDP (discrete Gaussian noise).")
@click.option("--epsilon", help="The cost in pure differential privacy (discrete Laplace noise).")
@click.option("--delta", help="Beside --epsilon: Gaussian noise that lies within both.")
@click.option(
    "--error", help="The wanted 95% half-width of each cell, in rows; with --max-epsilon."
)
@click.option("--max-epsilon", help="The most that --error may cost.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "csv", "arrow"]),
    default="table",
    show_default=True,
)
@click.option("--output", type=click.Path(dir_okay=False), help="Write the marginals to a file.")
@click.option(
    "--save-plot",
    type=click.Path(dir_okay=False),
    help="Write a bar chart of the first one as SVG.",
)
def command(
    table: str,
    config: str,
    *,
    by: tuple[str, ...],
    form: str,
    output: str | None,
    save_plot: str | None,
    rho: str | None,
    epsilon: str | None,
    delta: str | None,
    error: str | None,
    max_epsilon: str | None,
) -> None:
    """Count the rows of TABLE privately in each cell of some sets of columns.

    All marginals are of one table that is read once, and share the price equally. The same
    marginals at the same price are answered from the ledger, at no cost.
    """
    require_outputs(config, output, save_plot)
    cliques = [_names(each) for each in by]
    with waiting() as engine, load(config, engine=engine) as session:
        found = session.marginals(
            table,
            cliques,
            rho=rho,
            epsilon=epsilon,
            delta=delta,
            error=error,
            max_epsilon=max_epsilon,
        )
        budget = repr(session.budget)
    if form == "arrow":
        write_bytes(found.to_arrow_bytes(), output)
    else:
        text = {"table": repr, "json": lambda each: as_json(each.to_json()), "csv": _csv}[form](
            found
        )
        write_text(text, output)
    if save_plot:
        write_file(save_plot, found.plot().svg.encode())
    if form == "table" and output is None:
        click.echo(budget)


def _names(by: str) -> tuple[str, ...]:
    """The columns of one marginal; a name with a comma in it stands in double quotes."""
    try:
        return tuple(name.strip() for name in next(csv.reader([by], skipinitialspace=True), []))
    except csv.Error:
        raise WrongUse(
            f"--by {shown(by)}.", allowed="names of columns with commas between them"
        ) from None


def _csv(found: Marginals) -> str:
    """A line for each cell of each marginal."""
    table, file = found.to_arrow(), io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(table.column_names)
    writer.writerows(zip(*(column.to_pylist() for column in table.columns), strict=True))
    return file.getvalue()
