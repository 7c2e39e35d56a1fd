# SPDX-License-Identifier: Apache-2.0
"""``fit``, ``resume`` and ``preview``: the entry points that fit a recipe to the rows of a SELECT.

They plan with the recipe; the session charges the account and runs the plan.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from sfumato.errors import WrongUse, shown
from sfumato.exact.rational import Number, decimal_text
from sfumato.learning.examples_of import Examples
from sfumato.learning.features import numeric_ends
from sfumato.learning.fit_preview import Preview
from sfumato.learning.recipe import (
    Asked,
    Fitted,
    OneRelease,
    Planned,
    Progress,
    Recipe,
    Run,
)
from sfumato.metadata.column import Array, Date, Integer, Real
from sfumato.query.explain import coarse_step
from sfumato.query.session import Session
from sfumato.show.render import key, number


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

    Every column except ``label`` is a feature; ``KMeans`` and ``PCA`` have no label. All bounds
    come from declarations. A unit with many rows counts as one example: the sum of its rows is
    clipped once, or its rows share one weight. ``rho`` pays for releases with Gaussian noise.
    ``epsilon`` with ``delta`` pays for a block, whose noise follows from its certified privacy
    curve. ``epsilon`` alone is for ``NaiveBayes``, ``KMeans`` and ``DecisionTree``.

    Call an interrupted fit again: it continues at its last checkpoint. A complete fit is returned
    from the ledger, at no cost.

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


def resume(
    session: Session,
    run: str,
    recipe: Recipe[Fitted],
    statement: str,
    *,
    label: str | None = None,
    epsilon: Number | None = None,
    rho: Number | None = None,
    delta: Number | None = None,
    progress: Progress | None = None,
) -> Fitted:
    """Continues a run that was begun and paid for; unlike ``fit`` it never begins a new run.

    ``run`` is the id of its charge (``sfumato ledger log``, ``preview(...).paid.charge``); the
    other arguments are those of ``fit``. If an argument, a declaration or the version of the data
    has changed, ``fit`` would begin and charge a new run; ``resume`` refuses, at no cost.

    Raises:
        UnknownName: this account has no such run.
        WrongUse: another recipe, cost, version of the data, SELECT or declaration than that of the
            run; a recipe that measures once.
        LedgerCorrupt: a stored checkpoint was edited.
        Others as ``fit``.

    >>> import sfumato as sf, pyarrow as pa, tempfile
    >>> from sfumato.learning.additive import Additive
    >>> rows = pa.table({"age": [20, 70] * 2000, "smoker": [True, False] * 2000})
    >>> people = sf.Table(rows, columns={"age": sf.Integer(0, 99), "smoker": sf.Boolean()})
    >>> folder = tempfile.TemporaryDirectory()
    >>> asked = {"label": "smoker", "rho": "0.01"}
    >>> with sf.connect({"people": people}, dataset="tiny", budget=sf.Budget(1, "1e-6"),
    ...                 ledger=folder.name + "/l.db") as session:
    ...     model = fit(session, Additive(steps=5), "SELECT age, smoker FROM people", **asked)
    ...     again = resume(session, model.charge, Additive(steps=5),
    ...                    "SELECT age, smoker FROM people", **asked)
    >>> again.charge == model.charge
    True
    >>> folder.cleanup()
    """
    asked = Asked(epsilon, rho, delta)
    planned = _planned(session, recipe, statement, label, asked)
    return planned.resumed(session, run, progress)


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
    """Returns what ``fit`` with these arguments would cost and how noisy it would be; costs no
    budget.

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
    memory: about 0.1 GB for a million rows
    numbers are read between: age 0 to 99 in steps of 1 (4 bins of 25)
    ends far beyond the values put all of them into one bin or at one end: declare nearer ones
    cost: epsilon = 1
    left now    epsilon 10 (pure gate)
    left after  epsilon 9 (pure gate)
    nothing was charged
    >>> folder.cleanup()
    """
    asked = Asked(epsilon, rho, delta)
    examples, planned = _read(session, recipe, statement, label, asked)
    return replace(
        planned.preview(session),
        values=sum(examples.plan.rows.widths),
        ranges=tuple(_ranges(recipe, examples)),
    )


def _ranges(recipe: Recipe[Any], examples: Examples) -> Iterator[str]:
    """Yields the ends and the bins of each number, as the recipe reads it: of declarations only."""
    for value in examples.values:
        kind = value.type
        if isinstance(kind, Array):
            kind = kind.element
            lower, upper = kind.lower_code, kind.upper_code
        elif isinstance(kind, Integer | Real | Date):
            lower, upper = numeric_ends(value.name, kind)
        else:
            continue
        if isinstance(kind, Date):
            ends = f"{value.name} {kind.decode(lower)} to {kind.decode(upper)}"
        else:
            first, last = (key(float(code * kind.step)) for code in (lower, upper))
            ends = f"{value.name} {first} to {last}"
            coarse = coarse_step(kind)
            ends += f" in steps of {decimal_text(coarse)}" if coarse is not None else ""
        bins = getattr(recipe, "bins", None)
        if value.name in getattr(recipe, "edges", ()):
            yield f"{ends} (bins between your edges)"
        elif bins is None:
            yield ends
        else:
            codes = upper - lower + 1
            step, unit = (1, " days") if isinstance(kind, Date) else (kind.step, "")
            width = number(float(codes * step / min(bins, codes)))
            yield f"{ends} ({min(bins, codes)} bins of {width}{unit})"


def _planned(
    session: Session,
    recipe: Recipe[Fitted],
    statement: str,
    label: str | None,
    asked: Asked,
) -> Planned[Fitted]:
    """Plans a fit, from declarations only."""
    _, planned = _read(session, recipe, statement, label, asked)
    return planned


def _read(
    session: Session,
    recipe: Recipe[Fitted],
    statement: str,
    label: str | None,
    asked: Asked,
) -> tuple[Examples, Planned[Fitted]]:
    """Returns the examples of a fit and its plan."""
    if not isinstance(recipe, Recipe):
        raise WrongUse(
            f"recipe={shown(recipe)}.",
            allowed="Additive(), KMeans(8), NaiveBayes(), torch.Network(...), another recipe of ln",
        )
    examples = Examples.of(session.dataset, statement, label, recipe.bag)
    planned = recipe.planned(examples, asked, session.renyi_orders)
    if isinstance(planned, OneRelease | Run):
        planned = replace(planned, about=examples.about)
    return examples, planned
