# SPDX-License-Identifier: Apache-2.0
"""Reads the section ``[synthetic.<name>]`` of a ``sfumato.toml``, for ``sfumato synthesize``."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sfumato.config.cost import COST, cost_of
from sfumato.config.named_section import read_section
from sfumato.config.section import Key, as_is, read, stated, text, texts
from sfumato.errors import InvalidConfig, WrongUse, shown
from sfumato.metadata.side_file import side_text
from sfumato.synthetic.constraints import Constraint, determines, implies, require
from sfumato.synthetic.fit import Options
from sfumato.synthetic.public import Public, public
from sfumato.synthetic.schema import Bins, Quantiles

_OPTIONS = (
    Key("columns", as_is, '["age", "job"]', "the columns; by default all", None),
    Key("bins", as_is, "{pay = 10}", "the bins of numbers, by column", None),
    Key("rounds", as_is, "24", "how many marginals are chosen", None),
    Key("check", as_is, "0.05", "the share of the cost that checks the model", None),
    Key("order", as_is, '{visits = "day"}', "the column that orders the rows of one person", None),
    Key("texts", as_is, '{city = "(other)"}', "texts whose frequent values are released", None),
    Key("triples", as_is, "true", "whether three columns are counted together", None),
)
SYNTHETIC = (
    Key("table", text, '"people"', "the table", None),
    Key("tables", texts, '["patients", "visits"]', "several tables, in place of table", None),
    *COST,
    *_OPTIONS,
    Key("workload", as_is, "{pay = 10}", "what the columns are asked for", {}),
    Key("require", as_is, '["a <= b"]', "tests that every row passes", []),
    Key("implies", as_is, '[["age < 15", "job = \'none\'"]]', "tests that imply others", []),
    Key("determines", as_is, "[]", "columns whose value determines another", []),
    Key("public", as_is, '["census.csv"]', "counts that everybody knows", []),
)


@dataclass(frozen=True, slots=True)
class SyntheticConfig:
    """The declaration of synthetic data: its tables, and the arguments of ``synthetic.fit``."""

    tables: str | list[str]
    arguments: Mapping[str, Any]

    def with_public(self, paths: Sequence[str]) -> "SyntheticConfig":
        """Returns the declaration with public marginals added, read from CSV files."""
        if not paths:
            return self
        constraints = [*self.arguments.get("constraints", ()), *map(public_counts, paths)]
        return replace(self, arguments={**self.arguments, "constraints": constraints})


def read_synthetic(
    path: str,
    names: Sequence[str],
    cost: Mapping[str, str | None],
) -> SyntheticConfig:
    """Returns the synthetic-data fit that a file declares: ``[synthetic.<name>]``, or of these
    tables.

    A cost in ``cost`` replaces that of the file.

    Raises:
        InvalidConfig: a key is unknown, or its value has the wrong form.
    """
    name, *others = names
    declared = None if others else _declared(path).get(name)
    if declared is None:
        return SyntheticConfig(list(names) if others else name, cost_of({}, cost))
    form = read(declared, f"synthetic.{name}", SYNTHETIC)
    tables = form["table"] or form["tables"]
    if not tables or (form["table"] and form["tables"]):
        raise InvalidConfig(
            f"synthetic.{name}: its table must be named.", allowed="table, or tables"
        )
    options = stated({key.name: form[key.name] for key in _OPTIONS})
    if "bins" in options:
        options["bins"] = _bins(name, options["bins"])
    arguments = {
        **cost_of(form, cost),
        "constraints": [*_constraints(name, form), *_publics(path, name, form)],
        "workload": form["workload"],
        "options": Options(**options),
    }
    return SyntheticConfig(tables, arguments)


def _bins(name: str, form: object) -> dict[str, Bins]:
    """The bins of columns; ``{quantiles = 32}`` means bins at quantiles."""
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
    """The tables of all fits that a file declares; empty if it has no such section."""
    try:
        return read_section(path, "synthetic")
    except InvalidConfig:
        return {}


def _constraints(name: str, form: Mapping[str, Any]) -> list[Constraint]:
    """The constraints of a fit: tests, pairs of tests, and dependences with their values."""
    try:
        constraints = [require(test) for test in form["require"]]
        constraints += [implies(test, consequence) for test, consequence in form["implies"]]
        for each in form["determines"]:
            constraints.append(determines(each["column"], each["other"], each["values"]))
    except (TypeError, ValueError, KeyError, AttributeError):
        raise InvalidConfig(
            f"The constraints of synthetic.{name}.",
            allowed='require = ["a <= b"], implies = [["age < 15", "income IS NULL"]], '
            'determines = [{column = "a", other = "b", values = {x = 1}}]',
        ) from None
    return constraints


def _publics(path: str, name: str, form: Mapping[str, Any]) -> Iterator[Public]:
    """Yields the public marginals of a fit; their files are relative to the folder of ``path``."""
    listed = form["public"]
    for entry in listed if isinstance(listed, list) else [listed]:
        if isinstance(entry, str):
            yield public_counts(str(Path(path).parent / entry))
            continue
        wrong = InvalidConfig(
            f"The public marginals of synthetic.{name}.",
            allowed='public = [{columns = "sex", counts = {F = 52, M = 48}}, "census.csv"]',
        )
        if not isinstance(entry, Mapping) or set(entry) != {"columns", "counts"}:
            raise wrong
        try:
            yield public(entry["columns"], _counts_by_value(entry["counts"]))
        except (TypeError, AttributeError):
            raise wrong from None


def _counts_by_value(counts: object) -> Any:
    """Counts by value, from a TOML table, or from rows of one or two values and a count."""
    if not isinstance(counts, list):
        return counts
    rows = []
    for row in counts:
        if not isinstance(row, list):
            raise WrongUse(f"The counts {shown(row)}.", allowed='[["F", "eye", 3], ...]')
        rows.append(list(map(_or_missing, row)))
    return _by_value(rows)


def _or_missing(value: Any) -> Any:
    """A value; ``{}`` in TOML and an empty string in CSV mean a missing value."""
    return None if value in ({}, "") else value


def _by_value(rows: Sequence[Sequence[Any]]) -> dict[Any, Any]:
    """A mapping from the other entries of each row to its last entry."""
    counts: dict[Any, Any] = {}
    for row in rows:
        if not 2 <= len(row) <= 3:
            raise WrongUse(f"The counts {shown(row)}.", allowed="one or two values and a count")
        *values, count = row
        key = values[0] if len(values) == 1 else tuple(values)
        if key in counts:
            raise WrongUse(f"The public value {shown(key)} twice.", allowed="each value once")
        counts[key] = count
    return counts


def public_counts(path: str) -> Public:
    """Reads a public marginal from a CSV file: a header, then values with the count last.

    An empty value is a missing value.

    Raises:
        WrongUse: the file cannot be read, or has fewer than two or more than three columns.
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
