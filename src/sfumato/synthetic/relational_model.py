# SPDX-License-Identifier: Apache-2.0
"""The fitted model of several tables: draws rows whose keys match across tables."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from sfumato.metadata.dataset import Dataset
from sfumato.metadata.table import Table
from sfumato.noise import Integers
from sfumato.privacy.unit import Unit
from sfumato.query.cost import Cost
from sfumato.query.task import Stored
from sfumato.synthetic.children import ChildModel
from sfumato.synthetic.drawing import Drawing
from sfumato.synthetic.estimate import Estimator, Fitted, Measurement
from sfumato.synthetic.export import Part
from sfumato.synthetic.fitting import Base, whole_fit
from sfumato.synthetic.infer import Copy, copied, with_noise
from sfumato.synthetic.model import Model
from sfumato.synthetic.quality import quality
from sfumato.synthetic.relational import Child, Family
from sfumato.synthetic.relational_task import Parents, RelationalTask, opened_task, released_of
from sfumato.synthetic.report import Report
from sfumato.synthetic.rows import Dice, Same
from sfumato.synthetic.sampler import columns_of
from sfumato.synthetic.schema import Floats
from sfumato.synthetic.task import Released

# So many parents are given their rows at once.
_AT_ONCE = 50_000


@dataclass(frozen=True, eq=False)
class FamilySampler:
    """A ``Sampler`` of the parent, and of each child given the parent."""

    family: Family
    base: Base
    fitted: Fitted
    children: tuple[ChildModel, ...]

    @property
    def rows(self) -> int:
        """The noisy number of rows of the parent."""
        return round(self.base.total)

    def tables(
        self,
        count: int,
        dice: Dice,
    ) -> dict[str, pa.Table]:
        """Draws ``count`` parents and their children, with matching keys."""
        parents = Drawing(self.base, self.fitted).cells(count, dice)
        own = columns_of(self.base, parents[:, : len(self.family.axes)], dice)
        ids = pa.array(np.arange(1, count + 1))
        tables = {self.family.parent: pa.table({self.family.key: ids, **own})}
        owners: dict[str, Integers] = {}
        for key, model in zip(self.family.ids, self.children, strict=True):
            rows, of = _drawn_cells(model, parents, dice)
            child = model.child
            owners[child.table] = of
            columns: dict[str, pa.Array] = {}
            if key:
                columns[key] = pa.array(np.arange(1, len(of) + 1))
            columns |= self._link_columns(child, of, owners, dice)
            tables[child.table] = pa.table({**columns, **columns_of(model.base, rows, dice)})
        return tables

    def some_columns(
        self,
        count: int,
        dice: Dice,
        columns: Mapping[str, Collection[str]],
    ) -> dict[str, pa.Table]:
        """Draws all columns, since those of children depend on those of their parents."""
        return self.tables(count, dice)

    def parts(
        self,
        count: int,
        dice: Dice,
    ) -> Iterator[Part]:
        """Yields the same rows in one part, since their keys refer to each other."""
        yield self.tables(count, dice)

    def _link_columns(
        self,
        child: Child,
        of: Integers,
        owners: dict[str, Integers],
        dice: Dice,
    ) -> dict[str, pa.Array]:
        """Returns the key columns of child rows: to a row of the table above, and to the parent."""
        links = {}
        if child.above:
            above = owners[child.above]
            first, last = (np.searchsorted(above, of, side=side) for side in ("left", "right"))
            chosen = first + np.floor(dice.uniform(len(of)) * (last - first)).astype(np.int64)
            links[child.link] = pa.array(chosen + 1)
        links[self.family.key] = pa.array(of + 1)
        return links


def _drawn_cells(
    model: ChildModel,
    parents: Integers,
    dice: Dice,
) -> tuple[Integers, Integers]:
    """Draws the child rows of parents: the cells of their own columns, and the index of the
    parent.
    """
    parts = []
    for start in range(0, max(len(parents), 1), _AT_ONCE):
        rows = model.drawn(parents[start : start + _AT_ONCE], dice)
        kept = rows[:, [*range(model.own), -1]]
        kept[:, -1] += start
        parts.append(kept)
    blocks = np.concatenate(parts)
    return _own_cells(model.base, blocks[:, :-1], dice), blocks[:, -1]


def _own_cells(
    base: Base,
    blocks: Integers,
    dice: Dice,
) -> Integers:
    """Returns the cells of rows that are given in blocks of the first columns."""
    found = np.empty_like(blocks)
    for place in range(blocks.shape[1]):
        merging = base.merges[place]
        found[:, place] = merging.expanded(blocks[:, place], base.weights(place), dice)
    return found


class RelationalModel(Model):
    """The fitted model of several tables; the parent's comes first.

    Attributes:
        task: what was measured.
    """

    def __init__(
        self,
        task: RelationalTask,
        stored: Stored,
        cost: Cost,
        declared: Dataset,
        estimator: Estimator | None = None,
    ) -> None:
        super().__init__(stored, cost)
        self.task = task
        self._declared = declared
        self._estimator = estimator

    @cached_property
    def released(self) -> tuple[Released, ...]:
        """The released measurements and selected marginals of each table."""
        return released_of(self.task, self.stored.body)

    @cached_property
    def opened(self) -> RelationalTask:
        """The task of the fit, with the released strings and bins as cells of its columns."""
        return opened_task(self.task, self.stored.body)

    @property
    def declarations(self) -> Dataset:
        """The tables with their keys and the columns that synthetic rows have."""
        family = self.opened.family
        tables = {}
        limits = [1, *(child.most for child in family.children)]
        for name, axes, most in zip(family.tables, family.own, limits, strict=True):
            columns = {one.name: one.column.type for one in axes}
            unit = Unit(family.key, max_rows_total=most)
            tables[name] = Table("synthetic.parquet", unit=unit, columns=columns)
        public = {name: each for name, each in self._declared.tables.items() if each.public}
        return Dataset("synthetic", {**tables, **public})

    @cached_property
    def sampler(self) -> FamilySampler:
        """The sampler of all tables."""
        first, *others = self.released
        fitted = whole_fit(first.base, first.pairs, self._estimator)
        parents = Parents.of(first.base, fitted, Dice(Same()))
        children = []
        for task, released in zip(self.opened.children, others, strict=True):
            seen = task.seen(parents)
            model = task.begin(released.base, seen)
            children.append(model.fitted(released.pairs, seen.cells, Dice(Same())))
        family = self.opened.family
        return FamilySampler(family, first.base, fitted, tuple(children))

    def _new_copies(self, count: int) -> list[FamilySampler]:
        """Returns ``count`` samplers, each measured and fitted again with fresh noise."""
        fitted, first = self.sampler.fitted, self.released[0]
        estimator = self._estimator
        parents = copied(first.base, first.pairs, fitted, count=count, estimator=estimator)
        return [self._copied_below(parent) for parent in parents]

    def _copied_below(self, parent: Copy) -> FamilySampler:
        """Returns the sampler of a copy of the first table, with copies of the others."""
        sampler = self.sampler
        before = Parents.of(sampler.base, sampler.fitted, Dice())
        after = Parents.of(parent.base, parent.fitted, Dice())
        children = []
        for task, model in zip(self.opened.children, sampler.children, strict=True):
            base, pairs = _measured_again(model, task.seen(before), parent.base)
            seen = task.seen(after)
            begun = task.begin(base, seen)
            children.append(begun.fitted(pairs, seen.cells, Dice()))
        return replace(sampler, base=parent.base, fitted=parent.fitted, children=tuple(children))

    def report(self) -> Report:
        """Returns the report: fit to the measurements, honest check, and what is not preserved;
        costs no budget.
        """
        whole, dice = self.sampler, Dice()
        arguments = self.task.told
        parents = Drawing(whole.base, whole.fitted).cells(self.rows, dice)
        ends = self.cost, self.charge_id, arguments["protected"]
        child_reports = []
        for place, model in enumerate(whole.children, start=1):
            released = self.released[place]
            rows, weights = _wide_cells(model, parents, dice)
            table_quality = quality(released, rows, weights)
            left_out = tuple(arguments["left_out"][model.child.table])
            child_reports.append(
                Report(released, table_quality, *ends, left_out, _losses_of(model.child))
            )
        first = self.released[0]
        left_out = tuple(arguments["left_out"][self.task.family.parent])
        table_quality = quality(first, parents)
        lost = ("Of a unit with more rows in it, one is kept.",)
        return Report(first, table_quality, *ends, left_out, lost, tuple(child_reports))

    def __repr__(self) -> str:
        counts = []
        for released in self.released:
            counts.append(f"{released.base.schema.table!r} ({len(released.pairs)} pairs)")
        return (
            f"Model of {', '.join(counts)}: about {self.rows:,} rows of the first{self._early}\n"
            f"{self.cost}\ncharge {self.charge_id[:12]}"
        )


def _measured_again(
    model: ChildModel,
    parents: Parents,
    parent: Base,
) -> tuple[Base, list[Measurement]]:
    """Returns the base and the pairs of a child, measured again on rows of its model with fresh
    noise.
    """
    base, own = model.base, model.own
    rows = model.drawn(parents.cells, Dice())
    weights = model.weights(rows)
    listed = []
    for place in range(own):
        merging, known = base.merges[place], base.weights(place) + 1e-9
        blocks = list(merging.blocks)
        share = known / merging.merged(known)[blocks]
        listed.append(np.bincount(rows[:, place], weights, merging.size)[blocks] * share)
    singles = with_noise(base, base.noises.single, listed)
    others = base.singles[own + len(parent.singles) :]
    expected: list[Floats] = []
    for each in model.pairs:
        flat = np.ravel_multi_index(rows[:, each.columns].T, each.counts.shape)
        whole = np.bincount(flat, weights, each.counts.size).astype(np.float64)
        expected.append(whole.reshape(each.counts.shape))
    counts = with_noise(base, base.noises.chosen, expected) if expected else ()
    pairs = [replace(one, counts=new) for one, new in zip(model.pairs, counts, strict=True)]
    return replace(base, singles=(*singles, *parent.singles, *others)), pairs


def _wide_cells(
    model: ChildModel,
    parents: Integers,
    dice: Dice,
) -> tuple[Integers, Floats]:
    """Draws rows with all columns as cells, and returns the share of its unit that each row has."""
    rows = model.drawn(parents, dice)
    owners = model.owners(rows)
    cells = np.empty_like(rows[:, :-1])
    cells[:, : model.own] = _own_cells(model.base, rows[:, : model.own], dice)
    after = model.own + parents.shape[1]
    cells[:, model.own : after] = parents[owners]
    for place in range(after, cells.shape[1]):
        cells[:, place] = model.base.merges[place].firsts[rows[:, place]]
    return cells, 1.0 / model.numbers(parents)[owners]


def _losses_of(child: Child) -> tuple[str, ...]:
    """Returns sentences on what the rows of a child do not preserve."""
    limit = (
        f"At most {child.most:,} rows of a unit are kept, drawn at random: units with more rows "
        "have too few here."
    )
    sentences = [limit]
    if child.above:
        sentences.append(
            f"To which of its {child.above} a row belongs is drawn at random among those of its "
            f"unit: no column of {child.above} goes with it, but through the unit."
        )
    if child.order:
        sentences.append(
            f"Of earlier rows, only the one before it (by {child.order}) has an effect."
        )
    return tuple(sentences)
