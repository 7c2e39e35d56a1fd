# SPDX-License-Identifier: Apache-2.0
"""``sfumato marginals``: noisy marginals of one table."""

import csv

import click

from sfumato.cli.asking import Asking, asks
from sfumato.cli.language import say
from sfumato.cli.options import (
    as_json,
    excel_option,
    require_csv,
    require_outputs,
    write_bytes,
    write_file,
    write_text,
)
from sfumato.cli.waiting import waiting
from sfumato.errors import WrongUse, shown
from sfumato.query.answer_files import csv_of
from sfumato.query.marginal_table import Marginals


@click.command("marginals")
@click.argument("table")
@asks
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
@excel_option
@click.option("--output", type=click.Path(dir_okay=False), help="Write the marginals to a file.")
@click.option(
    "--save-plot",
    type=click.Path(dir_okay=False),
    help="Write a bar chart of the first one as SVG.",
)
def command(
    table: str,
    asking: Asking,
    *,
    by: tuple[str, ...],
    form: str,
    excel: bool,
    output: str | None,
    save_plot: str | None,
    rho: str | None,
    epsilon: str | None,
    delta: str | None,
    error: str | None,
    max_epsilon: str | None,
) -> None:
    """Count the rows of TABLE privately in each cell of some sets of columns.

    The table is read once, and the marginals share the price equally. The same marginals at the
    same price are answered from the ledger, at no cost.
    """
    require_csv(form, excel=excel)
    require_outputs(asking.config, output, save_plot)
    cliques = [_names(columns) for columns in by]
    with waiting() as engine, asking.session(engine) as session:
        marginals = session.marginals(
            table,
            cliques,
            rho=rho,
            epsilon=epsilon,
            delta=delta,
            error=error,
            max_epsilon=max_epsilon,
        )
        budget = repr(session.budget)
    _write(marginals, form, output, excel=excel)
    if save_plot:
        write_file(save_plot, marginals.plot().svg.encode())
    if form == "table" and output is None:
        say(budget)


def _write(marginals: Marginals, form: str, output: str | None, *, excel: bool) -> None:
    """Writes marginals in a format to a file or to stdout."""
    if form == "arrow":
        write_bytes(marginals.to_arrow_bytes(), output)
    elif form == "json":
        write_text(as_json(marginals.to_json()), output)
    elif form == "csv":
        table = marginals.to_arrow()
        rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
        write_text(csv_of(table.column_names, rows, excel=excel), output)
    else:
        write_text(repr(marginals), output)


def _names(by: str) -> tuple[str, ...]:
    """Parses the column names of one marginal; a name with a comma is in double quotes."""
    try:
        names = next(csv.reader([by], skipinitialspace=True), [])
        return tuple(name.strip() for name in names)
    except csv.Error:
        raise WrongUse(
            f"--by {shown(by)}.", allowed="names of columns with commas between them"
        ) from None
