# SPDX-License-Identifier: Apache-2.0
"""The manifest of a folder of prepared layouts, and the check that the data has not changed.

``prepare`` writes the folder; engines read layouts from it. A layout contains personal data: only
the owner may enter the folder, and ``drop`` deletes its content. A stale layout is refused before
anything is charged; it is never used or repaired.
"""

import hashlib
import json
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb

from sfumato.engines.duckdb_printer import text
from sfumato.engines.layout import whole
from sfumato.engines.relation import stored_columns
from sfumato.engines.remote import is_remote
from sfumato.engines.sources import files_of
from sfumato.engines.value_sql import Source
from sfumato.errors import InvalidSource, shown
from sfumato.metadata.dataset import Dataset
from sfumato.metadata.table import Table
from sfumato.plan.relation import PublicJoin, scans
from sfumato.plan.scope import nodes
from sfumato.plan.show import canonical
from sfumato.plan.stages import Bounded
from sfumato.privacy.event import Json
from sfumato.privacy.unit import Unit

FORMAT = 4
MANIFEST = "layout.json"
_AGAIN = "Run sfumato prepare again (sf.prepare), or leave prepared= out."
_MAGIC = b"PAR1"


def fingerprint(path: Path) -> str | None:
    """Returns a hash of the current files of a source; None if there are no files.

    Computed from each file's name, size and modification time, and from the footer of Parquet
    files. A changed hash makes a prepared layout stale.

    Guarantees:
        a changed file has another fingerprint
    """
    facts = hashlib.sha256()
    files = files_of(path)
    files = [path] if files is None else files
    for file in files:
        state = _facts(file)
        if state is None:
            return None
        facts.update(json.dumps([str(file), *state]).encode())
    if files:
        return facts.hexdigest()
    return None


def _facts(path: Path) -> tuple[int, int, str] | None:
    try:
        with path.open("rb") as file:
            facts = os.fstat(file.fileno())
            footer = b""
            if facts.st_size >= 12:
                file.seek(-8, os.SEEK_END)
                length = int.from_bytes(file.read(4), "little")
                magic = file.read(4)
                if magic == _MAGIC and length <= facts.st_size - 12:
                    file.seek(-8 - length, os.SEEK_END)
                    footer = file.read(length)
    except OSError:
        return None
    return facts.st_size, facts.st_mtime_ns, hashlib.sha256(footer).hexdigest()


@dataclass(frozen=True, slots=True)
class Layout:
    """The prepared layout of one table: at most ``rows`` rows of each unit, in the file ``file``.

    ``declared``: the declarations and paths that decide its content. ``sources``: the fingerprint
    of each of these paths; ``written``: the fingerprint of the layout file itself.
    """

    file: str
    rows: int
    declared: Json
    sources: Mapping[str, str]
    written: str

    def to_json(self) -> dict[str, Json]:
        """Returns the layout in the form in which the manifest stores it."""
        return {
            "file": self.file,
            "rows": self.rows,
            "declared": self.declared,
            "sources": dict[str, Json](self.sources),
            "written": self.written,
        }


