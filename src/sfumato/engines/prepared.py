# SPDX-License-Identifier: Apache-2.0
"""A folder of prepared layouts: its manifest, and whether the data is still what was prepared.

A layout holds personal data: the folder is open to its owner only, and ``drop`` empties it.
What is stale is refused before anything is charged, never used and never repaired silently.
"""

import hashlib
import json
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb

from sfumato.engines.layout import whole
from sfumato.engines.relation import stored_columns
from sfumato.engines.sources import files_of
from sfumato.engines.value_sql import Source, text
from sfumato.errors import InvalidSource, shown
from sfumato.metadata.dataset import Dataset
from sfumato.metadata.table import Table
from sfumato.plan.relation import PublicJoin, scans
from sfumato.plan.scope import nodes
from sfumato.plan.show import canonical
from sfumato.plan.stages import Bounded
from sfumato.privacy.event import Json

FORMAT = 2
MANIFEST = "layout.json"
_AGAIN = "Run sfumato prepare again (sf.prepare), or leave prepared= out."
_MAGIC = b"PAR1"


def fingerprint(path: Path) -> str | None:
    """What tells the files of a source from later ones at the same path; None: there are none.

    Of each its name, size and time, and of Parquet the footer.

    Guarantees:
        a changed file has another fingerprint
    """
    facts = hashlib.sha256()
    files = files_of(path)
    files = [path] if files is None else files
    for file in files:
        found = _facts(file)
        if found is None:
            return None
        facts.update(json.dumps([str(file), *found]).encode())
    return facts.hexdigest() if files else None


def _facts(path: Path) -> tuple[int, int, str] | None:
    try:
        with path.open("rb") as file:
            facts, footer = os.fstat(file.fileno()), b""
            if facts.st_size >= 12:
                file.seek(-8, os.SEEK_END)
                length, magic = int.from_bytes(file.read(4), "little"), file.read(4)
                if magic == _MAGIC and length <= facts.st_size - 12:
                    file.seek(-8 - length, os.SEEK_END)
                    footer = file.read(length)
    except OSError:
        return None
    return facts.st_size, facts.st_mtime_ns, hashlib.sha256(footer).hexdigest()


@dataclass(frozen=True, slots=True)
class Layout:
    """The prepared rows of one table: ``rows`` of a unit at most, in ``file``.

    ``declared``: where the rows were declared to lie, and what their codes and units were read
    by. ``sources``: those paths, and ``written`` the layout itself, by their fingerprints.
    """

    file: str
    rows: int
    declared: Json
    sources: Mapping[str, str]
    written: str

    def to_json(self) -> dict[str, Json]:
        """As the manifest has it."""
        return {
            "file": self.file,
            "rows": self.rows,
            "declared": self.declared,
            "sources": dict[str, Json](self.sources),
            "written": self.written,
        }


