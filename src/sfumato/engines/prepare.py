# SPDX-License-Identifier: Apache-2.0
"""Writes the prepared layouts of a dataset into a folder, and empties it again."""

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
from sfumato.privacy.unit import Auto

Report = Callable[[str], None]
# As long as it takes: it is the owner who waits.
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
    """Writes a layout of each private table with a unit that is read from files.

    A layout holds at most ``rows`` rows of each unit (by default as many as its declared limits
    allow: max_rows_total, or max_rows times max_groups, or max_rows), chosen once by a keyed
    hash, and all values as codes. A session opened with ``prepared=folder`` then reads it where a
    question permits: fast as a plain query, for a sample that is the same in every answer.
    ``engine`` are the limits of memory and threads; ``report`` is told of each table.

    The folder holds personal data: nobody else may enter it, and ``drop`` empties it. What
    is in it is of the data as it was: after a change, prepare again.

    Raises:
        MissingDeclaration: a unit without limits, and no ``rows``.
        InvalidSource: a table cannot be read, or changed meanwhile; the folder cannot be written.
        WrongUse: no table to prepare, or a folder that holds other things.

    >>> import sfumato as sf, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> visits = Path(folder.name, "visits.csv")
    >>> _ = visits.write_text("person,ward\\np,A\\np,B\\nq,A\\n")
    >>> table = sf.Table(visits, unit=sf.Unit("person", max_rows=5), columns={"ward": sf.Category("A", "B")})
    >>> sf.prepare({"visits": table}, dataset="clinic", folder=folder.name + "/layout").name
    'layout'
    >>> folder.cleanup()
    """
    declared = Dataset(dataset, dict(tables))
    limits = {
        name: _rows(name, declared.tables[name], rows)
        for name in tables
        if origins(declared, name) is not None
    }
    if not limits:
        raise WrongUse(
            "No table to prepare.",
            allowed="private tables with a unit, read from Parquet or CSV files",
        )
    place = _own_folder(
        Path(folder).absolute(), {name: origins(declared, name) or [] for name in limits}
    )
    old = _known(place)
    _remove(place, keep=old)
    duckdb = DuckDB(declared.tables, limits=engine or Local(time_limit=_YEARS), spill=place)
    try:
        key, layouts = token(), {}
        for name, most in limits.items():
            layouts[name] = _written(duckdb, declared, name, most, (place, key))
            if report is not None:
                report(
                    f"table {name}: at most {most} rows of a unit, {(place / layouts[name].file).stat().st_size:,} bytes"
                )
        _publish(place, dataset, key, layouts)
    finally:
        duckdb.close()
        _remove(place, keep=_known(place))
    return place


def drop(folder: str | Path) -> bool:
    """Deletes every layout of a folder, and the folder if nothing else is in it; whether there was one.

    Raises:
        InvalidSource: it cannot be deleted.
    """
    place = Path(folder).absolute()
    if not (place / MANIFEST).exists() and not _left(place):
        return False
    with _changing(place):
        # first what says that the layouts may be used
        (place / MANIFEST).unlink(missing_ok=True)
        _remove(place, keep=set())
        if not any(place.iterdir()):
            place.rmdir()
    return True


# --- what is prepared ----------------------------------------------------------------------


def _rows(name: str, table: Table, rows: int | None) -> int:
    """How many rows of a unit are kept: as many as its limits allow, unless the owner says."""
    if rows is not None:
        if isinstance(rows, bool) or not isinstance(rows, int) or not 1 <= rows <= MOST:
            raise InvalidDeclaration(f"rows={rows!r}.", allowed=f"an integer from 1 to {MOST:,}")
        return rows
    assert table.unit is not None, "asked of tables with a unit"
    total, each, groups = table.unit.max_rows_total, table.unit.max_rows, table.unit.max_groups
    if isinstance(total, int):
        return min(total, MOST)
    if isinstance(each, int):
        return min(each * (groups if isinstance(groups, int) else 1), MOST)
    raise MissingDeclaration(
        f"The unit of table {name!r} has no max_rows"
        f"{' yet: it is sf.AUTO' if Auto.AUTO in (total, each) else ''}, so nothing says how many rows of it to keep.",
        allowed="max_rows=, or max_rows_total=, of the unit; or rows= (--rows)",
    )


