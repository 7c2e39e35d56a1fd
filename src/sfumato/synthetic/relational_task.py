# SPDX-License-Identifier: Apache-2.0
"""The task of a fit of several tables: the parent as a single table, then each child given the
parent.

Everything is one event. The cost of a table is proportional to its columns. If the rounds of a
table run out of candidates, the remaining ones measure a count that is discarded, because the steps
of the next table must follow all planned steps of this one.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from sfumato.errors import WrongUse
from sfumato.metadata.dataset import Dataset
from sfumato.noise import Integers
from sfumato.plan.open_rows import OpenRows
from sfumato.plan.rows import BoundedRows
from sfumato.plan.show import form
from sfumato.plan.stages import Bounded
from sfumato.privacy.event import Composed, Event
from sfumato.query.curator import Curator
from sfumato.synthetic.children import ChildModel, child_base
from sfumato.synthetic.drawing import Drawing
from sfumato.synthetic.estimate import Fitted
from sfumato.synthetic.fitting import MOST_COUNTED, Base, candidate, whole_fit
from sfumato.synthetic.measured_as import measured_as, require_same
from sfumato.synthetic.opening import Opening, counted_texts, opened
from sfumato.synthetic.relational import Family, is_declared, read_by, rows_of
from sfumato.synthetic.rows import Dice
from sfumato.synthetic.schedule import BATCH, CHECK_BLOCKS, Schedule
from sfumato.synthetic.schema import Schema
from sfumato.synthetic.select import Candidate, Discrepancies
from sfumato.synthetic.task import (
    FitTask,
    Noisy,
    Released,
    Taken,
    check_counts,
    single,
    size_of,
    spend_checks,
    stored,
    unless_stopped,
)
from sfumato.synthetic.tree import Clique
from sfumato.synthetic.unit_table import FULL, UnitTable

FORMAT = 1
# The most parents that a model is fitted with, and the most rows of a child; if there are more,
# each counts more.
_PARENTS, _ROWS = 30_000, 100_000
_HEADER = 1_000_000


@dataclass(frozen=True, eq=False)
class Parents:
    """Synthetic parent rows, as cell numbers; each represents ``each`` real ones."""

    cells: Integers
    each: int

    @classmethod
    def of(
        cls,
        base: Base,
        fitted: Fitted,
        dice: Dice,
    ) -> "Parents":
        """Draws synthetic parent rows from the fitted model: as many as the noisy count says, or
        fewer of which each represents several.
        """
        whole = round(base.total)
        each = -(-whole // _PARENTS)
        return cls(Drawing(base, fitted).cells(max(1, whole // each), dice), each)

    def fewer(
        self,
        numbers: Integers,
    ) -> "Parents":
        """Returns the first of these parent rows, enough for about 100,000 child rows, each
        representing more real ones.

        ``numbers`` are the child rows of each parent. Parents are in random order, so the first
        ones are a random sample.
        """
        times = -(-int(numbers.sum()) // _ROWS)
        if times < 2:
            return self
        return Parents(self.cells[: max(1, len(self.cells) // times)], self.each * times)


@dataclass(frozen=True)
class ChildTask:
    """The measurements of one child table; ``weights`` lists the pairs whose weight is not 1."""

    plan: UnitTable
    schedule: Schedule
    weights: tuple[tuple[Clique, int], ...] = ()

    @property
    def schema(self) -> Schema:
        """The schema of the child's own columns."""
        child = self.plan.family.children[self.plan.table - 1]
        return Schema(child.table, child.axes, self.plan)

    @property
    def heaviest(self) -> int:
        """The largest weight of a marginal in the private selection."""
        return max([1, *(weight for _, weight in self.weights)])

    @property
    def event(self) -> Event:
        """The privacy event of all measurements of the child table."""
        return self.schedule.noises(self.plan).event(self.heaviest)

    def base(
        self,
        singles: Sequence[Integers],
        parent: Base,
    ) -> Base:
        """Returns the input of the child's fit: noisy counts of its columns and the parent's."""
        counts = [counts / FULL for counts in singles]
        return child_base(self.plan, self.schedule, counts, parent)

    def measured(
        self,
        curator: Curator,
        parent: Base,
        parents: "Parents",
        *,
        is_stopped: bool = False,
    ) -> Noisy:
        """Returns all noisy measurements of the child table, taken in the order of the privacy
        event; pairs are selected against synthetic rows of the parent.

        With ``is_stopped``, Ctrl-C ended the rounds of an earlier table, so this table has no
        rounds.
        """
        noises = self.schedule.noises(self.plan)
        singles = []
        for one in self.schema.axes:
            singles.append(curator.measure(single(self.plan, one), noises.single))
        base = self.base(singles, parent)
        parents = self.seen(parents)
        checks = self._checked_pairs()
        checked = []
        for clique in checks:
            checked.append(curator.measure(check_counts(base, clique), noises.checked))
        spend_checks(curator, base, len(checks))
        pairs: list[tuple[Clique, Integers]] = []
        is_whole = False
        if not is_stopped:
            pairs, is_whole = self._measure_rounds(curator, base, parents)
        spend(curator, base, self.schedule.rounds - len(pairs), self.heaviest)
        counts = [*singles, *checked, *(counts for _, counts in pairs)]
        chosen = tuple(clique for clique, _ in pairs)
        return Noisy(base, tuple(checks), chosen, tuple(counts), is_whole)

    def seen(
        self,
        parents: "Parents",
    ) -> "Parents":
        """Returns the synthetic parent rows with which the child's model is fitted: all, or a part
        if they have too many child rows.
        """
        family, table = self.plan.family, self.plan.table
        held = parents.cells[:, len(family.axes) + table - 1]
        return parents.fewer(np.where(held > family.children[table - 1].most, 0, held))

    def begin(
        self,
        base: Base,
        parents: "Parents",
    ) -> ChildModel:
        """Returns the child's model of independent columns, for parent rows from ``seen``."""
        return ChildModel.begin(base, self.plan, parents.each)

    def _checked_pairs(self) -> list[Clique]:
        """Returns random pairs for the honest check."""
        found = self.countable
        return [found[place] for place in Dice().order(len(found))[: self.schedule.checks]]

    @property
    def countable(self) -> list[Clique]:
        """The pairs of columns whose marginal has few enough cells to be counted.

        One column is the child's own, the other its own or the parent's.
        """
        family = self.plan.family
        cells = [one.cells for one in family.widened(self.plan.table)]
        own, others = len(self.schema.axes), len(family.widened(0))
        found: list[Clique] = []
        for pair in combinations(range(own + others), 2):
            if pair[0] < own and cells[pair[0]] * cells[pair[1]] <= MOST_COUNTED:
                found.append(pair)
        return found

    def _measure_rounds(
        self,
        curator: Curator,
        base: Base,
        parents: "Parents",
    ) -> tuple[list[tuple[Clique, Integers]], bool]:
        """Selects and measures marginals batch by batch; returns them, and False if Ctrl-C ended
        it.
        """
        pairs: list[tuple[Clique, Integers]] = []
        dice = Dice()
        model = unless_stopped(lambda: self.begin(base, parents))
        while model and (left := self.schedule.rounds - len(pairs)):
            batch = min(left, BATCH if pairs else model.own)
            candidates = unless_stopped(partial(self._candidates, model, parents, dice))
            if candidates is None:
                return pairs, False
            if not candidates:
                break
            for _ in range(min(batch, len(candidates))):
                pairs.append(self._choose_marginal(curator, candidates))
            if len(pairs) < self.schedule.rounds:
                measured = [base.pair(*each) for each in pairs]
                model = unless_stopped(partial(model.fitted, measured, parents.cells, dice))
        return pairs, model is not None

    def _candidates(
        self,
        model: ChildModel,
        parents: "Parents",
        dice: Dice,
    ) -> dict[Clique, Candidate]:
        """Returns the pairs that may be selected, with their counts in rows of the model."""
        rows = model.drawn(parents.cells, dice)
        weights = FULL // model.numbers(parents.cells)[model.owners(rows)] * parents.each
        matters = dict(self.weights)
        found = {}
        for pair in model.candidates:
            if matters.get(pair, 1):
                found[pair] = candidate(model.base, pair, rows, weights, matters.get(pair, 1))
        return found

    def _choose_marginal(
        self, curator: Curator, candidates: dict[Clique, Candidate]
    ) -> tuple[Clique, Integers]:
        """Selects a marginal, removes it from the candidates, and measures it."""
        noises = self.schedule.noises(self.plan)
        scores = Discrepancies(self.plan, tuple(candidates.values()), self.heaviest)
        place = curator.select(scores, noises.choice(self.heaviest))
        pair = list(candidates)[place]
        return pair, curator.measure(candidates.pop(pair).counts, noises.chosen)


