# SPDX-License-Identifier: Apache-2.0
"""The task of a fit of one table: single columns, honest check, rounds of selecting and measuring.

Its answer is a line of JSON with the choices, then all noisy counts as little-endian int64.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import combinations
from typing import Any, ClassVar, TypeVar

import numpy as np

from sfumato.errors import WrongUse
from sfumato.metadata.dataset import Dataset
from sfumato.noise import Integers
from sfumato.plan.cube import BoundedCube
from sfumato.plan.open_cube import OpenCube
from sfumato.plan.show import form
from sfumato.plan.stages import Bounded
from sfumato.privacy.event import Composed, Event
from sfumato.query.curator import Curator
from sfumato.synthetic.counts import BlockCounts, Plan
from sfumato.synthetic.estimate import Measurement
from sfumato.synthetic.fitting import MOST_COUNTED, Base, Fitting
from sfumato.synthetic.measured_as import measured_as, require_same
from sfumato.synthetic.opening import LONGEST_KEY, MOST_KEYS, Opening, counted_texts, opened
from sfumato.synthetic.public import PublicCells
from sfumato.synthetic.rows import Dice
from sfumato.synthetic.rules import Rule
from sfumato.synthetic.schedule import CHECK_BLOCKS, Schedule
from sfumato.synthetic.schema import MOST_VALUES, Axis, Floats, Schema
from sfumato.synthetic.select import Candidate, Discrepancies
from sfumato.synthetic.tree import Clique

T = TypeVar("T")
FORMAT = 1
# What an answer says whose rounds were ended by Ctrl-C.
STOPPED = "stopped"
# The most bytes of the first line, beside what was asked.
_HEADER = 1_000_000
# The most bytes of one character in JSON.
_ESCAPED = 12
# Of so many columns, chosen at random, some are looked at together by the honest check.
_TRIED = 64


@dataclass(frozen=True)
class FitTask:
    """The charged task that fits a model to one table and releases noisy marginals and choices.

    ``asked`` is canonical JSON of the arguments that build the task again. ``weights`` lists the
    pairs of columns whose weight is not 1. ``opening`` first chooses the cells of some columns.

    Guarantees:
        fits that differ in anything have different forms
    """

    schema: Schema
    schedule: Schedule
    asked: str
    rules: tuple[Rule, ...] = field(default=(), compare=False)
    weights: tuple[tuple[Clique, int], ...] = ()
    opening: Opening | None = field(default=None, compare=False)
    publics: tuple[PublicCells, ...] = field(default=(), compare=False)
    triples: bool = field(default=False, compare=False)

    kind: ClassVar[str] = "synthetic"

    @property
    def told(self) -> dict[str, Any]:
        """The arguments that build the task again, as a dictionary; reports quote them."""
        found: dict[str, Any] = json.loads(self.asked)
        return found

    @property
    def line(self) -> str:
        """The table, and the numbers of columns and rounds."""
        rounds = f"{self.schedule.columns} columns, {self.schedule.rounds} rounds"
        return f"{self.schema.table}: synthetic rows, {rounds}"

    @property
    def form(self) -> str:
        """A canonical string of every field, for the cache key; ``asked`` contains those not
        compared.
        """
        return f"{FORMAT}{form(self)}"

    @property
    def heaviest(self) -> int:
        """The largest weight of a marginal in the private selection."""
        return max([1, *(weight for _, weight in self.weights)])

    @cached_property
    def event(self) -> Event:
        """The privacy event of all measurements and selections, which is known before data is
        read.
        """
        measured = self.schedule.noises(self.schema.plan).event(self.heaviest)
        if self.opening is None:
            return measured
        return Composed((*self.opening.events(self.cube), measured))

    @property
    def cells(self) -> tuple[int, ...]:
        """The numbers of counts of the single columns; other marginals are selected later.

        Empty if there is an opening, which chooses the cells first.
        """
        return () if self.opening else self.schema.cells

    @property
    def cube(self) -> BoundedCube:
        """The plan of the counted table; raises TypeError if the table is one of several."""
        if not isinstance(self.schema.plan, BoundedCube):
            raise TypeError("the parent of several tables")
        return self.schema.plan

    @property
    def size(self) -> int:
        """An upper bound of the bytes of the stored answer."""
        schedule = self.schedule
        counts = sum(self.schema.cells) + schedule.checks * CHECK_BLOCKS**3
        header = _HEADER + len(self.asked) + size_of(self.opening)
        return header + 8 * (counts + schedule.rounds * schedule.largest)

    def ready(
        self,
        declarations: Dataset,
    ) -> BoundedCube | OpenCube:
        """Returns the plan of the counts; raises WrongUse if planned for other declarations."""
        schema = self.schema
        columns = dict(declarations.tables[schema.table].columns)
        is_declared = all(columns.get(one.name) == one.read.type for one in schema.axes)
        if not is_declared or self._planned(declarations) != (schema.plan, self._questions):
            raise WrongUse("A fit that was planned for other declarations.", remedy="Fit anew.")
        if self.opening is None:
            return self.cube
        return OpenCube(self.cube, self.opening.questions)

    @property
    def _questions(self) -> tuple[Bounded, ...]:
        return self.opening.questions if self.opening else ()

    def _planned(self, declarations: Dataset) -> tuple[Plan, tuple[Bounded, ...]]:
        """Returns the plans for these declarations."""
        schema = Schema.over(declarations, self.schema.table, self.schema.axes)
        questions: tuple[Bounded, ...] = ()
        if self.opening is not None:
            questions = counted_texts(declarations, schema, self.schedule.allowance.norm)
        return schema.plan, questions

    def run(
        self,
        curator: Curator,
    ) -> bytes:
        """Measures and fits in turn; returns the noisy answer as bytes."""
        facts: dict[str, Any] = {"kind": self.kind, "format": FORMAT, "charge_id": curator.charge}
        facts["measured_as"] = measured_as(self.schema)
        task = self
        if self.opening is not None:
            facts["opened"] = self.opening.released(curator, self.schema)
            task = self.with_opened(facts["opened"])
        noisy = task.measured(curator, Dice())
        return stored({**facts, "asked": self.told, **noisy.chosen}, noisy.counts)

    def require_measured(self, facts: Mapping[str, Any]) -> None:
        """Raises WrongUse if a stored fit was measured under other declarations."""
        require_same(self.schema, facts.get("measured_as"))

    def with_opened(self, released: Mapping[str, Any]) -> "FitTask":
        """Returns the task of the remaining steps, with the released strings and bins as cells."""
        return replace(self, schema=opened(self.schema, released), opening=None)

    def measured(
        self,
        curator: Curator,
        dice: Dice,
    ) -> "Noisy":
        """Takes all noisy measurements, in the order of the event."""
        plan = self.schema.plan
        noises = self.schedule.noises(plan)
        singles = []
        for one in self.schema.axes:
            singles.append(curator.measure(single(plan, one), noises.single))
        base = self.base(singles)
        checks = _checked_marginals(base, dice)
        checked = []
        for clique in checks:
            checked.append(curator.measure(check_counts(base, clique), noises.checked))
        spend_checks(curator, base, len(checks))
        pairs, is_whole = self._measure_rounds(curator, base, dice)
        counts = [*singles, *checked, *(counts for _, counts in pairs)]
        chosen = tuple(clique for clique, _ in pairs)
        return Noisy(base, tuple(checks), chosen, tuple(counts), is_whole)

    def _measure_rounds(
        self,
        curator: Curator,
        base: Base,
        dice: Dice,
    ) -> tuple[list[tuple[Clique, Integers]], bool]:
        """Selects and measures marginals batch by batch; returns them, and False if Ctrl-C ended
        it.

        Ctrl-C while a model is computed ends the rounds: what was measured is paid for, and kept.
        """
        pairs: list[tuple[Clique, Integers]] = []
        fitting = unless_stopped(lambda: Fitting.begin(base))
        while fitting and (batch := min(fitting.batch, self.schedule.rounds - len(pairs))):
            candidates = unless_stopped(partial(fitting.candidates, dict(self.weights), dice))
            if candidates is None:
                return pairs, False
            measured = self._measure_batch(curator, fitting, batch, candidates)
            if not measured:
                break
            pairs += measured
            # the last fit is made from the stored numbers
            if len(pairs) < self.schedule.rounds:
                found = [base.pair(*each) for each in measured]
                fitting = unless_stopped(partial(fitting.after, found))
        return pairs, fitting is not None

    def base(
        self,
        singles: list[Integers],
    ) -> Base:
        """Returns the input of the fit: noisy counts of single columns, in rows, and the rules."""
        one = self.schema.plan.refinement
        rows = tuple(counts / one for counts in singles)
        return Base(
            self.schema,
            self.schedule,
            rows,
            self.rules,
            publics=self.publics,
            triples=self.triples,
        )

    def _measure_batch(
        self,
        curator: Curator,
        fitting: Fitting,
        batch: int,
        candidates: list[tuple[Clique, Candidate]],
    ) -> list[tuple[Clique, Integers]]:
        """Selects and measures up to ``batch`` marginals against the same synthetic rows."""
        noises = self.schedule.noises(self.schema.plan)
        choice = noises.choice(self.heaviest)
        measured: list[tuple[Clique, Integers]] = []
        for _ in range(batch):
            left = fitting.open(candidates, [clique for clique, _ in measured])
            if not left:
                break
            scores = Discrepancies(self.schema.plan, tuple(one for _, one in left), self.heaviest)
            clique, chosen = left[curator.select(scores, choice)]
            measured.append((clique, curator.measure(chosen.counts, noises.chosen)))
        return measured


@dataclass(frozen=True, eq=False)
class Noisy:
    """The noisy results of one table's fit: the choices, and the counts in measuring order."""

    base: Base
    checks: tuple[Clique, ...]
    pairs: tuple[Clique, ...]
    counts: tuple[Integers, ...]
    is_whole: bool = True

    @property
    def chosen(self) -> dict[str, Any]:
        """The checked and selected marginals as JSON, and whether Ctrl-C ended the fit early."""
        choices: dict[str, Any] = {
            "checks": self.checks,
            "pairs": self.pairs,
            "missing_apart": self.base.missing_apart,
        }
        if not self.is_whole:
            choices[STOPPED] = True
        return choices

    @property
    def released(self) -> "Released":
        """The measurements in rows, as they would be decoded from the stored answer."""
        after = self.counts[len(self.base.measured) :]
        taken = Taken(np.concatenate([np.zeros(0, np.int64), *after]))
        return Released.taken(self.base, self.chosen, taken)


