# SPDX-License-Identifier: Apache-2.0
"""What a question would cost and how exact it would be, from declarations alone (RULES 22)."""

from dataclasses import dataclass
from fractions import Fraction

from sfumato.exact.rational import Number, positive, to_fraction
from sfumato.exact.rounding import float_up, sqrt_up
from sfumato.mechanisms import bernstein
from sfumato.mechanisms.bernstein import share_error
from sfumato.mechanisms.grid import GridQuantiles
from sfumato.mechanisms.threshold import ThresholdMechanism
from sfumato.metadata.dataset import Dataset
from sfumato.plan.aggregate import width
from sfumato.plan.scalar import Estimate, Key
from sfumato.plan.statistic import Statistic
from sfumato.privacy.event import Json
from sfumato.query.choose import Planned
from sfumato.query.cost import Cost
from sfumato.query.estimate import Kind, Reading, Released, reading_of
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

        Counts and sums: exact, the same in every cell. Means and variances: by the number of
        rows in the group. Quantiles: the rank error, in rows. Expressions of several: "depends on the answers".
        """
        level = positive(
            "confidence", to_fraction("confidence", confidence), at_most=1 - Fraction(1, 10**12)
        )
        lines: list[dict[str, Json]] = []
        for item in self.planned.question.output.items:
            if isinstance(item.expression, Estimate):
                lines += self._of_estimate(item.name, item.expression, level)
            elif not isinstance(item.expression, Key):
                lines.append({"column": item.name, "rows": None, "half_width": None})
        return lines

    def _of_estimate(self, name: str, estimate: Estimate, level: Fraction) -> list[dict[str, Json]]:
        bounded, mechanism = self.planned.bounded, self.planned.mechanisms[estimate.index]
        part = bounded.parts[estimate.index]
        reading = reading_of(part.aggregate, bounded.refinement)
        if isinstance(mechanism, GridQuantiles):
            ranks = mechanism.error(level, width(part.aggregate))[estimate.place] * reading.unit
            return [{"column": name, "rows": None, "half_width": None, "rank_error": _shown(ranks)}]
        if isinstance(mechanism, ThresholdMechanism):
            return [
                {
                    "column": name,
                    "rows": None,
                    "half_width": _shown(Fraction(mechanism.error(level))),
                }
            ]
        if reading.kind is not Kind.NUMBER and estimate.statistic not in (
            Statistic.COUNT,
            Statistic.SUM,
        ):
            far = mechanism.error(level if reading.kind is Kind.MEAN else 1 - (1 - level) / 3)
            return [
                {
                    "column": name,
                    "rows": size,
                    "half_width": _shown(_of_size(reading, estimate.statistic, far, size)),
                }
                for size in self._sizes()
            ]
        nothing = Released("", reading, mechanism.noise, ((0,) * width(part.aggregate),), (1,))
        return [
            {
                "column": name,
                "rows": None,
                "half_width": _shown(nothing.interval(0, 1 - level, estimate.statistic)[1]),
            }
        ]

    def _sizes(self) -> list[int]:
        """Group sizes to show: round ones, and the declared one."""
        size = self.dataset.tables[self.planned.question.table].size
        return sorted({*_GROUP_SIZES, *([size] if size else [])})

    def explain(self) -> str:
        """In words: who is protected, what is bounded and how, which noise, what cost."""
        return explain(self.planned, self.dataset)

    def __repr__(self) -> str:
        body = [
            [
                str(line["column"]),
                "any" if line["rows"] is None else f"{line['rows']:,}",
                _in_words(line),
            ]
            for line in self.error()
        ]
        return f"{text_table(['column', 'rows in group', '95% error'], body)}\nwould cost {self.cost}; nothing was charged"


def _of_size(reading: Reading, statistic: Statistic, far: int, size: int) -> Fraction:
    """The widest half-width of a mean or a spread over ``size`` rows: at most the range itself."""
    if statistic in (Statistic.VALUE, Statistic.MEAN) and reading.kind is Kind.MEAN:
        return min(reading.span * (far + 1) * reading.unit / size, reading.span)
    whole = int(size / reading.unit)
    if statistic is Statistic.MEAN:
        # a + b/2 is off by at most 3/2, a + b + c by 3 times the noise
        left = whole - 3 * far
        return (
            reading.span * min(Fraction(9 * far, 2 * left), Fraction(1))
            if left > 0
            else reading.span
        )
    error = reading.span**2 * share_error(whole, far, bernstein.Statistic.VARIANCE)
    # a deviation moves the most where there is none
    return (
        sqrt_up(error)
        if statistic in (Statistic.DEVIATION, Statistic.DEVIATION_OF_SAMPLE)
        else error
    )


def _shown(value: Fraction) -> float | int:
    return int(value) if value.denominator == 1 else float_up(value)


def _in_words(line: dict[str, Json]) -> str:
    if "rank_error" in line:
        return f"rank +- {number(float(str(line['rank_error'])))} rows"
    half = line["half_width"]
    return "depends on the answers" if half is None else f"+- {number(float(str(half)))}"