@dataclass(frozen=True, slots=True)
class Prepared:
    """The prepared layouts in a folder: the layout of each table, by the table's name."""

    folder: Path
    layouts: Mapping[str, Layout]

    @classmethod
    def open(cls, folder: str | Path, dataset: Dataset) -> "Prepared":
        """Reads the manifest of the layouts in a folder and checks it against a dataset.

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
                    f"The prepared layout in {shown(place)} was written for "
                    f"{name} {form.get(name)!r}, this is {value!r}.",
                    remedy=_AGAIN,
                )
        try:
            tables = _mapping(form["tables"])
            layouts = {name: _layout(entry) for name, entry in tables.items()}
        except (KeyError, TypeError, ValueError):
            raise _unreadable(place) from None
        prepared = cls(place, layouts)
        for table in layouts:
            known = table in dataset.tables
            if not known or declaration(dataset, table) != layouts[table].declared:
                raise InvalidSource(
                    f"The prepared layout of table {table!r} was written under other declarations.",
                    remedy=_AGAIN,
                )
            prepared.require_current(table)
        return prepared

    @property
    def kept(self) -> dict[str, int]:
        """The number of rows of a unit that each layout contains at most, by table."""
        return {table: layout.rows for table, layout in self.layouts.items()}

    def path(self, table: str) -> Path:
        """Returns the file of a table's layout."""
        return self.folder / self.layouts[table].file

    def source(self, table: str) -> Source:
        """Returns the prepared layout of a table as a ``Source``, from which SQL reads it."""
        file = text(str(self.path(table)))
        return Source(
            f"read_parquet({file}, hive_partitioning = false)",
            {},
            coded=True,
        )

    def is_current(self, table: str) -> bool:
        """Whether neither the data nor the layout has changed since it was prepared."""
        layout = self.layouts[table]
        known = {**layout.sources, str(self.path(table)): layout.written}
        return all(fingerprint(Path(path)) == mark for path, mark in known.items())

    def require_current(self, table: str) -> None:
        """Checks that a table's layout is not stale.

        Raises:
            InvalidSource: the data or the layout has changed since it was prepared.
        """
        if not self.is_current(table):
            raise InvalidSource(
                f"The prepared layout of table {table!r} is stale: "
                "the data, or the layout itself, has changed since.",
                remedy=_AGAIN,
            )


def origins(dataset: Dataset, table: str) -> list[Path] | None:
    """Returns the paths of a table's source and of the sources of the tables in which its units are
    looked up.

    Returns None if the table cannot be prepared.
    """
    way = _way(dataset, table)
    if not isinstance(way[0].unit, Unit):
        return None
    paths = []
    for step in way:
        if is_remote(step) or not isinstance(step.source, str | Path):
            return None
        paths.append(Path(str(step.source)).absolute())
    return paths


def declaration(dataset: Dataset, table: str) -> Json:
    """Returns the part of the declarations that decides the content of a layout.

    It has the paths, their text encodings and numerals, the column types, the units and how units
    are looked up.
    """
    way = _way(dataset, table)
    inside = list[Json](step.table for step in way)
    paths = list[Json](str(path) for path in origins(dataset, table) or [])
    form = {"scan": canonical(whole(dataset, table)), "paths": paths, "inside": inside}
    if any(step.reading for step in way):
        form["reading"] = list[Json](dict[str, Json](step.reading) for step in way)
    return form


def _way(dataset: Dataset, name: str) -> list[Table]:
    """Returns a table, then the tables in which its units are looked up, in order."""
    table = dataset.tables[name]
    way = [table]
    while isinstance(table.unit, Unit) and table.unit.target is not None:
        table = dataset.tables[table.unit.target[0]]
        way.append(table)
    return way


def engine_version() -> str:
    """Returns the name and version of the engine that computes layouts."""
    return f"duckdb {duckdb.__version__}"


def read_manifest(folder: Path) -> dict[str, Json] | None:
    """Returns the manifest of a folder of prepared layouts; None if the folder has no manifest."""
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
    sources = {path: str(mark) for path, mark in _mapping(fields["sources"]).items()}
    file = str(fields["file"])
    rows = fields["rows"]
    if Path(file).name != file or not isinstance(rows, int) or rows < 1:
        raise ValueError
    return Layout(
        file,
        rows,
        fields["declared"],
        sources,
        str(fields["written"]),
    )


def _mapping(form: object) -> dict[str, Json]:
    if not isinstance(form, dict):
        raise TypeError
    return form


def kept_tables(plan: Bounded) -> list[str]:
    """Returns the names of the tables that a plan reads from prepared layouts: all of its private
    tables, or none.
    """
    if plan.tracked.kept is None:
        return []
    return list(dict.fromkeys(scan.table for scan in scans(plan.tracked.raw.relation)))


def read_tables(plan: Bounded) -> Collection[str]:
    """Returns the names of the tables that a plan reads from their source files, and not from
    prepared layouts.
    """
    relation = plan.tracked.raw.relation
    if plan.tracked.kept is None:
        return stored_columns(relation)
    return {node.table.table for node in nodes(relation) if isinstance(node, PublicJoin)}
