# SPDX-License-Identifier: Apache-2.0
"""``tune``: fits several recipes a secret random number of times, and returns the best model.

Source: Papernot and Steinke, "Hyperparameter Tuning with Renyi Differential Privacy" (ICLR 2022).
The number of runs, and every model except the best, are never released, logged or stored.
"""

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from sfumato.errors import Failed, WrongUse, shown
from sfumato.exact.rational import Number
from sfumato.learning.described_task import DescribedTask
from sfumato.learning.examples_of import Examples
from sfumato.learning.outcomes import outcome_distance
from sfumato.learning.recipe import Asked, OneRelease, Recipe, Run
from sfumato.learning.run_count import RunShares, law_of
from sfumato.learning.scorable import Scorable
from sfumato.learning.tune_preview import TunePreview
from sfumato.mechanisms.additive import AdditiveMechanism
from sfumato.metadata.dataset import Dataset
from sfumato.plan.rows import BoundedRows
from sfumato.privacy.distance import Distance
from sfumato.privacy.event import BestOf, Block, Composed, Event
from sfumato.query.cost import Cost
from sfumato.query.curator import Curator
from sfumato.query.session import Session

# Of what a run costs, one of so many parts is for its score.
_PARTS = 8
# The place of the recipe, and the counts of right and wrong predictions.
_HEAD = struct.Struct("<qqq")
# What a model is made with while it is scored.
_NOTHING = Cost("0", "0", "0", ())
# The outcome of a run without a model: below every score, which is a difference of 64-bit counts.
_LOST = (-(2**65), b"")
_NO_MODEL = _HEAD.pack(-1, 0, 0)


@dataclass(frozen=True, slots=True)
class Tuned:
    """The best model of several runs, its recipe, and ``place``, the recipe's index in the list.

    ``right`` and ``wrong`` are the noisy counts by which the model was chosen. They are the best of
    several, on the rows that the model was fitted to, so they overstate its accuracy on other rows.

    >>> Tuned("a model", "a recipe", 0, 80, 20, Cost("1", "0.5", "0", ()), "c0ffee").accuracy
    0.8
    """

    model: Any
    recipe: Any
    place: int
    right: int
    wrong: int
    cost: Cost
    charge: str

    @property
    def accuracy(self) -> float:
        """The share of right predictions in the two noisy counts; at most 1."""
        right, wrong = max(self.right, 0), max(self.wrong, 0)
        return right / max(right + wrong, 1)

    def __repr__(self) -> str:
        return f"recipe {self.place} is the best: {self.recipe!r} (cost: {self.cost})"


def tune(
    session: Session,
    recipes: Sequence[Recipe[Any]],
    statement: str,
    *,
    label: str,
    runs: int = 10,
    epsilon: Number | None = None,
    rho: Number | None = None,
    delta: Number | None = None,
) -> Tuned:
    """Fits random recipes of the list, about ``runs`` times in all, and returns the best model.

    The number of runs is random and secret, so all runs together cost little more than one. With a
    pure ``epsilon`` each run has half of it, whatever their number; an eighth of that half pays for
    the noisy count of right predictions by which models are compared. ``rho`` is the cost at the
    account's order; ``epsilon`` with ``delta`` a block. The same tuning again costs no budget.

    The running time grows with the number of runs: see RULES 24. Nothing is stored before the end,
    so a crash loses all of it.

    A run that fails because of released numbers loses to all others, and nothing reveals it: for
    example a network that mixes rows at the weights of a checkpoint.

    Raises:
        UnknownName, WrongUse, MissingDeclaration, UnsupportedSql: before anything is charged.
        WrongUse: no run made a model. This is the stored answer: it is paid for, and the same
            tuning again is the same refusal, at no cost.
        BudgetExceeded: the account cannot pay; nothing was charged.
        EngineFailed: the rows could not be read or measured; the charge is forfeited.

    >>> import sfumato as sf, pyarrow as pa, tempfile
    >>> from sfumato.learning import DecisionTree, NaiveBayes
    >>> rows = pa.table({"age": [20, 70] * 2000, "smoker": [True, False] * 2000})
    >>> people = sf.Table(rows, columns={"age": sf.Integer(0, 99), "smoker": sf.Boolean()})
    >>> folder = tempfile.TemporaryDirectory()
    >>> with sf.connect({"people": people}, dataset="tiny", budget=sf.Budget(10),
    ...                 ledger=folder.name + "/l.db") as session:
    ...     best = tune(session, [NaiveBayes(), DecisionTree(depth=1)],
    ...                 "SELECT age, smoker FROM people", label="smoker", epsilon=2)
    >>> best.accuracy > 0.9, best.cost.epsilon, best.model.predict({"age": [18, 72]})
    (True, '2', ['True', 'False'])
    >>> folder.cleanup()
    """
    recipe_list = _require_recipes(recipes)
    examples = _read_classified(session, recipe_list, statement, label)
    shares = RunShares(Asked(epsilon, rho, delta), law_of(runs), session.renyi_orders)
    task = Tuning.of(recipe_list, examples, shares)
    cost = session.price(task)
    stored = session.ask(DescribedTask(task, examples.about))
    best_place, right, wrong = _HEAD.unpack_from(stored.body)
    if best_place < 0:
        raise WrongUse(
            f"A tuning that made no model: charge {stored.charge}.",
            allowed="recipes whose training can go on from what it has released",
            remedy="It is paid for. Fit each recipe alone to see why; then tune another list.",
        )
    planned = task.candidates[best_place].planned
    model = planned.made(stored.body[_HEAD.size :], cost, stored.charge)
    return Tuned(model, recipe_list[best_place], best_place, right, wrong, cost, stored.charge)


