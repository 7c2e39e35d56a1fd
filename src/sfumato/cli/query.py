# SPDX-License-Identifier: Apache-2.0
"""``sfumato query``: asks a question, charges it and writes the answer."""

from typing import Any

import click

from sfumato.cli.asking import Asking, asks
from sfumato.cli.language import say
from sfumato.cli.options import (
    asked,
    emit,
    excel_option,
    named,
    parameters,
    priced,
    require_csv,
    require_outputs,
    write_file,
)
from sfumato.cli.waiting import waiting
from sfumato.errors import WrongUse


@click.command("query")
@click.argument("sql")
@asks
@priced
@parameters
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "csv", "arrow", "parquet", "excel"]),
    default="table",
    show_default=True,
)
@excel_option
@click.option("--output", type=click.Path(dir_okay=False), help="Write the answer to a file.")
@click.option(
    "--save-plot", type=click.Path(dir_okay=False), help="Write a bar chart with intervals as SVG."
)
def command(
    sql: str,
    asking: Asking,
    parameters: tuple[str, ...],
    form: str,
    output: str | None,
    save_plot: str | None,
    *,
    excel: bool,
    **price: Any,
) -> None:
    """Answer SQL privately, charging the account of the dataset.

    The same question at the same price is answered from the ledger, at no cost.
    """
    if form in ("parquet", "excel") and output is None:
        raise WrongUse(f"--format {form} without --output.", remedy="--output answer.file")
    require_csv(form, excel=excel)
    require_outputs(asking.config, output, save_plot)
    with waiting() as engine, asking.session(engine) as session:
        answer = session.query(sql, parameters=named(parameters), **asked(**price))
        budget = repr(session.budget)
    emit(answer, form, output, excel=excel)
    if save_plot:
        write_file(save_plot, answer.plot().svg.encode())
    if form == "table" and output is None:
        say(budget)
