# SPDX-License-Identifier: Apache-2.0
"""Questions about graphs as tasks of a session."""

import json
from dataclasses import dataclass
from typing import ClassVar

from sfumato.accounting.account import account
from sfumato.accounting.budget_gates import charge_for
from sfumato.errors import WrongUse
from sfumato.exact.rational import Number
from sfumato.graph.answer import Answer, Count, DegreeTable
from sfumato.graph.questions import Degrees, Question
from sfumato.graph.reading import graph_of, protection_of
from sfumato.graph.ways import Facts, Way, way_of
from sfumato.metadata.dataset import Dataset
from sfumato.plan.graph import BoundedGraph
from sfumato.plan.show import form
from sfumato.privacy.event import Event, Json
from sfumato.query.allowance import Allowance, allowance
from sfumato.query.cost import Cost, cost_of_steps
from sfumato.query.curator import Curator
from sfumato.query.session import Session

# The stored bytes: a JSON object.
FORMAT = 1


@dataclass(frozen=True, slots=True)
class GraphTask:
    """A question about the graph of a table.

    Guarantees:
        questions about graphs that differ in anything have different forms
    """

    dataset: str
    table: str
    plan: BoundedGraph
    question: Question
    allowance: Allowance
    where: str | None = None

    kind: ClassVar[str] = "graph"
    size: ClassVar[None] = None

    @property
    def way(self) -> Way:
        """How the question is measured."""
        return way_of(self.plan, self.question, self.allowance)

    @property
    def line(self) -> str:
        """The table and the question."""
        return f"{self.table}: {self.question.name}"

    @property
    def form(self) -> str:
        """The format of the stored bytes, and the canonical form of every field."""
        return f"{FORMAT} {self.question.name} {form(self)}"

    @property
    def event(self) -> Event:
        """The event of all steps."""
        return self.way.event

    @property
    def cells(self) -> tuple[int | None, ...]:
        """The numbers of integers that are known before the data is read."""
        return self.way.cells

    def ready(self, declarations: Dataset) -> BoundedGraph:
        """The bounded graph (WrongUse if it was planned for other declarations)."""
        if graph_of(declarations, self.table, self.where) != self.plan:
            raise WrongUse(
                "A graph that was planned for other declarations.", remedy="Plan it anew."
            )
        return self.plan

    def run(self, curator: Curator) -> bytes:
        """The answer as JSON."""
        facts = self.way.run(curator)
        return json.dumps(self.facts() | facts | {"charge_id": curator.charge}).encode()

    def facts(self) -> Facts:
        """What is known before the data is read."""
        return {
            "kind": self.kind,
            "format": FORMAT,
            "dataset": self.dataset,
            "table": self.table,
            "question": self.question.name,
            "where": self.where,
            "cost": self.cost.to_json(),
            "protected": list[Json](protection_of(self.plan)),
        }

    @property
    def cost(self) -> Cost:
        """The cost, with an item for each step."""
        return cost_of_steps(charge_for(account(self.event)), self.question.name, self.event)


@dataclass(frozen=True, slots=True)
class Preview:
    """What a question about a graph would cost, and what error to expect: from public numbers.

    Attributes:
        cost: the cost, with an item for each step.
        protected: who is protected.
        expected: sentences on the expected error.
    """

    cost: Cost
    protected: tuple[str, ...]
    expected: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join([f"Cost: {self.cost}.", *self.protected, *self.expected])

    __repr__ = __str__

    def to_json(self) -> dict[str, Json]:
        """The preview as JSON."""
        return {
            "cost": self.cost.to_json(),
            "protected": list[Json](self.protected),
            "expected": list[Json](self.expected),
        }


def ask(
    session: Session,
    table: str,
    question: Question,
    *,
    epsilon: Number | None = None,
    rho: Number | None = None,
    where: str | None = None,
) -> Answer:
    """Answers a question about the graph whose edges are the rows of a table; it is charged.

    The unit of the table is ``sf.Edge`` or ``sf.Node``. ``where`` is a condition on declared
    columns of the table. ``epsilon`` buys pure differential privacy, ``rho`` zCDP.

    Raises:
        UnknownName, WrongUse, UnsupportedSql, InvalidDeclaration: before the charge.
        Others as ``Session.ask``.

    >>> import tempfile, pyarrow as pa, sfumato as sf
    >>> from sfumato.graph.questions import Edges
    >>> folder = tempfile.TemporaryDirectory()
    >>> rows = pa.table({"a": ["x", "y", "x"], "b": ["y", "z", "z"]})
    >>> tables = {"ties": sf.Table(rows, unit=sf.Edge("a", "b"))}
    >>> with sf.connect(
    ...     tables, dataset="t", budget=sf.Budget(9), ledger=folder.name + "/l.db"
    ... ) as session:
    ...     found = ask(session, "ties", Edges(), epsilon=2)
    >>> found.low <= found.value <= found.high, found.cost.epsilon
    (True, '2')
    >>> folder.cleanup()
    """
    task = graph_task(session.dataset, table, question, allowance(epsilon=epsilon, rho=rho), where)
    stored = session.ask(task)
    kind = DegreeTable if isinstance(question, Degrees) else Count
    return kind(json.loads(stored.body), stored)


def preview(
    session: Session,
    table: str,
    question: Question,
    *,
    epsilon: Number | None = None,
    rho: Number | None = None,
    where: str | None = None,
) -> Preview:
    """Returns the cost of a question about a graph, who is protected, and the expected error; costs
    no budget.

    Raises:
        As ``ask``, before the charge.
    """
    task = graph_task(session.dataset, table, question, allowance(epsilon=epsilon, rho=rho), where)
    return Preview(task.cost, protection_of(task.plan), task.way.expected)


def graph_task(
    dataset: Dataset,
    table: str,
    question: Question,
    allowed: Allowance,
    where: str | None = None,
) -> GraphTask:
    """Returns the task that answers a question about a graph; raises as ``ask`` does before the
    charge.
    """
    plan = graph_of(dataset, table, where)
    way_of(plan, question, allowed)
    return GraphTask(dataset.name, table, plan, question, allowed, where)
