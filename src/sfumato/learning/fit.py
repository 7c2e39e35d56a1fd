# SPDX-License-Identifier: Apache-2.0
"""Fits a model to the rows of a SELECT, charged once; the same fit again is free."""

from collections.abc import Callable
from typing import TypeAlias

from sfumato.errors import WrongUse, shown
from sfumato.exact.rational import Number
from sfumato.learning.additive import Additive, LogisticRegression, fitted
from sfumato.learning.budget import budgeted
from sfumato.learning.examples_of import Examples
from sfumato.learning.fit_preview import Preview
from sfumato.learning.model import Model
from sfumato.learning.naive_bayes import ClassCounts, NaiveBayes
from sfumato.learning.ridge import MomentsTask, Ridge
from sfumato.learning.run import Training
from sfumato.query.allowance import allowance
from sfumato.query.session import Session

Recipe: TypeAlias = Additive | LogisticRegression | NaiveBayes | Ridge
# Called after each checkpoint with its place and the number of places.
Progress: TypeAlias = Callable[[int, int], object]


def fit(
    session: Session,
    recipe: Recipe,
    statement: str,
    *,
    label: str,
    epsilon: Number | None = None,
    rho: Number | None = None,
    delta: Number | None = None,
    progress: Progress | None = None,
) -> Model:
    """Fits a model to the rows of a SELECT, and charges the account once.

    Each column but ``label`` is a feature. All bounds come from declarations. A unit with many
    rows is one example: what its rows add is added up and clipped once. ``rho`` buys steps with
    Gaussian noise; ``epsilon`` with ``delta`` a block, whose noise is that of its certified curve;
    ``epsilon`` alone is for ``NaiveBayes``.

    A fit that was interrupted goes on from its last checkpoint when it is called again; a fit that
    is complete is returned from the ledger.

    Raises:
        UnknownName, WrongUse, MissingDeclaration, UnsupportedSql: before anything is charged.
        BudgetExceeded: the account cannot pay; nothing was charged.
        InProgress: another worker has this run open.
        EngineFailed: the steps since the last checkpoint are lost; call it again.

    >>> import sfumato as sf, pyarrow as pa, tempfile
    >>> rows = pa.table({"age": [20, 70] * 2000, "smoker": [True, False] * 2000})
    >>> people = sf.Table(rows, columns={"age": sf.Integer(0, 99), "smoker": sf.Boolean()})
    >>> folder = tempfile.TemporaryDirectory()
    >>> with sf.connect({"people": people}, dataset="tiny", budget=sf.Budget(10),
    ...                 ledger=folder.name + "/l.db") as session:
    ...     model = fit(session, NaiveBayes(), "SELECT age, smoker FROM people", label="smoker",
    ...                 epsilon=1)
    >>> model.predict({"age": [18, 72]})
    ['True', 'False']
    >>> folder.cleanup()
    """
    examples, plan = _planned(session, recipe, statement, label, (epsilon, rho, delta))
    if isinstance(plan, Training):
        return _trained(session, examples, plan, progress)
    cost = session.price(plan)
    stored = session.ask(plan)
    if isinstance(plan, MomentsTask):
        assert isinstance(recipe, Ridge), "moments are its task"
        return recipe.model(examples, plan, stored, cost)
    assert isinstance(recipe, NaiveBayes), "counts are its task"
    return recipe.model(examples, plan, stored, cost)


def preview(
    session: Session,
    recipe: Recipe,
    statement: str,
    *,
    label: str,
    epsilon: Number | None = None,
    rho: Number | None = None,
    delta: Number | None = None,
) -> Preview:
    """What ``fit`` with these arguments would cost and how noisy it would be; free.

    Raises:
        As ``fit``, but for what an account can pay.

    >>> import sfumato as sf, pyarrow as pa, tempfile
    >>> rows = pa.table({"age": [20], "smoker": [True]})
    >>> people = sf.Table(rows, columns={"age": sf.Integer(0, 99), "smoker": sf.Boolean()})
    >>> folder = tempfile.TemporaryDirectory()
    >>> with sf.connect({"people": people}, dataset="tiny", budget=sf.Budget(10),
    ...                 ledger=folder.name + "/l.db") as session:
    ...     preview(session, NaiveBayes(bins=4), "SELECT age, smoker FROM people",
    ...             label="smoker", epsilon=1)
    1 releases of 10 numbers, each with noise of 1.4 examples
    1 checkpoints
    cost: epsilon = 1
    nothing was charged
    >>> folder.cleanup()
    """
    _, plan = _planned(session, recipe, statement, label, (epsilon, rho, delta))
    cost = session.price(plan)
    if isinstance(plan, Training):
        noise = float(plan.sigma) / plan.example
        releases, pieces = sum(plan.sizes), len(plan.sizes)
        return Preview(cost, releases, pieces, plan.counted.features.width, noise)
    (numbers,) = plan.cells
    return Preview(cost, 1, 1, numbers, plan.noise)


def _planned(
    session: Session,
    recipe: Recipe,
    statement: str,
    label: str,
    asked: tuple[Number | None, Number | None, Number | None],
) -> tuple[Examples, Training | ClassCounts | MomentsTask]:
    """The examples of a fit, and what it asks of the session, from declarations alone."""
    if not isinstance(recipe, Recipe):
        raise WrongUse(
            f"recipe={shown(recipe)}.",
            allowed="Additive(), LogisticRegression(), NaiveBayes(), Ridge()",
        )
    epsilon, rho, delta = asked
    examples = Examples.of(session.dataset, statement, label)
    if isinstance(recipe, NaiveBayes):
        return examples, recipe.task(examples, allowance(epsilon=epsilon, rho=rho, delta=delta))
    budget = budgeted(epsilon=epsilon, rho=rho, delta=delta)
    if isinstance(recipe, Ridge):
        return examples, recipe.task(examples, budget, session.renyi_orders)
    return examples, recipe.training(examples, budget, session.renyi_orders)


def _trained(
    session: Session,
    examples: Examples,
    training: Training,
    progress: Progress | None,
) -> Model:
    """Runs, resumes or recalls a training."""
    cost = session.price(training)
    with session.open_series(training) as series:
        while series.left:
            series.next()
            if progress is not None:
                progress(series.places - series.left, series.places)
        stored = dict(series.earlier)
    if not stored:
        raise WrongUse(
            "A run of which every piece was begun and none was stored.",
            remedy="It is paid for and lost: fit another recipe.",
        )
    return fitted(
        examples,
        training,
        stored[max(stored)],
        cost,
        series.charge,
    )
