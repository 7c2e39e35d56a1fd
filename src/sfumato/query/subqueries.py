# SPDX-License-Identifier: Apache-2.0
"""A question and what has to be answered before it: sub-queries that are numbers, limits that are sf.AUTO.

Each of these is a question of its own, for a share of the price. Before anything is charged
the whole is rehearsed with stand-ins, so that what will be refused is refused while it is free.
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

# The value of a sub-query; None: it is NULL.
Scalar: TypeAlias = Fraction | datetime.date | None


@dataclass(frozen=True, slots=True)
class Step:
    """A question with the declarations and the price that it is asked under; ``guessed``: with stand-ins in it."""

    question: Question
    dataset: Dataset
    price: Price
    guessed: bool = False

    @property
    def name(self) -> "Name":
        """What it is found by within one question."""
        return self.question.text, self.price


# What a step of a question is found by: its text and its price.
Name: TypeAlias = tuple[str, Price]


class First(Protocol):
    """What is done about the questions that come first. Each gives a value, and what to tell the reader.

    ``guesses``: how many of the values so far are stand-ins.
    """

    @property
    def guesses(self) -> int: ...

    def scalar(self, step: Step) -> tuple[Scalar, str]:
        """The number of a sub-query."""
        ...

    def limit(self, name: str, step: Step, groups: int | None) -> tuple[int, str]:
        """A limit that is to be learnt."""
        ...


class Foreseen:
    """Of a preview: nothing is charged, so numbers have stand-ins, and limits must be there."""

    guesses = 0

    def scalar(self, step: Step) -> tuple[Scalar, str]:
        value = stand_in(step.question)
        return (
            value,
            f"The answer of a sub-query is not known yet: taken as {value} here; its cost is shared.",
        )

    def limit(self, name: str, step: Step, groups: int | None) -> tuple[int, str]:
        raise MissingDeclaration(
            f"{name} of table {step.question.table!r} is sf.AUTO: query learns it, preview is free and does not. "
            + _scarce(step.price),
            remedy=f"Declare {name}= with a number, or ask with query.",
        )


class Alone:
    """Of a diagnosis: nothing may have to come first, for it is not the question that is asked."""

    guesses = 0

    def scalar(self, step: Step) -> tuple[Scalar, str]:
        raise UnsupportedSql(
            f"A diagnosis of a question with a sub-query that is an answer of its own: {step.question.text}.",
            remedy="Ask the sub-query first, and write its number, or a parameter, in its place.",
        )

    def limit(self, name: str, step: Step, groups: int | None) -> tuple[int, str]:
        raise MissingDeclaration(
            f"{name} of table {step.question.table!r} is sf.AUTO: there is no limit yet whose effect could be told.",
            remedy=f"Declare {name}= with a number.",
        )


class Rehearsed:
    """What is stored already, and stand-ins for the rest; ``plans`` are what would be charged first.

    ``own`` gives the answer that the asker has paid for, ``others`` one that would be charged first.
    ``nulls``: what may turn out to be NULL is. ``doubtful``: there is such a sub-query.
    ``is_needed``: something has to be answered first, stored or not.
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
        answer = self._found(step)
        if answer is not None:
            return _constant(answer), ""
        value, doubtful = (
            stand_in(step.question),
            may_be_null(step.question.output.items[0].expression),
        )
        self.doubtful |= doubtful
        return None if doubtful and self._nulls else value, ""

    def limit(self, name: str, step: Step, groups: int | None) -> tuple[int, str]:
        answer = self._found(step)
        return 1 if answer is None else learnt_limit(to_fraction(name, _only(answer)), groups), ""

    def _found(self, step: Step) -> Answer | None:
        """The stored answer of a step; what the asker has not paid for is among the plans."""
        self.is_needed = True
        # of a question that is guessed nobody has the answer
        answer = None if step.guessed else self._own(step)
        if answer is None:
            self.plans.append((step, self._plan(step)))
            answer = None if step.guessed else self._others(step)
        self.guesses += answer is None
        return answer


class Paid:
    """Each is answered and charged, or read from the ledger."""

    guesses = 0

    def __init__(self, answer: Callable[[Step], Answer]) -> None:
        self._answer = answer

    def scalar(self, step: Step) -> tuple[Scalar, str]:
        answer = self._answer(step)
        value = _constant(answer)
        shown = "NULL" if value is None else _only(answer)
        return (
            value,
            f"{step.question.text} = {shown} was answered first (charge {answer.charge_id[:12]}).",
        )

    def limit(self, name: str, step: Step, groups: int | None) -> tuple[int, str]:
        answer = self._answer(step)
        limit = learnt_limit(to_fraction(name, _only(answer)), groups)
        note = f"{name} = {limit} was learnt privately (charge {answer.charge_id[:12]}). {_scarce(step.price)}"
        return limit, note


def resolved(
    sql: str | exp.Select,
    parameters: Parameters | None,
    price: Price,
    dataset: Dataset,
    first: First,
) -> Step:
    """The question as it is asked once all that comes first is there, with its share of the price."""
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
    question = replace(
        question, text=text_of(sql), notes=(*question.notes, *dict.fromkeys(filter(None, notes)))
    )
    return _limited(Step(question, dataset, share, first.guesses > guesses), first)


def _limited(step: Step, first: First) -> Step:
    """The step with the limits that are ``sf.AUTO`` learnt, each for a share of its price."""
    guesses = first.guesses
    wanted = list(automatic(step.question, step.dataset))
    learnt: dict[str, int] = {}
    notes = []
    for name, question in wanted:
        groups = declared_groups(step.question.raw) if name == "max_groups" else None
        price = replace(step.price.scaled(SHARE), delta=None)
        learnt[name], note = first.limit(
            name, Step(question, step.dataset, price, step.guessed), groups
        )
        notes.append(note)
    question = replace(step.question, notes=(*step.question.notes, *filter(None, notes)))
    rest = step.price.scaled(1 - SHARE * len(wanted))
    guessed = step.guessed or first.guesses > guesses
    return Step(question, with_limits(step.dataset, question.table, learnt), rest, guessed)


def _scarce(price: Price) -> str:
    """Of how many units a limit can be learnt, from the price alone."""
    return f"At this price it may be far too large where there are fewer than about {units_needed(price):,} units."


def _only(answer: Answer) -> str:
    """The one number of an answer, as it is shown."""
    return str(answer.rows[0][0])


def _constant(answer: Answer) -> Scalar:
    """The one number of an answer, to be used in another question."""
    if answer.rows[0][0] is None:
        return None
    if answer.columns[0]["type"] == "date":
        return datetime.date.fromisoformat(_only(answer))
    return to_fraction("The answer of a sub-query", _only(answer))
