# SPDX-License-Identifier: Apache-2.0
"""``sfumato score``: how often a fitted model is right on private rows, for a charge."""

from typing import Any

import click

from sfumato.cli.asking import Asking, asks
from sfumato.cli.language import say
from sfumato.cli.predict import model_of
from sfumato.cli.waiting import waiting
from sfumato.errors import WrongUse, shown
from sfumato.learning.model import Model
from sfumato.learning.scorable import Scorable
from sfumato.learning.score import Score, score
from sfumato.learning.score_within import score_within
from sfumato.query.session import Session


@click.command("score")
@click.argument("file", type=click.Path(dir_okay=False))
@click.argument("sql")
@asks
@click.option("--label", required=True, help="The column that the model predicts.")
@click.option("--epsilon", help="With --delta, Gaussian noise within both; alone, a pure cost.")
@click.option("--delta", help="Beside --epsilon: the chance that epsilon may be exceeded.")
@click.option("--rho", help="The cost in zCDP.")
@click.option("--within", help="Of a number: how far off a right answer may be; with --epsilon.")
def command(
    file: str,
    sql: str,
    asking: Asking,
    *,
    label: str,
    within: str | None,
    **cost: str | None,
) -> None:
    """Count how often the model of FILE is right on the rows of SQL; it is charged.

    SQL reads the label and the features of the model, as declared when it was fitted. Take rows
    that it was not fitted to: on its own rows a model looks better than it is. The same score again
    is free.
    """
    model = model_of(file)
    if not isinstance(model, Scorable):
        raise WrongUse(f"{shown(file)} predicts no column.", allowed="a model with a label")
    prices = {key: value for key, value in cost.items() if value is not None}
    with waiting() as engine, asking.session(engine) as session:
        found = _scored(session, model, sql, label, within, prices)
        budget = repr(session.budget)
    say(repr(found))
    say(budget)


def _scored(
    session: Session,
    model: Scorable,
    sql: str,
    label: str,
    within: str | None,
    prices: dict[str, Any],
) -> Score:
    """Scores predictions of classes; with ``within``, predictions of a number."""
    if within is None:
        return score(session, model, sql, label=label, **prices)
    if prices.keys() != {"epsilon"}:
        raise WrongUse("--within goes with --epsilon alone.", remedy="--within 5000 --epsilon 0.1")
    if not isinstance(model, Model) or model.classes:
        raise WrongUse(
            "--within of a model of classes.",
            allowed="a model of a number",
            remedy="Leave --within out.",
        )
    return score_within(session, model, sql, label=label, within=within, **prices)