@dataclass(frozen=True, slots=True)
class Prepared:
    """The layouts of a folder, by table."""

    folder: Path
    layouts: Mapping[str, Layout]

    @classmethod
    def open(cls, folder: str | Path, dataset: Dataset) -> "Prepared":
        """The layouts of a dataset, as they were written.

        Guarantees:
            a stale layout is refused

        Raises:
            InvalidSource: there is none, or it was written by another version, under other
                declarations, or of other data.
        """
        place = Path(folder).absolute()
        form = read_manifest(place)
        if form is None:
            raise InvalidSource(
                f"No prepared layout in {shown(place)}.",
                remedy="Run sfumato prepare (sf.prepare) first.",
            )
        wanted = {"format": FORMAT, "engine": engine_version(), "dataset": dataset.name}
        for name, value in wanted.items():
            if form.get(name) != value:
                raise InvalidSource(
                    f"The prepared layout in {shown(place)} was written for {name} {form.get(name)!r}, this is {value!r}.",
                    remedy=_AGAIN,
                )
        try:
            layouts = {name: _layout(each) for name, each in _mapping(form["tables"]).items()}
        except (KeyError, TypeError, ValueError):
            raise _unreadable(place) from None
        found = cls(place, layouts)
        for table in layouts:
            if (
                table not in dataset.tables
                or declaration(dataset, table) != layouts[table].declared
            ):
                raise InvalidSource(
                    f"The prepared layout of table {table!r} was written under other declarations.",
                    remedy=_AGAIN,
                )
            found.require_current(table)
        return found

    @property
    def kept(self) -> dict[str, int]:
        """How many rows of a unit the layout of each table has at most."""
        return {table: layout.rows for table, layout in self.layouts.items()}

    def path(self, table: str) -> Path:
        """The file of a table's layout."""
        return self.folder / self.layouts[table].file

    def source(self, table: str) -> Source:
        """The layout as an engine reads it."""
        return Source(
            f"read_parquet({text(str(self.path(table)))}, hive_partitioning = false)",
            {},
            coded=True,
        )

    def is_current(self, table: str) -> bool:
        """Whether neither the data nor the layout has changed since it was prepared."""
        layout = self.layouts[table]
        known = {**layout.sources, str(self.path(table)): layout.written}
        return all(fingerprint(Path(path)) == each for path, each in known.items())

    def require_current(self, table: str) -> None:
        """Refuses a layout of data that has changed since.

        Raises:
            InvalidSource: it has.
        """
        if not self.is_current(table):
            raise InvalidSource(
                f"The prepared layout of table {table!r} is stale: the data, or the layout itself, has changed since.",
                remedy=_AGAIN,
            )


def origins(dataset: Dataset, table: str) -> list[Path] | None:
    """Where the rows of a table, and those that lead to their units, lie; None: it cannot be prepared."""
    way = _way(dataset, table)
    if way[0].unit is None or not all(isinstance(each.source, str | Path) for each in way):
        return None
    return [Path(str(each.source)).absolute() for each in way]


def declaration(dataset: Dataset, table: str) -> Json:
    """All that decides what a layout holds, besides the rows: places, types, units and the ways to them."""
    inside = list[Json](each.table for each in _way(dataset, table))
    paths = list[Json](str(path) for path in origins(dataset, table) or [])
    return {"scan": canonical(whole(dataset, table)), "paths": paths, "inside": inside}


def _way(dataset: Dataset, name: str) -> list[Table]:
    """A table, and those that lead from its rows to their units."""
    table = dataset.tables[name]
    found = [table]
    while table.unit is not None and table.unit.target is not None:
        table = dataset.tables[table.unit.target[0]]
        found.append(table)
    return found


def engine_version() -> str:
    """What computed the codes of a layout."""
    return f"duckdb {duckdb.__version__}"


def read_manifest(folder: Path) -> dict[str, Json] | None:
    """The manifest of a folder; None: it has none."""
    try:
        form = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        raise _unreadable(folder) from None
    if not isinstance(form, dict):
        raise _unreadable(folder)
    return form


def _unreadable(folder: Path) -> InvalidSource:
    return InvalidSource(
        f"The manifest of the prepared layout in {shown(folder)} cannot be read.", remedy=_AGAIN
    )


def _layout(form: object) -> Layout:
    fields = _mapping(form)
    sources = {path: str(each) for path, each in _mapping(fields["sources"]).items()}
    file, rows = str(fields["file"]), fields["rows"]
    if Path(file).name != file or not isinstance(rows, int) or rows < 1:
        raise ValueError
    return Layout(file, rows, fields["declared"], sources, str(fields["written"]))


def _mapping(form: object) -> dict[str, Json]:
    if not isinstance(form, dict):
        raise TypeError
    return form


def kept_tables(plan: Bounded) -> list[str]:
    """The tables that a plan reads from their prepared layouts: all of them, or none."""
    if plan.tracked.kept is None:
        return []
    return list(dict.fromkeys(scan.table for scan in scans(plan.tracked.raw.relation)))


def read_tables(plan: Bounded) -> Collection[str]:
    """The tables of which a plan reads the data itself."""
    relation = plan.tracked.raw.relation
    if plan.tracked.kept is None:
        return stored_columns(relation)
    return {each.table.table for each in nodes(relation) if isinstance(each, PublicJoin)}
