# SPDX-License-Identifier: Apache-2.0
"""Opens a session from the declarations in a ``sfumato.toml``."""

import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sfumato.config.open_places import require_filled
from sfumato.engines.local import Local
from sfumato.errors import InvalidConfig, SfumatoError, shown
from sfumato.ledger.account_path import UNSTATED
from sfumato.ledger.waiting import WAIT
from sfumato.metadata.column import Array, Boolean, Category, ColumnType, Date, Integer, Real, Text
from sfumato.metadata.dataset import Dataset
from sfumato.metadata.server import is_address, path_of
from sfumato.metadata.side_file import side_text
from sfumato.metadata.table import Table
from sfumato.metadata.timestamp import Timestamp
from sfumato.privacy.budget import Budget
from sfumato.privacy.unit import AUTO, Relation, Unit
from sfumato.query.connect import OWNER, connect
from sfumato.query.session import Session

# The types of columns, except categories, and the keys that declare each type.
_TYPES = {
    "integer": Integer,
    "real": Real,
    "boolean": Boolean,
    "date": Date,
    "timestamp": Timestamp,
    "text": Text,
    "array": Array,
}
_ARGUMENTS = {
    "integer": {"lower", "upper", "clip", "missing"},
    "real": {"lower", "upper", "step", "clip", "missing"},
    "category": {"values", "missing"},
    "boolean": {"true", "false", "missing"},
    "date": {"lower", "upper", "format", "missing"},
    "timestamp": {"lower", "upper", "zone", "step", "format", "missing"},
    "text": {"missing"},
    "array": {"shape", "lower", "upper", "step"},
}
_KEYS = {
    "dataset",
    "ledger",
    "version",
    "relation",
    "budget",
    "tables",
    "prepared",
    "states",
    "streams",
    "other_people",
    "ledger_key",
    "ledger_heads",
    "without_heads",
    "census",
    "models",
    "synopses",
    "synthetic",
    "telemetry",
    "analyst",
    "purpose",
}
_OPTIONS = (
    "size",
    "public",
    "table",
    "delimiter",
    "encoding",
    "decimal",
    "thousands",
    "sheet",
    "header_row",
)
_LIMITS = ("max_rows", "max_groups", "max_rows_total")


def load(
    path: str | Path = "sfumato.toml",
    *,
    analyst: str | None = None,
    purpose: str | None = None,
    engine: Local | None = None,
    wait: float = WAIT,
) -> Session:
    """Opens the session that a file declares; paths in it are relative to the file.

    ``analyst``, ``purpose``, ``engine`` and ``wait`` are those of ``connect``. Without them, the
    file's ``analyst`` and ``purpose`` are used, and those of ``connect`` where it has none.

    Raises:
        InvalidConfig: there is no such file, it is not TOML, or a key is missing, unknown or
            wrong.
        SfumatoError: as ``connect``.

    >>> load("nowhere.toml")
    Traceback (most recent call last):
    ...
    sfumato.errors.InvalidConfig: No file 'nowhere.toml'.
    What to do: Write a sfumato.toml, or name another with -c.
    """
    declared = read_declarations(path)
    return connect(
        declared.dataset.tables,
        dataset=declared.dataset.name,
        ledger=declared.ledger,
        budget=declared.budget,
        relation=declared.dataset.relation,
        version=declared.dataset.version,
        analyst=declared.analyst if analyst is None else analyst,
        purpose=declared.purpose if purpose is None else purpose,
        prepared=declared.prepared,
        states=declared.states,
        engine=engine,
        closed=declared.closed,
        other_people=declared.other_people,
        ledger_key=declared.ledger_key,
        ledger_heads=declared.ledger_heads,
        without_heads=declared.without_heads,
        wait=wait,
    )


@dataclass(frozen=True, slots=True)
class Declarations:
    """The declarations of a file: the dataset, the ledger, and the options of ``connect``.

    ``streams`` has the table of each ``[streams.name]``, as it is written.
    """

    dataset: Dataset
    # an address may have a password
    ledger: str | Path = field(repr=False)
    budget: Budget | None
    prepared: Path | None = None
    closed: bool | None = None
    other_people: str = ""
    ledger_heads: tuple[str, ...] = field(default=(), repr=False)
    without_heads: str = ""
    ledger_key: Path | None = None
    states: Path | None = None
    streams: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    analyst: str = OWNER
    purpose: str = UNSTATED