def preview_tune(
    session: Session,
    recipes: Sequence[Recipe[Any]],
    statement: str,
    *,
    label: str,
    runs: int = 10,
    epsilon: Number | None = None,
    rho: Number | None = None,
    delta: Number | None = None,
) -> TunePreview:
    """Returns what ``tune`` with these arguments would cost, and the noise of its runs; costs no
    budget.

    Raises:
        As ``tune``, but for what an account can pay.

    >>> import sfumato as sf, pyarrow as pa, tempfile
    >>> from sfumato.learning import DecisionTree, NaiveBayes
    >>> rows = pa.table({"age": [20], "smoker": [True]})
    >>> people = sf.Table(rows, columns={"age": sf.Integer(0, 99), "smoker": sf.Boolean()})
    >>> folder = tempfile.TemporaryDirectory()
    >>> with sf.connect({"people": people}, dataset="tiny", budget=sf.Budget(10),
    ...                 ledger=folder.name + "/l.db") as session:
    ...     preview_tune(session, [NaiveBayes(bins=4), DecisionTree(depth=1)],
    ...                  "SELECT age, smoker FROM people", label="smoker", epsilon=2)
    10.0 runs on average: at most 4 in half of all tunings, at most 41 in 95% of them
    noise of each run: 1.6 examples by recipe 0, 6.5 by recipe 1; of its score: 11.3 rows
    cost of all runs: epsilon = 2
    left now    epsilon 10 (pure gate)
    left after  epsilon 8 (pure gate)
    nothing was charged
    >>> folder.cleanup()
    """
    listed = _require_recipes(recipes)
    examples = _read_classified(session, listed, statement, label)
    shares = RunShares(Asked(epsilon, rho, delta), law_of(runs), session.renyi_orders)
    task = Tuning.of(listed, examples, shares)
    noises = tuple(each.planned.noise for each in task.candidates)
    score = math.sqrt(task.candidates[0].scoring.noise.variance.upper)
    return TunePreview(session.price(task), shares.law, noises, score, session.balances)


def _read_classified(
    session: Session, recipes: Sequence[Recipe[Any]], statement: str, label: str
) -> Examples:
    """Returns the examples; raises WrongUse unless the label has classes.

    Texts are read if all recipes read them in the same way.
    """
    bags = {recipe.bag for recipe in recipes}
    bag = bags.pop() if len(bags) == 1 else None
    examples = Examples.of(session.dataset, statement, label, bag)
    if not examples.classes:
        raise WrongUse("Models of a number cannot be tuned.", allowed="a label that has classes")
    return examples


def _require_recipes(recipes: object) -> tuple[Recipe[Any], ...]:
    """Returns the recipes as a tuple; raises WrongUse unless there is at least one."""
    given = tuple(recipes) if isinstance(recipes, list | tuple) else ()
    if not given or not all(isinstance(each, Recipe) for each in given):
        raise WrongUse(
            f"recipes={shown(recipes)}.", allowed="a list of recipes of ln, such as Additive()"
        )
    return given


