# SPDX-License-Identifier: Apache-2.0
"""Opens the source of a declared table: files, folders of files, a database, a frame.

``duckdb`` uses it for every table. The set of files is fixed when a source is opened: the files of
a folder or pattern are listed then, and the connection can read these and nothing else. Whether
several files fit together is decided by their schemas, never by their rows.
"""

import logging
import os
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path

import duckdb

from sfumato.engines.duckdb_file import from_database
from sfumato.engines.duckdb_printer import quote, text
from sfumato.engines.excel import read_sheet
from sfumato.engines.files import (
    Mark,
    from_file,
    is_same,
    is_sqlite,
    marks,
    require_parquet_names,
    unreadable,
    utf8_copy,
)
from sfumato.engines.frame_source import arrow_of
from sfumato.engines.object_store import Copy, copied
from sfumato.engines.remote import is_remote, served
from sfumato.engines.served import Served
from sfumato.errors import InvalidSource, shown
from sfumato.metadata.server import StoredObject
from sfumato.metadata.table import Table

_OWNER = logging.getLogger("sfumato.owner")
_PATTERN = set("*?[")


@dataclass(frozen=True, slots=True)
class Opened:
    """An opened source of a table: the FROM item by which DuckDB reads it, and where its data comes
    from.

    ``place`` is the declared path, ``paths`` the files that it stands for. ``seen``: the identity
    of the files before anything of them was read. ``served``: how a remote table is read, which is
    copied for each question. ``stored``: the object of a store of which ``place`` is the copy.
    ``frame``: the Arrow table of a frame.
    """

    sql: str
    place: Path | None = None
    paths: tuple[Path, ...] = ()
    seen: tuple[Mark | None, ...] = ()
    served: Served | None = None
    stored: Copy | None = None
    frame: object = field(default=None, repr=False, compare=False)

    @property
    def has_changed(self) -> bool:
        """Whether the data may have changed since the source was opened: a file has, or the table
        is remote.
        """
        if self.stored is not None and not self.stored.is_current:
            return True
        return self.served is not None or marks(self.paths) != self.seen


def opened(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    table: Table,
    relation: str = "",
    folder: Path | None = None,
) -> Opened:
    """Opens the source of a declared table: a file or folder, a frame, an object of a store, or a
    table of a database.

    ``relation`` is the qualified name of a remote table, if known already. ``folder`` is the
    private folder for copies of objects and of CSV files whose encoding is declared.

    Raises:
        InvalidSource: there is no source, it cannot be read, or its files do not fit together.
    """
    if is_remote(table):
        remote = served(name, table, relation)
        item = Opened(remote.sql, served=remote)
        show(connection, name, item)
        return item
    if isinstance(table.source, StoredObject):
        return _from_store(connection, name, table, folder)
    if not isinstance(table.source, str | Path):
        return _framed(connection, name, table.source)
    path = Path(table.source).absolute()
    if table.table is not None:
        return Opened(from_database(connection, name, path, table.table))
    if is_sqlite(path) or (path.suffix.lower() == ".duckdb" and path.is_file()):
        raise InvalidSource(
            f"Table {name!r}: {path.name!r} is a database.",
            remedy='Name its table: table="events".',
        )
    files = files_of(path)
    if files is None:
        return _from_one_file(connection, name, table, path, folder)
    _require_no_linked_folder(name, path)
    _tell_left_out(name, path, files)
    seen = marks(files)
    return Opened(
        _from_files(connection, name, path, files),
        path,
        tuple(files),
        seen,
    )


def _from_one_file(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    table: Table,
    path: Path,
    folder: Path | None,
) -> Opened:
    """Opens a Parquet, CSV or Excel file."""
    if path.suffix.lower() == ".xlsx":
        return _sheet(connection, name, table, path)
    seen = marks([path])
    copy = None
    if table.encoding is not None:
        assert folder is not None, "given where a table is opened first"
        copy = utf8_copy(name, path, table.encoding, folder)
    item = from_file(connection, name, path, table.delimiter, copy, table.header_row or 1)
    return Opened(item, path, (path,), seen)


