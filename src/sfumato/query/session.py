# SPDX-License-Identifier: Apache-2.0
"""The front door: a dataset, its budget, its ledger, and questions."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import cast

from sqlglot import exp

from sfumato.accounting.filter import NOTHING
from sfumato.engines.base import Engine
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.local import Local
from sfumato.engines.prepared import Prepared
from sfumato.engines.spark import Spark, SparkEngine
from sfumato.engines.spark_frame import shared_session
from sfumato.errors import InvalidDeclaration, UnknownName, WrongUse, shown
from sfumato.exact.rational import Number
from sfumato.ledger.spend import Ledger
from sfumato.ledger.tree import UNSTATED
from sfumato.ledger.verify import Report, verify
from sfumato.metadata.contract import Contract
from sfumato.metadata.dataset import Dataset
from sfumato.metadata.table import Table
from sfumato.plan.scalar import Estimate
from sfumato.privacy.budget import Budget
from sfumato.privacy.distance import Norm
from sfumato.privacy.event import Json
from sfumato.privacy.unit import AddRemove, Relation
from sfumato.query.account import Account
from sfumato.query.answer import Answer
from sfumato.query.choose import Planned, cheapest, plan_for_price, plans_for_target
from sfumato.query.diagnose import checks
from sfumato.query.diagnosis import Diagnosis, diagnosis
from sfumato.query.frame import Frame, frame
from sfumato.query.pipeline import UNPREPARED, compile_plan
from sfumato.query.preview import Preview
from sfumato.query.release import Asked, Asker, release
from sfumato.query.request import Wish, price
from sfumato.query.reuse import Shelf, reuse
from sfumato.query.steps import Alone, Foreseen, Paid, Rehearsed, Step, resolved
from sfumato.query.table import parts_from_json
from sfumato.query.target import Reference, typical_size, wanted
from sfumato.sql.bind import Parameters
from sfumato.sql.lower import Question


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
        self,
        dataset: Dataset,
        budget: Budget,
        engine: Engine,
        ledger: Ledger,
        *,
        analyst: str,
        purpose: str,
        kept: Mapping[str, int] = UNPREPARED,
    ) -> None:
        self._engine = engine
        self._kept = kept
        self._ledger = ledger
        self._shelf = Shelf(ledger)
        self._limit = budget
        contract = Contract.of(dataset, budget)
        self._asker = Asker(dataset.described, contract, analyst, purpose, ledger.past_limits(dataset.name))

    @property
    def dataset(self) -> Dataset:
        """The declarations, and nothing of the data: no table has its source."""
        return self._asker.dataset

    @property
    def budget(self) -> Account:
        """What is spent and what is left, from the ledger."""
        return Account(self._limit, self._ledger.balance(self.dataset.name))

    def preview(
        self,
        sql: str | exp.Select,
        *,
        parameters: Parameters | None = None,
        epsilon: Number | None = None,
        rho: Number | None = None,
        delta: Number | None = None,
        error: Wish | None = None,
        max_epsilon: Number | None = None,
    ) -> Preview:
        """Cost and expected error of a question, free; the data is not touched."""
        asked = price(epsilon=epsilon, rho=rho, delta=delta, error=error, max_epsilon=max_epsilon)
        step = resolved(sql, parameters, asked, self.dataset, Foreseen())
        planned = self._planned(step)
        return Preview(planned, step.dataset, self._engine.statement(planned.bounded))

    def query(
        self,
        sql: str | exp.Select,
        *,
        parameters: Parameters | None = None,
        epsilon: Number | None = None,
        rho: Number | None = None,
        delta: Number | None = None,
        error: Wish | None = None,
        max_epsilon: Number | None = None,
        key: str | None = None,
    ) -> Answer:
        """The private answer to a question.

        Exactly one of: ``epsilon`` (pure DP, discrete Laplace), ``rho`` (zCDP, discrete
        Gaussian), or ``error`` with ``max_epsilon``: the cheapest cost whose 95% half-width
        is at most ``error`` in every cell, or on average with ``sf.OnAverage(error)``; absolute
        or such as "5%" of a public reference. ``delta`` pays,
        beside ``epsilon`` or ``rho``, for groups that are not public. ``parameters`` are the
        values of ``$1``, ``?`` or ``:name`` in the text.

        The cost is debited before the data is read. The same question at the same price is
        answered from the ledger, the same bytes, at no cost. A sub-query that is an answer of
        its own, and a limit that is ``sf.AUTO``, are charges of their own: the cost is shared
        among them, and the notes of the answer name them. A ``key`` binds the question to its
        answer for a caller who may have to ask twice.

        Raises:
            Refused: the language, a missing declaration or the budget forbids it; free, but for a sub-query
                whose number turns out so large that 62 bits do not hold what is computed of it: that stays paid.
            WrongUse: the price is not one, or the key belongs to another question.
            InvalidSource, InvalidDeclaration: the data has changed and is not as declared any more,
                or a prepared layout is stale; free.
            EngineFailed: the cost stays spent.
        """
        asked = price(epsilon=epsilon, rho=rho, delta=delta, error=error, max_epsilon=max_epsilon)
        first = Rehearsed(self._planned)
        step = resolved(sql, parameters, asked, self.dataset, first)
        if first.doubtful:
            self._planned(resolved(sql, parameters, asked, self.dataset, Rehearsed(self._planned, nulls=True)))
        if first.plans:
            self._require_all([*first.plans, (step, self._planned(step))])
            step = resolved(sql, parameters, asked, self.dataset, Paid(self._answered))
        return self._answered(step, key or "")

    def diagnose(
        self,
        sql: str | exp.Select,
        *,
        parameters: Parameters | None = None,
        epsilon: Number | None = None,
        rho: Number | None = None,
    ) -> Diagnosis:
        """How much of the data clipping and bounding touch in a question: the bias beside its intervals.

        Asks how many units have more than a limit allows, which share of the values lies beyond
        the declared bounds, and which share of the rows is in no group: at most two questions,
        which share the price and are charged, stored and answered like any other. The question
        itself is not asked.

        Raises:
            Refused: as ``query``; nothing in the question to diagnose; a sub-query or a
                limit that would have to be answered first. Free.
            EngineFailed: the cost stays spent.
        """
        asked = price(epsilon=epsilon, rho=rho)
        step = resolved(sql, parameters, asked, self.dataset, Alone())
        norm = Norm.L1 if asked.epsilon is not None else Norm.L2
        found = checks(step.question, compile_plan(step.question.raw, step.dataset, norm))
        share = asked.scaled(Fraction(1, len(found)))
        # a prepared layout holds clipped codes, which cannot tell what was clipped
        planned = [plan_for_price(check.question, step.dataset, share) for check in found]
        self._require_all([(step, each) for each in planned])
        ready = [Asked.of(each, self._asker) for each in planned]
        return diagnosis(found, [self._released(each, recalled=self._is_known(each)) for each in ready])

    def table(self, name: str) -> Frame:
        """A question about a table without SQL: ``where``, ``join``, ``group_by``, ``agg``, then ``query``."""
        if name not in self.dataset.tables:
            raise UnknownName(f"No table {shown(name)}.", allowed=", ".join(self.dataset.tables))
        return frame(name, self.query, self.preview)

    def verify(self) -> Report:
        """Replays the ledger against everything that it stores."""
        return verify(self._ledger)

    def close(self) -> None:
        """Lets go of the ledger and of the data."""
        self._ledger.close()
        if isinstance(self._engine, DuckDB | SparkEngine):
            self._engine.close()

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Session of {self.dataset.name!r}: {', '.join(self.dataset.tables)}\n{self.budget!r}"

    def _require_all(self, plans: Sequence[tuple[Step, Planned]]) -> None:
        """Refuses, while it is free, questions of which the first could be paid and the rest not."""
        asked = [Asked.of(planned, self._asker.about(step.dataset)) for step, planned in plans]
        # one that stands there twice is paid once
        new = {each.question: each.planned for each in asked if not self._is_known(each)}
        if len(new) > 1:
            self._ledger.balance(self.dataset.name).require(sum((each.charge for each in new.values()), NOTHING))

    def _planned(self, step: Step) -> Planned:
        """The plan of a step: the cheapest of those that there are."""
        return self._cheapest([reuse(each, self._shelf) for each in self._asked(step)]).planned

    def _asked(self, step: Step) -> list[Asked]:
        asker = self._asker.about(step.dataset)
        return [Asked.of(plan, asker) for plan in self._plans(step)]

    def _cheapest(self, asked: list[Asked]) -> Asked:
        if len(asked) == 1:
            return asked[0]
        best = cheapest([each.planned for each in asked], self._ledger.balance(self.dataset.name))
        return next(replace(each, planned=best) for each in asked if each.planned.bounded is best.bounded)

    def _answered(self, step: Step, key: str = "") -> Answer:
        """The stored answer of a step, charged if it is new."""
        plans = self._asked(step)
        known = next((each for each in plans if self._is_known(each)), None)
        if known is not None:
            return self._released(known, key, recalled=True)
        chosen = self._cheapest([reuse(each, self._shelf) for each in plans])
        return self._released(chosen, key, recalled=chosen.planned.fresh is None)

    def _is_known(self, asked: Asked) -> bool:
        return self._ledger.holds(asked.request())

    def _released(self, asked: Asked, key: str = "", *, recalled: bool) -> Answer:
        """The answer to a planned question; ``recalled``: it was there before."""
        return Answer(release(asked, self._engine, self._ledger, key=key), recalled=recalled)

    def _plans(self, step: Step) -> list[Planned]:
        if step.price.target is None:
            return [plan_for_price(step.question, step.dataset, step.price, self._kept)]
        goal = wanted(step.question, step.dataset, step.price.target, self._references(step.question))
        concentrated = self._ledger.balance(self.dataset.name).gates.rho is not None
        return plans_for_target(
            step.question, step.dataset, step.price, goal, concentrated=concentrated, kept=self._kept
        )

    def _references(self, question: Question) -> dict[int, Reference]:
        """What the first stored answer to the same statement says of each part."""
        named = [each.statement_key(question) for each in (*self._asker.earlier, self._asker)]
        body = self._ledger.first_answer(named, self._asker.account)
        if body is None:
            return {}
        answer = Answer(body)
        released = cast(dict[str, Json], answer.form["released"])
        found = {}
        for index, part in enumerate(parts_from_json(released["parts"])):
            reads = [item.expression for item in question.output.items if isinstance(item.expression, Estimate)]
            if not any(each.index == index for each in reads) or not part.values or part.noise is None:
                continue
            points = [abs(part.point(group)) for group in range(len(part.values))]
            sizes = [sum(values) * part.reading.unit for values in part.values]
            mean = sum(points, Fraction(0)) / len(points)
            found[index] = Reference(answer.charge_id[:12], mean, min(sizes), typical_size(sizes))
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
    prepared: str | Path | None = None,
    engine: Spark | Local | None = None,
    closed: bool | None = None,
    other_people: str = "",
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
        prepared: the folder of ``sf.prepare``; its layouts are read where a question permits.
        engine: ``sf.Spark("spark://host:7077")`` has Spark read the paths; DataFrames of Spark
            are asked where they are without it; all else is DuckDB's, here, within the
            limits of ``sf.Local(memory_limit="8GB", threads=4)``, which may also tell how far it is.
        closed: whether only accounts that the owner has opened may spend. By default it is so as
            soon as an account below the dataset has a limit.
        other_people: the owner's reason why data that another dataset of this ledger has too is
            about other people here; the journal keeps it.

    Raises:
        InvalidDeclaration, InvalidSource: a table that is not as declared; a layout that is stale.
        ContractMismatch: the ledger knows the dataset under another contract, or its data under
            another name.
        LedgerError: the ledger cannot be used.
    """
    if not isinstance(tables, Mapping):
        raise InvalidDeclaration(f"tables={type(tables).__name__}.", allowed='{"people": sf.Table(...)}')
    _require_kinds({"analyst": analyst, "purpose": purpose}, budget, prepared, ledger)
    declared = Dataset(dataset, dict(tables), relation, version)
    layouts = None if prepared is None else Prepared.open(prepared, declared)
    opened_engine = _engine(declared.tables, engine, layouts)
    try:
        opened = Ledger.open(ledger)
    except BaseException:
        opened_engine.close()
        raise
    try:
        limit = budget or opened.budget_of(dataset)
        if limit is None:
            raise WrongUse(
                f"The ledger does not know {shown(dataset)} yet, and no budget is given.",
                remedy="budget=sf.Budget(epsilon=1)",
            )
        _adopt(opened, declared, limit, closed=closed, other_people=other_people)
        kept = UNPREPARED if layouts is None else layouts.kept
        return Session(declared, limit, opened_engine, opened, analyst=analyst, purpose=purpose, kept=kept)
    except BaseException:
        opened.close()
        opened_engine.close()
        raise


