# SPDX-License-Identifier: Apache-2.0
"""``sfumato synthesize``: synthetic rows of one or several tables, in files, with a report."""

from collections.abc import Iterator
from dataclasses import replace

import click

from sfumato.cli.asking import Asking, asks
from sfumato.cli.language import say
from sfumato.cli.options import require_outputs, write_file
from sfumato.cli.page_language import in_language
from sfumato.cli.rows_score import most_frequent, tested
from sfumato.cli.synthetic_config import read_synthetic
from sfumato.cli.waiting import waiting
from sfumato.errors import WrongUse
from sfumato.query.session import Session
from sfumato.synthetic.fit import fit, preview
from sfumato.synthetic.model import Model


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
@click.option("--report", type=click.Path(dir_okay=False), help="Write the report (HTML).")
@click.option("--score", help="Train a classifier of this column on the rows; --score-epsilon.")
@click.option("--score-epsilon", help="What counting its right answers on private rows costs.")
@click.option(
    "--public",
    multiple=True,
    type=click.Path(dir_okay=False),
    help="Counts that rows agree with exactly: a CSV file of values and a count; repeatable.",
)
@click.option("--rows", type=int, help="How many rows [default: the noisy number].")
def command(
    tables: tuple[str, ...],
    asking: Asking,
    *,
    epsilon: str | None,
    delta: str | None,
    rho: str | None,
    is_preview: bool,
    output: str | None,
    report: str | None,
    public: tuple[str, ...],
    rows: int | None,
    score: str | None,
    score_epsilon: str | None,
) -> None:
    """Measure TABLES once, and write synthetic rows of them.

    TABLES are tables of the file about the same people, first the one with one row each, or the
    name of a [synthetic.NAME] that states columns, bins, constraints and the cost. The same at the
    same cost is answered from the ledger, at no cost.
    """
    require_outputs(asking.config, report)
    _require_both(score, score_epsilon)
    cost = {"epsilon": epsilon, "delta": delta, "rho": rho}
    declared = read_synthetic(asking.config, tables, cost).with_public(public)
    with waiting() as engine, asking.session(engine) as session:
        if is_preview:
            say(repr(preview(session, declared.tables, **declared.arguments)))
            return
        model = fit(session, declared.tables, **declared.arguments)
        tests = tuple(_scores(session, model, score, score_epsilon))
        budget = repr(session.budget)
    say(repr(model))
    if output is not None:
        for path in model.save(output, rows):
            say(f"wrote {path}")
    for line in tests:
        say(f"trained on these rows: {line}")
    if report is not None:
        page = replace(model.report(), tested=tests)
        write_file(report, in_language(page.html).encode())
        say(f"wrote {report}\n{page!r}")
    say(budget)


def _require_both(score: str | None, epsilon: str | None) -> None:
    """Refuses a score without its cost, and a cost without what is scored."""
    if (score is None) != (epsilon is None):
        raise WrongUse("One of --score and --score-epsilon.", allowed="both or none")


def _scores(
    session: Session,
    model: Model,
    label: str | None,
    epsilon: str | None,
) -> Iterator[str]:
    """How a classifier that is trained on rows of the first table does on private ones."""
    if label is None or epsilon is None:
        return
    table, rows = next(iter(model.sample().items()))
    found = tested(session, table, rows, label, epsilon)
    yield f"{label}: {found!r}; the most frequent value alone {most_frequent(rows, label):.3f}"
