# SPDX-License-Identifier: Apache-2.0
"""``choose``: privately selects the fitted model with the most right predictions."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from sfumato.errors import WrongUse, shown
from sfumato.exact.rational import Number
from sfumato.learning.described_task import DescribedTask
from sfumato.learning.examples_of import Examples
from sfumato.learning.outcomes import AddedRightCounts, RightCounts
from sfumato.learning.scorable import Scorable
from sfumato.learning.score import require_same
from sfumato.mechanisms.selection import SelectionMechanism, exponential
from sfumato.metadata.dataset import Dataset
from sfumato.plan.rows import BoundedRows
from sfumato.plan.show import form
from sfumato.privacy.distance import Norm
from sfumato.privacy.event import Selection
from sfumato.privacy.unit import Relation
from sfumato.query.allowance import Allowance, allowance
from sfumato.query.cost import Cost
from sfumato.query.curator import Curator
from sfumato.query.session import Session

_MOST_MODELS = 10_000
_BYTES = 8


@dataclass(frozen=True, slots=True)
class Chosen:
    """The result of ``choose``: the model, and ``place``, its index in the list of models.

    ``short`` bounds the loss: with 95% probability the best model predicts at most ``short`` rows
    more rightly than the chosen one.

    >>> Chosen("a model", 2, 40, Cost("1", "0.125", "0", ()), "c0ffee")
    model 2 (within 40 rows of the best with 95%, cost: epsilon = 1)
    """

    model: Any
    place: int
    short: int
    cost: Cost
    charge: str

    def __repr__(self) -> str:
        within = f"within {self.short:,} rows of the best with 95%"
        return f"model {self.place} ({within}, cost: {self.cost})"


def choose(
    session: Session,
    models: Sequence[Scorable],
    statement: str,
    *,
    label: str,
    epsilon: Number,
) -> Chosen:
    """Selects a model by the exponential mechanism; the score is the number of right predictions.

    The models must be public: fitted under charges of their own, or on other data. The statement
    reads rows as in ``score``; use rows that none of the models was fitted to. The cost is a pure
    epsilon, whatever the number of models. The same selection again costs no budget.

    Raises:
        WrongUse: no models, or models of a number, of other classes or other features.
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
    ...     noisy = ln.fit(session, ln.NaiveBayes(), select, label="smoker", epsilon="0.0001")
    ...     exact = ln.fit(session, ln.NaiveBayes(), select, label="smoker", epsilon=1)
    ...     choose(session, [noisy, exact], select, label="smoker", epsilon=1).short
    2
    >>> folder.cleanup()
    """
    listed_models = tuple(models) if isinstance(models, list | tuple) else ()
    known = all(isinstance(model, Scorable) for model in listed_models)
    if not 1 <= len(listed_models) <= _MOST_MODELS or not known:
        raise WrongUse(
            f"models={shown(models)}.", allowed="a list of 1 to 10,000 models that ln.fit returned"
        )
    examples = Examples.of(session.dataset, statement, label, listed_models[0].bag)
    for model in listed_models:
        require_same(model, examples)
    kind = RightCounts
    if examples.plan.neighbours is Relation.ADD_REMOVE:
        kind = AddedRightCounts
    counts = kind(tuple(model.outcomes(examples) for model in listed_models))
    task = Choosing(
        counts, tuple(model.fingerprint for model in listed_models), allowance(epsilon=epsilon)
    )
    cost = session.price(task)
    stored = session.ask(DescribedTask(task, examples.about))
    place = int.from_bytes(stored.body, "little")
    # counts are whole: less than so many rows apart
    short = int(task.mechanism.error("0.95", len(listed_models)))
    return Chosen(listed_models[place], place, short, cost, stored.charge)


@dataclass(frozen=True, slots=True)
class Choosing:
    """The task of ``choose``: one private selection. ``fingerprints`` are the hashes of the
    models.
    """

    counts: RightCounts = field(compare=False)
    fingerprints: tuple[str, ...]
    allowance: Allowance

    kind: ClassVar[str] = "choice"
    cells: ClassVar[tuple[int, ...]] = ()
    size: ClassVar[int] = _BYTES

    @property
    def line(self) -> str:
        """The number of models."""
        return f"a choice among {len(self.fingerprints)} models"

    @property
    def form(self) -> str:
        """The canonical form of what is read of a row, and of the models."""
        return f"{form(self)} {[model.read for model in self.counts.models]}"

    @property
    def mechanism(self) -> SelectionMechanism:
        """The exponential mechanism on right predictions."""
        return exponential(
            self.counts.distance(Norm.LINF),
            self.allowance.amount,
            monotone=self.counts.is_monotone,
        )

    @property
    def event(self) -> Selection:
        """The event of the one selection."""
        return self.mechanism.event(self.counts.distance(Norm.LINF))

    def ready(self, declarations: Dataset) -> BoundedRows:
        """The bounded rows."""
        return self.counts.plan

    def run(self, curator: Curator) -> bytes:
        """Returns the index of the selected model as bytes."""
        return curator.select(self.counts, self.mechanism).to_bytes(_BYTES, "little")
