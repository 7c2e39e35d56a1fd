# SPDX-License-Identifier: Apache-2.0
"""The declaration of a census in a ``sfumato.toml``: ``[census.<name>]``."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from sfumato.config.load import read_section
from sfumato.errors import InvalidConfig, SfumatoError, shown
from sfumato.metadata.dataset import Dataset
from sfumato.metadata.side_file import side_text
from sfumato.synopsis.geography.plan import CensusPlan, census_plan
from sfumato.synopsis.geography.spine import Spine

_KEYS = {
    "table",
    "spine",
    "levels",
    "column",
    "tables",
    "recodes",
    "weights",
    "zeros",
    "public_totals",
    "epsilon",
    "rho",
    "delta",
}
_COSTS = ("epsilon", "rho", "delta")


@dataclass(frozen=True, slots=True)
class CensusConfig:
    """One declared census: its keys as they are in the file."""

    name: str
    form: Mapping[str, Any]
    folder: Path

    def planned(self, dataset: Dataset, cost: Mapping[str, str | None]) -> CensusPlan:
        """The plan of the census; a cost that is given replaces that of the file.

        Raises:
            InvalidConfig: a key has a value that means nothing.
            Others as ``census_plan``.
        """
        prices = {key: value for key, value in cost.items() if value is not None}
        if not prices:
            prices = {key: self.form[key] for key in _COSTS if key in self.form}
        return census_plan(
            dataset,
            self.form["table"],
            self._spine(),
            tables=self.form["tables"],
            recodes=self._mapping("recodes"),
            weights=self._mapping("weights"),
            zeros=self.form.get("zeros", []),
            public_totals=self._totals(),
            **prices,
        )

    def _spine(self) -> Spine:
        """The geography, whose path is relative to the file."""
        where = f"census.{self.name}"
        column = self.form.get("column", ())
        try:
            return Spine(self.form["levels"], self.folder / str(self.form["spine"]), column=column)
        except SfumatoError as error:
            raise InvalidConfig(
                f"{where}: {error.problem}", allowed=error.allowed, remedy=error.remedy
            ) from None

    def _mapping(self, key: str) -> dict[str, Any]:
        """A key that is a table of TOML; empty if it is not there."""
        form = self.form.get(key, {})
        if not isinstance(form, dict):
            raise InvalidConfig(f"census.{self.name}.{key} is not a table of TOML.")
        return form

    def _totals(self) -> Any:
        """The public totals: a table of TOML, or a CSV file with level, area and total."""
        stated = self.form.get("public_totals", {})
        if isinstance(stated, str) and stated.endswith(".csv"):
            return read_totals(self.folder / stated)
        return stated


def read_census(path: str | Path, name: str | None) -> CensusConfig:
    """A census that a file declares; the only one if no name is given.

    Raises:
        InvalidConfig: there is none of this name, or a key is missing or unknown.
    """
    declared = read_section(path, "census")
    if name is None and len(declared) == 1:
        (name,) = declared
    if name is None:
        raise InvalidConfig(
            f"{len(declared)} censuses in {shown(path)}, and none is named.",
            allowed=", ".join(declared),
        )
    if name not in declared:
        raise InvalidConfig(
            f"No census {shown(name)} in {shown(path)}.", allowed=", ".join(declared)
        )
    form = declared[name]
    unknown = sorted(set(form) - _KEYS)
    missing = [key for key in ("table", "spine", "levels", "tables") if key not in form]
    if unknown or missing:
        raise InvalidConfig(
            f"census.{name}: unknown {', '.join(unknown) or 'none'}; "
            f"missing {', '.join(missing) or 'none'}.",
            allowed=", ".join(sorted(_KEYS)),
        )
    return CensusConfig(name, form, Path(path).parent)


def read_totals(path: Path) -> dict[str, dict[str, int]]:
    """Public totals from a CSV file with the columns level, area and total.

    Raises:
        InvalidConfig: it cannot be read, or a total is no number.
    """
    found: dict[str, dict[str, int]] = {}
    try:
        for line in csv.DictReader(StringIO(side_text(path), newline="")):
            found.setdefault(line["level"], {})[line["area"]] = int(line["total"])
    except (OSError, KeyError, TypeError, ValueError):
        raise InvalidConfig(
            f"The public totals {shown(path)} cannot be read.",
            allowed="a CSV file with the columns level, area and total",
        ) from None
    return found
