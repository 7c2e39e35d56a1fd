# SPDX-License-Identifier: Apache-2.0
"""Advice on a question: the expected error under other clips, costs and groupings.

``Session.advise`` calls ``advice``. It follows from declarations alone and costs no budget. How
many units lie beyond each clip is private, so it is a charged question of its own
(``auto_clip.learning``).
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, cast

from sqlglot import exp

from sfumato.errors import UnsupportedSql
from sfumato.exact.rational import decimal_text
from sfumato.metadata.clip import Values
from sfumato.metadata.column import Column, ColumnType, Integer, Real
from sfumato.metadata.dataset import Dataset
from sfumato.plan.aggregate import Linear
from sfumato.plan.output import Output
from sfumato.plan.question import Question
from sfumato.plan.scalar import Estimate, Field, Key, Scalar, leaves
from sfumato.privacy.event import Json
from sfumato.query.answer import Answer
from sfumato.query.auto_clip import STEPS, ends_of, origin_of, sizes_of
from sfumato.query.auto_limits import declared_groups
from sfumato.query.choose import Planned
from sfumato.query.preview import Preview
from sfumato.query.price import Price
from sfumato.show.bars import Bar, bar_chart
from sfumato.show.render import number, text_table
from sfumato.show.svg import Figure
from sfumato.sql.bind import Parameters
from sfumato.sql.clip import Clipping, Occasion
from sfumato.sql.lower import question_of, tree

# The clips that are compared, as places among the half-octaves of ``sizes_of``.
_PLACES = range(STEPS - 2, STEPS - 16, -2)
_COSTS = tuple(map(Fraction, ("1/4", "1/2", "2", "4")))
# The rows of a group where neither the size of the table nor ``rows`` is stated.
_ROWS = 1_000


@dataclass(frozen=True, slots=True)
class Option:
    """One variant of a question, and the 95% error that is expected of it.

    Attributes:
        about: what the variant changes: "as asked" (nothing), "clip", "cost" or "grouping".
        what: a description of the variant, for people.
        half_width: the half-width of the compared column in a group of ``rows`` rows; None if it
            depends on the answers.
        rows: the number of rows of a group.
        beyond: the approximate number of units with a value beyond the clip, if it was paid for.
    """

    about: str
    what: str
    half_width: float | None
    rows: int
    beyond: str = ""

    def to_json(self) -> dict[str, Json]:
        """The option as JSON."""
        return {
            "about": self.about,
            "what": self.what,
            "half_width": self.half_width,
            "rows": self.rows,
            "beyond": self.beyond,
        }


@dataclass(frozen=True, slots=True)
class Advice:
    """The expected error of a question under other clips, costs and groupings.

    Attributes:
        options: the variants; the first is the question as it was asked.
        notes: which column the errors refer to, and what they leave out.
    """

    options: tuple[Option, ...]
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Json]:
        """The advice as ``sfumato advise --format json`` prints it."""
        return {
            "options": [option.to_json() for option in self.options],
            "notes": list[Json](self.notes),
        }

    def plot(self) -> Figure:
        """Returns a bar chart of the expected errors of all variants."""
        bars = []
        for option in self.options:
            if option.half_width is not None:
                bars.append(Bar(option.what, option.about, option.half_width, None, None))
        return bar_chart("Expected 95% error", "half-width", bars)

    def __repr__(self) -> str:
        header = ["", "asked so", "95% error", "rows in a group", "units beyond"]
        body = []
        for option in self.options:
            half = "depends on the answers"
            if option.half_width is not None:
                half = f"+- {number(option.half_width)}"
            body.append([option.about, option.what, half, f"{option.rows:,}", option.beyond])
        if not any(option.beyond for option in self.options):
            header, body = header[:-1], [line[:-1] for line in body]
        lines = [text_table(header, body)]
        lines += [f"note: {note}" for note in self.notes]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Asked:
    """The inputs of ``advice``: a question at a price, and the functions by which variants of it
    are planned.

    ``plan`` plans a question under other declarations or at another price. ``count`` asks for the
    number of units by the size of their values in a column (``auto_clip.learning``); it is None if
    that is not paid for. ``rows`` is the number of rows of a group; None: it follows from the
    declarations.
    """

    sql: str | exp.Select
    parameters: Parameters | None
    price: Price
    dataset: Dataset
    plan: Callable[[Question, Dataset, Price], Planned]
    count: Callable[[str, str], Answer] | None = None
    rows: int | None = None

    def lowered(self, dataset: Dataset, values: Values | None) -> Question:
        """Compiles the statement into a question under the given declarations."""
        return question_of(
            tree(self.sql),
            dataset,
            parameters=self.parameters,
            clipping=Clipping(values),
        )

    def option(self, about: str, what: str, question: Question, **other: Any) -> Option:
        """Returns a variant of the question with its expected error; ``other`` may change the
        dataset, price or group size.
        """
        dataset = other.get("dataset", self.dataset)
        rows = other.get("rows") or self.group_rows(question)
        planned = self.plan(question, dataset, other.get("price", self.price))
        half_width = _half_width(planned, dataset, rows)
        return Option(about, what, half_width, rows, other.get("beyond", ""))

    def group_rows(self, question: Question) -> int:
        """Returns the number of rows of a group at which errors are compared: as stated, or the
        declared size of the table divided by the number of its groups.
        """
        if self.rows is not None:
            return self.rows
        size = self.dataset.tables[question.table].size
        groups = declared_groups(question.raw)
        if size is None or groups is None:
            return _ROWS
        return max(size // groups, 1)


def advice(asked: Asked) -> Advice:
    """Returns the expected errors of a question under other clips, costs and groupings; costs no
    budget.

    Raises:
        UnsupportedSql: no column is a count, sum or mean by itself, so that no error can be
            compared.
        As ``understand``.
    """
    question = asked.lowered(asked.dataset, None)
    options = [asked.option("as asked", "the table's own values", question)]
    options += _clip_options(asked, question)
    options += _cost_options(asked, question)
    options += _grouping_options(asked, question)
    column = _compared_column(question)
    notes = [f"the error is that of {column}, in a group with so many rows"]
    if any(option.about == "clip" for option in options):
        notes.append(
            "with a clip: the error of the clipped statistic alone (values=sf.Clipped), "
            "beside what the clip itself changes"
        )
    return Advice(tuple(options), tuple(notes))


def _clip_options(asked: Asked, question: Question) -> Iterator[Option]:
    """Yields variants that clip one summed column each, to several sizes."""
    occasion = Occasion(question.raw.relation, question.raw.keys, len(question.raw.aggregates))
    for column in _summed_columns(question):
        origin = origin_of(column, occasion, asked.dataset)
        kind = column.type
        if origin is None or not isinstance(kind, Integer | Real):
            continue
        table, name = origin
        counts = None if asked.count is None else asked.count(table, name)
        for place in _PLACES:
            low, high = ends_of(kind, sizes_of(kind)[place])
            ends = decimal_text(low * kind.step), decimal_text(high * kind.step)
            dataset = _with_clip(asked.dataset, table, name, (low, high))
            beyond = "" if counts is None else _units_beyond_text(counts, place)
            yield asked.option(
                "clip",
                f"{name} in [{ends[0]}, {ends[1]}]",
                asked.lowered(dataset, Values.CLIPPED),
                dataset=dataset,
                beyond=beyond,
            )


def _cost_options(asked: Asked, question: Question) -> Iterator[Option]:
    """Yields variants at several multiples of the cost."""
    name = "epsilon" if asked.price.epsilon is not None else "rho"
    for factor in _COSTS:
        price = asked.price.scaled(factor)
        amount = price.epsilon if price.epsilon is not None else price.rho
        assert amount is not None, "one of the two is stated"
        yield asked.option("cost", f"{name} = {decimal_text(amount)}", question, price=price)


def _grouping_options(asked: Asked, question: Question) -> Iterator[Option]:
    """Yields variants without one of the keys; their groups have more rows by the size of that key."""
    keys = question.raw.keys
    rows = asked.group_rows(question)
    for place, key in enumerate(keys):
        if key.size is None or question.raw.is_open:
            continue
        raw = replace(question.raw, keys=(*keys[:place], *keys[place + 1 :]))
        items = tuple(item for item in question.output.items if not _reads_key(item.expression))
        coarser = replace(question, raw=raw, output=Output(items))
        what = f"not by {key.value.name}"
        yield asked.option("grouping", what, coarser, rows=rows * key.size)


def _summed_columns(question: Question) -> list[Column]:
    """The numeric columns that sums, means and variances of a question read."""
    columns: dict[Column, None] = {}
    for aggregate in question.raw.aggregates:
        value = aggregate.read
        if value is None or not isinstance(aggregate, Linear) or not aggregate.reads_codes:
            continue
        for leaf in leaves(value.expression):
            if isinstance(leaf, Field) and isinstance(leaf.column.type, Integer | Real):
                columns[leaf.column] = None
    return list(columns)


def _with_clip(dataset: Dataset, table: str, name: str, codes: tuple[int, int]) -> Dataset:
    """The declarations with another clip of one column, on the same lattice."""
    declared = dataset.tables[table]
    kind = declared.columns[name]
    assert isinstance(kind, Integer | Real), "only numbers have a clip"
    low, high = (end * kind.step for end in (kind.lower_code, kind.upper_code))
    clip = codes[0] * kind.step, codes[1] * kind.step
    clipped: ColumnType = Real(low, high, step=kind.step, clip=clip)
    if isinstance(kind, Integer):
        clipped = Integer(low, high, clip=clip)
    columns = {**declared.columns, name: clipped}
    return replace(dataset, tables={**dataset.tables, table: replace(declared, columns=columns)})


def _units_beyond_text(answer: Answer, size_index: int) -> str:
    """The approximate number of units above a size, with its 95% half-width, as text."""
    lines = answer.error(1 - Fraction(1, 20 * (STEPS + 1)))
    count = half = 0.0
    for line in lines:
        if int(str(line["size"])) > size_index:
            cell = cast(Mapping[str, float], line["units"])
            count += (cell["low"] + cell["high"]) / 2
            half += cell["half_width"]
    return f"{max(count, 0.0):,.0f} +- {math.ceil(half):,}"


def _half_width(planned: Planned, dataset: Dataset, rows: int) -> float | None:
    """The expected half-width of the compared column in a group of so many rows."""
    sized = replace(dataset.tables[planned.question.table], size=rows)
    tables = {**dataset.tables, planned.question.table: sized}
    preview = Preview(planned, replace(dataset, tables=tables), "")
    column = _compared_column(planned.question)
    for line in preview.error():
        if line["column"] == column and line["rows"] in (None, rows):
            half = line["half_width"]
            return None if half is None else float(str(half))
    return None


def _compared_column(question: Question) -> str:
    """The column whose errors are compared: the first sum, mean or variance, else the first count."""
    aggregates = question.raw.aggregates
    first = ""
    for item in question.output.items:
        if not isinstance(item.expression, Estimate):
            continue
        if aggregates[item.expression.index].reads_codes:
            return item.name
        first = first or item.name
    if first:
        return first
    raise UnsupportedSql(
        "Advice on a question without a count, a sum or a mean as a column of its own.",
        remedy="Select AVG(x) or SUM(x) by itself.",
    )


def _reads_key(expression: Scalar) -> bool:
    """Whether an expression over released numbers reads a key."""
    return any(isinstance(leaf, Key) for leaf in leaves(expression))
