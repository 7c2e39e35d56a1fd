# SPDX-License-Identifier: Apache-2.0
"""The front door: a dataset, its budget, its ledger, and questions."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import cast

from sfumato.engines.base import Engine
from sfumato.engines.duckdb import DuckDB
from sfumato.errors import InvalidDeclaration, WrongUse
from sfumato.exact.rational import Number, decimal_text
from sfumato.ledger.balance import Balance, units_text
from sfumato.ledger.spend import Ledger
from sfumato.ledger.tree import UNSTATED
from sfumato.ledger.verify import Report, verify
from sfumato.metadata.contract import Contract
from sfumato.metadata.dataset import Dataset
from sfumato.metadata.table import Table
from sfumato.plan.aggregate import largest
from sfumato.plan.scalar import Estimate
from sfumato.privacy.budget import Budget
from sfumato.privacy.event import Json
from sfumato.privacy.unit import AddRemove, Relation
from sfumato.query.answer import Answer
from sfumato.query.choose import Planned, cheapest, plan_for_price, plans_for_target
from sfumato.query.preview import Preview
from sfumato.query.release import Asker, release
from sfumato.query.request import Price, price
from sfumato.query.table import parts_from_json
from sfumato.query.target import Reference, wanted
from sfumato.sql.lower import Question, understand


@dataclass(frozen=True, slots=True)
class Account:
    """What the budget allows, has paid and has left; every number exact.

    ``left`` is the largest epsilon that one more pure question may cost, ``left_rho`` the
    largest rho of a Gaussian one; both gates are considered.
    """

    limit: Budget
    balance: Balance

    @property
    def spent(self) -> str:
        """The sum of the pure losses ("unbounded" once Gaussian noise was bought)."""
        return units_text(self.balance.spent.epsilon)

    @property
    def spent_rho(self) -> str:
        """The sum of the zCDP costs."""
        return units_text(self.balance.spent.rho)

    @property
    def reserved(self) -> str:
        """What questions that are under way have taken."""
        return units_text(self.balance.reserved.epsilon)

    @property
    def left(self) -> Fraction:
        """The largest epsilon of one more pure question."""
        return self.balance.left.epsilon

    @property
    def left_rho(self) -> Fraction:
        """The largest rho of one more Gaussian question; 0 on a pure account."""
        return self.balance.left.rho

    def to_json(self) -> dict[str, Json]:
        """As ``sfumato budget --format json`` prints it."""
        rho_limit = self.balance.gates.rho
        return {
            "limit": {"epsilon": decimal_text(self.limit.epsilon), "delta": decimal_text(self.limit.delta)},
            "spent": {"epsilon": self.spent, "rho": self.spent_rho},
            "reserved": {"epsilon": self.reserved, "rho": units_text(self.balance.reserved.rho)},
            "left": {"epsilon": decimal_text(self.left), "rho": decimal_text(self.left_rho)},
            "gates": {
                "pure": units_text(self.balance.gates.epsilon),
                "zcdp": None if rho_limit is None else units_text(rho_limit),
            },
        }

    def __repr__(self) -> str:
        gates = self.balance.gates
        lines = [
            f"limit     {self.limit}",
            f"spent     epsilon {self.spent} of {units_text(gates.epsilon)} (pure gate)",
        ]
        if gates.rho is not None:
            lines.append(f"          rho {self.spent_rho} of {units_text(gates.rho)} (zCDP gate)")
        lines.append(f"left      one question of epsilon up to {decimal_text(self.left)}")
        if self.left_rho:
            lines[-1] += f", or of rho up to {decimal_text(self.left_rho)}"
        return "\n".join(lines)


class Session:
    """Questions to one dataset, charged to one account. Also a context manager.

    >>> import sfumato as sf, pyarrow as pa, tempfile
    >>> people = sf.Table(pa.table({"age": [30, 40]}), columns={"age": sf.Integer(0, 120)})
    >>> folder = tempfile.TemporaryDirectory()
    >>> with sf.connect({"people": people}, dataset="tiny", budget=sf.Budget(1),
    ...                 ledger=folder.name + "/ledger.db") as session:
    ...     answer = session.query("SELECT COUNT(*) AS n FROM people", epsilon=0.5)
    ...     session.budget.left
    Fraction(1, 2)
    >>> folder.cleanup()
    """

    def __init__(
        self, dataset: Dataset, budget: Budget, engine: Engine, ledger: Ledger, *, analyst: str, purpose: str
    ) -> None:
        self._engine = engine
        self._ledger = ledger
        self._limit = budget
        self._asker = Asker(dataset, Contract.of(dataset, budget), analyst, purpose)
        ledger.adopt(self._asker.contract, budget)

    @property
    def dataset(self) -> Dataset:
        """The declarations."""
        return self._asker.dataset

    @property
    def budget(self) -> Account:
        """What is spent and what is left, from the ledger."""
        return Account(self._limit, self._ledger.balance(self.dataset.name))

    def preview(
        self,
        sql: str,
        *,
        epsilon: Number | None = None,
        rho: Number | None = None,
        delta: Number | None = None,
        error: Number | None = None,
        max_epsilon: Number | None = None,
    ) -> Preview:
        """Cost and expected error of a question, free; the data is not touched."""
        asked = price(epsilon=epsilon, rho=rho, delta=delta, error=error, max_epsilon=max_epsilon)
        plans = self._plans(understand(sql, self.dataset), asked)
        planned = plans[0] if len(plans) == 1 else cheapest(plans, self._ledger.balance(self.dataset.name))
        return Preview(planned, self.dataset, self._engine.statement(planned.bounded))

    def query(
        self,
        sql: str,
        *,
        epsilon: Number | None = None,
        rho: Number | None = None,
        delta: Number | None = None,
        error: Number | None = None,
        max_epsilon: Number | None = None,
        key: str | None = None,
    ) -> Answer:
        """The private answer to a question.

        Exactly one of: ``epsilon`` (pure DP, discrete Laplace), ``rho`` (zCDP, discrete
        Gaussian), or ``error`` with ``max_epsilon``: the cheapest cost whose 95% half-width
        is at most ``error``, absolute or such as "5%" of a public reference.

        The cost is debited before the data is read. The same question at the same price is
        answered from the ledger, the same bytes, at no cost. A ``key`` binds the question to
        its answer for a caller who may have to ask twice.

        Raises:
            Refused: the language, a missing declaration or the budget forbids it; free.
            WrongUse: the price is not one, or the key belongs to another question.
            EngineFailed: the cost stays spent.
        """
        asked = price(epsilon=epsilon, rho=rho, delta=delta, error=error, max_epsilon=max_epsilon)
        plans = self._plans(understand(sql, self.dataset), asked)
        plans = [plan for plan in plans if self._ledger.answer(self._asker.question_key(plan)) is not None][:1] or plans
        planned = plans[0] if len(plans) == 1 else cheapest(plans, self._ledger.balance(self.dataset.name))
        return Answer(release(planned, self._asker, self._engine, self._ledger, key=key or ""))

    def verify(self) -> Report:
        """Replays the ledger against everything that it stores."""
        return verify(self._ledger)

    def close(self) -> None:
        """Lets go of the ledger and of the data."""
        self._ledger.close()
        if isinstance(self._engine, DuckDB):
            self._engine.close()

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Session of {self.dataset.name!r}: {', '.join(self.dataset.tables)}\n{self.budget!r}"

    def _plans(self, question: Question, asked: Price) -> list[Planned]:
        if asked.target is None:
            return [plan_for_price(question, self.dataset, asked)]
        goal = wanted(question, self.dataset, asked.target, self._references(question))
        concentrated = self._ledger.balance(self.dataset.name).gates.rho is not None
        return plans_for_target(question, self.dataset, asked, goal, concentrated=concentrated)

    def _references(self, question: Question) -> dict[int, Reference]:
        """What the first stored answer to the same statement says of each part."""
        body = self._ledger.first_answer(self._asker.statement_key(question))
        if body is None:
            return {}
        answer = Answer(body)
        released = cast(dict[str, Json], answer.form["released"])
        found = {}
        for index, part in enumerate(parts_from_json(released["parts"])):
            places = [place for place, item in enumerate(question.output.items) if item.expression == Estimate(index)]
            if not places or not part.values:
                continue
            points = [abs(part.point(group)) for group in range(len(part.values))]
            size = min(sum(values) for values in part.values) * part.unit / largest(question.raw.aggregates[index])
            found[index] = Reference(answer.charge_id[:12], sum(points, Fraction(0)) / len(points), Fraction(size))
        return found


def connect(
    tables: Mapping[str, Table],
    *,
    dataset: str,
    ledger: str | Path,
    budget: Budget | None = None,
    relation: Relation = AddRemove,
    version: str = "1",
    analyst: str = "owner",
    purpose: str = UNSTATED,
) -> Session:
    """A session over declared tables.

    Args:
        tables: the tables, by the names that questions use.
        dataset: the name under which the ledger knows the data, for ever.
        ledger: the file that keeps what was spent, made if it is not there, or a postgresql://
            address.
        budget: the limit; may be left out where the ledger already has it.
        relation: ``sf.AddRemove`` or ``sf.ReplaceOne``.
        version: the owner's version of the content; another version is asked anew.
        analyst: who asks; answers are not shared between analysts unless the owner's policy says so.
        purpose: what for; the analyst's account lies below it.

    Raises:
        InvalidDeclaration, InvalidSource: a table that is not as declared.
        ContractMismatch: the ledger knows the dataset under another contract.
        LedgerError: the ledger cannot be used.
    """
    if not isinstance(tables, Mapping):
        raise InvalidDeclaration(f"tables={type(tables).__name__}.", allowed='{"people": sf.Table(...)}')
    if budget is not None and not isinstance(budget, Budget):
        raise WrongUse(f"budget={budget!r}.", allowed="sf.Budget(epsilon=1, delta=1e-6)")
    declared = Dataset(dataset, dict(tables), relation, version)
    engine = DuckDB(declared.tables)
    try:
        opened = Ledger.open(ledger)
    except BaseException:
        engine.close()
        raise
    try:
        limit = budget or opened.budget_of(dataset)
        if limit is None:
            raise WrongUse(
                f"The ledger does not know {dataset!r} yet, and no budget is given.",
                remedy="budget=sf.Budget(epsilon=1)",
            )
        return Session(declared, limit, engine, opened, analyst=analyst, purpose=purpose)
    except BaseException:
        opened.close()
        engine.close()
        raise
