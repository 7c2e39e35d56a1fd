# SPDX-License-Identifier: Apache-2.0
"""What a question would cost and how exact it would be, from declarations alone (RULES 22)."""

from dataclasses import dataclass
from fractions import Fraction

from sfumato.exact.rational import Number, positive, to_fraction
from sfumato.exact.rounding import float_up
from sfumato.mechanisms.additive import AdditiveMechanism
from sfumato.metadata.dataset import Dataset
from sfumato.plan.aggregate import Mean, numeric
from sfumato.plan.scalar import Estimate, Key
from sfumato.plan.status import Bounded, Part
from sfumato.privacy.event import Json
from sfumato.query.choose import Planned
from sfumato.query.cost import Cost
from sfumato.query.estimate import units_of
from sfumato.query.explain import explain
from sfumato.query.render import number, text_table

_GROUP_SIZES = (100, 1_000, 10_000, 100_000)


@dataclass(frozen=True, slots=True)
class Preview:
    """Free: a function of the declarations, the same on any data.

    Attributes:
        statement: the bounded SQL, as the declarations make it.
    """

    planned: Planned
    dataset: Dataset
    statement: str

    @property
    def cost(self) -> Cost:
        """What the question would cost, item by item."""
        return self.planned.cost

    def error(self, confidence: Number = 0.95) -> list[dict[str, Json]]:
        """The expected half-width of each column.

        Counts and sums: exact, the same in every cell. Means: by the number of rows in the
        group. Expressions of several: "depends on the answers".
        """
        level = positive("confidence", to_fraction("confidence", confidence), at_most=1 - Fraction(1, 10**12))
        lines: list[dict[str, Json]] = []
        for item in self.planned.question.output.items:
            if isinstance(item.expression, Estimate):
                lines += self._of_part(item.name, item.expression.index, level)
            elif not isinstance(item.expression, Key):
                lines.append({"column": item.name, "rows": None, "half_width": None})
        return lines

    def _of_part(self, name: str, index: int, level: Fraction) -> list[dict[str, Json]]:
        bounded, mechanism = self.planned.bounded, self.planned.mechanisms[index]
        part = bounded.parts[index]
        if isinstance(part.aggregate, Mean):
            table = self.dataset.tables[self.planned.question.table]
            sizes = sorted({*_GROUP_SIZES, *([table.size] if table.size else [])})
            return [
                {"column": name, "rows": size, "half_width": _of_mean(part, bounded, mechanism, size, level)}
                for size in sizes
            ]
        unit, _, _ = units_of(part.aggregate, bounded.refinement)
        return [{"column": name, "rows": None, "half_width": _shown(mechanism.error(level) * unit)}]

    def explain(self) -> str:
        """In words: who is protected, what is bounded and how, which noise, what cost."""
        return explain(self.planned, self.dataset)

    def __repr__(self) -> str:
        body = [
            [
                str(line["column"]),
                "any" if line["rows"] is None else f"{line['rows']:,}",
                "depends on the answers"
                if line["half_width"] is None
                else f"+- {number(float(str(line['half_width'])))}",
            ]
            for line in self.error()
        ]
        return (
            f"{text_table(['column', 'rows in group', '95% error'], body)}\nwould cost {self.cost}; nothing was charged"
        )


def _of_mean(part: Part, bounded: Bounded, mechanism: AdditiveMechanism, size: int, level: Fraction) -> Json:
    """The widest half-width of a mean over ``size`` rows: at most the range itself."""
    assert isinstance(part.aggregate, Mean), "asked of means only"
    kind = numeric(part.aggregate.column)
    span = (kind.upper_code - kind.lower_code) * kind.step
    return _shown(min(kind.step * (mechanism.error(level) + 1) / (size * bounded.refinement), span))


def _shown(value: Fraction) -> float | int:
    return int(value) if value.denominator == 1 else float_up(value)