def _written(
    engine: DuckDB, dataset: Dataset, name: str, most: int, at: tuple[Path, str]
) -> Layout:
    """Writes the layout of one table; its file has a name of its own, so that an older one stays whole."""
    (place, key), scan = at, whole(dataset, name)
    before = {str(path): fingerprint(path) for path in origins(dataset, name) or []}
    made = engine.write_layout(scan, key, most)
    target = place / f"{_PREFIX}{name}-{token()[:16]}.parquet"
    with _changing(place):
        made.chmod(0o600)
        made.replace(target)
    sources = {path: found for path in before if (found := fingerprint(Path(path))) is not None}
    if sources != before:
        raise InvalidSource(
            f"Table {name!r} changed while it was prepared.",
            remedy="Run it again when nobody writes.",
        )
    return Layout(target.name, most, declaration(dataset, name), sources, fingerprint(target) or "")


# --- the folder ----------------------------------------------------------------------------


@contextmanager
def _changing(place: Path) -> Iterator[None]:
    """What the disk refuses is an error of ours."""
    try:
        yield
    except OSError as error:
        raise InvalidSource(
            f"The folder {shown(place)} cannot be made or changed ({error.strerror})."
        ) from None


def _own_folder(place: Path, data: Mapping[str, Sequence[Path]]) -> Path:
    """A folder that only its owner may enter, with nothing in it but layouts, none of which is read as data."""
    for name, paths in data.items():
        if any(holds(each, place / f"{_PREFIX}{name}.parquet") for each in paths):
            raise WrongUse(
                f"The folder {shown(place)} lies in the data of table {name!r}.",
                allowed="a folder of which no source is read",
            )
    with _changing(place):
        place.mkdir(mode=0o700, exist_ok=True)
        strange = sorted(each.name for each in place.iterdir() if not _is_ours(each))
        if not strange:
            place.chmod(0o700)
    if strange:
        raise WrongUse(
            f"The folder {shown(place)} holds other things: {', '.join(strange[:3])}.",
            allowed="a new folder, or one of layouts only",
        )
    return place


def _is_ours(path: Path) -> bool:
    return path.name == MANIFEST or path.name.startswith(_PREFIX)


def _known(place: Path) -> set[str]:
    """The files of the layouts that may be in use."""
    try:
        form = read_manifest(place) or {}
        tables = form.get("tables")
        return (
            {str(each.get("file")) for each in tables.values()}
            if isinstance(tables, dict)
            else set()
        )
    except (InvalidSource, AttributeError):
        return set()


def _left(place: Path) -> list[Path]:
    return [each for each in place.iterdir() if _is_ours(each)] if place.is_dir() else []


def _remove(place: Path, *, keep: set[str]) -> None:
    """Deletes what an earlier run has left: it is personal data, too."""
    with _changing(place):
        for each in _left(place):
            if each.name == MANIFEST or each.name in keep:
                continue
            if each.is_dir():
                shutil.rmtree(each)
            else:
                each.unlink()


def _publish(place: Path, dataset: str, key: str, layouts: Mapping[str, Layout]) -> None:
    """From here on these are the layouts of the folder: one step, or none."""
    form = {
        "format": FORMAT,
        "engine": engine_version(),
        "dataset": dataset,
        "key": key,
        "tables": {name: layout.to_json() for name, layout in layouts.items()},
    }
    made = place / f"{_PREFIX}{token()[:16]}.json"
    with _changing(place):
        with os.fdopen(
            os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8"
        ) as file:
            json.dump(form, file, ensure_ascii=False)
            file.flush()
            os.fsync(file.fileno())
        made.replace(place / MANIFEST)
