# SPDX-License-Identifier: Apache-2.0
"""Resolves scalar sub-queries and ``sf.AUTO`` limits, which are answered before their question.

Each of them is a question of its own, for a share of the price. Before anything is charged, the
whole question is planned with placeholder values, so that refusals are free.
"""

import datetime
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Protocol, TypeAlias

from sqlglot import exp

from sfumato.errors import MissingDeclaration, UnsupportedSql
from sfumato.exact.rational import to_fraction
from sfumato.metadata.dataset import Dataset
from sfumato.plan.question import Question
from sfumato.query.answer import Answer
from sfumato.query.auto_limits import (
    SHARE,
    automatic,
    declared_groups,
    learnt_limit,
    units_needed,
    with_limits,
)
from sfumato.query.choose import Planned
from sfumato.query.price import Price
from sfumato.sql.bind import Parameters, scalar_queries
from sfumato.sql.lower import may_be_null, question_of, stand_in, text_of, tree

# The value of a scalar sub-query; None if it is NULL.
Scalar: TypeAlias = Fraction | datetime.date | None


@dataclass(frozen=True, slots=True)
class Step:
    """A question with its declarations and its price.

    ``guessed`` is set if the question contains a placeholder instead of an earlier answer.
    """

    question: Question
    dataset: Dataset
    price: Price
    guessed: bool = False

    @property
    def name(self) -> "Name":
        """The name of a step within one question."""
        return self.question.text, self.price


# A step of a question is identified by its text and its price.
Name: TypeAlias = tuple[str, Price]


class First(Protocol):
    """A resolver for the sub-queries and limits of a question.

    Each method returns a value, and a note for the reader of the answer. ``guesses`` counts the
    placeholders returned so far.
    """

    @property
    def guesses(self) -> int: ...

    def scalar(self, step: Step) -> tuple[Scalar, str]:
        """The value of a sub-query, and a note."""
        ...

    def limit(self, name: str, step: Step, groups: int | None) -> tuple[int, str]:
        """The value of an ``sf.AUTO`` limit, and a note; ``groups`` is the most it can be."""
        ...


class Foreseen:
    """Resolver for ``preview``: a placeholder for each sub-query; refuses ``sf.AUTO`` limits."""

    guesses = 0

    def scalar(self, step: Step) -> tuple[Scalar, str]:
        value = stand_in(step.question)
        unknown = "The answer of a sub-query is not known yet"
        return value, f"{unknown}: taken as {value} here; its cost is shared."

    def limit(self, name: str, step: Step, groups: int | None) -> tuple[int, str]:
        raise MissingDeclaration(
            f"{name} of table {step.question.table!r} is sf.AUTO: query learns it, "
            f"preview is free and does not. {_scarce(step.price)}",
            remedy=f"Declare {name}= with a number, or ask with query.",
        )


class Alone:
    """Resolver for ``diagnose``: refuses sub-queries and ``sf.AUTO`` limits."""

    guesses = 0

    def scalar(self, step: Step) -> tuple[Scalar, str]:
        raise UnsupportedSql(
            "A diagnosis of a question with a sub-query that is an answer of its own: "
            f"{step.question.text}.",
            remedy="Ask the sub-query first, and write its number, or a parameter, in its place.",
        )

    def limit(self, name: str, step: Step, groups: int | None) -> tuple[int, str]:
        raise MissingDeclaration(
            f"{name} of table {step.question.table!r} is sf.AUTO: "
            "there is no limit yet whose effect could be told.",
            remedy=f"Declare {name}= with a number.",
        )


