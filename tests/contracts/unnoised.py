# SPDX-License-Identifier: Apache-2.0
"""The numbers of a question without noise: what an answer leans on, exactly."""

from fractions import Fraction

from sfumato.engines.base import Engine
from sfumato.metadata.dataset import Dataset
from sfumato.plan.aggregate import width
from sfumato.plan.scalar import Value
from sfumato.plan.show import title
from sfumato.privacy.distance import Norm
from sfumato.query.estimate import Kind, Released, reading_of, value_of
from sfumato.query.noisy import every_group
from sfumato.query.pipeline import compile_plan
from sfumato.sql.lower import Question


def unnoised(question: Question, dataset: Dataset, engine: Engine, norm: Norm) -> list[list[Value]]:
    """The cells of every declared group, in order; a statistic of nothing is None."""
    bounded = compile_plan(question.raw, dataset, norm)
    exact = engine.ready(bounded, "key")()
    groups = every_group(bounded.tracked.raw.keys)
    parts = []
    for part, integers in zip(bounded.parts, exact, strict=True):
        zeros = (0,) * width(part.aggregate)
        reading = reading_of(part.aggregate, bounded.refinement)
        values = tuple(tuple(map(int, dict(integers).get(group, zeros))) for group in groups)
        parts.append(Released(title(part.aggregate), reading, None, values, (1,) * len(groups)))

    def cell(expression: object, row: int) -> Value:
        part = parts[expression.index]
        if part.reading.kind in (Kind.MEAN, Kind.VARIANCE) and not sum(part.values[row]):
            return None
        return Fraction(value_of(expression, parts, row, groups[row]))

    return [[cell(item.expression, row) for item in question.output.items] for row in range(len(groups))]
