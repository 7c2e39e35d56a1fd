# SPDX-License-Identifier: Apache-2.0
"""The steps of a SQL statement for one asker: plan, look up, reuse, charge and release.

``Session`` has one ``Statements``; ``subqueries`` splits a question into the steps.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from sfumato.engines.base import Engine
from sfumato.engines.stop import ENDLESS, Patience
from sfumato.errors import SfumatoError
from sfumato.ledger.request import Request
from sfumato.ledger.spend import Ledger
from sfumato.metadata.clip import Values
from sfumato.plan.question import Question
from sfumato.query.answer import Answer
from sfumato.query.asker import Asker
from sfumato.query.choose import Planned, cheapest, plan_for_price, plans_for_target
from sfumato.query.payer import Payer
from sfumato.query.preview import Preview
from sfumato.query.price import Price
from sfumato.query.publication import Drafted
from sfumato.query.release import Asked, release
from sfumato.query.reuse import Shelf, reuse
from sfumato.query.subqueries import Rehearsal, Resolver, Step, previewed
from sfumato.query.target import references, wanted
from sfumato.query.together import Held, require_key, together, wanted_charges


@dataclass(frozen=True)
class Statements:
    """The planner and answerer of a session's SQL statements, with all costs charged to one asker's
    account.

    ``prepared`` has the version of each prepared layout; ``parts`` is the cache of the released
    parts in stored answers.
    """

    asker: Asker
    engine: Engine
    ledger: Ledger
    prepared: Mapping[str, int]
    parts: Shelf

    def answer(
        self,
        question: Resolver,
        key: str,
        patience: Patience,
    ) -> tuple[Answer, Asked]:
        """Returns the answer of a question, after those of its sub-queries, and the question's
        plan.

        If the asker has paid for all sub-queries and limits, or there are none, they are resolved
        once; otherwise first with placeholders, and again with the answers.

        Raises:
            InProgress: another caller is asking one of its sub-queries; nothing was charged.
        """
        rehearsal = Rehearsal(self.planned, self.own_answer)
        step = question.rehearse(rehearsal)
        if not question.guesses:
            return self.answer_step(step, key, patience)
        steps = self._all_steps(question, rehearsal, step)
        if key:
            require_key(*steps[-1], key, self.ledger)
        with together(self.ledger, wanted_charges(steps, self.ledger)) as held:
            return self._answer_held(question, held, key, patience)

    def answer_all(
        self, questions: Sequence[Resolver], patience: Patience
    ) -> list[tuple[Answer, Asked]]:
        """Returns the answers of several questions, whose charges are reserved together: all of
        them, or none.

        Also returns the plan of each, as ``answer`` does.

        Raises:
            As ``answer``.
        """
        if len(questions) == 1:
            return [self.answer(questions[0], "", patience)]
        steps = []
        for question in questions:
            rehearsal = Rehearsal(self.planned, self.own_answer)
            step = question.rehearse(rehearsal)
            steps += self._all_steps(question, rehearsal, step)
        answers = []
        with together(self.ledger, wanted_charges(steps, self.ledger)) as held:
            for question in questions:
                answers.append(self._answer_held(question, held, "", patience))
        return answers

    def recall_all(self, requests: Sequence[Request]) -> list[Answer] | None:
        """Returns the stored answers to requests that this asker has paid for; None without one."""
        answers = []
        for request in requests:
            body = self.ledger.recall(request)
            if body is None:
                return None
            answers.append(Answer(body, recalled=True))
        return answers

    def _all_steps(
        self, question: Resolver, rehearsal: Rehearsal, step: Step
    ) -> list[tuple[Step, Asked]]:
        """The steps of a question that would be charged, ``step`` last, with their keys."""
        if question.doubtful:
            without = Rehearsal(self.planned, self.own_answer)
            self.planned(question.resolve(without, nulls=True))
        return self._foreseen(question, [*rehearsal.plans, (step, self.planned(step))])

    def _answer_held(
        self, question: Resolver, held: Held, key: str, patience: Patience
    ) -> tuple[Answer, Asked]:
        """Answers a question and its sub-queries from charges that are reserved."""
        answered = partial(self.answer_step, patience=patience, reservation=held)

        def answer(step: Step) -> Answer:
            stored = self.answer_at_any_price(step)
            if stored is not None:
                return stored
            paid, _ = answered(step)
            # another caller may have been first: all use the same one from now on
            return self.answer_at_any_price(step) or paid

        return answered(question.resolve(answer), key)

    def answer_step(
        self,
        step: Step,
        key: str = "",
        patience: Patience = ENDLESS,
        reservation: Held | None = None,
    ) -> tuple[Answer, Asked]:
        """Returns the answer of one step (the question or a sub-query), which is charged unless it
        is stored.

        Also returns the planned step, before the reuse of stored parts.
        """
        candidates = self.candidates(step)
        known = next((one for one in candidates if self.is_stored(one)), None)
        chosen = self.cheapest(candidates) if known is None else known
        recalled = known is not None or chosen.planned.fresh is None
        payer = None if reservation is None else reservation.of(step.name)
        answer = self._release(chosen, key, recalled=recalled, patience=patience, payer=payer)
        if reservation is not None:
            reservation.answered()
        asked = next(one for one in candidates if one.question == chosen.question)
        return answer, asked

    def answer_together(self, questions: Sequence[Asked], share: Price) -> list[Answer]:
        """Returns the answers of several planned questions, whose charges are reserved together."""
        new = {}
        for question in questions:
            if not self.is_stored(question):
                new[question.question, share] = question.request()
        answers = []
        with together(self.ledger, new) as held:
            for question in questions:
                payer = held.of((question.question, share))
                recalled = self.is_stored(question)
                answers.append(self._release(question, recalled=recalled, payer=payer))
        return answers

    def draft(self, sql: str, price: Price) -> Drafted:
        """Returns a statement planned at a price, before stored aggregates are reused."""
        question = Resolver(sql, None, price, self.asker.dataset, Values.TABLE)
        step = question.resolve(previewed)
        chosen = self.cheapest(self.candidates(step), reusing=False)
        planned = chosen.planned
        preview = Preview(planned, step.dataset, planned.statement(self.engine.statement))
        is_whole = not question.guesses
        if not is_whole:
            # with the answers of what it needs, if the asker has paid for all of them
            step = question.resolve(Rehearsal(self.planned, self.own_answer))
        stored = not question.guesses and self.is_stored(self.cheapest(self.candidates(step)))
        return Drafted(preview, chosen, is_whole, stored)

    def planned(self, step: Step) -> Planned:
        """Returns the cheapest plan of a step, with its cache keys."""
        return self.cheapest(self.candidates(step)).planned

    def unstored_plan(self, step: Step) -> Planned:
        """Returns the cheapest plan of a step, as if no aggregate of it was released before."""
        plans = self._plans(step)
        if len(plans) == 1:
            return plans[0]
        return cheapest(plans, self.ledger.balances(*self.asker.path))

    def candidates(self, step: Step) -> list[Asked]:
        """Returns all plans of a step, with their cache keys."""
        asker = self.asker.about(step.dataset)
        return [Asked.of(plan, asker) for plan in self._plans(step)]

    def cheapest(self, candidates: list[Asked], *, reusing: bool = True) -> Asked:
        """Returns the cheapest of several plans; with ``reusing``, aggregates of stored answers
        cost nothing.
        """
        if reusing:
            candidates = [reuse(candidate, self.parts) for candidate in candidates]
        if len(candidates) == 1:
            return candidates[0]
        plans = [candidate.planned for candidate in candidates]
        best = cheapest(plans, self.ledger.balances(*self.asker.path))
        (chosen,) = [each for each in candidates if each.planned.bounded is best.bounded]
        return replace(chosen, planned=best)

    def is_stored(self, asked: Asked) -> bool:
        """Returns whether the ledger has an answer of this question for the asker."""
        return self.ledger.holds(asked.request())

    def own_answer(self, step: Step) -> Answer | None:
        """Returns the stored answer of a step if the asker has paid for it, else None."""
        return self.answer_at_any_price(step) or self._first(step, self.ledger.own_answer)

    def answer_at_any_price(self, step: Step) -> Answer | None:
        """Returns the account's first stored answer to a step, if an answer at another price is as
        good.
        """
        return self.first_answer(step.question) if step.at_any_price else None

    def first_answer(self, question: Question) -> Answer | None:
        """Returns the account's first stored answer to a statement, at whatever price."""
        askers = (*self.asker.earlier, self.asker)
        keys = [asker.statement_key(question) for asker in askers]
        body = self.ledger.first_answer(keys, self.asker.account)
        return None if body is None else Answer(body)

    def answer_to_share(self, step: Step) -> Answer | None:
        """Returns the answer of another account to a step if the asker may share it, else None.

        Always None for a step whose price is a requested error.
        """
        if step.price.target is not None:
            return None
        return self._first(step, self.ledger.to_share)

    def _first(self, step: Step, find: Callable[[Request], bytes | None]) -> Answer | None:
        """The first stored answer among the plans of a step."""
        for candidate in self.candidates(step):
            body = find(candidate.request())
            if body is not None:
                return Answer(body)
        return None

    def _foreseen(
        self, question: Resolver, plans: list[tuple[Step, Planned]]
    ) -> list[tuple[Step, Asked]]:
        """The steps of a question with their plans and keys.

        If other askers have paid for some of the steps, their answers replace placeholders.
        """
        if any(
            not step.guessed and self.answer_to_share(step) is not None for step, _ in plans[:-1]
        ):
            # a refusal that depends on an answer is shown only to askers who paid for that answer
            with suppress(SfumatoError):
                rehearsal = Rehearsal(self.planned, self.own_answer, self.answer_to_share)
                step = question.resolve(rehearsal)
                plans = [*rehearsal.plans, (step, self.planned(step))]
        steps = []
        for step, planned in plans:
            asker = self.asker.about(step.dataset)
            steps.append((step, Asked.of(planned, asker)))
        return steps

    def _release(
        self,
        asked: Asked,
        key: str = "",
        *,
        recalled: bool,
        patience: Patience = ENDLESS,
        payer: Payer | None = None,
    ) -> Answer:
        """Releases a planned question; ``recalled`` if its answer is stored already."""
        body = release(asked, self.engine, self.ledger, key=key, patience=patience, payer=payer)
        return Answer(body, recalled=recalled)

    def _plans(self, step: Step) -> list[Planned]:
        """The plans of a step: one for a stated cost, one for each noise law for a wanted error."""
        question = step.question
        dataset = step.dataset
        price = step.price
        if price.target is None:
            collects = self.engine.collects_codes
            return [
                plan_for_price(question, dataset, price, self.prepared, collects_codes=collects)
            ]
        earlier = self.first_answer(question)
        goal = wanted(question, dataset, price.target, references(question, earlier))
        balances = self.ledger.balances(*self.asker.path)
        concentrated = all(balance.gates.rho is not None for balance in balances)
        return plans_for_target(
            question, dataset, price, goal, concentrated=concentrated, layouts=self.prepared
        )