def spend(
    curator: Curator,
    base: Base,
    rounds: int,
    heaviest: int,
) -> None:
    """Runs the steps of rounds without candidates, and discards what they release."""
    plan, schema = base.schema.plan, base.schema
    for _ in range(rounds):
        counts = single(plan, schema.axes[0])
        nothing = Candidate(counts, np.zeros(schema.cells[0], np.int64))
        noises = base.noises
        curator.select(Discrepancies(plan, (nothing,), heaviest), noises.choice(heaviest))
        curator.measure(counts, noises.chosen)


@dataclass(frozen=True)
class RelationalTask:
    """The charged task that fits a model to several tables; ``asked`` is as in ``FitTask``.

    ``openings`` choose the cells of some columns first, table by table.

    Guarantees:
        every table is in the event
    """

    parent: FitTask
    children: tuple[ChildTask, ...]
    rows: BoundedRows
    asked: str
    openings: tuple[Opening | None, ...] = field(default=(), compare=False)

    kind: ClassVar[str] = FitTask.kind

    @property
    def told(self) -> dict[str, Any]:
        """The arguments that build the task again, as a dictionary; reports quote them."""
        found: dict[str, Any] = json.loads(self.asked)
        return found

    @property
    def parts(self) -> tuple[FitTask | ChildTask, ...]:
        """The tasks of the tables, the parent's first."""
        return (self.parent, *self.children)

    @property
    def family(self) -> Family:
        """The tables of the fit."""
        return self.children[0].plan.family

    @property
    def line(self) -> str:
        """A line for the ledger: the tables, and the total number of rounds."""
        rounds = sum(each.schedule.rounds for each in self.parts)
        return f"{', '.join(self.family.tables)}: synthetic rows, {rounds} rounds"

    @property
    def form(self) -> str:
        """A canonical string of every field, for the cache key; ``asked`` contains the rules."""
        return f"several {FORMAT}{form(self)}"

    @cached_property
    def event(self) -> Event:
        """The privacy event of the whole fit: first steps, then measurements table by table."""
        found: list[Event] = []
        for opening, part in zip(self.openings, self.parts, strict=False):
            if opening is not None:
                # a whole for each: of a composition, thresholds are taken first
                found.append(Composed(opening.events(part.schema.plan)))
        return Composed((*found, *(each.event for each in self.parts)))

    @property
    def is_opened(self) -> bool:
        """Whether the cells of all columns are known, so that no first step must choose any."""
        return not any(self.openings)

    @property
    def cells(self) -> tuple[int | None, ...]:
        """The number of counts of each single column, and None for each marginal that is selected
        later.

        Empty if there are openings, which choose the cells first.
        """
        found: list[int | None] = []
        for each in self.parts if self.is_opened else ():
            found += each.schema.cells
            found += [None] * (each.schedule.checks + each.schedule.rounds)
        return tuple(found)

    @property
    def size(self) -> int:
        """An upper bound of the bytes of the stored answer."""
        found = _HEADER + len(self.asked) + sum(map(size_of, self.openings))
        for each in self.parts:
            counts = sum(each.schema.cells) + each.schedule.checks * CHECK_BLOCKS**3
            found += 8 * (counts + each.schedule.rounds * each.schedule.largest)
        return found

    def ready(
        self,
        declarations: Dataset,
    ) -> BoundedRows | OpenRows:
        """Returns the plan of the rows; raises WrongUse if planned for other declarations."""
        family = self.family
        planned = is_declared(declarations, family) and rows_of(declarations, family) == self.rows
        if not planned or self._counted(declarations) != self._questions:
            raise WrongUse("A fit that was planned for other declarations.", remedy="Fit anew.")
        return OpenRows(self.rows, self._questions) if self._questions else self.rows

    @property
    def _questions(self) -> tuple[Bounded, ...]:
        """Returns the questions that count the units of each string of each text."""
        found: list[Bounded] = []
        for opening in self.openings:
            found += opening.questions if opening is not None else ()
        return tuple(found)

    def _counted(self, declarations: Dataset) -> tuple[Bounded, ...]:
        """Returns the same questions, planned for these declarations."""
        found: list[Bounded] = []
        for part in self.parts:
            norm = part.schedule.allowance.norm
            found += counted_texts(declarations, part.schema, norm)
        return tuple(found)

    def with_opened(self, released: Sequence[Mapping[str, Any] | None]) -> "RelationalTask":
        """Returns the task of the measurements after ``openings``, with the released cells."""
        family = self.family
        for place, (part, found) in enumerate(zip(self.parts, released, strict=True)):
            if found is not None:
                family = family.with_axes(place, opened(part.schema, found).axes)
        rows = read_by(self.rows, family)
        plans = [UnitTable(family, rows, place) for place in range(len(family.tables))]
        schema = Schema(family.parent, family.widened(0), plans[0])
        children = []
        for child, plan in zip(self.children, plans[1:], strict=True):
            children.append(replace(child, plan=plan))
        parent = replace(self.parent, schema=schema)
        return RelationalTask(parent, tuple(children), rows, self.asked)

    def run(
        self,
        curator: Curator,
    ) -> bytes:
        """Measures table by table; returns the noisy answer as bytes."""
        facts: dict[str, Any] = {"kind": self.kind, "format": FORMAT, "charge_id": curator.charge}
        facts["measured_as"] = [measured_as(each.schema) for each in self.parts]
        if self.is_opened:
            return self._measure_tables(curator, facts)
        facts["opened"] = self._release_openings(curator)
        return self.with_opened(facts["opened"])._measure_tables(curator, facts)

    def require_measured(
        self,
        facts: Mapping[str, Any],
    ) -> None:
        """Raises WrongUse if a stored fit was measured under other declarations."""
        told = facts.get("measured_as") or [None] * len(self.parts)
        for part, own in zip(self.parts, told, strict=True):
            require_same(part.schema, own)

    def _release_openings(
        self,
        curator: Curator,
    ) -> list[dict[str, Any] | None]:
        """Runs the steps of the openings; returns what they released as JSON."""
        found = []
        for opening, part in zip(self.openings, self.parts, strict=True):
            found.append(opening.released(curator, part.schema) if opening is not None else None)
        return found

    def _measure_tables(
        self,
        curator: Curator,
        facts: Mapping[str, Any],
    ) -> bytes:
        """Runs the steps after the openings, and returns the answer."""
        dice = Dice()
        parent = self.parent.measured(curator, dice)
        left = self.parent.schedule.rounds - len(parent.pairs)
        spend(curator, parent.base, left, self.parent.heaviest)
        parts = [parent]
        released = parent.released
        fitted = unless_stopped(lambda: whole_fit(released.base, released.pairs))
        is_whole = parent.is_whole and fitted is not None
        parents = Parents.of(released.base, fitted or whole_fit(released.base, ()), dice)
        for child in self.children:
            parts.append(child.measured(curator, released.base, parents, is_stopped=not is_whole))
            is_whole = parts[-1].is_whole
        told = {"asked": self.told, "parts": [each.chosen for each in parts]}
        counts = [one for each in parts for one in each.counts]
        return stored({**facts, **told}, counts)


