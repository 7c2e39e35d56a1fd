# SPDX-License-Identifier: Apache-2.0
"""Reads the section ``[synopses.<name>]`` of a ``sfumato.toml``, for ``sfumato synopsis``."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.config.cost import COST, cost_of
from sfumato.config.named_section import choose_section
from sfumato.config.section import Key, as_is, number, placed, read
from sfumato.errors import InvalidConfig, WrongUse, shown
from sfumato.exact.rational import to_fraction
from sfumato.metadata.dataset import Dataset
from sfumato.synopsis.column import Plan
from sfumato.synopsis.least_cost import Worst
from sfumato.synopsis.measure import plan
from sfumato.synopsis.tables import TablesPlan
from sfumato.synopsis.wanted import Wanted, cells, marginals, prefixes, queries, ranges

_LIMITED = (
    *COST,
    Key("error", as_is, '"50"', "a wanted mean error, in place of a cost", None),
    Key("worst", as_is, '"50"', "a wanted largest error, in place of a cost", None),
    Key("max_epsilon", number, '"1"', "the most that an error may cost", None),
    Key("max_rho", number, '"0.1"', "the most that an error may cost, with Gaussian noise", None),
)
SYNOPSIS = (
    Key("table", as_is, '"people"', "the table that is measured"),
    Key("wanted", as_is, '[{ranges = "age"}]', "the questions that count, added up"),
    Key("strategy", as_is, '"trees of 4"', "what is measured; by default the best", None),
    *_LIMITED,
)
_KINDS: Mapping[str, Callable[[str], Wanted]] = {
    "ranges": ranges,
    "prefixes": prefixes,
    "cells": cells,
}
_WANTED = {*_KINDS, "marginals", "up_to", "queries", "weight"}


@dataclass(frozen=True, slots=True)
class SynopsisConfig:
    """The declaration of a synopsis: its name and the values of its keys."""

    name: str
    form: Mapping[str, Any]

    @property
    def strategy(self) -> str | None:
        """The strategy that is measured; None chooses the best one."""
        strategy: str | None = self.form["strategy"]
        return strategy

    @property
    def wanted(self) -> Wanted:
        """The workload: the sum of its entries.

        Raises:
            InvalidConfig: an entry has an unknown key or an invalid value.
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
        """Plans the synopsis; a cost or an error in ``cost`` replaces that of the file.

        Raises:
            Others as ``synopsis.plan``.
        """
        prices = cost_of(self.form, cost, _LIMITED)
        if "worst" in prices:
            prices["error"] = Worst(prices.pop("worst"))
        return plan(dataset, self.form["table"], self.wanted, **prices)


def read_synopsis(path: str | Path, name: str | None) -> SynopsisConfig:
    """Returns the synopsis declared under a name in a file; without a name, the only one there.

    Raises:
        InvalidConfig: there is no such synopsis, or a key is missing or unknown.
    """
    name, form = choose_section(path, "synopses", name)
    return SynopsisConfig(name, read(form, f"synopses.{name}", SYNOPSIS))


def _read(entry: Any, where: str) -> Wanted:
    """An entry of the workload: a product of column queries, or statements, with a weight."""
    if not isinstance(entry, dict) or set(entry) - _WANTED or not set(entry) - {"weight", "up_to"}:
        raise InvalidConfig(
            f"{where}: {shown(entry)}.", allowed=f"tables of TOML with {', '.join(sorted(_WANTED))}"
        )
    factors = []
    with placed(where):
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


def _names(entry: Mapping[str, Any], key: str) -> list[str]:
    """A string, or a list of strings; empty if the key is not there."""
    named = entry.get(key, [])
    listed = [named] if isinstance(named, str) else named
    if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
        raise WrongUse(f"{key} = {shown(named)}.", allowed="a string, or a list of them")
    return listed
