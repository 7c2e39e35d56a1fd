# SPDX-License-Identifier: Apache-2.0
"""``sfumato census``: tables of every level of a geography, which add up."""

import sys
from pathlib import Path

import click
import pyarrow as pa

from sfumato.cli.asking import Asking, asks
from sfumato.cli.language import say
from sfumato.cli.options import (
    excel_option,
    require_csv_file,
    require_outputs,
    write_bytes,
    write_file,
)
from sfumato.cli.page_language import in_language
from sfumato.cli.waiting import waiting
from sfumato.config.census import read_census
from sfumato.errors import WrongUse, shown
from sfumato.query.left_after import left_now
from sfumato.synopsis.geography.census import Census, measure_census

_SUFFIXES = (".csv", ".parquet", ".arrow")


@click.command("census")
@click.argument("name", required=False)
@asks
@click.option("--plan", "is_plan", is_flag=True, help="Show the plan and its errors only; free.")
@click.option("--rho", help="The cost in zCDP, instead of that of the file.")
@click.option("--epsilon", help="The cost in pure differential privacy.")
@click.option("--delta", help="Beside --epsilon: Gaussian noise that lies within both.")
@click.option("--split", help="Another split of the cost, by its name in the plan.")
@click.option(
    "--output",
    type=click.Path(dir_okay=False),
    help="Write all tables in long form: .csv, .parquet or .arrow.",
)
@excel_option
@click.option("--page", type=click.Path(dir_okay=False), help="Write a page to look at (HTML).")
@click.option(
    "--runs",
    type=click.IntRange(1, 1000),
    default=3,
    show_default=True,
    help="Simulations behind the quality report.",
)
def command(
    name: str | None,
    asking: Asking,
    *,
    is_plan: bool,
    rho: str | None,
    epsilon: str | None,
    delta: str | None,
    split: str | None,
    output: str | None,
    excel: bool,
    page: str | None,
    runs: int,
) -> None:
    """Measure the census NAME of the file once, and write its tables.

    The tables are whole numbers of at least 0, and the areas of an area add up to it. The same
    census at the same cost is answered from the ledger, at no cost.
    """
    require_outputs(asking.config, output, page)
    _require_suffix(output)
    require_csv_file(output, excel=excel)
    declared = read_census(asking.config, name)
    cost = {"rho": rho, "epsilon": epsilon, "delta": delta}
    with waiting() as engine, asking.session(engine) as session:
        planned = declared.planned(session.dataset, cost)
        planned.named(split)
        if is_plan:
            task = planned.of(planned.named(split))
            left = left_now(session.balances, session.price(task).charge)
            say("\n".join([repr(planned), *left]))
            return
        census = measure_census(session, planned, split=split)
    census.estimate(_say_level_done)
    if output is not None:
        _write(census, output, excel=excel)
    if page is not None:
        write_file(page, in_language(census.page(runs)).encode())
    say(f"{census!r}\n{census.quality(runs)!r}\n{census.account}")


def _say_level_done(level: str) -> None:
    """Prints on a terminal's stderr that a level has been estimated."""
    if sys.stderr.isatty():
        say(f"estimated: {level}", err=True)


def _require_suffix(output: str | None) -> None:
    """Refuses an output file of an unknown format before anything is charged."""
    if output is not None and Path(output).suffix not in _SUFFIXES:
        raise WrongUse(f"--output {shown(output)}.", allowed=", ".join(_SUFFIXES))


def _write(census: Census, output: str, *, excel: bool) -> None:
    """Writes all tables in the format that the suffix names."""
    sink = pa.BufferOutputStream()
    suffix = Path(output).suffix
    if suffix == ".csv":
        census.to_csv(sink, excel=excel)
    elif suffix == ".parquet":
        census.to_parquet(sink)
    else:
        table = census.to_arrow()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
    write_bytes(sink.getvalue().to_pybytes(), output)
