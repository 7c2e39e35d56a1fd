# SPDX-License-Identifier: Apache-2.0
"""What a session does for a publication: ``plan``, and drafts of its questions."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import cast

from sfumato.engines.base import Engine
from sfumato.exact.rational import Number
from sfumato.metadata.clip import Values
from sfumato.query.answer import Answer
from sfumato.query.choose import Planned
from sfumato.query.owners import Owners
from sfumato.query.preview import Preview
from sfumato.query.price import Price, Wish, price
from sfumato.query.publication import (
    UNSIZED,
    UNWEIGHTED,
    Drafted,
    Line,
    Payer,
    Publication,
    Split,
    named,
    planned_lines,
)
from sfumato.query.release import Asked
from sfumato.query.subqueries import Rehearsal, Resolver, Step, previewed


class Publishing(Owners):
    """The method ``plan`` of a session."""

    _engine: Engine

    def plan(
        self,
        questions: Mapping[str, str] | Sequence[str],
        *,
        epsilon: Number | None = None,
        rho: Number | None = None,
        delta: Number | None = None,
        error: Wish | None = None,
        max_epsilon: Number | None = None,
        weights: Mapping[str, Number] = UNWEIGHTED,
        sizes: Mapping[str, int] = UNSIZED,
    ) -> Publication:
        """Plans questions that are published together; free. ``run`` of the plan asks them.

        ``epsilon`` or ``rho``, and ``delta``, are the cost of all of them: it is split by
        ``weights`` (1 where none is given), and what several questions ask for is paid once, by the
        one that wants it most exactly. ``sizes`` splits it instead for the least worst error: it
        states for each question about how many rows a group has that must still be told well, and
        the largest error, as a share of what the column could be there, is about the same in all
        questions. ``error`` with ``max_epsilon`` is as in ``query``, for each
        question. Questions without names are called "1", "2", ...

        Raises:
            Refused, WrongUse: as ``preview``, for the first question that cannot be asked.
        """
        self._door.require_open()
        asked = price(epsilon=epsilon, rho=rho, delta=delta, error=error, max_epsilon=max_epsilon)
        split = Split(weights, sizes)
        lines, turns = planned_lines(named(questions), asked, split, self._drafted)
        return Publication(lines, turns, cast(Payer, self), self._is_answered)

    def _is_answered(self, line: Line) -> bool:
        """Whether this asker has paid for a question, and for all that it needs."""
        self._door.require_open()
        return self._drafted(line.statement, line.price).stored

    def _drafted(self, sql: str, asked: Price) -> Drafted:
        """A statement at a price, before anything stored is reused."""
        question = Resolver(sql, None, asked, self._asker.dataset, Values.TABLE)
        step = question.resolve(previewed)
        chosen = self._cheapest(self._asked(step), reusing=False)
        planned = chosen.planned
        preview = Preview(planned, step.dataset, planned.statement(self._engine.statement))
        is_whole = not question.guesses
        if not is_whole:
            # with the answers of what it needs, if the asker has paid for all of them
            step = question.resolve(Rehearsal(self._planned, self._own))
        stored = not question.guesses and self._is_known(self._cheapest(self._asked(step)))
        return Drafted(preview, chosen, is_whole, stored)

    @abstractmethod
    def _asked(self, step: Step) -> list[Asked]:
        """The candidate plans of a step, with their keys."""

    @abstractmethod
    def _cheapest(self, asked: list[Asked], *, reusing: bool = True) -> Asked:
        """The cheapest of the candidates; ``reusing``: after the reuse of stored parts."""

    @abstractmethod
    def _planned(self, step: Step) -> Planned:
        """The plan of a step: the cheapest of its candidates."""

    @abstractmethod
    def _own(self, step: Step) -> Answer | None:
        """The answer of a step, if the asker has paid for it."""

    @abstractmethod
    def _is_known(self, asked: Asked) -> bool:
        """Whether the ledger has an answer for this asker."""
