# SPDX-License-Identifier: Apache-2.0
"""The answer of SQL over private answers: computed from their bytes, not stored itself."""

import datetime
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import NoReturn, cast

import duckdb

from sfumato.errors import WrongUse
from sfumato.exact.rational import Number, positive, to_fraction
from sfumato.privacy.event import Json
from sfumato.query.answer import Answer
from sfumato.query.cost import total_cost
from sfumato.query.outer_errors import Releases
from sfumato.query.output_intervals import Cell
from sfumato.query.table import end_forms, finite, interval_form, warnings
from sfumato.query.whole_ends import WholeEnds
from sfumato.sql.outer_forms import Computed, Form, Known, Leaf

_DEFAULT_MISS = Fraction(5, 100)
_NOTHING = Cell(None)
_CHOSEN = (
    "Released numbers chose rows: where a column has an interval, it holds for all rows that could "
    "have been chosen."
)


@dataclass(frozen=True, slots=True)
class Result:
    """The result of SQL over private answers: the names and types of its columns, and their values.

    ``known`` states for each visible column how it is computed; None if that was not traced. The
    hidden columns follow the visible ones.
    """

    columns: Sequence[tuple[str, str]]
    values: Sequence[Sequence[object]]
    known: Sequence[Known] | None

    def errors(self, releases: Releases, miss: Fraction) -> list[list[Json]]:
        """Returns the intervals of each column at confidence 1 - ``miss``; null for a cell that
        has none.
        """
        return [self._column(place, releases, miss) for place in range(len(self.columns))]

    def _column(self, place: int, releases: Releases, miss: Fraction) -> list[Json]:
        """The intervals of one column."""
        values, kind = self.values[place], self.columns[place][1]
        if not self.is_noisy(place):
            return [None] * len(values)
        form = self.known[place].form if self.known is not None else None
        if form is None:
            return [_error(_NOTHING, kind, value) for value in values]
        errors: list[Json] = [None] * len(values)
        if miss == _DEFAULT_MISS and isinstance(form, Leaf):
            errors = releases.stored_errors(form, self.values)
        if kind in ("integer", "real") and not all(errors):
            wholes = WholeEnds(releases, miss).errors(form, self.values, values)
            errors = [stored or whole for stored, whole in zip(errors, wholes, strict=True)]
        for row, value in enumerate(values):
            if value is None:
                errors[row] = _error(_NOTHING, kind, value)
            elif errors[row] is None:
                hidden = [column[row] for column in self.values]
                interval = releases.interval(form, hidden.__getitem__, miss)
                errors[row] = _error(interval, kind, value)
        return errors

    def is_noisy(self, place: int) -> bool:
        """Returns whether the column at ``place`` depends on released numbers, as far as its
        computation is known.
        """
        return self.known is None or self.known[place].noisy

    def has_form(self, place: int) -> bool:
        """Returns whether the column at ``place`` may have intervals."""
        return self.known is not None and self.known[place].form is not None

    @property
    def is_chosen(self) -> bool:
        """Whether released numbers selected the rows in which a column with intervals is shown."""
        return any(_is_chosen(known.form) for known in self.known or ())

    @property
    def shown(self) -> list[list[Json]]:
        """The visible cells as JSON."""
        columns = []
        for (_, kind), values in zip(self.columns, self.values, strict=False):
            is_json = kind in ("integer", "boolean", "text")
            columns.append(cast(Sequence[Json], values) if is_json else list(map(_shown, values)))
        return _rows_of(columns)


