# SPDX-License-Identifier: Apache-2.0
"""A stored answer: everything it says is computed from its bytes."""

import datetime
import html
from collections.abc import Sequence
from fractions import Fraction
from importlib.util import find_spec
from typing import TYPE_CHECKING, cast

from sfumato.errors import WrongUse, shown
from sfumato.exact.rational import Number, positive, to_fraction
from sfumato.ledger.journal import canonical_json
from sfumato.plan.output import Output
from sfumato.plan.stored import restore_output
from sfumato.privacy.event import Json
from sfumato.query.consistent import NOTE, consistent_error, consistent_rows, is_count
from sfumato.query.cost import Cost
from sfumato.query.estimate import Released
from sfumato.query.plot import Bar, Figure, bar_chart
from sfumato.query.render import cells, html_table, number, text_table
from sfumato.query.table import error_rows, is_untold, load_body, parts_from_json

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


class Answer:
    """Estimates with an error per cell, their cost, and what was done to get them.

    Attributes:
        charge_id: the charge in the ledger that paid for it.
        statement: the question, as written.
        notes: what a reader should know (chosen mechanism, unsupported cells).
        bias: what the intervals do not hold: the effect of clipping and bounding.
        bytes: the stored JSON; the same question always gives the same bytes.
        recalled: it was stored before, so that asking cost nothing this time.
    """

    def __init__(self, body: bytes, *, recalled: bool = False) -> None:
        form = load_body(body)
        self.recalled = recalled
        self.bytes = body
        self.charge_id = str(form["charge_id"])
        self.dataset = str(form["dataset"])
        self.statement = str(form["statement"])
        self.notes = tuple(cast(list[str], form["notes"]))
        self.bias = tuple(cast(list[str], form["bias"]))
        self.bounded = tuple(cast(list[str], form["bounded"]))
        self.protected = tuple(cast(list[str], form["protected"]))
        self.columns = cast(list[dict[str, Json]], form["columns"])
        self.form = form

    @property
    def rows(self) -> list[list[Json]]:
        """The cells, row by row, in the order of ``columns``."""
        return cast(list[list[Json]], self.form["rows"])

    @property
    def told(self) -> list[list[Json]]:
        """The rows, None in each cell of which nothing can be told: its interval is the whole range."""
        errors = cast(list[list[Json]], self.form["errors"])
        return [
            [None if is_untold(error) else value for value, error in zip(row, line, strict=True)]
            for row, line in zip(self.rows, errors, strict=True)
        ]

    @property
    def cost(self) -> Cost:
        """What it cost, item by item."""
        form = cast(dict[str, Json], self.form["cost"])
        items = cast(list[dict[str, str]], form["items"])
        return Cost(str(form["epsilon"]), str(form["rho"]), str(form["delta"]), tuple(items))

    def error(self, confidence: Number = 0.95) -> list[dict[str, Json]]:
        """The table again, each released cell as ``{low, high, half_width}``, keys as they are.

        The interval holds the bounded statistic (see ``bounded`` and ``bias``) with at least
        this probability, in every cell. ``untold``: it is the whole range, so that nothing can be told.
        """
        level = positive(
            "confidence", to_fraction("confidence", confidence), at_most=1 - Fraction(1, 10**12)
        )
        order = cast(list[int], cast(dict[str, Json], self.form["released"])["order"])
        output, parts = self._released()
        lines = error_rows(output, parts, order, 1 - level)
        if self.form.get("consistent"):
            lines = _cut(lines, self.rows, output, parts)
        names = [str(column["name"]) for column in self.columns]
        return [
            {
                name: value if error is None else error
                for name, value, error in zip(names, row, cast(list[Json], line), strict=True)
            }
            for row, line in zip(self.rows, lines, strict=True)
        ]

    def consistent(self) -> "Answer":
        """The same answer with counts as whole numbers of 0 or more, and totals as their sums.

        Post-processing: free, and it protects no less. Each interval is cut at 0.
        """
        output, parts = self._released()
        rows = consistent_rows(self.form, output, parts)
        notes: list[Json] = [*self.notes, NOTE]
        errors = _cut(cast(list[Json], self.form["errors"]), rows, output, parts)
        form = {
            **self.form,
            "rows": cast(Json, rows),
            "errors": errors,
            "notes": notes,
            "consistent": True,
        }
        return Answer(canonical_json(form).encode(), recalled=self.recalled)

    def _released(self) -> tuple[Output, list[Released]]:
        """What was released, and what was made of it."""
        released = cast(dict[str, Json], self.form["released"])
        return restore_output(released["output"]), parts_from_json(released["parts"])

    def to_json(self) -> dict[str, Json]:
        """What ``sfumato query --format json`` prints."""
        names = (
            "charge_id",
            "dataset",
            "statement",
            "cost",
            "protected",
            "columns",
            "rows",
            "errors",
            "bounded",
            "bias",
            "notes",
        )
        columns = [{"name": each["name"], "type": each["type"]} for each in self.columns]
        return {**{name: self.form[name] for name in names}, "columns": columns}

    def to_dicts(self) -> list[dict[str, object]]:
        """One mapping a row; dates as ``datetime.date``, None where nothing can be told."""
        names = [str(column["name"]) for column in self.columns]
        return [dict(zip(names, self._typed(row), strict=True)) for row in self.told]

    def to_arrow(self) -> "pyarrow.Table":
        """A pyarrow table; null where nothing can be told."""
        import pyarrow

        types = {
            "integer": pyarrow.int64(), "real": pyarrow.float64(), "text": pyarrow.string(),
            "date": pyarrow.date32(), "boolean": pyarrow.bool_(),
        }  # fmt: skip
        rows, arrays = [self._typed(row) for row in self.told], {}
        for place, column in enumerate(self.columns):
            kind, values = str(column["type"]), [row[place] for row in rows]
            if kind == "real" or any(
                isinstance(value, int) and abs(value) >= 2**63 for value in values
            ):
                kind, values = (
                    "real",
                    [None if value is None else float(cast(float, value)) for value in values],
                )
            arrays[str(column["name"])] = pyarrow.array(values, types[kind])
        return pyarrow.table(arrays)

    def to_arrow_bytes(self) -> bytes:
        """The Arrow table as an IPC stream, as ``sfumato query --format arrow`` writes it."""
        import pyarrow

        table, sink = self.to_arrow(), pyarrow.BufferOutputStream()
        with pyarrow.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        return bytes(sink.getvalue().to_pybytes())

    def to_pandas(self) -> "pandas.DataFrame":
        """A pandas frame (pandas must be installed)."""
        _require("pandas")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> "polars.DataFrame":
        """A polars frame (polars must be installed)."""
        _require("polars")
        import polars

        return cast("polars.DataFrame", polars.from_arrow(self.to_arrow()))

    def explain(self) -> str:
        """Whom it protects, what was done, what it cost, and what the intervals leave out."""
        lines = [self.statement, *self.protected]
        for item in self.cost.items:
            lines.append(
                f"{item['release']}: {item['mechanism']}, {item['parameter']}, sensitivity {item['sensitivity']}."
            )
        lines += [f"Bounded: {line}" for line in self.bounded]
        lines += [f"Bias: {line}" for line in self.bias]
        lines += [f"Note: {line}" for line in self.notes]
        return "\n".join([*lines, f"Cost: {self.cost}{self._paid()}. Charge: {self.charge_id}."])

    def plot(self, column: str | None = None) -> Figure:
        """Bars with 95% intervals of one released column of numbers (default: the first).

        Raises:
            WrongUse: no such column.
        """
        errors = cast(list[list[Json]], self.form["errors"])
        names = [str(each["name"]) for each in self.columns]
        keys = [place for place, each in enumerate(self.columns) if not each["released"]]
        drawn = [
            each
            for each in self.columns
            if each["released"] and each["type"] not in ("date", "text")
        ]
        released = [str(each["name"]) for each in drawn if self.rows]
        chosen = column or (released[0] if released else "")
        if chosen not in released:
            raise WrongUse(
                f"No released column {shown(chosen)} to plot.",
                allowed=", ".join(released) or "none: there are no rows",
            )
        place = names.index(chosen)
        bars = [
            self._bar(row, line, place, keys) for row, line in zip(self.rows, errors, strict=True)
        ]
        return bar_chart(chosen if len(names) > 1 else self.statement[:90], chosen, bars)

    def _bar(
        self, row: Sequence[Json], line: Sequence[Json], place: int, keys: Sequence[int]
    ) -> Bar:
        error = cast(dict[str, float | None], line[place])
        value = row[place]
        label = number(row[keys[0]]) if keys else "all"
        series = ", ".join(number(row[key]) for key in keys[1:])
        # of a quantile only the rank is known, not an interval of values
        low, high = (None, None) if "rank_error" in error else (error["low"], error["high"])
        return Bar(
            label, series, float(cast(float, value or 0)), low, high, untold=is_untold(error)
        )

    def _typed(self, row: Sequence[Json]) -> list[object]:
        dates = [column["type"] == "date" for column in self.columns]
        return [
            datetime.date.fromisoformat(str(value)) if is_date and value is not None else value
            for value, is_date in zip(row, dates, strict=True)
        ]

    def receipt(self) -> str:
        """What it cost, whether that was paid before, and which charge paid it."""
        return f"cost {self.cost}{self._paid()}, charge {self.charge_id[:12]}"

    def _paid(self) -> str:
        return " (paid before, nothing now)" if self.recalled else ""

    def __repr__(self) -> str:
        header, body = cells(self.columns, self.form["rows"], self.form["errors"])
        lines = [text_table(header, body), self.receipt()]
        return "\n".join(
            [
                *lines,
                *(f"note: {note}" for note in self.notes),
                *(f"bias: {line}" for line in self.bias),
            ]
        )

    def _repr_html_(self) -> str:
        header, body = cells(self.columns, self.form["rows"], self.form["errors"])
        notes = "".join(f"<li>{html.escape(line)}</li>" for line in (*self.notes, *self.bias))
        cost = html.escape(self.receipt().removeprefix("cost "))
        return f"{html_table(header, body)}<p>{cost}</p>" + (f"<ul>{notes}</ul>" if notes else "")


def _cut(
    lines: Sequence[Json], rows: Sequence[Sequence[Json]], output: Output, parts: Sequence[Released]
) -> list[Json]:
    """Errors of consistent rows."""
    counts = [is_count(item.expression, parts) for item in output.items]
    return [
        [
            consistent_error(error, value) if count else error
            for error, value, count in zip(cast(list[Json], line), row, counts, strict=True)
        ]
        for line, row in zip(lines, rows, strict=True)
    ]


def _require(module: str) -> None:
    """Refuses an output whose library is not installed."""
    if find_spec(module) is None:
        raise WrongUse(f"{module} is not installed.", remedy=f"pip install {module}")
