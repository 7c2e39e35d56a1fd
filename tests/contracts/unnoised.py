# SPDX-License-Identifier: Apache-2.0
"""The numbers of a question without noise: what an answer leans on, exactly."""

from bisect import bisect_left
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate

from sfumato.engines.base import Engine
from sfumato.metadata.dataset import Dataset
from sfumato.plan.aggregate import Quantiles
from sfumato.plan.question import Question
from sfumato.plan.reading import Kind
from sfumato.plan.scalar import Value
from sfumato.privacy.distance import Norm
from sfumato.query.add_noise import every_group
from sfumato.query.answer_rows import merged
from sfumato.query.estimate import Released
from sfumato.query.output_intervals import value_of
from sfumato.query.pipeline import compile_plan
from sfumato.query.table import Group


def unnoised(question: Question, dataset: Dataset, engine: Engine, norm: Norm) -> list[list[Value]]:
    """The cells of every declared group, in order; a statistic of nothing is None."""
    return [cells for _, cells in rows_unnoised(question, dataset, engine, norm)]


def rows_unnoised(
    question: Question, dataset: Dataset, engine: Engine, norm: Norm
) -> list[tuple[Group, list[Value]]]:
    """The codes of the keys of every row of an answer, None where its grouping set has no such key,
    and its cells.
    """
    bounded = compile_plan(question.raw, dataset, norm)
    exact = engine.ready(bounded, "key")()
    groups = every_group(bounded.tracked.raw.keys)
    parts = []
    for part, integers in zip(bounded.parts, exact, strict=True):
        reading = part.aggregate.reading(bounded.refinement)
        found = dict(integers)
        if isinstance(part.aggregate, Quantiles):
            values = tuple(_leaves(found.get(group, ()), part.aggregate.levels) for group in groups)
        else:
            zeros = (0,) * part.aggregate.width
            values = tuple(tuple(map(int, found.get(group, zeros))) for group in groups)
        parts.append(Released(part.aggregate.title, reading, None, values, (1,) * len(groups)))

    rows = merged(question.output, parts, groups)

    def cell(expression: object, row: int) -> Value:
        part = rows.parts[expression.index]
        empty = not part.values[row] or (
            part.reading.kind in (Kind.MEAN, Kind.VARIANCE) and not sum(part.values[row])
        )
        if empty:
            return None
        return Fraction(value_of(expression, rows.parts, row, rows.codes[row]))

    items = [item.expression for item in question.output.items]
    return [(codes, [cell(each, row) for each in items]) for row, codes in enumerate(rows.codes)]


def _leaves(integers: Sequence[int], levels: Sequence[Fraction]) -> tuple[int, ...]:
    """Of each level q the leaf of the row with the rank ceil(q n); none where there are no rows."""
    leaves, upto = integers[0::2], list(accumulate(map(int, integers[1::2])))
    return tuple(
        leaves[bisect_left(upto, max(level * upto[-1], Fraction(1)))] for level in levels if upto
    )
