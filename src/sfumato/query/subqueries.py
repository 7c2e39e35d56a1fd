# SPDX-License-Identifier: Apache-2.0
"""Resolves scalar sub-queries and ``sf.AUTO`` limits and clips, before their question.

Each of them is a question of its own, for a share of the price. Before anything is charged, the
whole question is planned with placeholder values, so that refusals cost no budget. ``statements``
runs the ``Resolver`` with a policy that asks, or only looks up.
"""

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NoReturn, TypeAlias

from sqlglot import exp

from sfumato.errors import MissingDeclaration, Refused, UnknownName, UnsupportedSql
from sfumato.exact.rational import decimal_text, to_fraction
from sfumato.metadata.clip import Values
from sfumato.metadata.column import Column, Integer, Real
from sfumato.metadata.dataset import Dataset
from sfumato.plan.question import Question
from sfumato.query.answer import Answer
from sfumato.query.auto_clip import TWIN, chosen_clip, learning, origin_of, units_seen
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
from sfumato.sql.clip import Clipping, Occasion
from sfumato.sql.key_lists import declared_values, key_lists
from sfumato.sql.lower import may_be_null, question_of, stand_in, text_of, tree

# The value of a scalar sub-query; None if it is NULL.
Scalar: TypeAlias = Fraction | datetime.date | None


@dataclass(frozen=True, slots=True)
class Step:
    """A question with its declarations and its price: the main question, or one that it needs.

    ``guessed`` is set if the question contains a placeholder instead of an earlier answer.
    ``limit`` is the name of the ``sf.AUTO`` limit that the step learns; empty for other questions.
    ``at_any_price`` is set if a stored answer at another price is as good.
    """

    question: Question
    dataset: Dataset
    price: Price
    guessed: bool = False
    limit: str = ""
    at_any_price: bool = False

    @property
    def name(self) -> "Name":
        """A name of the step that is unique within its question."""
        return self.question.text, self.price


# A step of a question is identified by its text and its price.
Name: TypeAlias = tuple[str, Price]
# Returns the answer of a step, or None if it has none yet; raises if there must be no such step.
Policy: TypeAlias = Callable[[Step], Answer | None]


class NotOneQuestion(Exception):
    """Raised for a statement that is not a single question; it has the refusal that says why."""

    def __init__(self, refusal: Refused) -> None:
        self.refusal = refusal
        super().__init__(str(refusal))


