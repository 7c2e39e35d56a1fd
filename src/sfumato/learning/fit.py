# SPDX-License-Identifier: Apache-2.0
"""Fits a model to the rows of a SELECT, charged once; the same fit again is free."""

from typing import Any

from sfumato.errors import WrongUse, shown
from sfumato.exact.rational import Number
from sfumato.learning.examples_of import Examples
from sfumato.learning.fit_preview import Preview
from sfumato.learning.recipe import Asked, Fitted, Planned, Progress, Recipe
from sfumato.query.session import Session


def fit(
    session: Session,
    recipe: Recipe[Fitted],
    statement: str,
    *,
    label: str | None = None,
    epsilon: Number | None = None,
    rho: Number | None = None,
    delta: Number | None = None,
    progress: Progress | None = None,
) -> Fitted:
    """Fits a model to the rows of a SELECT, and charges the account once.

    Each column but ``label`` is a feature; ``KMeans`` and ``PCA`` have no label. All bounds come
    from declarations. A unit with many rows is one example: what its rows add is added up and
    clipped once, or its rows share one weight. ``rho`` buys steps with Gaussian noise; ``epsilon``
    with ``delta`` a block, whose noise is that of its certified curve; ``epsilon`` alone is for
    ``NaiveBayes``, ``KMeans`` and ``DecisionTree``.

    A fit that was interrupted goes on from its last checkpoint when it is called again; a fit that
    is complete is returned from the ledger.

    Raises:
        UnknownName, WrongUse, MissingDeclaration, UnsupportedSql: before anything is charged.
        BudgetExceeded: the account cannot pay; nothing was charged.
        InProgress: another worker has this run open.
        EngineFailed: the steps since the last checkpoint are lost; call it again.

    >>> import sfumato as sf, pyarrow as pa, tempfile
    >>> from sfumato.learning.naive_bayes import NaiveBayes
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
    asked = Asked(epsilon, rho, delta)
    return _planned(session, recipe, statement, label, asked).fitted(session, progress)


def preview(
    session: Session,
    recipe: Recipe[Any],
    statement: str,
    *,
    label: str | None = None,
    epsilon: Number | None = None,
    rho: Number | None = None,
    delta: Number | None = None,
) -> Preview:
    """What ``fit`` with these arguments would cost and how noisy it would be; free.

    Raises:
        As ``fit``, but for what an account can pay.

    >>> import sfumato as sf, pyarrow as pa, tempfile
    >>> from sfumato.learning.naive_bayes import NaiveBayes
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
    asked = Asked(epsilon, rho, delta)
    return _planned(session, recipe, statement, label, asked).preview(session)


def _planned(
    session: Session,
    recipe: Recipe[Fitted],
    statement: str,
    label: str | None,
    asked: Asked,
) -> Planned[Fitted]:
    """The plan of a fit, from declarations alone."""
    if not isinstance(recipe, Recipe):
        raise WrongUse(
            f"recipe={shown(recipe)}.",
            allowed="Additive(), KMeans(8), NaiveBayes(), torch.Network(...), another recipe of ln",
        )
    examples = Examples.of(session.dataset, statement, label)
    return recipe.planned(examples, asked, session.renyi_orders)
