# SPDX-License-Identifier: Apache-2.0
"""``sfumato mine``: words, sets of items and sequences that many people have, and mean pictures."""

import click
import pyarrow as pa

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
from sfumato.cli.shortfall import say_shortfall
from sfumato.cli.waiting import waiting
from sfumato.config.mining import read_mining
from sfumato.mining.found import Found
from sfumato.mining.mine import mine, preview
from sfumato.privacy.event import Json
from sfumato.query.answer_files import csv_of


@click.command("mine")
@click.argument("name", required=False)
@asks
@click.option("--epsilon", help="With --delta: Gaussian noise that lies within both.")
@click.option("--delta", help="The chance that a value of one person is shown.")
@click.option("--rho", help="The cost in zCDP.")
@click.option("--preview", "is_preview", is_flag=True, help="Show noise, people and cost; free.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "csv", "arrow"]),
    default="table",
    show_default=True,
)
@excel_option
@click.option("--output", type=click.Path(dir_okay=False), help="Write the result to a file.")
@click.option("--save-plot", type=click.Path(dir_okay=False), help="Write a chart of it as SVG.")
def command(
    name: str | None,
    asking: Asking,
    *,
    is_preview: bool,
    form: str,
    output: str | None,
    save_plot: str | None,
    excel: bool,
    **cost: str | None,
) -> None:
    """Count words, sets of items or sequences of the question NAME of the file.

    A question is declared as [mining.NAME] with recipe, data, a cost and the settings of its
    recipe. The same question again is answered from the ledger, at no cost.
    """
    require_csv(form, excel=excel)
    require_outputs(asking.config, output, save_plot)
    declared = read_mining(asking.config, name)
    price = declared.cost(cost)
    with waiting() as engine, asking.session(engine) as session:
        if is_preview:
            planned = preview(session, declared.recipe, declared.data, **price)
            say(repr(planned))
            say_shortfall(planned.cost, session.budget)
            return
        found = mine(session, declared.recipe, declared.data, **price)
        budget = repr(session.budget)
    _write(found, form, output, excel=excel)
    if save_plot:
        write_file(save_plot, found.plot().svg.encode())
    if form == "table" and output is None:
        say(budget)


def _write(result: Found, form: str, output: str | None, *, excel: bool) -> None:
    """Writes a result in a format to a file or to stdout."""
    if form == "arrow":
        table = result.to_arrow()
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        write_bytes(bytes(sink.getvalue().to_pybytes()), output)
    elif form == "json":
        facts: dict[str, Json] = {"charge": result.charge, "cost": result.cost.to_json()}
        facts |= {"notes": [*result.notes], "rows": [*result.to_dicts()]}
        write_text(as_json(facts), output)
    elif form == "csv":
        write_text(csv_of(result.columns, result.rows, excel=excel), output)
    elif output is None:
        say(repr(result))
    else:
        write_text(repr(result), output)