def unless_stopped(compute: Callable[[], T]) -> T | None:
    """Returns the result of a computation between measurements; None if Ctrl-C ends it.

    It must contain no measurement: an interrupted one fails, and its charge is forfeited.
    """
    try:
        return compute()
    except KeyboardInterrupt:
        return None


def is_stopped(body: bytes) -> bool:
    """Whether Ctrl-C ended the selection of marginals early, according to a stored answer."""
    facts = json.loads(body.partition(b"\n")[0])
    return any(part.get(STOPPED) for part in facts.get("parts", [facts]))


def size_of(opening: Opening | None) -> int:
    """Returns the most bytes that first steps (``Opening``) add to a stored answer."""
    if opening is None:
        return 0
    texts, trees = len(opening.texts), len(opening.trees)
    counts = MOST_KEYS * texts + 4 * MOST_VALUES * trees
    return 8 * counts + _ESCAPED * LONGEST_KEY * MOST_KEYS * texts


def stored(
    facts: Mapping[str, Any],
    counts: Sequence[Integers],
) -> bytes:
    """Encodes the answer of a fit for the ledger: a line of JSON, then the noisy counts."""
    cells = [each.astype("<i8").tobytes() for each in counts]
    return b"".join([json.dumps(facts, sort_keys=True).encode() + b"\n", *cells])