def _sheet(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    table: Table,
    path: Path,
) -> Opened:
    """Opens an Excel sheet, which is read now, into a frame."""
    seen = marks([path])
    frame = read_sheet(name, table)
    item = Opened(quote(f"source_{name}"), path, (path,), seen, frame=frame)
    show(connection, name, item)
    return item


def _from_store(
    connection: duckdb.DuckDBPyConnection, name: str, table: Table, folder: Path | None
) -> Opened:
    """Opens the private copy of an object of a store."""
    assert folder is not None and isinstance(table.source, StoredObject)
    stored = copied(name, table.source, folder)
    with stored.named():
        item = opened(connection, name, replace(table, source=stored.path), folder=folder)
    return replace(item, stored=stored)


def _framed(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    source: object,
) -> Opened:
    """Opens a frame, if DuckDB supports each of its types."""
    item = Opened(quote(f"source_{name}"), frame=arrow_of(name, source))
    failed = ""
    try:
        show(connection, name, item)
    except (duckdb.Error, RuntimeError) as failure:
        failed = type(failure).__name__
    if failed:
        raise unreadable(name, type(source).__name__, failed)
    return item


def show(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    item: Opened,
) -> None:
    """Registers a source in a DuckDB connection if connections do not share it: a frame, or the
    copy of a remote table.
    """
    if item.frame is not None:
        connection.register(f"source_{name}", item.frame)
    if item.served is not None:
        connection.execute(item.served.empty)


def opened_again(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    item: Opened,
) -> Opened:
    """Reopens Parquet files that have changed: the same list of files, with their present content.

    Excel is refused, because it was read when it was opened. CSV is refused, because one line can
    change the meaning of another, which is known only once all lines are read; whether a question
    is answered must not depend on a row (RULES 24).

    Raises:
        InvalidSource: they cannot be read, do not fit together, or are CSV or Excel.
    """
    if item.stored is not None:
        raise InvalidSource(
            f"Table {name!r}: {item.stored.source!r} is not the object that was copied, "
            "or its store does not answer.",
            allowed="an object with the tag that it had when it was opened",
        )
    assert item.place is not None, "asked of files only"
    seen = marks(item.paths)
    if item.place.suffix.lower() in (".csv", ".xlsx"):
        raise InvalidSource(
            f"Table {name!r}: {item.place.name!r} is not the file that was checked.",
            allowed="CSV and Excel as it was when the session was opened",
        )
    if item.paths == (item.place,):
        return replace(
            item,
            sql=from_file(connection, name, item.place),
            seen=seen,
        )
    return replace(
        item,
        sql=_from_files(connection, name, item.place, item.paths),
        seen=seen,
    )


def files_of(path: Path) -> list[Path] | None:
    """Returns the files of a folder or a pattern; None if the path is a single file.

    Files that writers leave beside the data, such as logs and markers, are left out.
    """
    listed = _listed(path)
    return None if listed is None else [file for file in listed if _is_data(file, path)]


def _listed(path: Path) -> list[Path] | None:
    """Returns ``files_of`` with the files that a writer leaves."""
    if path.is_dir():
        return _files(path.rglob("*"))
    if _PATTERN & set(str(path)) and path.suffix.lower() != ".csv":
        return _files(_meant(path))
    return None


class FilesLeftOut(UserWarning):
    """A folder or a pattern has Parquet files that are not read, because of their names."""


def _tell_left_out(name: str, place: Path, files: Sequence[Path]) -> None:
    """Says that Parquet files below a folder or a pattern are not read; names them to the owner."""
    read = set(files)
    left = [path for path in _listed(place) or () if path not in read]
    left = [path for path in left if path.suffix.lower() == ".parquet"]
    for path in left:
        _OWNER.warning(
            "table %s: %s is left out: a name that begins with _ or . is not read unless a "
            "pattern spells that sign",
            name,
            path,
        )
    if left:
        warnings.warn(
            f"Table {name!r}: {shown(place)} has Parquet files that are left out: a name that "
            "begins with _ or . is not read unless a pattern spells that sign (_old/*.parquet). "
            "The log 'sfumato.owner' has their names.",
            FilesLeftOut,
            stacklevel=2,
        )