def _adopt(ledger: Ledger, declared: Dataset, limit: Budget, *, closed: bool | None, other_people: str) -> None:
    """Opens the account of a dataset, or checks that it is the same one."""
    if closed is not None and not isinstance(closed, bool):
        raise WrongUse(f"closed={closed!r}.", allowed="True, False, or None")
    contract = Contract.of(declared, limit)
    ledger.adopt(contract, limit, sources=declared.places, other_people=other_people)
    if closed is not None and ledger.is_closed(declared.name) != closed:
        ledger.restrict(declared.name, closed=closed, reason="declared with the dataset")


def _require_kinds(names: Mapping[str, object], budget: object, prepared: object, ledger: object) -> None:
    """Refuses what would fail later, or mean something else than it says."""
    for name, value in names.items():
        if not isinstance(value, str) or not value:
            raise WrongUse(f"{name}={shown(value)}.", allowed="a text that is not empty")
    if budget is not None and not isinstance(budget, Budget):
        raise WrongUse(f"budget={shown(budget)}.", allowed="sf.Budget(epsilon=1, delta=1e-6)")
    if prepared is not None and not isinstance(prepared, str | Path):
        raise WrongUse(f"prepared={shown(prepared)}.", allowed="the folder that sf.prepare returned, or None")
    if ledger == ":memory:":
        raise WrongUse("A ledger in memory would forget what was spent.", allowed="the path of a file")


def _engine(
    tables: Mapping[str, Table], engine: Spark | Local | None, layouts: Prepared | None
) -> DuckDB | SparkEngine:
    """The one engine that reads all the tables."""
    if engine is not None and not isinstance(engine, Spark | Local):
        raise WrongUse(
            f"engine={shown(engine)}.", allowed='sf.Spark("spark://host:7077"), sf.Local(threads=4), or None'
        )
    session = shared_session(tables)
    if layouts is not None and (isinstance(engine, Spark) or session is not None):
        raise WrongUse("A prepared layout, and Spark.", allowed="one of them", remedy="Leave prepared= out.")
    if isinstance(engine, Spark):
        return engine.open(tables)
    if session is not None:
        if engine is not None:
            raise WrongUse("DataFrames of Spark, and sf.Local.", allowed="one of them", remedy="Leave engine= out.")
        return SparkEngine(tables, session)
    return DuckDB(tables, limits=engine, prepared=layouts)
