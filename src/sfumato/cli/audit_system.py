# SPDX-License-Identifier: Apache-2.0
"""``sfumato audit system``: the installed engine with the owner's declarations and statements."""

import click
from rich.console import Console
from rich.progress import Progress

from sfumato.audit.declared import declared_tasks
from sfumato.audit.system import System, system
from sfumato.audit.verdict import Verdict, table
from sfumato.cli.language import say
from sfumato.cli.ledger import reading
from sfumato.cli.options import as_json, config, table_or_json, waits
from sfumato.config.load import read_declarations
from sfumato.errors import Failed, WrongUse
from sfumato.ledger.summary import asked_statements
from sfumato.metadata.side_file import required_text
from sfumato.privacy.event import Json


@click.command("system")
@config
@click.option(
    "--statements",
    "place",
    type=click.Path(dir_okay=False),
    help="A file of SQL statements, each ended by a semicolon [default: some for each column].",
)
@click.option("--asked", is_flag=True, help="Try the statements of the ledger, too.")
@waits
@click.option(
    "--rounds",
    type=click.IntRange(1, 10_000),
    default=20,
    show_default=True,
    help="Pairs of neighbours.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Reproduces a finding.")
@table_or_json
def command(
    *, config: str, place: str | None, asked: bool, rounds: int, seed: int, form: str
) -> None:
    """Try to break the guarantee of this installation on your declarations, with made-up rows.

    What else the file declares is tried too, and questions about graphs. No declared source is
    opened, and nothing is charged. The exit code is 3 if it is broken.
    """
    declared = read_declarations(config)
    statements = _statements(place)
    if asked:
        statements += _asked(config)
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("audit", total=None)
        result = system(
            declared.dataset,
            statements,
            rounds=rounds,
            seed=seed,
            tasks=tuple(declared_tasks(config)),
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
    if form == "json":
        click.echo(as_json(to_json(result)))
    else:
        _show(result)
    if result.verdict is Verdict.VIOLATED:
        raise Failed(
            f"{len(result.findings)} findings.",
            remedy="Answer nothing from this installation, and report it: it is a fault of sfumato.",
        )


def _statements(place: str | None) -> list[str]:
    """Reads the statements of a file."""
    if place is None:
        return []
    text = required_text(place, "a file of SQL")
    statements = [part.strip() for part in text.split(";") if part.strip()]
    if not statements:
        raise WrongUse(f"{place} has no statement.", allowed="statements ended by semicolons")
    return statements


def _asked(config: str) -> list[str]:
    """Reads the statements that were paid for."""
    with reading(config) as (ledger, declared):
        statements = asked_statements(ledger, declared.dataset.name)
    if not statements:
        raise WrongUse("The ledger has no statement.", remedy="Leave out --asked.")
    return statements


def _show(result: System) -> None:
    """Prints the forms, what was refused, the findings and the result."""
    click.echo(table([("form", "result"), *((each.name, each.result) for each in result.forms)]))
    click.echo()
    for text in result.refused:
        say(f"not tried, it does not compile or is not compared: {text}")
    for finding in result.findings:
        click.echo(finding)
    say(
        f"{len(result.statements)} statements, {result.steps} steps compared; "
        f"{result.questions} questions asked on two worlds, the noise of {result.cells} cells tested."
    )
    say(result.sentence)


def to_json(result: System) -> dict[str, Json]:
    """Returns the result of a system audit as a JSON object."""
    forms: list[Json] = [{"name": each.name, "result": each.result} for each in result.forms]
    return {
        "verdict": result.verdict.value,
        "seed": result.seed,
        "statements": list[Json](result.statements),
        "refused": list[Json](result.refused),
        "steps": result.steps,
        "pairs": result.pairs,
        "questions": result.questions,
        "cells": result.cells,
        "forms": forms,
        "findings": list[Json](result.findings),
    }