def _require_no_linked_folder(name: str, place: Path) -> None:
    """Refuses symbolic links to folders, which neither a folder nor ** of a pattern follows.

    The files behind them would be left out without a word.
    """
    base = Path(str(place).partition("**")[0])
    bases = [place]
    if not place.is_dir():
        bases = [path for path in _meant(base) if path.is_dir()] if base != place else []
    for folder in bases:
        for path in folder.rglob("*"):
            if path.is_symlink() and path.is_dir() and _is_data(path, folder):
                _OWNER.error("table %s: %s is a symbolic link", name, path)
                raise InvalidSource(
                    f"Table {name!r}: {shown(place)} has a symbolic link to a folder, "
                    "whose files would be left out.",
                    allowed="folders and files, and symbolic links to files",
                    remedy="Name its files by a pattern without **, or replace the link by the "
                    "folder; the log 'sfumato.owner' has its name.",
                )


def holds(place: Path, path: Path) -> bool:
    """Whether ``path`` is one of the files of a declared source, or would be once a file is written
    there.

    ``place`` is the declared file, folder or pattern.

    >>> holds(Path("events/**/2024-*.parquet"), Path("events/../events/a/2024-02.parquet"))
    True
    """
    files = files_of(place)
    for file in [place] if files is None else files:
        if is_same(file, path):
            return True
    real = Path(os.path.realpath(path))
    of = Path(os.path.realpath(place))
    if place.is_dir():
        return real.is_relative_to(of) and _is_data(real, of)
    return files is not None and _matches(of.parts, real.parts) and _is_data(real, of)


def _matches(pattern: Sequence[str], parts: Sequence[str]) -> bool:
    """Whether the parts of a path match those of a pattern; ** matches any number of parts."""
    if not pattern or not parts:
        return not pattern and not parts
    if pattern[0] == "**":
        return any(_matches(pattern[1:], parts[start:]) for start in range(len(parts)))
    return fnmatchcase(parts[0], _any_case(pattern[0])) and _matches(pattern[1:], parts[1:])


def _files(paths: Iterable[Path]) -> list[Path]:
    return sorted(path for path in paths if path.is_file())


def _meant(pattern: Path) -> list[Path]:
    """Returns the paths that match a pattern; none if Python does not support the pattern."""
    relative = pattern.relative_to(pattern.anchor)
    try:
        return list(Path(pattern.anchor).glob(str(relative.with_name(_any_case(pattern.name)))))
    except ValueError:
        return []


def _any_case(name: str) -> str:
    """Returns a pattern of a name; its .parquet means .PARQUET too, as it does below a folder."""
    stem, dot, suffix = name.rpartition(".")
    if suffix.lower() != "parquet":
        return name
    return stem + dot + "".join(f"[{letter.lower()}{letter.upper()}]" for letter in suffix)


def _is_data(path: Path, place: Path) -> bool:
    """Whether a path is data and not what a writer leaves beside it: _SUCCESS, .part.crc.

    ``place`` is the folder that it is below, or the pattern that it matches. A pattern that spells
    the sign means such a name: _old/*.parquet.
    """
    of = place.parts
    if path.is_relative_to(place):
        path, of = path.relative_to(place), ()
    spelt = [part for part in of if part.startswith(("_", "."))]
    for part in path.parts:
        is_writers = part.startswith(("_", "."))
        if is_writers and not any(fnmatchcase(part, pattern) for pattern in spelt):
            return False
    return True