class Rehearsed:
    """Resolver without charges: stored answers if there are any, otherwise placeholders.

    ``own`` returns an answer that the asker has paid for; ``others`` one that the asker may share
    but would be charged for. With ``nulls``, a placeholder is NULL if the answer may be NULL;
    ``doubtful`` is set if there is such a sub-query. ``plans`` collects the plans of the steps
    that would be charged. ``is_needed`` is set if there is any step at all.
    """

    def __init__(
        self,
        plan: Callable[[Step], Planned],
        own: Callable[[Step], Answer | None] = lambda step: None,
        *,
        others: Callable[[Step], Answer | None] = lambda step: None,
        nulls: bool = False,
    ) -> None:
        self._plan, self._own, self._others = plan, own, others
        self._nulls, self.guesses = nulls, 0
        self.plans: list[tuple[Step, Planned]] = []
        self.doubtful = self.is_needed = False

    def scalar(self, step: Step) -> tuple[Scalar, str]:
        answer = self._stored(step)
        if answer is not None:
            return _constant(answer), ""
        item, *_ = step.question.output.items
        doubtful = may_be_null(item.expression)
        self.doubtful |= doubtful
        if doubtful and self._nulls:
            return None, ""
        return stand_in(step.question), ""

    def limit(self, name: str, step: Step, groups: int | None) -> tuple[int, str]:
        answer = self._stored(step)
        if answer is None:
            return 1, ""
        return learnt_limit(to_fraction(name, _only(answer)), groups), ""

    def _stored(self, step: Step) -> Answer | None:
        """The stored answer of a step, if any; plans the step unless the asker has paid for it."""
        self.is_needed = True
        if step.guessed:
            # a question with a placeholder in it has no stored answer
            answer = None
            self.plans.append((step, self._plan(step)))
        else:
            answer = self._own(step)
            if answer is None:
                self.plans.append((step, self._plan(step)))
                answer = self._others(step)
        self.guesses += answer is None
        return answer


class Paid:
    """Resolver for ``query``: each step is answered and charged, or read from the ledger."""

    guesses = 0

    def __init__(self, answer: Callable[[Step], Answer]) -> None:
        self._answer = answer

    def scalar(self, step: Step) -> tuple[Scalar, str]:
        answer = self._answer(step)
        value = _constant(answer)
        shown = "NULL" if value is None else _only(answer)
        charge = answer.charge_id[:12]
        return value, f"{step.question.text} = {shown} was answered first (charge {charge})."

    def limit(self, name: str, step: Step, groups: int | None) -> tuple[int, str]:
        answer = self._answer(step)
        limit = learnt_limit(to_fraction(name, _only(answer)), groups)
        charge = answer.charge_id[:12]
        note = f"{name} = {limit} was learnt privately (charge {charge}). {_scarce(step.price)}"
        return limit, note


def resolved(
    sql: str | exp.Select,
    parameters: Parameters | None,
    price: Price,
    dataset: Dataset,
    first: First,
) -> Step:
    """Resolves the sub-queries and limits of a statement through ``first``.

    Returns the question with its share of the price, ready to be planned.
    """
    select, guesses = tree(sql), first.guesses
    share = price.scaled(Fraction(1, len(scalar_queries(select)) + 1))
    notes: list[str] = []

    def scalar(query: exp.Select) -> Scalar:
        step = resolved(query, None, replace(share, delta=None), dataset, first)
        value, note = first.scalar(step)
        notes.append(note)
        return value

    today = datetime.datetime.now(datetime.UTC).date()
    question = question_of(select, dataset, parameters=parameters, today=today, scalars=scalar)
    distinct = dict.fromkeys(note for note in notes if note)
    question = replace(question, text=text_of(sql), notes=(*question.notes, *distinct))
    return _limited(Step(question, dataset, share, first.guesses > guesses), first)


def _limited(step: Step, first: First) -> Step:
    """Resolves the ``sf.AUTO`` limits of a step, each for a share of its price."""
    guesses = first.guesses
    wanted = list(automatic(step.question, step.dataset))
    learnt: dict[str, int] = {}
    notes = []
    for name, question in wanted:
        groups = declared_groups(step.question.raw) if name == "max_groups" else None
        price = replace(step.price.scaled(SHARE), delta=None)
        learning = Step(question, step.dataset, price, step.guessed)
        learnt[name], note = first.limit(name, learning, groups)
        if note:
            notes.append(note)
    question = replace(step.question, notes=(*step.question.notes, *notes))
    rest = step.price.scaled(1 - SHARE * len(wanted))
    guessed = step.guessed or first.guesses > guesses
    return Step(question, with_limits(step.dataset, question.table, learnt), rest, guessed)


def _scarce(price: Price) -> str:
    """A warning about the number of units that learning a limit needs, from the price alone."""
    few = f"fewer than about {units_needed(price):,} units"
    return f"At this price it may be far too large where there are {few}."


def _only(answer: Answer) -> str:
    """The value of an answer with one cell, as a string."""
    ((value,),) = answer.rows
    return str(value)


def _constant(answer: Answer) -> Scalar:
    """The value of an answer with one cell, as a constant of another question."""
    ((value,),) = answer.rows
    if value is None:
        return None
    (column,) = answer.columns
    if column["type"] == "date":
        return datetime.date.fromisoformat(str(value))
    return to_fraction("The answer of a sub-query", str(value))
