# SPDX-License-Identifier: Apache-2.0
"""``sfumato synthesize``: synthetic rows of one or several tables, in files, with a report."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import click

from sfumato.cli.asking import Asking, asks
from sfumato.cli.language import say
from sfumato.cli.options import require_outputs, write_file
from sfumato.cli.page_language import in_language
from sfumato.cli.rows_score import most_frequent, nearest_guess, require_scorable, tested
from sfumato.cli.shortfall import say_shortfall
from sfumato.cli.waiting import waiting
from sfumato.config.load import read_declarations
from sfumato.config.synthetic import SyntheticConfig, read_synthetic
from sfumato.errors import UnknownName, WrongUse, shown
from sfumato.metadata.table import Table
from sfumato.query.allowance import allowance
from sfumato.query.session import Session
from sfumato.synthetic.beside import require_public
from sfumato.synthetic.export import require_replaceable, rows_files
from sfumato.synthetic.fit import fit, preview
from sfumato.synthetic.model import Model, require_rows


def _checked(_context: click.Context, _option: click.Parameter, rows: int | None) -> int | None:
    """Checks a number of rows before anything is charged."""
    return None if rows is None else require_rows(rows)


@click.command("synthesize")
@click.argument("tables", nargs=-1, required=True)
@asks
@click.option("--epsilon", help="With --delta: Gaussian noise that lies within both.")
@click.option("--delta", help="Beside --epsilon: the chance that epsilon may be exceeded.")
@click.option("--rho", help="The cost in zCDP.")
@click.option("--preview", "is_preview", is_flag=True, help="Show what would be measured; free.")
@click.option(
    "-o", "--output", type=click.Path(file_okay=False), help="The folder of Parquet and CSV files."
)
@click.option("--excel", is_flag=True, help="The CSV files as Excel opens them.")
@click.option("--report", type=click.Path(dir_okay=False), help="Write the report (HTML).")
@click.option("--score", help="Train a model of this column on the rows; --score-epsilon.")
@click.option(
    "--score-epsilon", help="What counting its right answers on private rows costs, at each call."
)
@click.option(
    "--public",
    multiple=True,
    type=click.Path(dir_okay=False),
    help="Counts that rows agree with exactly: a CSV file of values and a count; repeatable.",
)
@click.option("--score-within", help="Of a number: how far off a right answer may be.")
@click.option("--beside", help="A table with public = true: exact distances in the report.")
@click.option(
    "--rows", type=int, callback=_checked, help="How many rows [default: the noisy number]."
)
def command(
    tables: tuple[str, ...],
    asking: Asking,
    *,
    epsilon: str | None,
    delta: str | None,
    rho: str | None,
    is_preview: bool,
    output: str | None,
    excel: bool,
    report: str | None,
    public: tuple[str, ...],
    rows: int | None,
    score: str | None,
    score_epsilon: str | None,
    score_within: str | None,
    beside: str | None,
) -> None:
    """Measure TABLES once, and write synthetic rows of them.

    TABLES are tables of the file about the same people, first the one with one row each, or the
    name of a [synthetic.NAME] that states columns, bins, constraints and the cost. The same at the
    same cost is answered from the ledger, at no cost.
    """
    if excel and output is None:
        raise WrongUse("--excel without an output.", allowed="a folder: -o FOLDER --excel")
    test = _Test.of(score, score_epsilon, score_within)
    cost = {"epsilon": epsilon, "delta": delta, "rho": rho}
    declared = read_synthetic(asking.config, tables, cost).with_public(public)
    _require_outputs(asking.config, declared.tables, output, report)
    with waiting() as engine, asking.session(engine) as session:
        if is_preview:
            _preview(session, declared, test)
            return
        known = _public(asking.config, beside)
        _require_test(session, declared.tables, test)
        model = fit(session, declared.tables, **declared.arguments)
        tests = tuple(_scores(session, model, test))
        budget = repr(session.budget)
    say(repr(model))
    if output is not None:
        for path in model.save(output, rows, excel=excel):
            say(f"wrote {path}")
    for line in tests:
        say(f"trained on these rows: {line}")
    if report is not None:
        _write_report(report, model, known, tests)
    say(budget)


def _require_outputs(
    config: str,
    tables: str | list[str],
    output: str | None,
    report: str | None,
) -> None:
    """Refuses outputs that a file declares, and a folder with rows not marked as synthetic."""
    require_outputs(config, report)
    if output is None:
        return
    names = [tables] if isinstance(tables, str) else tables
    for name in names:
        files = [path for path in rows_files(Path(output), name) if path.exists()]
        require_outputs(config, *map(str, files))
    require_replaceable(Path(output), names)


def _preview(session: Session, declared: SyntheticConfig, test: "_Test | None") -> None:
    """Prints what would be measured, and the cost of a score."""
    _require_test(session, declared.tables, test)
    shown = preview(session, declared.tables, **declared.arguments)
    say(repr(shown))
    say_shortfall(shown.cost, session.budget)
    if test is not None:
        say(test.price)


def _require_test(
    session: Session,
    tables: str | list[str],
    test: "_Test | None",
) -> None:
    """Refuses a column that cannot be scored, before rows are paid for."""
    if test is not None:
        first = tables if isinstance(tables, str) else tables[0]
        require_scorable(session, first, test.label, test.within)


def _write_report(
    path: str,
    model: Model,
    public: Table | None,
    tests: tuple[str, ...],
) -> None:
    """Writes the report, and prints a summary of it."""
    first = next(iter(model.declarations.tables))
    found = model.report() if public is None else model.report_beside({first: public})
    page = replace(found, tested=tests)
    write_file(path, in_language(page.html).encode())
    say(f"wrote {path}\n{page!r}")


@dataclass(frozen=True, slots=True)
class _Test:
    """The label to score, the cost of that, and the tolerance for a number."""

    label: str
    epsilon: str
    within: str | None

    @classmethod
    def of(cls, label: str | None, epsilon: str | None, within: str | None) -> "_Test | None":
        """Makes the test from its options; refuses a label or a cost without the other."""
        if (label is None) != (epsilon is None):
            raise WrongUse("One of --score and --score-epsilon.", allowed="both or none")
        if label is None or epsilon is None:
            return None
        # a cost that is none is refused before the rows are paid for
        allowance(epsilon=epsilon)
        return cls(label, epsilon, within)

    @property
    def price(self) -> str:
        """The cost of all scores, as text."""
        return f"the score of {self.label} costs epsilon {self.epsilon} at each call: rows are new"


def _public(config: str, name: str | None) -> Table | None:
    """The public table that rows are compared with (WrongUse if it is not public)."""
    if name is None:
        return None
    tables = read_declarations(config).dataset.tables
    if name not in tables:
        raise UnknownName(f"No table {shown(name)}.", allowed=", ".join(tables))
    require_public({name: tables[name]})
    return tables[name]


def _scores(
    session: Session,
    model: Model,
    test: _Test | None,
) -> Iterator[str]:
    """Scores a model trained on rows of the first table; yields the results as text."""
    if test is None:
        return
    table, rows = next(iter(model.sample().items()))
    label, within = test.label, test.within
    score = tested(session, table, rows, label, test.epsilon, within)
    if within is None:
        guess = f"the most frequent value alone {most_frequent(rows, label):.3f}"
        yield f"{label}: {score!r}; {guess}"
        return
    guess = f"the median alone {nearest_guess(rows, label, within):.3f}"
    yield f"{label} within {within}: {score!r}; {guess}"
