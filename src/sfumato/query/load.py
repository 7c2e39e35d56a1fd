# SPDX-License-Identifier: Apache-2.0
"""``sfumato.toml`` -> Session: the declarations from a file."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.errors import InvalidConfig, SfumatoError
from sfumato.ledger.store.open import SERVERS
from sfumato.metadata.column import Boolean, Category, ColumnType, Date, Integer, Real, Text
from sfumato.metadata.dataset import Dataset
from sfumato.metadata.table import Table
from sfumato.privacy.budget import Budget
from sfumato.privacy.unit import Relation, Unit
from sfumato.query.session import Session, connect

_TYPES = ("integer", "real", "category", "boolean", "date", "text")


def load(path: str | Path = "sfumato.toml", *, analyst: str = "owner") -> Session:
    """The session that a file declares; paths in it are relative to the file.

    Raises:
        InvalidConfig: no such file, not TOML, or a key that is missing or unknown.
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
    )


@dataclass(frozen=True, slots=True)
class Declarations:
    """What a file declares."""

    dataset: Dataset
    ledger: str | Path
    budget: Budget | None


def read_declarations(path: str | Path) -> Declarations:
    """The declarations of a file; neither data nor ledger is opened."""
    form, folder = read_config(path), Path(path).parent
    _known(form, "the file", {"dataset", "ledger", "version", "relation", "budget", "tables"})
    tables = {name: _table(name, table, folder) for name, table in _mapping(form, "tables").items()}
    relation = _relation(form.get("relation", "add-remove"))
    dataset = Dataset(_text(form, "dataset"), tables, relation, str(form.get("version", "1")))
    budget = _budget(_mapping(form, "budget")) if "budget" in form else None
    ledger = _text(form, "ledger")
    return Declarations(dataset, ledger if ledger.startswith(SERVERS) else folder / ledger, budget)


def read_config(path: str | Path) -> dict[str, Any]:
    """The TOML of a file."""
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InvalidConfig(
            f"No file {str(path)!r}.", remedy="Write a sfumato.toml, or name another with -c."
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidConfig(f"{str(path)!r} cannot be read ({type(error).__name__}).") from None
    except tomllib.TOMLDecodeError as error:
        raise InvalidConfig(f"{str(path)!r} is not TOML: {error}.") from None


def _table(name: str, form: object, folder: Path) -> Table:
    table = _require_mapping(form, f"tables.{name}")
    _known(table, f"tables.{name}", {"source", "unit", "columns", "size"})
    columns = {
        column: _column(f"tables.{name}.columns.{column}", declared)
        for column, declared in _require_mapping(table.get("columns", {}), f"tables.{name}.columns").items()
    }
    unit = table.get("unit")
    return Table(
        folder / _text(table, "source"),
        unit=None if unit is None else _unit(f"tables.{name}.unit", unit),
        columns=columns,
        size=table.get("size"),
    )


def _unit(where: str, form: object) -> Unit:
    unit = _require_mapping(form, where)
    _known(unit, where, {"column", "max_rows", "max_groups", "max_rows_total"})
    return Unit(_text(unit, "column"), unit.get("max_rows"), unit.get("max_groups"), unit.get("max_rows_total"))


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
        if kind == "category":
            return Category(declared.pop("values", ()), **declared)
        types = {"integer": Integer, "real": Real, "date": Date, "boolean": Boolean, "text": Text}
        made: ColumnType = types[kind](**declared)
        return made
    except TypeError:
        raise InvalidConfig(
            f"{where}: a {kind} that is not fully declared.", allowed=", ".join(sorted(allowed))
        ) from None
    except SfumatoError as error:
        raise InvalidConfig(f"{where}: {error.problem}", allowed=error.allowed, remedy=error.remedy) from None


def _budget(form: Mapping[str, Any]) -> Budget:
    _known(form, "budget", {"epsilon", "delta"})
    if "epsilon" not in form:
        raise InvalidConfig("budget has no epsilon.", remedy='epsilon = "1"')
    return Budget(form["epsilon"], form.get("delta", 0))


def _relation(name: object) -> Relation:
    try:
        return Relation(name)
    except ValueError:
        allowed = ", ".join(each.value for each in Relation)
        raise InvalidConfig(f"relation = {name!r}.", allowed=allowed) from None


def _mapping(form: Mapping[str, Any], key: str) -> dict[str, Any]:
    if key not in form:
        raise InvalidConfig(f"The file has no [{key}].", remedy="See docs/query.md for a whole example.")
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


def _known(form: Mapping[str, Any], where: str, allowed: set[str]) -> None:
    unknown = sorted(set(form) - allowed)
    if unknown:
        raise InvalidConfig(f"{where} has unknown keys: {', '.join(unknown)}.", allowed=", ".join(sorted(allowed)))
