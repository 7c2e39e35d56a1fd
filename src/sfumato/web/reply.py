# SPDX-License-Identifier: Apache-2.0
"""What a route replies, and answers in the forms of files."""

import csv
import io
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import IO, Any

import pyarrow.parquet

from sfumato.config.released import Form, Result
from sfumato.errors import WrongUse, shown
from sfumato.query.answer import Answer
from sfumato.query.marginal_table import Marginals

JSON = "application/json"
_TYPES = {
    Form.JSON: JSON,
    Form.CSV: "text/csv; charset=utf-8",
    Form.PARQUET: "application/vnd.apache.parquet",
    Form.ARROW: "application/vnd.apache.arrow.stream",
    Form.ZIP: "application/zip",
}
# what a spreadsheet takes for the beginning of a formula
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP reply of the service: its body, status, content type and further headers.

    A large body is a ``file`` instead, of this reply alone: it is sent in pieces, then closed.
    """

    body: bytes
    status: int = 200
    type: str = JSON
    headers: Sequence[tuple[str, str]] = ()
    file: IO[bytes] | None = None

    @property
    def length(self) -> int:
        """The number of bytes of the body."""
        return len(self.body) if self.file is None else os.fstat(self.file.fileno()).st_size


def as_json(value: Any, status: int = 200) -> Reply:
    """Returns the HTTP reply with a value as JSON."""
    return Reply(json.dumps(value, ensure_ascii=False).encode(), status)


def stored(answer: Answer) -> Reply:
    """Returns the HTTP reply with an answer's stored bytes, and its charge in a header."""
    recalled = "true" if answer.recalled else "false"
    return Reply(
        answer.bytes,
        headers=(("Sfumato-Charge", answer.charge_id), ("Sfumato-Recalled", recalled)),
    )


def released(result: Result) -> Reply:
    """Returns the HTTP reply with a released result; a header names the charges that paid."""
    headers = [("Sfumato-Charge", ", ".join(result.charges))]
    if result.recalled is not None:
        headers.append(("Sfumato-Recalled", "true" if result.recalled else "false"))
    return Reply(result.body, type=_TYPES[result.form], headers=headers)


def rows_as_csv(table: pyarrow.Table) -> Reply:
    """Rows as CSV, with texts as in ``as_csv``; a list is written as JSON."""
    sheet = io.StringIO()
    writer = csv.writer(sheet, lineterminator="\n")
    writer.writerow(map(no_formula, table.column_names))
    for row in table.to_pylist():
        writer.writerow(map(_cell, row.values()))
    return Reply(sheet.getvalue().encode(), type="text/csv; charset=utf-8")


def _cell(value: object) -> object:
    if isinstance(value, list):
        return json.dumps(value)
    return no_formula(value) if isinstance(value, str) else value


def rows_as_parquet(table: pyarrow.Table) -> Reply:
    """Rows as Parquet."""
    file = io.BytesIO()
    pyarrow.parquet.write_table(table, file)
    return Reply(file.getvalue(), type="application/vnd.apache.parquet")


def as_csv(answer: Answer) -> Reply:
    """An answer as CSV; a text that a sheet would take for a formula has a quote before it."""
    names = {str(column["name"]) for column in answer.columns if column["type"] == "text"}
    header, *rows = csv.reader(io.StringIO(answer.to_csv()))
    texts = [name in names or name == "marks" for name in header]
    sheet = io.StringIO()
    writer = csv.writer(sheet, lineterminator="\n")
    writer.writerow([no_formula(name) for name in header])
    for row in rows:
        cells = zip(row, texts, strict=True)
        writer.writerow([no_formula(cell) if is_text else cell for cell, is_text in cells])
    return Reply(sheet.getvalue().encode(), type="text/csv; charset=utf-8")


def no_formula(text: str) -> str:
    """A text that no spreadsheet takes for a formula.

    >>> no_formula("=1+1"), no_formula("clerk")
    ("'=1+1", 'clerk')
    """
    return f"'{text}" if text.startswith(_FORMULA) else text


def as_arrow(answer: Answer) -> Reply:
    """An answer as an Arrow IPC stream."""
    return Reply(answer.to_arrow_bytes(), type="application/vnd.apache.arrow.stream")


def as_parquet(answer: Answer) -> Reply:
    """An answer as Parquet, with its intervals."""
    return rows_as_parquet(answer.to_arrow(intervals=True))


def as_svg(answer: Answer) -> Reply:
    """A chart of the first released number of an answer.

    Raises:
        WrongUse: it has none.
    """
    return Reply(answer.plot().svg.encode(), type="image/svg+xml")


def cells_writer(form: str) -> tuple[Form, Callable[[Marginals], bytes]]:
    """Returns the form of marginals with a name, and what writes them in it.

    Raises:
        WrongUse: there is no such form.
    """
    if form not in _CELLS:
        raise WrongUse(f"form={shown(form)}.", allowed=", ".join(_CELLS))
    return Form(form), _CELLS[form]


def run_writer(section: str, form: str) -> Callable[[Result], Result]:
    """Returns what writes the result of a declared run in the form with a name; "" is its own.

    Raises:
        WrongUse: results of this section have no such form.
    """
    if form == "csv" and section == "mining":
        return mined_as_csv
    if form:
        raise WrongUse(f"form={shown(form)}.", allowed="csv, of what mining finds")
    return lambda result: result


def mined_as_csv(result: Result) -> Result:
    """The rows of a mining result as CSV, with texts as in ``as_csv``."""
    rows = json.loads(result.body)["rows"]
    sheet = io.StringIO()
    writer = csv.writer(sheet, lineterminator="\n")
    for cells in [rows[0].keys(), *(row.values() for row in rows)] if rows else []:
        writer.writerow(map(_cell, cells))
    return replace(result, body=sheet.getvalue().encode(), form=Form.CSV)


_CELLS: dict[str, Callable[[Marginals], bytes]] = {
    "json": lambda marginals: json.dumps(marginals.to_json()).encode(),
    "csv": lambda marginals: rows_as_csv(marginals.to_arrow()).body,
    "parquet": lambda marginals: rows_as_parquet(marginals.to_arrow()).body,
    "arrow": Marginals.to_arrow_bytes,
}
# by the ending of the address
ROW_FORMS = {"csv": rows_as_csv, "parquet": rows_as_parquet}
FORMS = {"csv": as_csv, "arrow": as_arrow, "parquet": as_parquet, "svg": as_svg}