def _from_files(
    connection: duckdb.DuckDBPyConnection, name: str, place: Path, files: Sequence[Path]
) -> str:
    """Returns the FROM item of Parquet files with one schema.

    The keys of their folders (year=2024) are string columns.
    """
    if not files:
        raise InvalidSource(
            f"Table {name!r}: no file in {shown(place)}.", remedy="Check the path, or the pattern."
        )
    for file in files:
        _require_name(name, place, file)
    columns = _schema(connection, name, place, files[0])
    keys = _keys(files[0])
    for file in files[1:]:
        if _keys(file) != keys:
            raise _differs(name, place, (files[0], file), "the key=value folders they lie in")
        other = _schema(connection, name, place, file)
        odd = sorted(
            column for column in {*columns, *other} if columns.get(column) != other.get(column)
        )
        if odd:
            quoted = ", ".join(map(repr, odd))
            _OWNER.error(
                "table %s: its files differ in the columns %s",
                name,
                quoted,
            )
            raise _differs(name, place, (files[0], file), f"{len(odd):,} of their columns")
    sql = _read_parquet(files, hive=bool(keys))
    if len(_described(connection, name, place, sql)) != len(columns) + len(keys):
        _OWNER.error(
            "table %s: its folders have the keys %s",
            name,
            ", ".join(map(repr, keys)),
        )
        raise InvalidSource(
            f"Table {name!r}: a key of its folders (key=value) is also the name of a column, "
            "or no name.",
            remedy="Rename one of the two; the log 'sfumato.owner' has the keys.",
        )
    return sql


def _read_parquet(files: Sequence[Path], *, hive: bool) -> str:
    """Returns the FROM item of Parquet files; ``hive``: folder names have key=value parts."""
    listed = ", ".join(text(str(file)) for file in files)
    options = "hive_partitioning = false"
    if hive:
        options = "hive_partitioning = true, hive_types_autocast = false"
    return f"read_parquet([{listed}], union_by_name = false, {options})"


def _keys(file: Path) -> tuple[str, ...]:
    """Returns the keys of the folders that a file is in (key=value, as Hive writes them)."""
    return tuple(part.partition("=")[0] for part in file.parent.parts if "=" in part)


def _schema(
    connection: duckdb.DuckDBPyConnection, name: str, place: Path, file: Path
) -> dict[str, str]:
    """Returns the columns of one file with their types."""
    require_parquet_names(connection, name, file, place)
    return _described(
        connection, name, place, f"read_parquet({text(str(file))}, hive_partitioning = false)"
    )


def _described(
    connection: duckdb.DuckDBPyConnection, name: str, place: Path, sql: str
) -> dict[str, str]:
    """Returns the columns of a FROM item with their types."""
    failed = ""
    try:
        described = connection.execute(f"DESCRIBE SELECT * FROM {sql}").fetchall()
        return {row[0]: row[1] for row in described}
    except (duckdb.Error, RuntimeError) as failure:
        failed = type(failure).__name__
    # outside the handler: DuckDB may quote the value at which it failed
    raise unreadable(name, place, failed)


def _require_name(name: str, place: Path, file: Path) -> None:
    """Refuses a file whose path DuckDB cannot be given; only the owner's log has the path."""
    if file.suffix.lower() != ".parquet" or _PATTERN & set(str(file)):
        _OWNER.error("table %s: %s is among its files", name, file)
        raise InvalidSource(
            f"Table {name!r}: {shown(place)} has a file that is no Parquet, "
            "or has * ? [ in its name.",
            allowed="names that end in .parquet, without * ? [",
            remedy="The log 'sfumato.owner' has its name.",
        )
    if any(part.count("=") > 1 for part in file.parent.parts):
        _OWNER.error(
            "table %s: %s lies in a folder with = in its value",
            name,
            file,
        )
        raise InvalidSource(
            f"Table {name!r}: {shown(place)} has a folder with = in its value.",
            allowed="folders named key=value",
            remedy="Write that = as %3D; the log 'sfumato.owner' has the folder.",
        )


def _differs(
    name: str,
    place: Path,
    two: tuple[Path, Path],
    what: str,
) -> InvalidSource:
    _OWNER.error("table %s: %s and %s differ in %s", name, *two, what)
    return InvalidSource(
        f"Table {name!r}: two files of {shown(place)} differ in {what}.",
        allowed="files with the same columns, of the same types",
        remedy="Write them again with one schema, or declare them as two tables. "
        "The log 'sfumato.owner' says which they are.",
    )
