# SPDX-License-Identifier: Apache-2.0
"""``score``: counts, under a charge, the rows whose label a fitted model predicts."""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

import numpy as np

from sfumato.errors import WrongUse, shown
from sfumato.exact.rational import Number, to_fraction
from sfumato.learning.described_task import DescribedTask
from sfumato.learning.examples_of import Examples
from sfumato.learning.outcomes import Outcomes
from sfumato.learning.scorable import Scorable
from sfumato.mechanisms.additive import AdditiveMechanism
from sfumato.metadata.dataset import Dataset
from sfumato.plan.rows import BoundedRows
from sfumato.plan.show import form
from sfumato.privacy.event import AdditiveNoise
from sfumato.query.allowance import Allowance, allowance
from sfumato.query.cost import Cost
from sfumato.query.curator import Curator
from sfumato.query.interval import share_interval
from sfumato.query.session import Session


@dataclass(frozen=True, slots=True)
class Score:
    """The accuracy of a model on private rows, with a confidence interval.

    ``right`` and ``wrong`` are noisy counts of rows. The interval covers the noise for the rows
    that were read; it says nothing about other rows.

    >>> Score(80, 20, 0.8, 0.75, 0.85, Fraction(95, 100), Cost("1", "0.5", "0", ()), "c0ffee")
    accuracy 0.800 [0.750, 0.850] in about 100 rows (95% interval, cost: epsilon = 1)
    """

    right: int
    wrong: int
    accuracy: float
    low: float
    high: float
    confidence: Fraction
    cost: Cost
    charge: str

    def __repr__(self) -> str:
        interval = f"[{self.low:.3f}, {self.high:.3f}]"
        rows = f"about {max(self.right + self.wrong, 0):,} rows"
        stated = f"{float(100 * self.confidence):g}% interval, cost: {self.cost}"
        return f"accuracy {self.accuracy:.3f} {interval} in {rows} ({stated})"


def score(
    session: Session,
    model: Scorable,
    statement: str,
    *,
    label: str,
    epsilon: Number | None = None,
    rho: Number | None = None,
    delta: Number | None = None,
    confidence: Number = "0.95",
) -> Score:
    """Counts, under a charge, the rows whose label the model predicts.

    The statement reads rows as in ``fit``, with the features of the model under the same names and
    declarations. Score rows that the model was not fitted to (``WHERE``): on its own rows a model
    looks better than it is. The same score again costs no budget.

    Raises:
        WrongUse: a model of a number, other classes or other features.
        UnknownName, MissingDeclaration, UnsupportedSql: as in ``fit``, before any charge.
        BudgetExceeded: the account cannot pay; nothing was charged.

    >>> import sfumato as sf, pyarrow as pa, tempfile
    >>> from sfumato import learning as ln
    >>> rows = pa.table({"age": [20, 70] * 2000, "smoker": [True, False] * 2000})
    >>> people = sf.Table(rows, columns={"age": sf.Integer(0, 99), "smoker": sf.Boolean()})
    >>> folder = tempfile.TemporaryDirectory()
    >>> with sf.connect({"people": people}, dataset="tiny", budget=sf.Budget(10),
    ...                 ledger=folder.name + "/l.db") as session:
    ...     select = "SELECT age, smoker FROM people"
    ...     model = ln.fit(session, ln.NaiveBayes(), select, label="smoker", epsilon=1)
    ...     score(session, model, select, label="smoker", epsilon=1).accuracy > 0.99
    True
    >>> folder.cleanup()
    """
    if not isinstance(model, Scorable):
        raise WrongUse(f"model={shown(model)}.", allowed="what ln.fit returns")
    stated = to_fraction("confidence", confidence)
    if not 0 < stated < 1:
        raise WrongUse(f"confidence={shown(confidence)}.", allowed="between 0 and 1")
    examples = Examples.of(session.dataset, statement, label, model.bag)
    require_same(model, examples)
    allowed = allowance(epsilon=epsilon, rho=rho, delta=delta)
    task = OutcomeCounts(model.outcomes(examples), model.fingerprint, allowed)
    return charged(session, task, examples.about, stated)


def charged(
    session: Session,
    task: "OutcomeCounts",
    about: str,
    stated: Fraction = Fraction(95, 100),
) -> Score:
    """Charges the session for the noisy counts of right and wrong predictions, and returns the
    score with a confidence interval. ``stated`` is the confidence.
    """
    cost = session.price(task)
    stored = session.ask(DescribedTask(task, about))
    right, wrong = np.frombuffer(stored.body, "<i8").tolist()
    low, high = share_interval(right, wrong, task.mechanism.noise, 1 - stated)
    whole = max(right, 0) + max(wrong, 0)
    accuracy = max(right, 0) / whole if whole else (low + high) / 2
    return Score(right, wrong, accuracy, low, high, stated, cost, stored.charge)


@dataclass(frozen=True, slots=True)
class OutcomeCounts:
    """The task that releases the noisy counts of a model's right and wrong predictions; ``model``
    is the model's hash.
    """

    counted: Outcomes = field(compare=False)
    model: str
    allowance: Allowance

    kind: ClassVar[str] = "score"
    line: ClassVar[str] = "right and wrong predictions of a model"

    @property
    def form(self) -> str:
        """A canonical string of the plan, the columns and the model, from which the answer's cache
        key is computed.
        """
        return f"{form(self)} {self.counted.read}"

    @property
    def mechanism(self) -> AdditiveMechanism:
        """The mechanism that adds noise to the two counts."""
        distance = self.counted.distance(self.allowance.norm)
        return self.allowance.noise(distance, self.allowance.amount)

    @property
    def event(self) -> AdditiveNoise:
        """The privacy event of the release."""
        return self.mechanism.event(self.counted.distance(self.allowance.norm))

    @property
    def cells(self) -> tuple[int]:
        """The number of noisy integers in the release: two counts."""
        return (2,)

    @property
    def size(self) -> int:
        """The exact size of the stored answer, in bytes."""
        return 16

    def ready(self, declarations: Dataset) -> BoundedRows:
        """Returns the plan of the private rows that the task reads."""
        return self.counted.plan

    def run(self, curator: Curator) -> bytes:
        """Returns the noisy counts of right and wrong predictions, as bytes (little-endian
        int64).
        """
        return curator.measure(self.counted, self.mechanism).astype("<i8").tobytes()


def require_same(model: Scorable, examples: Examples) -> None:
    """Raises WrongUse unless the label's classes and the features of these examples are those of
    the model.
    """
    if not model.classes:
        raise WrongUse(
            "The score of a model of a number.",
            allowed="a model whose label has classes",
            remedy="ln.score_within counts the predictions of a number within a tolerance.",
        )
    if examples.classes != model.classes:
        raise WrongUse("The label has other classes.", allowed=", ".join(model.classes))
    require_columns(model, examples)


def require_columns(model: Scorable, examples: Examples) -> None:
    """Raises WrongUse unless the features of these examples are those of the model: same names,
    order and declarations.

    Raises:
        WrongUse: the first feature that differs, or their number.
    """
    for mine, asked in zip(model.columns, examples.columns, strict=False):
        if mine != asked:
            raise WrongUse(
                f"Feature {asked.name!r} is not the {mine.name!r} that the model was fitted to.",
                remedy="SELECT the model's features in its order, declared as they were.",
            )
    if len(model.columns) != len(examples.columns):
        names = ", ".join(column.name for column in model.columns)
        raise WrongUse(
            f"The SELECT has {len(examples.columns)} features, and the model {len(model.columns)}.",
            allowed=names,
            remedy="SELECT the model's features in its order, and the label.",
        )