def single(
    plan: Plan,
    axis: Axis,
) -> BlockCounts:
    """Returns the statistic that counts every cell of one column."""
    return BlockCounts(plan, ((axis.name, tuple(range(axis.cells))),))


def spend_checks(
    curator: Curator,
    base: Base,
    taken: int,
) -> None:
    """Runs the charged checks that have no marginal, and discards what they release."""
    counts = single(base.schema.plan, base.schema.axes[0])
    for _ in range(base.schedule.checks - taken):
        curator.measure(counts, base.noises.checked)


def _checked_marginals(
    base: Base,
    dice: Dice,
) -> list[Clique]:
    """Returns random marginals for the honest check: a third with three columns, the others
    pairs.
    """
    schedule = base.schedule
    triples = _countable_cliques(base, 3, dice)[: schedule.checked_triples]
    pairs = _countable_cliques(base, 2, dice)
    return [*pairs[: schedule.checks - len(triples)], *triples]


def _countable_cliques(
    base: Base,
    columns: int,
    dice: Dice,
) -> list[Clique]:
    """Returns random sets of ``columns`` columns whose marginal is small enough to count."""
    found: list[Clique] = []
    order = dice.order(base.schedule.columns)[:_TRIED].tolist()
    for chosen in combinations(order, columns):
        if math.prod(base.declared[each] for each in chosen) <= MOST_COUNTED:
            found.append(tuple(sorted(chosen)))
    return [found[place] for place in dice.order(len(found))]


