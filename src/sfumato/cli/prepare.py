# SPDX-License-Identifier: Apache-2.0
"""``sfumato prepare``: writes or deletes prepared layouts of the data."""

import time

import click

from sfumato.cli.language import say
from sfumato.cli.options import config
from sfumato.config.load import read_declarations
from sfumato.engines.prepare import drop, prepare
from sfumato.errors import InvalidConfig


@click.command("prepare")
@config
@click.option(
    "--rows",
    type=int,
    help="How many rows of a unit to keep; by default as many as its limits allow.",
)
@click.option(
    "--drop", "dropping", is_flag=True, help="Delete the layouts instead: they are personal data."
)
def command(config: str, rows: int | None, dropping: bool) -> None:
    """Write a layout of each private table with a unit into the folder that prepared = names.

    Questions that permit it then read a fixed sample of each unit's rows instead of the source.
    Nothing is charged. Run it again after the data or the declarations have changed.
    """
    declared = read_declarations(config)
    if declared.prepared is None:
        raise InvalidConfig(
            "The file does not say where layouts go.", remedy='prepared = "layouts"'
        )
    if dropping:
        is_deleted = drop(declared.prepared)
        what = "deleted" if is_deleted else "there was nothing to delete"
        say(f"{declared.prepared}: {what}")
        return
    start = time.monotonic()

    def report(line: str) -> None:
        say(f"{line}, after {time.monotonic() - start:.1f} s", err=True)

    tables, dataset = declared.dataset.tables, declared.dataset.name
    made = prepare(tables, dataset=dataset, folder=declared.prepared, rows=rows, report=report)
    say(f"prepared in {made}")