class Resolver:
    """A question whose sub-queries and ``sf.AUTO`` limits are to be replaced by their answers.

    Each of these is a ``Step``. A policy (a function that asks it, or looks up a stored answer)
    returns its answer. If it returns None, a placeholder is used, and the step that contains the
    placeholder is ``guessed``. ``guesses`` counts the placeholders of the latest ``resolve``;
    ``doubtful`` is set if one of them replaces an answer that may be NULL.
    """

    def __init__(
        self,
        sql: str | exp.Select,
        parameters: Parameters | None,
        price: Price,
        dataset: Dataset,
        values: Values | None = Values.TABLE,
    ) -> None:
        self._statement = sql, parameters, price
        self._dataset = dataset
        self._values = values
        self.guesses = 0
        self.doubtful = False

    @property
    def statement(self) -> tuple[str | exp.Select, Parameters | None, Price]:
        """The statement as the asker wrote it, with its parameters and its price."""
        return self._statement

    @property
    def values(self) -> Values | None:
        """The choice between sums of clipped values and of the table's own, for columns with a
        clip.
        """
        return self._values

    def part(
        self, text: str | exp.Select, price: Price, parameters: Parameters | None = None
    ) -> "Resolver":
        """Returns the resolver of another statement at a price, with the same declarations."""
        return Resolver(text, parameters, price, self._dataset, self._values)

    def resolve(self, answer: Policy, *, nulls: bool = False) -> Step:
        """Returns the question with its sub-queries and ``sf.AUTO`` limits replaced by answers of a
        policy.

        ``answer`` is asked for each of these steps; if it returns None, a placeholder is put in.
        With ``nulls``, the placeholder of an answer that may be NULL is NULL.
        """
        self._answer = answer
        self._nulls = nulls
        self.guesses = 0
        self.doubtful = False
        return self._step(*self._statement, values=self._values)

    def rehearse(self, answer: Policy) -> Step:
        """As ``resolve``, for the first time.

        Raises:
            NotOneQuestion: it is no question, whatever its price; it may be several.
        """
        try:
            return self.resolve(answer)
        except (MissingDeclaration, UnknownName, UnsupportedSql) as refusal:
            raise NotOneQuestion(refusal) from None

    def _step(
        self,
        sql: str | exp.Select,
        parameters: Parameters | None,
        price: Price,
        values: Values | None = None,
    ) -> Step:
        """Makes the step of a statement; its sub-queries and limits share the price."""
        select = tree(sql)
        guesses = self.guesses
        lists = key_lists(select)
        share = price.shared(Fraction(1, len(scalar_queries(select)) + len(lists) + 1))
        notes: list[str] = []
        for wanted in lists:
            step = self._step(wanted.query, None, share.without_extras())
            values_of_list, note = self._groups(step, wanted.place)
            wanted.fill(values_of_list)
            notes.append(note)

        def scalar(query: exp.Select) -> Scalar:
            step = self._step(query, None, share.without_extras())
            value, note = self._scalar(step)
            notes.append(note)
            return value

        clips = Clips(self._clip, share, self._dataset, values)
        today = datetime.datetime.now(datetime.UTC).date()
        question = question_of(
            select,
            self._dataset,
            parameters=parameters,
            today=today,
            scalars=scalar,
            clipping=Clipping(values, clips.learn),
        )
        notes = [*question.notes, *dict.fromkeys(notes), *clips.notes]
        question = replace(question, text=text_of(sql), notes=tuple(notes))
        if clips.learnt:
            share = share.scaled(1 - SHARE * clips.learnt).in_whole_tenths()
        return self._limited(Step(question, self._dataset, share, self.guesses > guesses))

    def _clip(self, step: Step) -> Answer | None:
        """The answer from which a clip is chosen; None if it is unknown."""
        answer = self._answer(step)
        self.guesses += answer is None
        return answer

    def _scalar(self, step: Step) -> tuple[Scalar, str]:
        """The value of a sub-query, and a note for the reader of the answer."""
        answer = self._answer(step)
        if answer is not None:
            value = _single_constant(answer)
            shown = "NULL" if value is None else _single_value(answer)
            charge = answer.charge_id[:12]
            return value, f"{step.question.text} = {shown} was answered first (charge {charge})."
        self.guesses += 1
        item, *_ = step.question.output.items
        may_lack = may_be_null(item.expression)
        self.doubtful |= may_lack
        guess = None if may_lack and self._nulls else stand_in(step.question)
        unknown = "The answer of a sub-query is not known yet"
        return guess, f"{unknown}: taken as {guess} here; its cost is shared."

    def _groups(self, step: Step, place: int) -> tuple[Sequence[object], str]:
        """The groups that a sub-query gives, and a note; every declared group if it has no answer.

        Raises:
            UnsupportedSql: its column is no key.
        """
        declared = declared_values(step.question, place)
        answer = self._answer(step)
        if answer is not None:
            values = answer[str(answer.columns[place]["name"])]
            shown = ", ".join(map(str, values)) or "no group"
            charge = answer.charge_id[:12]
            return values, f"{step.question.text} = {shown} was answered first (charge {charge})."
        self.guesses += 1
        note = (
            "The groups of a sub-query are not known yet: taken as all of them; its cost is shared."
        )
        return declared, note

    def _limited(self, step: Step) -> Step:
        """Resolves the ``sf.AUTO`` limits of a step, each for a share of its price."""
        guesses = self.guesses
        wanted = list(automatic(step.question, step.dataset))
        learnt: dict[str, int] = {}
        notes = []
        for name, question in wanted:
            price = step.price.shared(SHARE).without_extras()
            learning = Step(question, step.dataset, price, step.guessed, name)
            groups = declared_groups(step.question.raw) if name == "max_groups" else None
            learnt[name], note = self._limit(learning, groups)
            if note:
                notes.append(note)
        question = replace(step.question, notes=(*step.question.notes, *notes))
        rest = step.price.shared(1 - SHARE * len(wanted))
        guessed = step.guessed or self.guesses > guesses
        return Step(question, with_limits(step.dataset, question.table, learnt), rest, guessed)

    def _limit(self, step: Step, groups: int | None) -> tuple[int, str]:
        """The value of a limit, at most ``groups``, and a note; 1 if it is unknown."""
        answer = self._answer(step)
        if answer is None:
            self.guesses += 1
            return 1, ""
        limit = learnt_limit(to_fraction(step.limit, _single_value(answer)), groups)
        learnt = f"{step.limit} = {limit} was learnt privately (charge {answer.charge_id[:12]})"
        return limit, f"{learnt}. {_units_warning(step.price)}"


# The most clips that one question learns: half of its cost.
_MOST_CLIPS = 5
_NOT_LEARNT = (
    "clip=sf.AUTO is learnt for columns of private tables as they are stored: a column that is "
    "computed or public is not clipped."
)


