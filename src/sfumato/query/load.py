# SPDX-License-Identifier: Apache-2.0
"""``sfumato.toml`` -> Session: the declarations from a file."""

import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.engines.local import Local
from sfumato.errors import InvalidConfig, SfumatoError, shown
from sfumato.metadata.column import Boolean, Category, ColumnType, Date, Integer, Real, Text
from sfumato.metadata.dataset import Dataset
from sfumato.metadata.server import is_address
from sfumato.metadata.table import Table
from sfumato.privacy.budget import Budget
from sfumato.privacy.unit import AUTO, Relation, Unit
from sfumato.query.connect import connect
from sfumato.query.session import Session

_TYPES = ("integer", "real", "category", "boolean", "date", "text")
_KEYS = {
    "dataset",
    "ledger",
    "version",
    "relation",
    "budget",
    "tables",
    "prepared",
    "other_people",
    "ledger_key",
    "ledger_heads",
    "without_heads",
}
_LIMITS = ("max_rows", "max_groups", "max_rows_total")


def load(
    path: str | Path = "sfumato.toml", *, analyst: str = "owner", engine: Local | None = None
) -> Session:
    """The session that a file declares; paths in it are relative to the file. ``engine``: as ``connect``.

    Raises:
        InvalidConfig: no such file, not TOML, or a key that is missing, unknown or wrong.
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
        analyst=analyst,
        prepared=declared.prepared,
        engine=engine,
        closed=declared.closed,
        other_people=declared.other_people,
        ledger_key=declared.ledger_key,
        ledger_heads=declared.ledger_heads,
        without_heads=declared.without_heads,
    )


@dataclass(frozen=True, slots=True)
class Declarations:
    """What a file declares."""

    dataset: Dataset
    ledger: str | Path
    budget: Budget | None
    prepared: Path | None = None
    closed: bool | None = None
    other_people: str = ""
    ledger_heads: tuple[str, ...] = ()
    without_heads: str = ""
    ledger_key: Path | None = None


def read_declarations(path: str | Path) -> Declarations:
    """The declarations of a file; neither data nor ledger is opened."""
    form, folder = read_config(path), Path(path).parent
    _known(form, "the file", _KEYS)
    tables = {name: _table(name, table, folder) for name, table in _mapping(form, "tables").items()}
    relation = _relation(form.get("relation", "add-remove"))
    dataset = Dataset(_text(form, "dataset"), tables, relation, str(form.get("version", "1")))
    budget = _budget(_mapping(form, "budget")) if "budget" in form else None
    prepared, key = (_path(form, each, folder) for each in ("prepared", "ledger_key"))
    ledger = _text(form, "ledger")
    place = ledger if is_address(ledger) else folder / ledger
    other_people = _text(form, "other_people") if "other_people" in form else ""
    without = _text(form, "without_heads") if "without_heads" in form else ""
    return Declarations(
        dataset, place, budget, prepared, _closed(form), other_people, _heads(form), without, key
    )


def read_config(path: str | Path) -> dict[str, Any]:
    """The TOML of a file."""
    if is_address(path):
        raise InvalidConfig(
            "The address of a server where a file is needed.", remedy="Name a sfumato.toml."
        )
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InvalidConfig(
            f"No file {shown(path)}.", remedy="Write a sfumato.toml, or name another with -c."
        ) from None
    except OSError as error:
        raise InvalidConfig(f"{shown(path)} cannot be read ({error.strerror}).") from None
    except UnicodeDecodeError:
        raise InvalidConfig(
            f"{shown(path)} is not UTF-8.", remedy="Save it as UTF-8, which TOML is."
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise InvalidConfig(f"{shown(path)} is not TOML: {error}.") from None


def _table(name: str, form: object, folder: Path) -> Table:
    where = f"tables.{name}"
    table = _require_mapping(form, where)
    _known(table, where, {"source", "unit", "columns", "size", "public", "table"})
    columns = {
        column: _column(f"{where}.columns.{column}", declared)
        for column, declared in _require_mapping(
            table.get("columns", {}), f"{where}.columns"
        ).items()
    }
    named = _text(table, "source")
    source = named if is_address(named) else folder / named
    unit = None if "unit" not in table else _unit(f"{where}.unit", table["unit"])
    with _placed(where):
        options = {name: table[name] for name in ("size", "public", "table") if name in table}
        return Table(source, unit, columns, **options)


def _unit(where: str, form: object) -> Unit:
    unit = _require_mapping(form, where)
    _known(unit, where, {"column", "via", "key", "name", *_LIMITS})
    if "column" not in unit:
        raise InvalidConfig(f"{where}: column is missing.", remedy='column = "person_id"')
    limits = {name: AUTO if unit.get(name) == AUTO.value else unit.get(name) for name in _LIMITS}
    with _placed(where):
        return Unit(
            unit["column"],
            **limits,
            via=unit.get("via"),
            key=unit.get("key"),
            name=unit.get("name"),
        )


@contextmanager
def _placed(where: str) -> Iterator[None]:
    """Says where in the file a declaration is wrong."""
    try:
        yield
    except SfumatoError as error:
        raise InvalidConfig(
            f"{where}: {error.problem}", allowed=error.allowed, remedy=error.remedy
        ) from None


def _column(where: str, form: object) -> ColumnType:
    declared = dict(_require_mapping(form, where))
    kind = str(declared.pop("type", ""))
    allowed = {
        "integer": {"lower", "upper", "missing"},
        "real": {"lower", "upper", "step", "missing"},
        "date": {"lower", "upper", "missing"},
        "category": {"values", "missing"},
        "boolean": {"true", "false", "missing"},
        "text": {"missing"},
    }.get(kind)
    if allowed is None:
        raise InvalidConfig(f"{where}: type {kind!r}.", allowed=", ".join(_TYPES))
    _known(declared, where, allowed)
    try:
        with _placed(where):
            if kind == "category":
                return Category(declared.pop("values", ()), **declared)
            types = {
                "integer": Integer,
                "real": Real,
                "date": Date,
                "boolean": Boolean,
                "text": Text,
            }
            made: ColumnType = types[kind](**declared)
            return made
    except TypeError:
        raise InvalidConfig(
            f"{where}: a {kind} that is not fully declared.", allowed=", ".join(sorted(allowed))
        ) from None


def _budget(form: Mapping[str, Any]) -> Budget:
    _known(form, "budget", {"epsilon", "delta", "closed"})
    if "epsilon" not in form:
        raise InvalidConfig("budget has no epsilon.", remedy='epsilon = "1"')
    return Budget(form["epsilon"], form.get("delta", 0))


def _closed(form: Mapping[str, Any]) -> bool | None:
    """Whether only listed names may spend, if the file says so."""
    closed = form["budget"].get("closed") if "budget" in form else None
    if closed is not None and not isinstance(closed, bool):
        raise InvalidConfig(f"budget.closed = {closed!r}.", allowed="true or false")
    return closed


def _heads(form: Mapping[str, Any]) -> tuple[str, ...]:
    heads = form.get("ledger_heads", [])
    if not isinstance(heads, list) or not all(isinstance(each, str) for each in heads):
        raise InvalidConfig(
            f"ledger_heads = {heads!r}.", allowed='["file:///folder/name", "https://host/path"]'
        )
    return tuple(heads)


def _relation(name: object) -> Relation:
    try:
        return Relation(name)
    except ValueError:
        allowed = ", ".join(each.value for each in Relation)
        raise InvalidConfig(f"relation = {name!r}.", allowed=allowed) from None


def _mapping(form: Mapping[str, Any], key: str) -> dict[str, Any]:
    if key not in form:
        raise InvalidConfig(
            f"The file has no [{key}].", remedy="See docs/query.md for a whole example."
        )
    return _require_mapping(form[key], key)


def _require_mapping(form: object, where: str) -> dict[str, Any]:
    if not isinstance(form, dict):
        raise InvalidConfig(f"{where} is not a table of TOML.")
    return form


def _text(form: Mapping[str, Any], key: str) -> str:
    value = form.get(key)
    if not isinstance(value, str) or not value:
        raise InvalidConfig(f"{key} is missing, or is not a text.", remedy=f'{key} = "..."')
    return value


def _path(form: Mapping[str, Any], key: str, folder: Path) -> Path | None:
    """A path relative to the file, where there is one; an address would be a file with a password in its name."""
    if key not in form:
        return None
    path = _text(form, key)
    if is_address(path):
        raise InvalidConfig(f"{key} is written as an address.", allowed="a path")
    return folder / path


def _known(form: Mapping[str, Any], where: str, allowed: set[str]) -> None:
    unknown = sorted(set(form) - allowed)
    if unknown:
        raise InvalidConfig(
            f"{where} has unknown keys: {', '.join(unknown)}.", allowed=", ".join(sorted(allowed))
        )
