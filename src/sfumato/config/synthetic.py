# SPDX-License-Identifier: Apache-2.0
"""The declaration of synthetic rows in a ``sfumato.toml``: ``[synthetic.<name>]``."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sfumato.config.load import read_section
from sfumato.errors import InvalidConfig, WrongUse, shown
from sfumato.metadata.side_file import side_text
from sfumato.synthetic.constraints import Constraint, determines, implies, require
from sfumato.synthetic.fit import Options
from sfumato.synthetic.public import Public, public
from sfumato.synthetic.schema import Bins, Quantiles

_COSTS = ("epsilon", "rho", "delta")
_OPTIONS = ("columns", "bins", "rounds", "check", "order", "texts", "triples")
_RULES = ("require", "implies", "determines", "public")
_KEYS = {"table", "tables", "workload", *_RULES, *_COSTS, *_OPTIONS}


@dataclass(frozen=True, slots=True)
class SyntheticConfig:
    """The tables of a fit, and the keyword arguments of ``synthetic.fit``."""

    tables: str | list[str]
    arguments: Mapping[str, Any]

    def with_public(self, paths: Sequence[str]) -> "SyntheticConfig":
        """The same with the public marginals of CSV files."""
        if not paths:
            return self
        stated = [*self.arguments.get("constraints", ()), *map(public_counts, paths)]
        return replace(self, arguments={**self.arguments, "constraints": stated})


def read_synthetic(
    path: str,
    names: Sequence[str],
    cost: Mapping[str, str | None],
) -> SyntheticConfig:
    """The fit that names mean: one is ``[synthetic.<name>]`` of a file, or else a table.

    A cost that is given replaces that of the file.

    Raises:
        InvalidConfig: a key is unknown, or its value has another form.
    """
    prices = {key: value for key, value in cost.items() if value is not None}
    name, *others = names
    form = None if others else _declared(path).get(name)
    if form is None:
        return SyntheticConfig(list(names) if others else name, prices)
    tables: Any = form.get("tables", form.get("table"))
    is_named = isinstance(tables, str if "table" in form else list)
    unknown = sorted(form.keys() - _KEYS)
    if unknown or not is_named or {"table", "tables"} <= form.keys():
        raise InvalidConfig(
            f"synthetic.{name}: unknown {', '.join(unknown) or 'none'}; its table must be named.",
            allowed=", ".join(sorted(_KEYS)),
        )
    if not prices:
        prices = {key: form[key] for key in _COSTS if key in form}
    given = {key: form[key] for key in _OPTIONS if key in form}
    if "bins" in given:
        given["bins"] = _bins(name, given["bins"])
    arguments = {
        **prices,
        "constraints": [*_constraints(name, form), *_publics(path, name, form)],
        "workload": form.get("workload", {}),
        "options": Options(**given),
    }
    return SyntheticConfig(tables, arguments)


def _bins(name: str, form: object) -> dict[str, Bins]:
    """The bins of columns; ``{quantiles = 32}`` are at quantiles."""
    if not isinstance(form, Mapping):
        raise InvalidConfig(f"The bins of synthetic.{name}.", allowed="bins = {pay = 10}")
    found = dict(form)
    for column, bins in form.items():
        if isinstance(bins, Mapping):
            found[column] = _quantiles(name, bins)
    return found


def _quantiles(name: str, form: Mapping[str, Any]) -> Quantiles:
    """Bins at quantiles."""
    if set(form) != {"quantiles"}:
        raise InvalidConfig(
            f"The bins of synthetic.{name}.", allowed="bins = {pay = {quantiles = 32}}"
        )
    return Quantiles(form["quantiles"])


def _declared(path: str) -> dict[str, Mapping[str, Any]]:
    """All fits that a file declares; none if it has no such section."""
    try:
        return read_section(path, "synthetic")
    except InvalidConfig:
        return {}


def _constraints(name: str, form: Mapping[str, Any]) -> list[Constraint]:
    """The constraints of a fit: tests, pairs of tests, and dependences with their values."""
    try:
        found = [require(test) for test in form.get("require", [])]
        found += [implies(test, consequence) for test, consequence in form.get("implies", [])]
        for each in form.get("determines", []):
            found.append(determines(each["column"], each["other"], each["values"]))
    except (TypeError, ValueError, KeyError):
        raise InvalidConfig(
            f"The constraints of synthetic.{name}.",
            allowed='require = ["a <= b"], implies = [["age < 15", "income IS NULL"]], '
            'determines = [{column = "a", other = "b", values = {x = 1}}]',
        ) from None
    return found


def _publics(path: str, name: str, form: Mapping[str, Any]) -> Iterator[Public]:
    """The public marginals of a fit; a file is found from the folder of ``path``."""
    listed = form.get("public", [])
    for each in listed if isinstance(listed, list) else [listed]:
        if isinstance(each, str):
            yield public_counts(str(Path(path).parent / each))
            continue
        if not isinstance(each, Mapping) or set(each) != {"columns", "counts"}:
            raise InvalidConfig(
                f"The public marginals of synthetic.{name}.",
                allowed='public = [{columns = "sex", counts = {F = 52, M = 48}}, "census.csv"]',
            )
        yield public(each["columns"], _listed(each["counts"]))


def _listed(counts: object) -> Any:
    """Counts by value: a table, or rows of one or two values and a count."""
    if not isinstance(counts, list):
        return counts
    rows = []
    for row in counts:
        if not isinstance(row, list):
            raise WrongUse(f"The counts {shown(row)}.", allowed='[["F", "eye", 3], ...]')
        rows.append(list(map(_or_missing, row)))
    return _by_value(rows)


def _or_missing(value: Any) -> Any:
    """A value; in a file ``{}``, and in CSV an empty text, is a missing one."""
    return None if value in ({}, "") else value


def _by_value(rows: Sequence[Sequence[Any]]) -> dict[Any, Any]:
    """The last entry of each row by the others."""
    found: dict[Any, Any] = {}
    for row in rows:
        if not 2 <= len(row) <= 3:
            raise WrongUse(f"The counts {shown(row)}.", allowed="one or two values and a count")
        *values, count = row
        key = values[0] if len(values) == 1 else tuple(values)
        if key in found:
            raise WrongUse(f"The public value {shown(key)} twice.", allowed="each value once")
        found[key] = count
    return found


def public_counts(path: str) -> Public:
    """A public marginal of a CSV file: a line of names, then values, and the count last.

    A value that is empty is missing.

    Raises:
        WrongUse: the file cannot be read, or has other than two or three columns.
    """
    try:
        text = side_text(path)
        names, *lines = [row for row in csv.reader(text.splitlines()) if row]
    except (OSError, ValueError, csv.Error) as failed:
        raise WrongUse(
            f"The public counts {shown(path)}: {failed}.",
            allowed="a CSV file: a line of names, then one or two values and a count in each",
        ) from None
    rows = [list(map(_or_missing, line)) for line in lines]
    if any(len(row) != len(names) for row in rows):
        raise WrongUse(f"Lines of {shown(path)} that are longer or shorter than the first.")
    return public(names[:-1], _by_value(rows))
