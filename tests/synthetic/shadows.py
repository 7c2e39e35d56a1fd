# SPDX-License-Identifier: Apache-2.0
"""Fits of a small table with and without one person, as an attacker makes them."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import sfumato as sf
from sfumato.engines.reference import Reference
from sfumato.metadata.dataset import Dataset
from sfumato.query.allowance import Allowance, allowance
from sfumato.query.cost import Cost
from sfumato.query.curator import Curator
from sfumato.query.reserved import Reserved, drawn
from sfumato.query.statistic import Opened
from sfumato.query.task import Stored
from sfumato.synthetic.estimate import MaximumEntropy
from sfumato.synthetic.fit import _fit_task
from sfumato.synthetic.fitting import Base
from sfumato.synthetic.model import Model, TableModel
from sfumato.synthetic.task import FitTask, check_blocks

Row = dict[str, Any]
COLUMNS = {"age": sf.Integer(0, 3), "job": sf.Category("x", "y", "z"), "rich": sf.Boolean()}
# The attacker knows everybody else, and nobody else has a value of the person.
OTHERS: list[Row] = [{"age": k % 3, "job": "xy"[k % 2], "rich": False} for k in range(60)]
PERSON: Row = {"age": 3, "job": "z", "rich": True}
DECLARED = Dataset("d", {"t": sf.Table("t.csv", columns=COLUMNS)})
COST = allowance(epsilon=1, delta="1e-9")
# What a model says that it cost; no ledger keeps it.
FREE = Cost("0", "0", "0", ())


def fit_task(cost: Allowance = COST, dataset: Dataset = DECLARED, **other: Any) -> FitTask:
    """The task of a fit of the small table."""
    return _fit_task(dataset, "t", cost, **other)


def fitted(task: FitTask, rows: Sequence[Row], dataset: Dataset = DECLARED) -> Model:
    """The model of a new run of the task, with no ledger but all of its noise."""
    plan = task.ready(dataset)
    opened = Opened(plan, cube=Reference({"t": list(rows)}).cube(plan))
    reserved = Reserved(task.event, drawn(task.event, task.cells))
    with opened:
        body = task.run(Curator("shadow", reserved, opened))
    return TableModel(task, Stored(body, "shadow"), FREE, MaximumEntropy(20))


@dataclass(frozen=True)
class Evidence:
    """What all released counts say about a person, to an attacker who knows everybody else.

    ``score`` adds up, over the person's cells, what the noisy count is above that of the others,
    each over its variance; ``information`` adds up one over the variances. Against Gaussian noise
    no test of these counts is better than one of the score (Neyman and Pearson, 1933): divided by
    the root of the information it is a standard normal number without the person, and moved by
    this root with him.
    """

    score: float
    information: float

    @property
    def normal(self) -> float:
        """The score in its standard deviations."""
        return self.score / math.sqrt(self.information)


def evidence(model: Model, person: Row = PERSON, others: Sequence[Row] = OTHERS) -> Evidence:
    """What a fit released about a person."""
    seen = released_marginals(model)
    known_rows = Counter(tuple(other.items()) for other in others)
    score = information = 0.0
    for columns, blocks, counts, sigma in seen:
        at = _block(model, person, columns, blocks)
        known = 0
        for other, times in known_rows.items():
            known += times * (_block(model, dict(other), columns, blocks) == at)
        score += (counts[at] - known) / sigma**2
        information += 1 / sigma**2
    return Evidence(score, information)


def released_marginals(model: Model) -> list[Any]:
    """Each released marginal: columns, the blocks of every column, noisy counts, and the noise."""
    base = model.released.base
    single, _, checked = base.sigma
    seen: list[Any] = []
    for place, counts in enumerate(base.singles):
        seen.append(((place,), _own(base), counts, single))
    merged = [merge.blocks for merge in base.merges]
    for pair in model.released.pairs:
        seen.append((pair.columns, merged, pair.counts, float(pair.sigma.max())))
    coarse = [check_blocks(base, place) for place in range(len(base.singles))]
    for columns, counts in model.released.checks:
        seen.append((columns, coarse, counts, checked))
    return seen


def residuals(model: Model, rows: Sequence[Row] = OTHERS) -> np.ndarray:
    """All noise of a fit of known rows, each in its standard deviations."""
    cells = np.array([cells_of(model, row) for row in rows])
    found = []
    for columns, blocks, counts, sigma in released_marginals(model):
        exact = np.zeros(counts.shape)
        places = tuple(np.array(blocks[each])[cells[:, each]] for each in columns)
        np.add.at(exact, places, 1)
        found.append(((counts - exact) / sigma).ravel())
    return np.concatenate(found)


def _own(base: Base) -> list[range]:
    """Every cell of a column is a block of its own."""
    return [range(len(counts)) for counts in base.singles]


def _block(
    model: Model,
    row: Row,
    columns: Sequence[int],
    blocks: Sequence[Sequence[int]],
) -> tuple[int, ...]:
    """The block of a row in some columns."""
    cells = cells_of(model, row)
    return tuple(blocks[each][cells[each]] for each in columns)


def cells_of(model: Model, person: Row) -> list[int]:
    """The cell of a person in each column."""
    found = []
    for axis in model.task.schema.axes:
        listed = axis.values(axis.limits[:-1]).to_pylist()
        found.append(listed.index(person[axis.name]))
    return found