def read_declarations(path: str | Path) -> Declarations:
    """Reads the declarations of a file; opens neither the data nor the ledger."""
    form = _read_config(path)
    folder = Path(path).parent
    _known(form, "the file", _KEYS)
    require_filled(form)
    tables = {}
    # a dataset may have telemetry and no table
    if "tables" in form or "telemetry" not in form:
        for name, table in _mapping(form, "tables").items():
            tables[name] = _table(name, table, folder)
    relation = _relation(form.get("relation", "add-remove"))
    version = str(form.get("version", "1"))
    streams = _mapping(form, "streams") if "streams" in form else {}
    dataset = Dataset(_text(form, "dataset"), tables, relation, version)
    return Declarations(
        dataset,
        budget=_budget(_mapping(form, "budget")) if "budget" in form else None,
        prepared=_path(form, "prepared", folder),
        ledger_key=_path(form, "ledger_key", folder),
        states=_path(form, "states", folder),
        streams={name: _mapping(streams, name) for name in streams},
        ledger=_place(_text(form, "ledger"), folder),
        other_people=_optional_text(form, "other_people"),
        without_heads=_optional_text(form, "without_heads"),
        closed=_closed(form),
        ledger_heads=_heads(form),
        analyst=_text(form, "analyst") if "analyst" in form else OWNER,
        purpose=_text(form, "purpose") if "purpose" in form else UNSTATED,
    )


def read_section(path: str | Path, section: str) -> dict[str, dict[str, Any]]:
    """The tables of a section that a command reads by itself: all ``[census.<name>]``, say.

    Raises:
        InvalidConfig: there is no such file or section, or it is not TOML.
    """
    found = {}
    for name, form in _mapping(_read_config(path), section).items():
        found[name] = _require_mapping(form, f"{section}.{name}")
    return found


def _place(named: str, folder: Path) -> str | Path:
    """The address of a server as it is, or a path relative to the folder of the file."""
    if is_address(named):
        return named
    return folder / named


def _read_config(path: str | Path) -> dict[str, Any]:
    """Parses the TOML of a file (InvalidConfig if there is none, or it is not TOML)."""
    if is_address(path):
        raise InvalidConfig(
            "The address of a server where a file is needed.", remedy="Name a sfumato.toml."
        )
    try:
        return tomllib.loads(side_text(path))
    except FileNotFoundError:
        raise InvalidConfig(
            f"No file {shown(path)}.", remedy="Write a sfumato.toml, or name another with -c."
        ) from None
    except OSError as error:
        raise InvalidConfig(f"{shown(path)} cannot be read ({error.strerror}).") from None
    except tomllib.TOMLDecodeError as error:
        raise InvalidConfig(f"{shown(path)} is not TOML: {error}.") from None


def _table(name: str, form: object, folder: Path) -> Table:
    """The declaration of one table."""
    where = f"tables.{name}"
    table = _require_mapping(form, where)
    _known(table, where, {"source", "unit", "columns", *_OPTIONS})
    columns = {}
    forms = _require_mapping(table.get("columns", {}), f"{where}.columns")
    for column, declared in forms.items():
        columns[column] = _column(f"{where}.columns.{column}", declared)
    named = _text(table, "source")
    source = _place(path_of(named) or named, folder)
    unit = _unit(f"{where}.unit", table["unit"]) if "unit" in table else None
    with _placed(where):
        options = {name: table[name] for name in _OPTIONS if name in table}
        return Table(source, unit, columns, **options)


def _unit(where: str, form: object) -> Unit:
    """The declaration of a privacy unit."""
    unit = _require_mapping(form, where)
    _known(unit, where, {"column", "via", "key", "name", "spellings_apart", *_LIMITS})
    if "column" not in unit:
        raise InvalidConfig(f"{where}: column is missing.", remedy='column = "person_id"')
    limits = {name: unit.get(name) for name in _LIMITS}
    for name, limit in limits.items():
        if limit == AUTO.value:
            limits[name] = AUTO
    with _placed(where):
        return Unit(
            unit["column"],
            **limits,
            via=unit.get("via"),
            key=unit.get("key"),
            name=unit.get("name"),
            spellings_apart=unit.get("spellings_apart", False),
        )


