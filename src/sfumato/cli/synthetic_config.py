# SPDX-License-Identifier: Apache-2.0
"""The declaration of synthetic rows in a ``sfumato.toml``: ``[synthetic.<name>]``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sfumato.errors import InvalidConfig
from sfumato.query.load import read_section
from sfumato.synthetic.constraints import Constraint, determines, implies, require
from sfumato.synthetic.fit import Options
from sfumato.synthetic.schema import Bins, Quantiles

_COSTS = ("epsilon", "rho", "delta")
_OPTIONS = ("columns", "bins", "rounds", "check", "order", "texts", "triples")
_KEYS = {"table", "tables", "workload", "require", "implies", "determines", *_COSTS, *_OPTIONS}


@dataclass(frozen=True, slots=True)
class SyntheticConfig:
    """The tables of a fit, and the keyword arguments of ``synthetic.fit``."""

    tables: str | list[str]
    arguments: Mapping[str, Any]


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
        "constraints": _constraints(name, form),
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


def _declared(path: str) -> dict[str, dict[str, Any]]:
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
