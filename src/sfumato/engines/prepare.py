# SPDX-License-Identifier: Apache-2.0
"""Writes the prepared layouts of a dataset to a folder, and deletes them again."""

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from sfumato.engines.duckdb import DuckDB
from sfumato.engines.layout import MOST, whole
from sfumato.engines.local import Local
from sfumato.engines.prepared import (
    FORMAT,
    MANIFEST,
    Layout,
    declaration,
    engine_version,
    fingerprint,
    origins,
    read_manifest,
)
from sfumato.engines.sources import holds
from sfumato.errors import InvalidDeclaration, InvalidSource, MissingDeclaration, WrongUse, shown
from sfumato.metadata.dataset import Dataset
from sfumato.metadata.table import Table
from sfumato.noise.entropy import token
from sfumato.privacy.unit import Auto, Unit

Report = Callable[[str], None]
# No timeout in practice: it is the owner who waits.
_YEARS = 1e8
_PREFIX = "sfumato-"


def prepare(
    tables: Mapping[str, Table],
    *,
    dataset: str,
    folder: str | Path,
    rows: int | None = None,
    engine: Local | None = None,
    report: Report | None = None,
) -> Path:
    r"""Writes a layout of each private table that has a unit and is read from files.

    A layout contains at most ``rows`` rows of each unit, chosen once by a keyed hash, and all
    values as codes. By default ``rows`` is what the limits of the unit allow: max_rows_total, or
    max_rows times max_groups, or max_rows. A session opened with ``prepared=folder`` reads the
    layout where a question permits. That is as fast as a plain query, and every answer uses the
    same sample. ``engine`` limits memory and threads; ``report`` is called with a line about each
    table.

    The folder contains personal data: only its owner may enter it, and ``drop`` deletes its
    content. It is a copy of the data as it was; prepare again after a change.

    Raises:
        MissingDeclaration: a unit has no limits, and ``rows`` is not given.
        InvalidSource: a table cannot be read, or changed meanwhile; the folder cannot be written.
        WrongUse: there is no table to prepare, or the folder contains other files.

    >>> import sfumato as sf, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> visits = Path(folder.name, "visits.csv")
    >>> _ = visits.write_text("person,ward\np,A\np,B\nq,A\n")
    >>> unit = sf.Unit("person", max_rows=5)
    >>> table = sf.Table(visits, unit=unit, columns={"ward": sf.Category("A", "B")})
    >>> sf.prepare({"visits": table}, dataset="clinic", folder=folder.name + "/layout").name
    'layout'
    >>> folder.cleanup()
    """
    declared = Dataset(dataset, dict(tables))
    limits = {}
    data = {}
    for name in tables:
        paths = origins(declared, name)
        if paths is not None:
            limits[name] = _rows(name, declared.tables[name], rows)
            data[name] = paths
    if not limits:
        for name in tables:
            # a table whose rows are about two units each says what can be asked of it
            declared.row_unit(name)
        raise WrongUse(
            "No table to prepare.",
            allowed="private tables with a unit, read from Parquet or CSV files",
        )
    place = _own_folder(Path(folder).absolute(), data)
    _remove(place, keep=_known(place))
    duckdb = DuckDB(
        declared.tables,
        limits=engine or Local(time_limit=_YEARS),
        spill=place,
    )
    try:
        key = token()
        layouts = {}
        for name, most in limits.items():
            layouts[name] = _written(
                duckdb,
                declared,
                name,
                most,
                (place, key),
            )
            if report is not None:
                size = (place / layouts[name].file).stat().st_size
                report(f"table {name}: at most {most} rows of a unit, {size:,} bytes")
        _publish(place, dataset, key, layouts)
    finally:
        duckdb.close()
        _remove(place, keep=_known(place))
    return place


def drop(folder: str | Path) -> bool:
    """Deletes every layout in a folder, then the folder if it is empty.

    Returns whether there was anything to delete.

    Raises:
        InvalidSource: it cannot be deleted.
    """
    place = Path(folder).absolute()
    if not (place / MANIFEST).exists() and not _left(place):
        return False
    with _changing(place):
        # the manifest first: without it no layout is used
        (place / MANIFEST).unlink(missing_ok=True)
        _remove(place, keep=set())
        if not any(place.iterdir()):
            place.rmdir()
    return True


# --- what is prepared ----------------------------------------------------------------------


