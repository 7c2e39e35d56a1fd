# SPDX-License-Identifier: Apache-2.0
"""Checks how all of the data is read, for its owner: exact counts, which are not private.

``Session.check_data`` and ``sfumato check --data`` call it. The counts are returned to the caller
only: they are written to no ledger and no log, and no question, task or curator can reach them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NoReturn, TypeAlias

from sfumato.engines.base import Engine
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.inspect_columns import ColumnFacts, inspect_column
from sfumato.engines.inspect_units import (
    UnitFacts,
    group_columns,
    inspect_groups,
    inspect_rows,
    inspect_units,
)
from sfumato.errors import WrongUse
from sfumato.metadata.column import Column
from sfumato.metadata.dataset import Dataset
from sfumato.privacy.event import Json
from sfumato.privacy.unit import Unit
from sfumato.query.data_check_text import (
    LEGEND,
    NOTICE,
    column_notes,
    column_table,
    share,
    unit_lines,
)

Report: TypeAlias = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class TableFacts:
    """How the columns of one table are read, and how many rows its limits keep.

    ``units`` is None for a public table, and for one whose rows are the units. ``encoding`` is the
    declared encoding, if any.
    """

    name: str
    rows: int
    columns: tuple[ColumnFacts, ...]
    units: UnitFacts | None
    encoding: str | None = None

    @property
    def _undecoded(self) -> str:
        """A sentence on why much of a text file may be missing."""
        if self.encoding is None:
            return ""
        return f", and so is a field that is not written in {self.encoding}: is encoding= right?"

    def faults(self) -> Iterator[tuple[str, str]]:
        """Yields each column that cannot be used as it is declared, and why."""
        for facts in self.columns:
            lacking = facts.missing + facts.unread
            if facts.unread and not facts.read:
                yield (
                    facts.column.name,
                    f"wholly unread: none of {facts.unread:,} values is as declared",
                )
            elif _is_nearly_all(lacking, facts.rows):
                yield facts.column.name, f"{share(lacking, facts.rows)} missing{self._undecoded}"
        if self.units is not None:
            lacking = self.units.rows - self.units.used
            if _is_nearly_all(lacking, self.units.rows):
                yield self.units.unit.column, f"{share(lacking, self.units.rows)} without a unit"

    def text(self) -> str:
        """The facts as text for people."""
        lines = [f"table {self.name}: {self.rows:,} rows"]
        if self.columns:
            lines.append(column_table(self.columns))
        for facts in self.columns:
            lines += column_notes(facts)
        if self.units is not None:
            lines += unit_lines(self.units)
        return "\n".join(lines)

    def to_json(self) -> dict[str, Json]:
        """The facts as JSON."""
        columns: list[Json] = [_column_to_json(facts) for facts in self.columns]
        unit = None if self.units is None else _units_to_json(self.units)
        return {"table": self.name, "rows": self.rows, "columns": columns, "unit": unit}


@dataclass(frozen=True, slots=True, repr=False)
class DataCheck:
    """The result of ``Session.check_data`` and ``sfumato check --data``; its ``repr`` is a report.

    It is not private: for the owner's eyes only. It cannot be pickled.

    Attributes:
        tables: one ``TableFacts`` for each declared table.
    """

    tables: tuple[TableFacts, ...]

    @property
    def faults(self) -> tuple[str, ...]:
        """Lines on the columns that are wholly unread or more than 99% missing, and why."""
        lines = []
        for table in self.tables:
            for column, why in table.faults():
                lines.append(f"{table.name}.{column}: {why}")
        return tuple(lines)

    def to_json(self) -> dict[str, Json]:
        """The check as ``sfumato check --data --json`` prints it."""
        tables: list[Json] = [table.to_json() for table in self.tables]
        return {"notice": NOTICE, "private": False, "tables": tables, "faults": [*self.faults]}

    def __repr__(self) -> str:
        paragraphs = [f"{NOTICE}\n{LEGEND}"]
        paragraphs += [table.text() for table in self.tables]
        if self.faults:
            heading = "Columns that cannot be used as they are declared:"
            paragraphs.append("\n  ".join([heading, *self.faults]))
        return "\n\n".join(paragraphs)

    def __reduce__(self) -> NoReturn:
        raise WrongUse(
            "A data check is not pickled: it is not private, and is stored nowhere.",
            remedy="Check the data again where you need it.",
        )


def require_owners(*, is_owners: bool) -> None:
    """Refuses to show exact counts in a session that is not the owner's own.

    The owner's own session was opened by ``connect`` for the analyst "owner", over a ledger file
    that belongs to the user of this process. A session of ``asking_as``, or over a ledger that
    others use too, is not.

    Raises:
        WrongUse: it is not the owner's own session.
    """
    if not is_owners:
        raise WrongUse(
            "check_data shows exact counts, and this is not the owner's own session.",
            allowed='a session of sf.connect for the analyst "owner", over a ledger file '
            "that belongs to the user of this process",
            remedy="Run sfumato check --data where the data is.",
        )


def check_data(engine: Engine, dataset: Dataset, report: Report | None = None) -> DataCheck:
    """Returns exact counts of how all declared columns and units of every table are read; not
    private.

    ``report`` is called with a line before each of them.

    Guarantees:
        nothing is written to ledger or log
        no question task or curator reaches the exact counts

    Raises:
        InvalidSource: a column cannot be read to its end.
        WrongUse: the engine is not DuckDB.
    """
    if not isinstance(engine, DuckDB):
        raise WrongUse(
            "Spark does not check data: sfumato check --data reads with DuckDB.",
            allowed="tables that DuckDB reads: Parquet, CSV, Arrow, databases",
            remedy="Declare a sample of the data as a Parquet file, and check that.",
        )
    steps = _steps(dataset)
    told = iter(range(1, len(steps) + 1))

    def tell(what: str) -> None:
        if report is not None:
            report(f"{what} ({next(told)} of {len(steps)})")

    tables = [_inspect_table(engine, dataset, name, tell) for name in dataset.tables]
    return DataCheck(tuple(tables))


def _steps(dataset: Dataset) -> list[str]:
    """Returns the names of what is read, one for each progress report."""
    steps = []
    for name, table in dataset.tables.items():
        steps += [f"{name}.{column}" for column in table.columns]
        if isinstance(table.unit, Unit):
            steps.append(f"{name}: units")
        steps += [f"{name}: units by {key.name}" for key in group_columns(dataset, name)]
    return steps


def _inspect_table(
    engine: DuckDB, dataset: Dataset, name: str, tell: Callable[[str], None]
) -> TableFacts:
    """Reads one table; returns its facts."""
    columns = []
    for label, kind in dataset.tables[name].columns.items():
        tell(f"{name}.{label}")
        columns.append(inspect_column(engine, name, Column(label, kind)))
    units = None
    unit = dataset.tables[name].unit
    if isinstance(unit, Unit):
        tell(f"{name}: units")
        units = inspect_units(engine, dataset, name, unit)
        for key in group_columns(dataset, name):
            tell(f"{name}: units by {key.name}")
            units = units.with_limits(inspect_groups(engine, dataset, name, unit, key))
    rows = inspect_rows(engine, name)
    return TableFacts(name, rows, tuple(columns), units, dataset.tables[name].encoding)


def _is_nearly_all(part: int, rows: int) -> bool:
    """Whether a part is more than 99% of the rows."""
    return part * 100 > rows * 99


def _column_to_json(facts: ColumnFacts) -> dict[str, Json]:
    """The facts of a column as JSON."""
    forms: list[Json] = [{"form": form.shown, "rows": form.count} for form in facts.forms]
    return {
        "column": facts.column.name,
        "declared": repr(facts.column.type),
        "rows": facts.rows,
        "read": facts.read,
        "missing": facts.missing,
        "empty": facts.empty,
        "unread": facts.unread,
        "forms": forms,
        "below": facts.below,
        "above": facts.above,
        "below_clip": facts.below_clip,
        "above_clip": facts.above_clip,
        "never": [*facts.never],
        "rounded": facts.rounded,
    }


def _units_to_json(facts: UnitFacts) -> dict[str, Json]:
    """The facts of the units of a table as JSON."""
    limits: list[Json] = []
    for limit in facts.limits:
        form: dict[str, Json] = {
            "limit": limit.limit,
            "group_by": limit.by or None,
            "units_over": limit.over,
            "lost": limit.lost,
            "out_of": limit.out_of,
            "counts": "groups" if limit.of_groups else "rows",
        }
        limits.append(form)
    return {
        "unit": repr(facts.unit),
        "rows": facts.rows,
        "units": facts.units,
        "unnamed": facts.unnamed,
        "without_partner": facts.without_partner,
        "respelled": dict(facts.respelled),
        "limits": limits,
    }