class Clips:
    """Learns the ``sf.AUTO`` clips of one question, each column once.

    ``learnt`` counts the columns. Each takes its share of the price, even if an earlier question
    has paid for it: the result of the question must not depend on what was asked before. ``notes``
    name the clips.
    """

    def __init__(
        self,
        answer: Policy,
        price: Price,
        dataset: Dataset,
        values: Values | None,
    ) -> None:
        self._answer = answer
        self._price = price
        self._dataset = dataset
        self._share = Fraction(1) if values is Values.CLIPPED else TWIN
        self._known: dict[Column, tuple[int, int] | None] = {}
        self.learnt = 0
        self.notes: list[str] = []

    def learn(self, column: Column, occasion: Occasion) -> tuple[int, int] | None:
        """Returns the ends of the clip of a column as codes; None if they are unknown."""
        if column not in self._known:
            self._known[column] = self._learnt(column, occasion)
        return self._known[column]

    def _learnt(self, column: Column, occasion: Occasion) -> tuple[int, int] | None:
        """Asks for the sizes of a column, and chooses the clip."""
        kind = column.type
        origin = origin_of(column, occasion, self._dataset)
        assert isinstance(kind, Integer | Real), "only numbers have a clip"
        if origin is None:
            if _NOT_LEARNT not in self.notes:
                self.notes.append(_NOT_LEARNT)
            return None
        _require_few(self.learnt + 1)
        table, name = origin
        price = self._price.scaled(SHARE).without_extras().in_whole_tenths()
        question = learning(table, name, self._dataset)
        limit = f"clip of column {name!r}"
        step = Step(question, self._dataset, price, limit=limit, at_any_price=True)
        self.learnt += 1
        answer = self._answer(step)
        if answer is None:
            self.notes.append(
                f"{limit} is learnt when the question is asked, for {SHARE} of its cost beside "
                "what is shown: nothing is clipped here. A size that fewer than about "
                f"{units_seen(price):,} units have will not be seen."
            )
            return None
        rest = self._price.scaled(self._share * (1 - SHARE * self.learnt))
        low, high = chosen_clip(answer, kind, occasion, rest)
        ends = f"[{decimal_text(low * kind.step)}, {decimal_text(high * kind.step)}]"
        charge = answer.charge_id[:12]
        self.notes.append(f"clip of {name} = {ends} was learnt privately (charge {charge}).")
        return low, high


class Rehearsal:
    """A policy that resolves a question's steps before anything is charged: from stored answers
    only.

    ``own`` returns an answer that the asker has paid for; ``others`` one that the asker may share
    but would be charged for. ``plans`` collects the plans of the steps that would be charged.
    """

    def __init__(
        self,
        plan: Callable[[Step], Planned],
        find_own: Policy = lambda step: None,
        find_shared: Policy = lambda step: None,
    ) -> None:
        self._plan = plan
        self._own = find_own
        self._others = find_shared
        self.plans: list[tuple[Step, Planned]] = []

    def __call__(self, step: Step) -> Answer | None:
        # a question with a placeholder in it has no stored answer
        if not step.guessed:
            paid = self._own(step)
            if paid is not None:
                return paid
        self.plans.append((step, self._plan(step)))
        if step.guessed:
            return None
        return self._others(step)


def previewed(step: Step) -> None:
    """Returns no answer: the policy of ``preview``, which refuses ``sf.AUTO`` limits."""
    if step.limit and not step.at_any_price:
        raise MissingDeclaration(
            f"{step.limit} of table {step.question.table!r} is sf.AUTO: query learns it, "
            f"preview is free and does not. {_units_warning(step.price)}",
            remedy=f"Declare {step.limit}= with a number, or ask with query.",
        )


def unanswered(step: Step) -> None:
    """Returns no answer: the policy of a plan before anything is asked."""


def refused(step: Step) -> NoReturn:
    """Raises for every step: the policy of ``diagnose``, which refuses sub-queries and ``sf.AUTO``
    limits.
    """
    if step.limit:
        raise MissingDeclaration(
            f"{step.limit} of table {step.question.table!r} is sf.AUTO: "
            "there is no limit yet whose effect could be told.",
            remedy=f"Declare {step.limit}= with a number.",
        )
    raise UnsupportedSql(
        "A diagnosis of a question with a sub-query that is an answer of its own: "
        f"{step.question.text}.",
        remedy="Ask the sub-query first, and write its number, or a parameter, in its place.",
    )


def _require_few(clips: int) -> None:
    """Refuses a question that would spend more than half of its cost on its clips."""
    if clips > _MOST_CLIPS:
        raise MissingDeclaration(
            f"More than {_MOST_CLIPS} columns of the question have clip=sf.AUTO, and each takes "
            f"{SHARE} of the cost.",
            allowed=f"at most {_MOST_CLIPS} of them in one question",
            remedy="Ask several questions, or declare clip= with a number.",
        )


def _units_warning(price: Price) -> str:
    """A warning about the number of units that learning a limit needs, from the price alone."""
    few = f"fewer than about {units_needed(price):,} units"
    return f"At this price it may be far too large where there are {few}."


def _single_value(answer: Answer) -> str:
    """The value of an answer with one cell, as a string."""
    ((value,),) = answer.rows
    return str(value)


def _single_constant(answer: Answer) -> Scalar:
    """The value of an answer with one cell, as a constant of another question."""
    ((value,),) = answer.rows
    if value is None:
        return None
    (column,) = answer.columns
    if column["type"] == "date":
        return datetime.date.fromisoformat(str(value))
    return to_fraction("The answer of a sub-query", str(value))