@dataclass(frozen=True, slots=True)
class Candidate:
    """A planned recipe, and the noise of the score of its model."""

    planned: OneRelease[Any] | Run[Any]
    scoring: AdditiveMechanism
    moved: Distance

    @property
    def event(self) -> Event:
        """The event of one run: a fit, then a score."""
        return Composed((self.planned.event, self.scoring.event(self.moved)))

    def outcome(
        self,
        curator: Curator,
        examples: Examples,
        declarations: Dataset,
    ) -> tuple[int, bytes]:
        """Runs one fit and score; returns the score, and the noisy counts followed by the model's
        bytes.

        An error outside the curator can only come from released numbers: such a run loses.
        """
        try:
            return self._scored(curator, examples, declarations)
        except Failed:
            raise
        except Exception:
            return _LOST

    def _scored(
        self,
        curator: Curator,
        examples: Examples,
        declarations: Dataset,
    ) -> tuple[int, bytes]:
        """Returns the outcome of a run without errors."""
        body = self.planned.carried_out(curator, declarations)
        model = self.planned.made(body, _NOTHING, "")
        if not isinstance(model, Scorable):
            raise WrongUse("A model whose predictions cannot be counted.")
        right, wrong = curator.measure(model.outcomes(examples), self.scoring).tolist()
        return right - wrong, struct.pack("<qq", right, wrong) + body


@dataclass(frozen=True, slots=True)
class Tuning:
    """The task of ``tune``: releases the best outcome of a secret number of runs."""

    candidates: tuple[Candidate, ...]
    examples: Examples
    shares: RunShares
    declarations: list[Dataset] = field(default_factory=list, compare=False)

    kind: ClassVar[str] = "tuning"
    cells: ClassVar[tuple[int, ...]] = ()

    @classmethod
    def of(
        cls,
        recipes: Sequence[Recipe[Any]],
        examples: Examples,
        shares: RunShares,
    ) -> "Tuning":
        """Returns the task with the least noise that its cost allows."""
        prepared = [recipe.prepared(examples) for recipe in recipes]

        def planned(asked: Asked) -> tuple[Candidate, ...]:
            fit, score = _divide_cost(asked)
            plans = [each(fit, shares.orders) for each in prepared]
            return _candidates(recipes, plans, examples, score)

        def events(asked: Asked) -> tuple[Event, ...]:
            return tuple(each.event for each in planned(asked))

        return cls(planned(shares.one(events)), examples, shares)

    @property
    def line(self) -> str:
        """The number of recipes."""
        return f"the best of {len(self.candidates)} recipes"

    @property
    def form(self) -> str:
        """The canonical text of every recipe's plan, and of the distribution of the number of
        runs.
        """
        forms = [candidate.planned.form for candidate in self.candidates]
        law = self.shares.law
        return f"{forms} {law.shape} {law.stop}"

    @property
    def size(self) -> int | None:
        """The largest number of bytes of the answer: the largest model, and three numbers."""
        largest = 0
        for candidate in self.candidates:
            size = candidate.planned.size
            if size is None:
                return None
            largest = max(largest, size)
        return _HEAD.size + largest

    @property
    def runs(self) -> BestOf:
        """The event of all runs."""
        return self.shares.whole(tuple(each.event for each in self.candidates))

    @property
    def event(self) -> BestOf | Block:
        """The event that is charged."""
        block = self.shares.block
        if block is None:
            return self.runs
        return Block(self.runs, *block)

    def ready(self, declarations: Dataset) -> BoundedRows:
        """Checks every recipe, then returns the bounded rows."""
        for candidate in self.candidates:
            candidate.planned.ready(declarations)
        self.declarations[:] = [declarations]
        return self.examples.plan

    def run(self, curator: Curator) -> bytes:
        """Returns the index of the best recipe, its noisy counts and its model; or that there is
        none.
        """
        (declarations,) = self.declarations

        def run(place: int, inner: Curator) -> tuple[int, bytes]:
            return self.candidates[place].outcome(inner, self.examples, declarations)

        # no warning tells of a run that is secret: the curator's caller is silent (RULES 24)
        place, outcome = curator.best(self.runs, run)
        if outcome == _LOST:
            return _NO_MODEL
        return struct.pack("<q", place) + outcome[1]


def _candidates(
    recipes: Sequence[Recipe[Any]],
    plans: Sequence[object],
    examples: Examples,
    score: Asked,
) -> tuple[Candidate, ...]:
    """Returns the planned recipes, each with the noise of its score."""
    scoring = score.allowance
    outcome_moves = outcome_distance(examples.plan, scoring.norm)
    mechanism = scoring.noise(outcome_moves, scoring.amount)
    found = []
    for recipe, planned in zip(recipes, plans, strict=True):
        if not isinstance(planned, OneRelease | Run):
            raise WrongUse(f"{shown(recipe)} has a plan of its own kind, which is not tuned.")
        found.append(Candidate(planned, mechanism, outcome_moves))
    return tuple(found)


def _divide_cost(run_cost: Asked) -> tuple[Asked, Asked]:
    """Divides the cost of a run into the cost of its fit and of its score."""
    whole = run_cost.allowance.amount
    part = whole / _PARTS
    if run_cost.rho is None:
        return Asked(epsilon=whole - part), Asked(epsilon=part)
    return Asked(rho=whole - part), Asked(rho=part)
