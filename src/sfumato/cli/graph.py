# SPDX-License-Identifier: Apache-2.0
"""``sfumato graph``: edges, degrees, triangles and synthetic graphs of a table of edges."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

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
from sfumato.graph.answer import Answer
from sfumato.graph.questions import Degrees, Edges, Question, Shape, Triangles
from sfumato.graph.synthesis import synthesize
from sfumato.graph.task import Preview, ask, preview
from sfumato.query.answer_files import csv_of

F = TypeVar("F", bound=Callable[..., object])
_ENDINGS = (".graphml", ".parquet", ".csv")
_COSTS = (
    click.option("--epsilon", help="The cost in pure differential privacy."),
    click.option("--rho", help="The cost in zCDP."),
    click.option("--where", help="A condition on columns of the table: \"kind = 'close'\"."),
    click.option("--preview", "free", is_flag=True, help="Cost and expected error alone; free."),
)
_SHOWN = (
    click.option(
        "--format",
        "form",
        type=click.Choice(["table", "json", "csv", "arrow"]),
        default="table",
        show_default=True,
    ),
    excel_option,
    click.option("--output", type=click.Path(dir_okay=False), help="Write the answer to a file."),
    click.option("--save-plot", type=click.Path(dir_okay=False), help="Write a chart as SVG."),
)
_DEGREE = click.option(
    "--max-degree",
    type=int,
    help="The most edges that a person keeps, if a person is the unit; a public number.",
)


def _options(*options: Callable[[Any], Any]) -> Callable[[F], F]:
    """Adds options to a command, in their order."""

    def add(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return add


@dataclass(frozen=True, slots=True)
class _Output:
    """Where an answer is written, and how."""

    form: str
    output: str | None
    save_plot: str | None
    excel: bool


@click.group("graph")
def command() -> None:
    """Edges, degrees and triangles of a table whose rows are edges.

    The unit of the table is {edge = ["a", "b"]}, each edge, or {node = ["a", "b"], of = "people"},
    each person with all edges.
    """


@command.command("edges")
@click.argument("table")
@asks
@_options(*_COSTS, _DEGREE, *_SHOWN)
def edges(table: str, asking: Asking, *, max_degree: int | None, **stated: Any) -> None:
    """Count the edges of TABLE; it is charged."""
    _answer(table, Edges(max_degree), asking, stated)


@command.command("degrees")
@click.argument("table")
@asks
@_options(*_COSTS, _DEGREE, *_SHOWN)
def degrees(table: str, asking: Asking, *, max_degree: int | None, **stated: Any) -> None:
    """Count the nodes of TABLE by their number of edges; it is charged."""
    _answer(table, Degrees(max_degree), asking, stated)


@command.command("triangles")
@click.argument("table")
@asks
@_options(*_COSTS, *_SHOWN)
def triangles(table: str, asking: Asking, **stated: Any) -> None:
    """Count the triangles of TABLE; it is charged."""
    _answer(table, Triangles(), asking, stated)


@command.command("synthesize")
@click.argument("table")
@asks
@_options(*_COSTS)
@click.option(
    "--output",
    type=click.Path(dir_okay=False),
    help="Where to write the graph: a .graphml, .parquet or .csv file.",
)
@click.option("--save-plot", type=click.Path(dir_okay=False), help="Write a chart as SVG.")
def synthesize_command(
    table: str,
    asking: Asking,
    *,
    epsilon: str | None,
    rho: str | None,
    where: str | None,
    free: bool,
    output: str | None,
    save_plot: str | None,
) -> None:
    """Draw a graph like that of TABLE: its degrees and triangles; it is charged."""
    if not free and (output is None or not output.endswith(_ENDINGS)):
        raise WrongUse(f"--output {shown(output)}.", allowed=", ".join(_ENDINGS))
    require_outputs(asking.config, output, save_plot)
    with waiting() as engine, asking.session(engine) as session:
        if free or output is None:
            say(str(preview(session, table, Shape(), epsilon=epsilon, rho=rho, where=where)))
            return
        made = synthesize(session, table, epsilon=epsilon, rho=rho, where=where)
        budget = repr(session.budget)
    made.save(output)
    if save_plot:
        write_file(save_plot, made.plot().svg.encode())
    say(repr(made))
    say(budget)


def _answer(
    table: str,
    question: Question,
    asking: Asking,
    stated: dict[str, Any],
) -> None:
    """Asks a question, or previews it, and writes what comes."""
    target = _Output(*map(stated.pop, ("form", "output", "save_plot", "excel")))
    require_csv(target.form, excel=target.excel)
    is_free = stated.pop("free")
    require_outputs(asking.config, target.output, target.save_plot)
    with waiting() as engine, asking.session(engine) as session:
        if is_free:
            _write_preview(preview(session, table, question, **stated), target)
            return
        answer = ask(session, table, question, **stated)
        budget = repr(session.budget)
    _write(answer, target)
    if target.form == "table" and target.output is None:
        say(budget)


def _write_preview(expected: Preview, target: _Output) -> None:
    """Writes a preview as JSON or as text."""
    text = as_json(expected.to_json()) if target.form == "json" else str(expected)
    write_text(text, target.output)


def _write(answer: Answer, target: _Output) -> None:
    """Writes an answer in a format to a file or to stdout, and its chart."""
    if target.form == "arrow":
        write_bytes(answer.to_arrow_bytes(), target.output)
    elif target.form == "json":
        write_text(as_json(answer.to_json()), target.output)
    elif target.form == "csv":
        table = answer.to_arrow()
        rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
        write_text(csv_of(table.column_names, rows, excel=target.excel), target.output)
    else:
        write_text(repr(answer), target.output)
    if target.save_plot:
        write_file(target.save_plot, answer.plot().svg.encode())