@contextmanager
def _placed(where: str) -> Iterator[None]:
    """Adds the place in the file to the message of an error."""
    try:
        yield
    except SfumatoError as error:
        raise InvalidConfig(
            f"{where}: {error.problem}", allowed=error.allowed, remedy=error.remedy
        ) from None


def _column(where: str, form: object) -> ColumnType:
    """The declaration of a column."""
    declared = dict(_require_mapping(form, where))
    kind = str(declared.pop("type", ""))
    if kind not in _ARGUMENTS:
        raise InvalidConfig(f"{where}: type {kind!r}.", allowed=", ".join(_ARGUMENTS))
    allowed = _ARGUMENTS[kind]
    _known(declared, where, allowed)
    if declared.get("clip") == AUTO.value:
        declared["clip"] = AUTO
    try:
        with _placed(where):
            if kind == "category":
                return Category(declared.pop("values", ()), **declared)
            column: ColumnType = _TYPES[kind](**declared)
            return column
    except TypeError:
        raise InvalidConfig(
            f"{where}: a {kind} that is not fully declared.", allowed=", ".join(sorted(allowed))
        ) from None


def _budget(form: Mapping[str, Any]) -> Budget:
    """The declaration of a budget."""
    _known(form, "budget", {"epsilon", "delta", "closed"})
    if "epsilon" not in form:
        raise InvalidConfig("budget has no epsilon.", remedy='epsilon = "1"')
    return Budget(form["epsilon"], form.get("delta", 0))


def _closed(form: Mapping[str, Any]) -> bool | None:
    """Whether only accounts that the owner has opened may spend; None if the file says nothing."""
    closed = form["budget"].get("closed") if "budget" in form else None
    if closed is not None and not isinstance(closed, bool):
        raise InvalidConfig(f"budget.closed = {closed!r}.", allowed="true or false")
    return closed


def _heads(form: Mapping[str, Any]) -> tuple[str, ...]:
    """The addresses of published heads."""
    heads = form.get("ledger_heads", [])
    if not isinstance(heads, list) or not all(isinstance(head, str) for head in heads):
        raise InvalidConfig(
            f"ledger_heads = {heads!r}.", allowed='["file:///folder/name", "https://host/path"]'
        )
    return tuple(heads)


def _relation(name: object) -> Relation:
    """The neighbour relation of this name."""
    try:
        return Relation(name)
    except ValueError:
        allowed = ", ".join(relation.value for relation in Relation)
        raise InvalidConfig(f"relation = {name!r}.", allowed=allowed) from None


def _mapping(form: Mapping[str, Any], key: str) -> dict[str, Any]:
    """A required table of the file."""
    if key not in form:
        raise InvalidConfig(
            f"The file has no [{key}].",
            remedy="docs/query.md has a whole example, docs/cli.md one of each section.",
        )
    return _require_mapping(form[key], key)


def _require_mapping(form: object, where: str) -> dict[str, Any]:
    """The argument, if it is a TOML table (else InvalidConfig)."""
    if not isinstance(form, dict):
        raise InvalidConfig(f"{where} is not a table of TOML.")
    return form


def _optional_text(form: Mapping[str, Any], key: str) -> str:
    """An optional string of the file; "" if it is not there."""
    if key in form:
        return _text(form, key)
    return ""


def _text(form: Mapping[str, Any], key: str) -> str:
    """A required string of the file that is not empty."""
    value = form.get(key)
    if not isinstance(value, str) or not value:
        raise InvalidConfig(f"{key} is missing, or is not a text.", remedy=f'{key} = "..."')
    return value


def _path(form: Mapping[str, Any], key: str, folder: Path) -> Path | None:
    """An optional path, relative to the file.

    An address is refused, since it would become the name of a file, with the password in it.
    """
    if key not in form:
        return None
    path = _text(form, key)
    if is_address(path):
        raise InvalidConfig(f"{key} is written as an address.", allowed="a path")
    return folder / path


def _known(form: Mapping[str, Any], where: str, allowed: set[str]) -> None:
    """Raises InvalidConfig if a table has other keys than the allowed ones."""
    unknown = sorted(set(form) - allowed)
    if unknown:
        raise InvalidConfig(
            f"{where} has unknown keys: {', '.join(unknown)}.", allowed=", ".join(sorted(allowed))
        )
