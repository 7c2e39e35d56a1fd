# SPDX-License-Identifier: Apache-2.0
"""``sfumato publish``: plans the questions of a file together, asks them, and writes the tables."""

from collections.abc import Mapping
from pathlib import Path

import click

from sfumato.cli.asking import Asking, asks
from sfumato.cli.language import present, say
from sfumato.cli.options import excel_option, require_csv, require_outputs, write_file
from sfumato.cli.publication_page import page
from sfumato.cli.waiting import Tell, watching
from sfumato.config.publication import PublicationConfig, read_publication
from sfumato.errors import WrongUse
from sfumato.query.answer import Answer
from sfumato.query.publication import Publication
from sfumato.query.session import Session


@click.command("publish")
@click.argument("publication", type=click.Path(dir_okay=False))
@asks
@click.option("--plan", "is_plan", is_flag=True, help="Show cost and errors; free.")
@click.option("--yes", is_flag=True, help="Do not ask before charging.")
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False),
    help="The folder of the tables and the page.",
)
@click.option(
    "--form",
    type=click.Choice(["csv", "parquet"]),
    default="csv",
    show_default=True,
    help="The form of the tables.",
)
@excel_option
def command(
    publication: str,
    asking: Asking,
    *,
    is_plan: bool,
    yes: bool,
    output: str | None,
    form: str,
    excel: bool,
) -> None:
    """Ask all questions of PUBLICATION, a TOML file, for one cost.

    What several questions ask for is paid once. If it is interrupted, the same command goes on:
    what was answered is stored, and costs nothing again.
    """
    require_csv(form, excel=excel)
    declared = read_publication(publication)
    files = _output_paths(declared, output, form)
    require_outputs(asking.config, *map(str, files.values()))
    with watching("asking") as (engine, tell), asking.session(engine) as session:
        planned = session.plan(
            dict(declared.statements),
            weights=declared.weights,
            sizes=declared.sizes,
            **declared.cost,
        )
        say(repr(planned))
        if is_plan:
            return
        if planned.left and not yes:
            click.confirm(present().sentence("Ask, and charge it?"), abort=True, err=True)
        answers = _ask_all(planned, tell)
        budget = _left_line(session)
    _write(declared, answers, files, excel=excel)
    say(budget)


def _output_paths(declared: PublicationConfig, output: str | None, form: str) -> dict[str, Path]:
    """The output path of each table, and of the page (name ""); empty without a folder.

    The folder is created before anything is charged.
    """
    if output is None:
        return {}
    folder = Path(output)
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise WrongUse(
            f"{output!r} cannot be made ({error.strerror}).", remedy="Name another folder."
        ) from None
    tables = {name: folder / f"{name}.{form}" for name in declared.statements}
    return {**tables, "": folder / "index.html"}


def _ask_all(planned: Publication, tell: Tell) -> Mapping[str, Answer]:
    """Asks all questions, with a bar that shows how many are answered."""

    def told(name: str, done: int, count: int) -> None:
        tell(f"{done} of {count} answered, {name}", done / count)

    return planned.run(told)


def _left_line(session: Session) -> str:
    """A line on what is left of the budget."""
    return repr(session.budget).splitlines()[-1]


def _write(
    declared: PublicationConfig,
    answers: Mapping[str, Answer],
    files: Mapping[str, Path],
    *,
    excel: bool,
) -> None:
    """Writes a table for each question, and the page."""
    for name, path in files.items():
        if not name:
            write_file(str(path), page(declared.title, declared.titles, answers).encode())
        elif path.suffix == ".csv":
            write_file(str(path), answers[name].to_csv(excel=excel).encode())
        else:
            answers[name].to_parquet(path)
        say(f"wrote {path}")
