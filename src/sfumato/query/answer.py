# SPDX-License-Identifier: Apache-2.0
"""The answer to a SQL question: estimates, intervals and explanations.

``Session.query`` returns an ``Answer``. Everything in it is computed from the bytes that the ledger
stores, so that a recalled answer equals the first one.
"""

import builtins
import html
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, cast

from sfumato.errors import UnknownName, WrongUse, shown
from sfumato.exact.rational import Number, positive, to_fraction
from sfumato.ledger.journal import canonical_json
from sfumato.plan.output import Output
from sfumato.privacy.event import Json
from sfumato.query.answer_files import (
    Filled,
    arrow_table,
    csv_text,
    excel_bytes,
    filled,
    for_excel,
    parquet_bytes,
    typed,
    with_readable_numbers,
    without_formulas,
    write,
)
from sfumato.query.consistent import NOTE, consistent_error, consistent_rows, is_count
from sfumato.query.cost import Cost
from sfumato.query.estimate import AnyReleased
from sfumato.query.table import UNTOLD, error_rows, is_untold, load_body, released_of
from sfumato.show.bars import Bar, bar_chart
from sfumato.show.render import cells, html_table, key, text_table
from sfumato.show.svg import Figure

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


# The members of a stored answer that are printed as JSON.
_PRINTED = (
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


class Answer:
    """The estimates of a question, an interval for each cell, their cost and their explanation.

    Attributes:
        charge_id: the id of the charge in the ledger that paid for the answer; "" if none did.
        statement: the question, as written.
        notes: remarks for the reader, such as the chosen mechanism or cells without support.
        bias: what the intervals do not cover: the effects of clipping and bounding.
        inner: the private answers that it was computed from, if it is SQL over private answers.
        recalled: whether the answer was stored before, so that it cost nothing this time.
    """

    def __init__(
        self,
        body: builtins.bytes | None,
        *,
        recalled: bool = False,
        form: dict[str, Json] | None = None,
    ) -> None:
        if form is None:
            assert body is not None, "an answer has its bytes or their content"
            form = load_body(body)
        self.recalled = recalled
        self._body = body
        self.charge_id = str(form["charge_id"])
        self.dataset = str(form["dataset"])
        self.statement = str(form["statement"])
        self.notes = tuple(cast(list[str], form["notes"]))
        self.bias = tuple(cast(list[str], form["bias"]))
        self.bounded = tuple(cast(list[str], form["bounded"]))
        self.protected = tuple(cast(list[str], form["protected"]))
        self.columns = cast(list[dict[str, Json]], form["columns"])
        self.form = form
        self.inner: tuple[Answer, ...] = ()

    @property
    def bytes(self) -> builtins.bytes:
        """The stored JSON; the same question always returns the same bytes."""
        if self._body is None:
            self._body = canonical_json(self.form).encode()
        return self._body

    @property
    def rows(self) -> list[list[Json]]:
        """The cells of each row, in the order of ``columns``."""
        return cast(list[list[Json]], self.form["rows"])

    @property
    def may_be_untold(self) -> bool:
        """Whether the noise of a cell may leave no information; False only if that of none does."""
        return self._body is None or UNTOLD in self._body

    @property
    def told(self) -> list[list[Json]]:
        """The rows of the answer, with None in each cell whose noise leaves no information
        (``untold``).

        The interval of such a cell is the whole possible range.
        """
        errors = cast(list[list[Json]], self.form["errors"])
        if not self.may_be_untold:
            # most answers have no such cell, and some have many cells
            return [list(row) for row in self.rows]
        rows = []
        for row, line in zip(self.rows, errors, strict=True):
            cells = zip(row, line, strict=True)
            rows.append([None if is_untold(error) else value for value, error in cells])
        return rows

    @property
    def totals(self) -> list[list[str]]:
        """For each row, the names of the key columns over which it is a total (ROLLUP, CUBE).

        In ``rows`` and data frames such a key cell is None, like the group of missing values; in
        tables, CSV and charts it is "total".
        """
        return cast(list[list[str]], self.form.get("totals") or [[] for _ in self.rows])

    def _with_totals(self, rows: Sequence[Sequence[Json]]) -> list[list[Json]]:
        """The rows with "total" in each key cell over which a row is a total."""
        names = [str(column["name"]) for column in self.columns]
        labels = {}
        for place, name in enumerate(names):
            # a declared value may have this name
            values = {str(row[place]) for row in rows}
            labels[name] = "(total)" if "total" in values else "total"
        shown = []
        for row, added in zip(rows, self.totals, strict=True):
            cells = zip(names, row, strict=True)
            shown.append([labels[name] if name in added else value for name, value in cells])
        return shown

    @property
    def cost(self) -> Cost:
        """The cost of the answer, with one item for each part."""
        form = cast(dict[str, Json], self.form["cost"])
        items = cast(list[dict[str, str]], form["items"])
        epsilon = str(form["epsilon"])
        rho = str(form["rho"])
        delta = str(form["delta"])
        return Cost(epsilon, rho, delta, tuple(items))

    def error(self, confidence: Number = 0.95) -> list[dict[str, Json]]:
        """The interval of each released cell as ``{low, high, half_width}``; keys are unchanged.

        An interval contains the bounded statistic (see ``bounded`` and ``bias``) with at least the
        given confidence. A cell marked ``untold`` has the whole possible range as its interval.
        """
        fraction = to_fraction("confidence", confidence)
        level = positive("confidence", fraction, at_most=1 - Fraction(1, 10**12))
        output, parts, order = released_of(self.form)
        lines = error_rows(output, parts, order, 1 - level)
        if self.form.get("consistent"):
            lines = _cut(lines, self.rows, output, parts)
        return self._cells_with(lines)

    def _cells_with(self, lines: Sequence[Json]) -> list[dict[str, Json]]:
        """The rows with the interval of each released cell in its place."""
        names = [str(column["name"]) for column in self.columns]
        table = []
        for row, line in zip(self.rows, lines, strict=True):
            cells: dict[str, Json] = {}
            intervals = cast(list[Json], line)
            for name, value, error in zip(names, row, intervals, strict=True):
                cells[name] = value if error is None else error
            table.append(cells)
        return table

    def consistent(self) -> "Answer":
        """Returns the answer with counts rounded to integers from 0 on, and totals that equal their
        sums.

        This is post-processing: it costs no budget and keeps the guarantee. Intervals of counts are
        cut at 0.
        """
        output, parts, _ = released_of(self.form)
        rows = consistent_rows(self.form, output, parts)
        notes: list[Json] = [*self.notes, NOTE]
        stored = cast(list[Json], self.form["errors"])
        errors = _cut(stored, rows, output, parts)
        form = {
            **self.form,
            "rows": cast(Json, rows),
            "errors": errors,
            "notes": notes,
            "consistent": True,
        }
        return Answer(canonical_json(form).encode(), recalled=self.recalled)

    def to_json(self) -> dict[str, Json]:
        """The answer as ``sfumato query --format json`` prints it."""
        form = {name: self.form[name] for name in _PRINTED}
        if "totals" in self.form:
            form["totals"] = self.form["totals"]
        form["columns"] = [
            {"name": column["name"], "type": column["type"]} for column in self.columns
        ]
        return form

    def to_dicts(self) -> list[dict[str, object]]:
        """Returns a dictionary for each row, with dates and timestamps as ``datetime`` objects.

        A cell whose interval is the whole possible range is None.
        """
        names = [str(column["name"]) for column in self.columns]
        kinds = [str(column["type"]) for column in self.columns]
        rows = []
        for row in self.told:
            cells = [typed(value, kind) for value, kind in zip(row, kinds, strict=True)]
            rows.append(dict(zip(names, cells, strict=True)))
        return rows

    def _filled(self, *, intervals: bool) -> list[Filled]:
        """The columns, with the ends of their 95% intervals if ``intervals``."""
        errors = cast(list[list[Json]], self.form["errors"])
        return filled(self.columns, self.told, errors if intervals else None)

    def to_arrow(self, *, intervals: bool = False) -> "pyarrow.Table":
        """Returns a pyarrow table; a cell whose interval is the whole possible range is null.

        With ``intervals``, each released column ``n`` is followed by the ends of its 95% interval,
        ``n_low`` and ``n_high``. If a row has such a null cell, a last column ``marks`` names it.
        """
        return arrow_table(self._filled(intervals=intervals))

    def to_arrow_bytes(self) -> builtins.bytes:
        """The Arrow table as an IPC stream, as ``sfumato query --format arrow`` writes it."""
        import pyarrow

        table = self.to_arrow()
        sink = pyarrow.BufferOutputStream()
        with pyarrow.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        return bytes(sink.getvalue().to_pybytes())

    def to_pandas(self, *, intervals: bool = False) -> "pandas.DataFrame":
        """A pandas DataFrame, with intervals as ``to_arrow`` (WrongUse without pandas)."""
        _require("pandas")
        return self.to_arrow(intervals=intervals).to_pandas()

    def to_csv(
        self, path: str | Path | None = None, *, intervals: bool = True, excel: bool = False
    ) -> str:
        """The answer as CSV, with intervals as ``to_arrow``; written to ``path`` if there is one.

        ``excel``: as Excel opens it, with a byte order mark, and with no more digits than the error
        allows. A text that Excel would take for a formula follows a quote.

        Raises:
            WrongUse: the file cannot be written.
        """
        rows = self._with_totals(self.told)
        errors = cast(list[list[Json]], self.form["errors"])
        if excel:
            rows, errors = with_readable_numbers(rows, errors)
        columns = filled(self.columns, rows, errors if intervals else None)
        text = for_excel(csv_text(without_formulas(columns))) if excel else csv_text(columns)
        if path is not None:
            write(path, text.encode())
        return text

    def to_parquet(self, path: str | Path, *, intervals: bool = True) -> None:
        """Writes the answer to a Parquet file, with intervals as ``to_arrow``.

        Raises:
            WrongUse: the file cannot be written.
        """
        write(path, parquet_bytes(self._filled(intervals=intervals)))

    def to_excel(self, path: str | Path, *, intervals: bool = True) -> None:
        """Writes the answer to an Excel file; its second sheet explains it.

        Intervals as in ``to_arrow``; numbers have 16 digits.

        Raises:
            WrongUse: the file cannot be written, or XlsxWriter is not installed.
        """
        _require("xlsxwriter", "pip install 'sfumato[excel]'")
        content = excel_bytes(self._filled(intervals=intervals), self.explain().splitlines())
        write(path, content)

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.rows)

    def __bool__(self) -> bool:
        """True, also of an answer without rows."""
        return True

    def __iter__(self) -> Iterator[dict[str, object]]:
        """The rows, as ``to_dicts``."""
        return iter(self.to_dicts())

    def __getitem__(self, column: str) -> list[object]:
        """The cells of one column, as ``to_dicts`` has them.

        Raises:
            UnknownName: there is no such column.
        """
        for found in self._filled(intervals=True):
            if found.name == column:
                return found.typed
        names = [found.name for found in self._filled(intervals=True)]
        raise UnknownName(f"No column {shown(column)}.", allowed=", ".join(names))

    def to_polars(self) -> "polars.DataFrame":
        """The answer as a polars DataFrame (WrongUse if polars is not installed)."""
        _require("polars")
        import polars

        return cast("polars.DataFrame", polars.from_arrow(self.to_arrow()))

    def explain(self) -> str:
        """Explains in text who is protected, the noise, the bounds, the bias and the cost."""
        lines = [self.statement, *self.protected]
        for item in self.cost.items:
            lines.append(
                f"{item['release']}: {item['mechanism']}, {item['parameter']}, "
                f"sensitivity {item['sensitivity']}."
            )
        lines += [f"Bounded: {line}" for line in self.bounded]
        lines += [f"Bias: {line}" for line in self.bias]
        lines += [f"Note: {line}" for line in self.notes]
        return "\n".join(
            [*lines, f"Cost: {self.cost}{self._paid()}. Charge: {self.charge_id or 'none'}."]
        )

    def plot(self, column: str | None = None) -> Figure:
        """A bar chart of one released numeric column with 95% intervals (default: the first one).

        A column that has a second column of its clipped values is drawn beside it.

        Raises:
            WrongUse: there is no such column.
        """
        errors = cast(list[list[Json]], self.form["errors"])
        names = [str(declared["name"]) for declared in self.columns]
        keys = [
            column_index
            for column_index, declared in enumerate(self.columns)
            if not declared["released"]
        ]
        released = self._numbers()
        chosen = column or (released[0] if released else "")
        if chosen not in released:
            raise WrongUse(
                f"No released column {shown(chosen)} to plot.",
                allowed=", ".join(released) or "none: there are no rows",
            )
        drawn = {"": names.index(chosen)}
        if f"{chosen}_clipped" in released:
            drawn = {"the table's own": drawn[""], "clipped": names.index(f"{chosen}_clipped")}
        bars = []
        for row, line in zip(self._with_totals(self.rows), errors, strict=True):
            for more, column_index in drawn.items():
                bar = self._bar(row, line, column_index, keys)
                bars.append(replace(bar, series=", ".join(filter(None, (bar.series, more)))))
        title = chosen if len(names) > 1 else self.statement[:90]
        return bar_chart(title, chosen, bars)

    def _numbers(self) -> list[str]:
        """The names of the released columns of numbers; empty if there are no rows."""
        names = []
        for column in self.columns:
            if self.rows and column["released"] and column["type"] not in ("date", "text"):
                names.append(str(column["name"]))
        return names

    def _bar(
        self,
        row: Sequence[Json],
        line: Sequence[Json],
        column_index: int,
        keys: Sequence[int],
    ) -> Bar:
        """The bar of one row: its value, its interval, and the labels from its keys."""
        error = cast(dict[str, float | None], line[column_index])
        value = row[column_index]
        label = key(row[keys[0]]) if keys else "all"
        series = ", ".join(key(row[at]) for at in keys[1:])
        low = error["low"]
        high = error["high"]
        point = float(cast(float, value or 0))
        return Bar(label, series, point, low, high, untold=is_untold(error))

    def receipt(self) -> str:
        """One line: the cost, whether it was paid earlier, and the id of the charge that paid it."""
        if not self.charge_id:
            return f"cost {self.cost}, no charge"
        charges = {f"charge {charge[:12]}" for charge in self.charge_id.split(", ")}
        if self.cost.is_earlier and charges <= set(self.cost.earlier):
            return f"cost {self.cost}"
        return f"cost {self.cost}{self._paid()}, charge {self.charge_id[:12]}"

    def _paid(self) -> str:
        """A remark that an answer was paid before; empty for a new one."""
        if self.recalled and not self.cost.is_earlier:
            return " (paid before, nothing now)"
        return ""

    def __repr__(self) -> str:
        shown = cast(list[Json], self._with_totals(self.rows))
        header, body = cells(self.columns, shown, self.form["errors"])
        lines = [text_table(header, body), self.receipt()]
        lines += [f"note: {note}" for note in self.notes]
        lines += [f"bias: {line}" for line in self.bias]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        shown = cast(list[Json], self._with_totals(self.rows))
        header, body = cells(self.columns, shown, self.form["errors"])
        cost = html.escape(self.receipt().removeprefix("cost "))
        shown_table = f"{html_table(header, body)}<p>{cost}</p>"
        notes = "".join(f"<li>{html.escape(line)}</li>" for line in (*self.notes, *self.bias))
        if notes:
            return f"{shown_table}<ul>{notes}</ul>"
        return shown_table


def _cut(
    lines: Sequence[Json],
    rows: Sequence[Sequence[Json]],
    output: Output,
    parts: Sequence[AnyReleased],
) -> list[Json]:
    """The intervals of an answer whose counts were made consistent; those of counts are cut at 0."""
    counts = [is_count(item.expression, parts) for item in output.items]
    cut: list[Json] = []
    for line, row in zip(lines, rows, strict=True):
        errors = list(cast(list[Json], line))
        for place, value in enumerate(row):
            if counts[place]:
                errors[place] = consistent_error(errors[place], value)
        cut.append(errors)
    return cut


def _require(module: str, remedy: str = "") -> None:
    """Raises WrongUse if an optional library is not installed."""
    if find_spec(module) is None:
        raise WrongUse(f"{module} is not installed.", remedy=remedy or f"pip install {module}")