class OuterAnswer(Answer):
    """The answer to SQL over private answers (``inner``): a function of their stored bytes alone.

    Without inner answers it is a list of declared values.
    """

    def __init__(
        self,
        statement: str,
        notes: Sequence[str],
        inner: Sequence[Answer],
        releases: Releases,
        result: Result,
        dataset: str,
    ) -> None:
        errors = result.errors(releases, _DEFAULT_MISS)
        names = [name for name, _ in result.columns]
        form: dict[str, Json] = {
            "charge_id": ", ".join(answer.charge_id for answer in inner),
            "dataset": dataset,
            "statement": statement,
            "cost": total_cost([answer.cost for answer in inner]).to_json(),
            "protected": _lines(inner, lambda answer: answer.protected),
            "columns": [
                {"name": name, "type": kind, "released": result.is_noisy(place)}
                for place, (name, kind) in enumerate(result.columns)
            ],
            "rows": cast(Json, result.shown),
            "errors": cast(Json, _rows_of(errors)),
            "bounded": _lines(inner, lambda answer: answer.bounded),
            "bias": _lines(inner, lambda answer: answer.bias),
            "notes": [*_notes(inner, result), *notes, *warnings(names, errors)],
        }
        recalled = bool(inner) and all(answer.recalled for answer in inner)
        # it is stored nowhere, so its bytes are written when somebody wants them
        super().__init__(None, recalled=recalled, form=form)
        self.inner = tuple(inner)
        self._releases = releases
        self._result = result

    def error(self, confidence: Number = 0.95) -> list[dict[str, Json]]:
        """As ``Answer.error``; a cell without an interval has ``low`` and ``high`` None."""
        fraction = to_fraction("confidence", confidence)
        level = positive("confidence", fraction, at_most=1 - Fraction(1, 10**12))
        return self._cells_with(_rows_of(self._result.errors(self._releases, 1 - level)))

    def consistent(self) -> NoReturn:
        """Not available: only the answer of a single question can be made consistent.

        Raises:
            WrongUse: always.
        """
        raise WrongUse(
            "consistent() of SQL over private answers.",
            remedy="answer.inner[0].consistent() is the one of a private answer.",
        )


def _rows_of(columns: Sequence[Sequence[Json]]) -> list[list[Json]]:
    """The rows of columns, of which there is at least one."""
    return list(map(list, zip(*columns, strict=True)))


def _error(cell: Cell, kind: str, value: object) -> dict[str, Json]:
    """The error of a cell as JSON."""
    error: dict[str, Json] = {"low": None, "high": None, "half_width": None}
    if cell.interval is not None and kind == "date":
        error["low"], error["high"] = end_forms(*cell.interval, is_date=True)
    elif cell.interval is not None:
        shown = _shown(value)
        point = Fraction(shown) if isinstance(shown, int | float) else None
        error = interval_form(*cell.interval, point)
    if cell.untold:
        error["untold"] = True
    return error


def _is_chosen(form: Form | None) -> bool:
    """Whether a form has a leaf of rows that noise chose."""
    if isinstance(form, Computed):
        return any(map(_is_chosen, form.parts))
    return isinstance(form, Leaf) and form.chosen


def _shown(value: object) -> Json:
    """A value of DuckDB as JSON."""
    if type(value) is int or type(value) is str:
        return value
    if isinstance(value, Decimal):
        return int(value) if value == int(value) else float(value)
    if isinstance(value, float):
        return None if math.isnan(value) else finite(value)
    if isinstance(value, datetime.date):
        return str(value)
    assert value is None or isinstance(value, bool | int | str), "described before the charge"
    return value


def _lines(inner: Sequence[Answer], of: Callable[[Answer], Sequence[str]]) -> list[Json]:
    """The sentences of all inner answers, each once."""
    return list[Json](dict.fromkeys(line for answer in inner for line in of(answer)))


def _notes(inner: Sequence[Answer], result: Result) -> list[Json]:
    """What the answer was computed from, and which columns have no interval."""
    lines: list[Json] = [
        f"Computed by DuckDB {duckdb.__version__} from {answer.statement} "
        f"(charge {answer.charge_id[:12]})."
        for answer in inner
    ]
    lines += _lines(inner, lambda answer: answer.notes)
    without = [
        name
        for place, (name, _) in enumerate(result.columns)
        if result.is_noisy(place) and not result.has_form(place)
    ]
    if without:
        lines.append(f"{', '.join(without)}: computed from noisy numbers, without an interval.")
    if result.is_chosen:
        lines.append(_CHOSEN)
    return lines