def opened_task(
    task: RelationalTask,
    body: bytes,
) -> RelationalTask:
    """Returns the task with the cells that its first steps released, read from an answer.

    Raises:
        WrongUse: the answer is of another version.
    """
    facts = json.loads(body.partition(b"\n")[0])
    if facts.get("format") != FORMAT:
        raise WrongUse(f"A stored fit of format {facts.get('format')}.", allowed=f"format {FORMAT}")
    return task if task.is_opened else task.with_opened(facts["opened"])


def released_of(
    task: RelationalTask,
    body: bytes,
) -> tuple[Released, ...]:
    """Decodes the stored answer of a fit of several tables: the released measurements of each, the
    parent's first.

    Raises:
        WrongUse: it is of another version.
    """
    task = opened_task(task, body)
    line, _, numbers = body.partition(b"\n")
    facts = json.loads(line)
    taken = Taken(np.frombuffer(numbers, "<i8"))
    first, *others = facts["parts"]
    base = task.parent.base([taken.next(size) for size in task.parent.schema.cells])
    found = [Released.taken(base, first, taken)]
    for child, part in zip(task.children, others, strict=True):
        singles = [taken.next(size) for size in child.schema.cells]
        found.append(Released.taken(child.base(singles, base), part, taken))
    return tuple(found)