def check_blocks(
    base: Base,
    column: int,
) -> tuple[int, ...]:
    """Returns the block of each cell of a column: up to four blocks with similar numbers of rows.

    Where values are missing, missing ones are the last block.
    """
    counts = np.maximum(base.singles[column], 0.0) + 1e-9
    heights = np.cumsum(counts)
    if not base.missing_apart:
        return _blocks_of((heights - heights[0] * 0.5) / heights[-1], CHECK_BLOCKS)
    shares = heights - counts * 0.5
    if not base.has_missing(column):
        return _blocks_of(shares / heights[-1], CHECK_BLOCKS)
    blocks = _blocks_of(shares[:-1] / heights[-2], CHECK_BLOCKS - 1)
    return (*blocks, max(blocks) + 1)


def _blocks_of(
    shares: Floats,
    most: int,
) -> tuple[int, ...]:
    """Returns the block of each cell, given the cumulative share of the rows; no block is empty."""
    coarse = np.minimum((shares * most).astype(np.int64), most - 1)
    blocks: tuple[int, ...] = tuple(np.unique(coarse, return_inverse=True)[1].tolist())
    return blocks


def check_counts(
    base: Base,
    clique: Clique,
) -> BlockCounts:
    """Returns the statistic that counts a marginal of the honest check, in coarse blocks."""
    axes = base.schema.axes
    blocks = tuple((axes[each].name, check_blocks(base, each)) for each in clique)
    return BlockCounts(base.schema.plan, blocks)


@dataclass(frozen=True, eq=False)
class Released:
    """The released measurements of one table's fit: single columns, honest check, selected
    marginals.
    """

    base: Base
    checks: tuple[tuple[Clique, Floats], ...]
    pairs: tuple[Measurement, ...]
    facts: Mapping[str, object]

    @classmethod
    def of(
        cls,
        task: FitTask,
        body: bytes,
    ) -> "Released":
        """Decodes the stored answer of a fit.

        Raises:
            WrongUse: it is of another version.
        """
        line, _, numbers = body.partition(b"\n")
        facts = json.loads(line)
        if facts.get("format") != FORMAT:
            raise WrongUse(
                f"A stored fit of format {facts.get('format')}.", allowed=f"format {FORMAT}"
            )
        taken = Taken(np.frombuffer(numbers, "<i8"))
        if task.opening is not None:
            task = task.with_opened(facts["opened"])
        base = task.base([taken.next(size) for size in task.schema.cells])
        return cls.taken(base, facts, taken)

    @classmethod
    def taken(
        cls,
        base: Base,
        facts: Mapping[str, Any],
        taken: "Taken",
    ) -> "Released":
        """Reads the checked and selected marginals of ``facts`` from the remaining counts."""
        # earlier fits counted missing values with the largest ones
        base = replace(base, missing_apart=facts.get("missing_apart", False))
        checks = []
        for clique in map(tuple, facts["checks"]):
            shape = check_counts(base, clique).shape
            counts = taken.next(int(np.prod(shape))).reshape(shape) / base.refinement
            checks.append((clique, counts))
        pairs = []
        for clique in map(tuple, facts["pairs"]):
            size = int(np.prod([base.sizes[each] for each in clique]))
            pairs.append(base.pair(clique, taken.next(size)))
        return cls(base, tuple(checks), tuple(pairs), facts)


class Taken:
    """A reader of the noisy counts of a stored answer, from the front of the array."""

    def __init__(
        self,
        numbers: Integers,
    ) -> None:
        self._left = numbers

    def next(
        self,
        size: int,
    ) -> Integers:
        """Returns the next ``size`` numbers.

        Raises:
            WrongUse: there are fewer.
        """
        if len(self._left) < size:
            raise WrongUse(
                "A stored fit with fewer counts than these declarations have cells.",
                remedy="Open a session with the declarations of that time, or fit anew.",
            )
        found, self._left = self._left[:size], self._left[size:]
        return found
