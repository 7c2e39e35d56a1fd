# SPDX-License-Identifier: Apache-2.0
"""``sfumato synopsis``: plan and measure a synopsis that the file declares, and ask it."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import click

from sfumato.accounting.order_price import price
from sfumato.cli.asking import Asking, asks
from sfumato.cli.language import say
from sfumato.cli.ledger import reading
from sfumato.cli.options import (
    as_json,
    config,
    require_outputs,
    table_or_json,
    write_file,
    write_text,
)
from sfumato.cli.waiting import waiting
from sfumato.config.load import read_declarations
from sfumato.config.synopsis import read_synopsis
from sfumato.errors import SfumatoError
from sfumato.ledger.account_path import Scope
from sfumato.metadata.side_file import required_text
from sfumato.privacy.event import Json
from sfumato.query.left_after import left_lines
from sfumato.show.render import number, text_table
from sfumato.synopsis.column import Synopsis
from sfumato.synopsis.measure import measured
from sfumato.synopsis.restore import from_json
from sfumato.synopsis.tables import Tables

F = TypeVar("F", bound=Callable[..., object])
_COSTS = (
    ("--rho", "The cost in zCDP, instead of that of the file."),
    ("--epsilon", "The cost in pure differential privacy."),
    ("--delta", "Beside --epsilon: Gaussian noise that lies within both."),
    ("--error", "The wanted root of the mean squared error, in rows, at the least cost."),
    ("--worst", "The wanted standard error of every query, in rows."),
    ("--max-rho", "The most that --error or --worst may cost, with Gaussian noise."),
    ("--max-epsilon", "The most that it may cost, with Laplace noise."),
)


def costs(command: F) -> F:
    """Adds the options for the cost or the wanted error to a command."""
    for name, text in reversed(_COSTS):
        command = click.option(name, help=text)(command)
    return command


@click.group("synopsis")
def command() -> None:
    """One measurement of a table that answers every question of a workload.

    A synopsis is declared in the file: [synopses.NAME] with table, wanted, and rho or epsilon.
    """


@command.command("plan")
@click.argument("name", required=False)
@asks
@costs
@click.option("--confidence", help="Also a bound of the errors of all queries at once.")
def plan_command(
    name: str | None, asking: Asking, confidence: str | None, **cost: str | None
) -> None:
    """Compare the strategies for the synopsis NAME; free."""
    declared = read_synopsis(asking.config, name)
    declarations = read_declarations(asking.config)
    planned = declared.planned(declarations.dataset, cost)
    say(repr(planned))
    # no account before the first question, and a plan makes none
    with suppress(SfumatoError), reading(asking.config) as (ledger, _):
        path = (
            declarations.dataset.name,
            asking.purpose or declarations.purpose,
            asking.analyst or declarations.analyst,
        )
        charge = price(planned.task.event, ledger.orders(Scope(*path)))
        say("\n".join(left_lines(ledger.balances(*path), charge)))
    if confidence is not None:
        bound = planned.error(confidence=confidence)
        say(f"all queries at once: +- {number(bound)} (confidence {confidence})")


@command.command("measure")
@click.argument("name", required=False)
@asks
@costs
@click.option("--strategy", help="Another strategy of the plan, by its name.")
@click.option(
    "--output",
    type=click.Path(dir_okay=False),
    required=True,
    help="Write the synopsis as JSON, for sfumato synopsis answer.",
)
def measure_command(
    name: str | None, asking: Asking, *, strategy: str | None, output: str, **cost: str | None
) -> None:
    """Measure the synopsis NAME once, in one charge, and write it to a file.

    The same synopsis at the same cost is recalled from the ledger, at no cost.
    """
    require_outputs(asking.config, output)
    declared = read_synopsis(asking.config, name)
    with waiting() as engine, asking.session(engine) as session:
        planned = declared.planned(session.dataset, cost)
        found = measured(session, planned, strategy or declared.strategy)
        write_file(output, found.to_json().encode())
        say(f"{found!r}\n{session.budget!r}")


@command.command("answer")
@click.argument("file", type=click.Path(dir_okay=False))
@click.argument("questions", nargs=-1, required=True)
@config
@click.option("--confidence", default="0.95", show_default=True, help="Of each interval.")
@click.option("--output", type=click.Path(dir_okay=False), help="Write the answers to a file.")
@table_or_json
def answer_command(
    file: str,
    questions: tuple[str, ...],
    *,
    config: str,
    confidence: str,
    output: str | None,
    form: str,
) -> None:
    """Ask the synopsis of a FILE that measure wrote; free.

    A question is a test of SQL ("age < 18 AND sex = 'F'"), or a SELECT with COUNT, SUM and GROUP
    BY.
    """
    require_outputs(config, output)
    found = _read(file, config)
    tables = []
    for question in questions:
        tables.append(_answer_rows(found, question, confidence))
    if form == "json":
        named = zip(questions, tables, strict=True)
        answers = [{"question": question, "rows": _plain(rows)} for question, rows in named]
        write_text(as_json(answers), output)
    else:
        write_text("\n\n".join(map(_text, tables)), output)


def _read(file: str, config: str) -> Synopsis | Tables:
    """Loads the synopsis of a file."""
    text = required_text(file, "a file that sfumato synopsis measure --output wrote")
    return from_json(text, read_declarations(config).dataset)


def _answer_rows(
    synopsis: Synopsis | Tables, question: str, confidence: str
) -> list[dict[str, Any]]:
    """Answers a question from a synopsis; returns the rows of the answer."""
    if question.lstrip()[:6].upper() == "SELECT":
        rows: list[dict[str, Any]] = synopsis.query(question, confidence).to_pylist()
        return rows
    said = synopsis.answer(question, confidence)
    return [
        {"n": said.value, "n_error": said.standard_error, "n_low": said.low, "n_high": said.high}
    ]


def _plain(rows: list[dict[str, Any]]) -> list[Any]:
    """Rows with their values converted to JSON types."""
    plain = []
    for row in rows:
        plain.append({name: _value(value) for name, value in row.items()})
    return plain


def _value(value: object) -> Json:
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _text(rows: list[dict[str, Any]]) -> str:
    """Rows as a table."""
    header = list(rows[0]) if rows else []
    body = []
    for row in rows:
        body.append([number(_value(value)) for value in row.values()])
    return text_table(header, body)
