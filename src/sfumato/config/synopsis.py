# SPDX-License-Identifier: Apache-2.0
"""The declaration of a synopsis in a ``sfumato.toml``: ``[synopses.<name>]``."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.config.load import read_section
from sfumato.errors import InvalidConfig, SfumatoError, WrongUse, shown
from sfumato.exact.rational import to_fraction
from sfumato.metadata.dataset import Dataset
from sfumato.synopsis.column import Plan
from sfumato.synopsis.least_cost import Worst
from sfumato.synopsis.measure import plan
from sfumato.synopsis.tables import TablesPlan
from sfumato.synopsis.wanted import Wanted, cells, marginals, prefixes, queries, ranges

_COSTS = ("epsilon", "rho", "delta", "error", "worst", "max_epsilon", "max_rho")
_KEYS = {"table", "wanted", "strategy", *_COSTS}
_KINDS: Mapping[str, Callable[[str], Wanted]] = {
    "ranges": ranges,
    "prefixes": prefixes,
    "cells": cells,
}
_WANTED = {*_KINDS, "marginals", "up_to", "queries", "weight"}


@dataclass(frozen=True, slots=True)
class SynopsisConfig:
    """One declared synopsis: its keys as they are in the file."""

    name: str
    form: Mapping[str, Any]

    @property
    def strategy(self) -> str | None:
        """The strategy that is measured; None: the best."""
        return self.form.get("strategy")

    @property
    def wanted(self) -> Wanted:
        """The workload: the sum of its entries.

        Raises:
            InvalidConfig: an entry has an unknown key, or means nothing.
        """
        entries = self.form["wanted"]
        where = f"synopses.{self.name}.wanted"
        if not isinstance(entries, list) or not entries:
            fault = "is empty" if entries == [] else "is not a list"
            raise InvalidConfig(f"{where} {fault}.", allowed='[{ranges = "age"}]')
        whole = Wanted(())
        for entry in entries:
            whole += _read(entry, where)
        return whole

    def planned(self, dataset: Dataset, cost: Mapping[str, str | None]) -> Plan | TablesPlan:
        """The plan of the synopsis; a cost or an error that is given replaces that of the file.

        Raises:
            Others as ``synopsis.plan``.
        """
        prices: dict[str, Any] = {key: value for key, value in cost.items() if value is not None}
        if not prices:
            prices = {key: self.form[key] for key in _COSTS if key in self.form}
        if "worst" in prices:
            prices["error"] = Worst(prices.pop("worst"))
        return plan(dataset, self.form["table"], self.wanted, **prices)


def read_synopsis(path: str | Path, name: str | None) -> SynopsisConfig:
    """A synopsis that a file declares; the only one if no name is given.

    Raises:
        InvalidConfig: there is none of this name, or a key is missing or unknown.
    """
    declared = read_section(path, "synopses")
    if name is None and len(declared) == 1:
        (name,) = declared
    if name is None:
        raise InvalidConfig(
            f"{len(declared)} synopses in {shown(path)}, and none is named.",
            allowed=", ".join(declared),
        )
    if name not in declared:
        raise InvalidConfig(
            f"No synopsis {shown(name)} in {shown(path)}.", allowed=", ".join(declared)
        )
    form = declared[name]
    unknown = sorted(set(form) - _KEYS)
    missing = [key for key in ("table", "wanted") if key not in form]
    if unknown or missing:
        raise InvalidConfig(
            f"synopses.{name}: unknown {', '.join(unknown) or 'none'}; "
            f"missing {', '.join(missing) or 'none'}.",
            allowed=", ".join(sorted(_KEYS)),
        )
    return SynopsisConfig(name, form)


def _read(entry: Any, where: str) -> Wanted:
    """An entry of the workload: a product of queries of columns, or statements, with a weight."""
    if not isinstance(entry, dict) or set(entry) - _WANTED or not set(entry) - {"weight", "up_to"}:
        raise InvalidConfig(
            f"{where}: {shown(entry)}.", allowed=f"tables of TOML with {', '.join(sorted(_WANTED))}"
        )
    factors = []
    try:
        for kind, of_column in _KINDS.items():
            factors += [of_column(column) for column in _names(entry, kind)]
        if "marginals" in entry:
            factors.append(marginals(_names(entry, "marginals"), up_to=entry.get("up_to", 2)))
        if "queries" in entry:
            factors.append(queries(_names(entry, "queries")))
        if not factors:
            raise WrongUse("An entry without queries.", allowed='{ranges = "age"}')
        whole: Wanted = factors[0]
        for factor in factors[1:]:
            whole *= factor
        return whole * to_fraction("weight", entry.get("weight", 1))
    except SfumatoError as error:
        raise InvalidConfig(
            f"{where}: {error.problem}", allowed=error.allowed, remedy=error.remedy
        ) from None


def _names(entry: Mapping[str, Any], key: str) -> list[str]:
    """A string, or a list of strings; empty if the key is not there."""
    named = entry.get(key, [])
    listed = [named] if isinstance(named, str) else named
    if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
        raise WrongUse(f"{key} = {shown(named)}.", allowed="a string, or a list of them")
    return listed