def _rows(name: str, table: Table, rows: int | None) -> int:
    """Returns the number of rows of each unit to keep: ``rows``, or what its limits allow."""
    if rows is not None:
        if isinstance(rows, bool) or not isinstance(rows, int) or not 1 <= rows <= MOST:
            raise InvalidDeclaration(f"rows={rows!r}.", allowed=f"an integer from 1 to {MOST:,}")
        return rows
    assert isinstance(table.unit, Unit), "asked of tables with a unit"
    total = table.unit.max_rows_total
    limit = table.unit.max_rows
    groups = table.unit.max_groups
    if isinstance(total, int):
        return min(total, MOST)
    if isinstance(limit, int):
        return min(limit * (groups if isinstance(groups, int) else 1), MOST)
    undecided = " yet: it is sf.AUTO" if Auto.AUTO in (total, limit) else ""
    raise MissingDeclaration(
        f"The unit of table {name!r} has no max_rows{undecided}, "
        "so nothing says how many rows of it to keep.",
        allowed="max_rows=, or max_rows_total=, of the unit; or rows= (--rows)",
    )


def _written(
    engine: DuckDB, dataset: Dataset, name: str, most: int, at: tuple[Path, str]
) -> Layout:
    """Writes the layout of one table to a new file, so that an older layout stays intact."""
    (place, key) = at
    scan = whole(dataset, name)
    before = {str(path): fingerprint(path) for path in origins(dataset, name) or []}
    made = engine.write_layout(scan, key, most)
    target = place / f"{_PREFIX}{name}-{token()[:16]}.parquet"
    with _changing(place):
        made.chmod(0o600)
        made.replace(target)
    after = {path: fingerprint(Path(path)) for path in before}
    sources = {path: mark for path, mark in after.items() if mark is not None}
    if sources != before:
        raise InvalidSource(
            f"Table {name!r} changed while it was prepared.",
            remedy="Run it again when nobody writes.",
        )
    return Layout(
        target.name,
        most,
        declaration(dataset, name),
        sources,
        fingerprint(target) or "",
    )


# --- the folder ----------------------------------------------------------------------------


@contextmanager
def _changing(folder_path: Path) -> Iterator[None]:
    """Converts an I/O error inside the ``with`` block to InvalidSource."""
    try:
        yield
    except OSError as error:
        raise InvalidSource(
            f"The folder {shown(folder_path)} cannot be made or changed ({error.strerror})."
        ) from None


def _own_folder(folder_path: Path, data: Mapping[str, Sequence[Path]]) -> Path:
    """Makes a folder that only its owner may enter, or checks an existing one.

    It may contain nothing but layouts, and must not be in the data of a source.
    """
    for name, paths in data.items():
        if any(holds(path, folder_path / f"{_PREFIX}{name}.parquet") for path in paths):
            raise WrongUse(
                f"The folder {shown(folder_path)} lies in the data of table {name!r}.",
                allowed="a folder of which no source is read",
            )
    with _changing(folder_path):
        folder_path.mkdir(mode=0o700, exist_ok=True)
        strange = sorted(path.name for path in folder_path.iterdir() if not _is_ours(path))
        if not strange:
            folder_path.chmod(0o700)
    if strange:
        raise WrongUse(
            f"The folder {shown(folder_path)} holds other things: {', '.join(strange[:3])}.",
            allowed="a new folder, or one of layouts only",
        )
    return folder_path


def _is_ours(path: Path) -> bool:
    return path.name == MANIFEST or path.name.startswith(_PREFIX)


def _known(folder_path: Path) -> set[str]:
    """Returns the files of the layouts that may be in use; none if the manifest is not valid."""
    try:
        manifest = read_manifest(folder_path) or {}
        tables = manifest.get("tables")
        if not isinstance(tables, dict):
            return set()
        return {str(layout.get("file")) for layout in tables.values()}
    except (InvalidSource, AttributeError):
        return set()


def _left(folder_path: Path) -> list[Path]:
    """Returns the manifest, layouts and unfinished files in a folder."""
    if not folder_path.is_dir():
        return []
    return [path for path in folder_path.iterdir() if _is_ours(path)]


def _remove(folder_path: Path, *, keep: set[str]) -> None:
    """Deletes what earlier runs left, which is personal data too, except the files to keep."""
    with _changing(folder_path):
        for path in _left(folder_path):
            if path.name == MANIFEST or path.name in keep:
                continue
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()


def _publish(
    folder_path: Path,
    dataset: str,
    key: str,
    layouts: Mapping[str, Layout],
) -> None:
    """Replaces the manifest of the folder atomically; its layouts are then in use."""
    form = {
        "format": FORMAT,
        "engine": engine_version(),
        "dataset": dataset,
        "key": key,
        "tables": {name: layout.to_json() for name, layout in layouts.items()},
    }
    draft = folder_path / f"{_PREFIX}{token()[:16]}.json"
    with _changing(folder_path):
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(form, file, ensure_ascii=False)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(folder_path / MANIFEST)
