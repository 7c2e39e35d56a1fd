# SPDX-License-Identifier: Apache-2.0
"""Accuracy against epsilon on private rows: states the price first, then charges each fit and
score.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import count
from typing import Any

from sfumato.errors import WrongUse
from sfumato.exact.rational import Number, decimal_text, positive
from sfumato.learning.examples_of import Examples
from sfumato.learning.fit import fit, preview
from sfumato.learning.frontier import Frontier, Point, ascending, attacker
from sfumato.learning.recipe import Recipe
from sfumato.learning.score import score
from sfumato.query.session import Session


@dataclass(frozen=True, slots=True)
class PrivateFrontier:
    """A planned frontier on private rows; nothing is charged before ``measure``.

    ``cost`` is the exact sum of all its charges.

    >>> PrivateFrontier(("0.5", 1), None, "0.2", "ill", "SELECT ...", "SELECT ...", None, None)
    2 fits and 2 scores cost epsilon = 1.9; nothing was charged
    """

    epsilons: tuple[Number, ...]
    delta: Number | None
    score_epsilon: Number
    label: str
    train: str
    test: str
    recipe: Recipe[Any] = field(repr=False)
    session: Session = field(repr=False, compare=False)

    @property
    def cost(self) -> tuple[Fraction, Fraction]:
        """The sum of the epsilons, and of the deltas, of all fits and scores."""
        fits = sum(positive("epsilons", epsilon) for epsilon in self.epsilons)
        scores = len(self.epsilons) * positive("score_epsilon", self.score_epsilon)
        delta = Fraction(0) if self.delta is None else positive("delta", self.delta)
        return fits + scores, len(self.epsilons) * delta

    def __repr__(self) -> str:
        epsilon, delta = self.cost
        fits = len(self.epsilons)
        stated = f"{fits} fits and {fits} scores cost epsilon = {decimal_text(epsilon)}"
        if delta:
            stated = f"{stated}, delta = {decimal_text(delta)}"
        return f"{stated}; nothing was charged"

    def measure(self, progress: Callable[[int, int], object] | None = None) -> Frontier:
        """Fits and scores at each epsilon in order, each under a charge of its own.

        The band of a point is the 95% interval of its score. If the account cannot pay for a later
        fit, or the process ends, finished fits and scores are stored: calling ``measure`` again
        gets them at no cost.

        Raises:
            BudgetExceeded: the account cannot pay for the next fit or score.
            Others as ``fit`` and ``score``.
        """
        points = tuple(self._points(progress))
        stated = None if self.delta is None else decimal_text(positive("delta", self.delta))
        return Frontier(points, None, None, stated, 1)

    def _points(self, progress: Callable[[int, int], object] | None) -> Iterator[Point]:
        """Yields the points: one charged fit and one charged score per epsilon."""
        done = count(1)
        for epsilon in self.epsilons:
            model = fit(
                self.session,
                self.recipe,
                self.train,
                label=self.label,
                epsilon=epsilon,
                delta=self.delta,
            )
            found = score(
                self.session, model, self.test, label=self.label, epsilon=self.score_epsilon
            )
            stated = decimal_text(positive("epsilons", epsilon))
            odds = attacker(epsilon, self.delta)
            yield Point(stated, found.accuracy, found.low, found.high, odds)
            if progress is not None:
                progress(next(done), len(self.epsilons))


def private_frontier(
    session: Session,
    recipe: Recipe[Any],
    train: str,
    test: str,
    *,
    label: str,
    epsilons: Sequence[Number],
    delta: Number | None = None,
    score_epsilon: Number,
) -> PrivateFrontier:
    """Plans a frontier on the private rows of a session; planning costs no budget.

    Each epsilon is a fit to the rows of ``train`` and a score on the rows of ``test``, each with a
    charge of its own: a frontier costs their sum. If public rows are similar to the private ones,
    use ``frontier``, which costs nothing.

    Args:
        train: the SELECT that the models are fitted to.
        test: a SELECT of the same columns, of other rows (``WHERE``).
        epsilons: ascending costs of the fits; with ``delta`` each is a block, as in ``fit``.
        score_epsilon: the cost of each score.

    Raises:
        WrongUse: no or unsorted epsilons, a recipe or statement that ``fit`` refuses, a label that
            is a number.
        Others as ``fit``, before anything is charged.

    >>> import sfumato as sf, pyarrow as pa, tempfile
    >>> from sfumato import learning as ln
    >>> rows = pa.table({"n": list(range(4000)), "smoker": [True, False] * 2000})
    >>> columns = {"n": sf.Integer(0, 4000), "smoker": sf.Boolean()}
    >>> folder = tempfile.TemporaryDirectory()
    >>> session = sf.connect({"people": sf.Table(rows, columns=columns)}, dataset="tiny",
    ...                      budget=sf.Budget(10), ledger=folder.name + "/l.db")
    >>> read = "SELECT n % 2 = 0 AS even, smoker FROM people WHERE n "
    >>> planned = private_frontier(session, ln.NaiveBayes(), read + "< 2000", read + ">= 2000",
    ...                            label="smoker", epsilons=["0.5", 1], score_epsilon="0.2")
    >>> planned
    2 fits and 2 scores cost epsilon = 1.9; nothing was charged
    >>> planned.measure().points[1].mean > 0.9, session.budget.spent
    (True, '1.9')
    >>> session.close(); folder.cleanup()
    """
    epsilon_list = ascending(epsilons)
    positive("score_epsilon", score_epsilon)
    for epsilon in epsilon_list:
        preview(session, recipe, train, label=label, epsilon=epsilon, delta=delta)
    if not Examples.of(session.dataset, test, label, recipe.bag).classes:
        raise WrongUse("A frontier of a number.", allowed="a label that has classes")
    return PrivateFrontier(
        tuple(epsilon_list), delta, score_epsilon, label, train, test, recipe, session
    )
