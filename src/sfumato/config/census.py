# SPDX-License-Identifier: Apache-2.0
"""Reads the section ``[census.<name>]`` of a ``sfumato.toml``, for ``sfumato census``."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from sfumato.config.cost import COST, cost_of
from sfumato.config.named_section import choose_section
from sfumato.config.section import Key, as_is, placed, read, table, text
from sfumato.errors import InvalidConfig, shown
from sfumato.metadata.dataset import Dataset
from sfumato.metadata.side_file import side_text
from sfumato.synopsis.geography.plan import CensusPlan, census_plan
from sfumato.synopsis.geography.spine import Spine

CENSUS = (
    Key("table", as_is, '"people"', "the table that is counted"),
    Key("spine", text, '"spine.csv"', "the CSV file of the geography"),
    Key("levels", as_is, '"nation > state > county"', "its columns, from the top"),
    Key("tables", table, '{county = ["sex"]}', "the tables of each level"),
    Key("column", as_is, '"area"', "the column of the area; by default the lowest level", ()),
    Key("recodes", table, '{adult = "age >= 18"}', "columns that are computed, by name", {}),
    Key("weights", table, "{county = 2}", "what errors count by level, beside 1 of others", {}),
    Key("zeros", as_is, '[{age = ["0"], status = ["married"]}]', "cells that cannot be", []),
    Key("public_totals", as_is, '"totals.csv"', "totals that everybody knows, or their file", {}),
    *COST,
)


@dataclass(frozen=True, slots=True)
class CensusConfig:
    """The declaration of a census: its name and the values of its keys.

    ``folder`` is the folder of the file, to which its paths are relative.
    """

    name: str
    form: Mapping[str, Any]
    folder: Path

    def planned(self, dataset: Dataset, cost: Mapping[str, str | None]) -> CensusPlan:
        """Plans the census; a cost in ``cost`` replaces that of the file.

        Raises:
            InvalidConfig: a value is invalid.
            Others as ``census_plan``.
        """
        return census_plan(
            dataset,
            self.form["table"],
            self._spine(),
            tables=self.form["tables"],
            recodes=self.form["recodes"],
            weights=self.form["weights"],
            zeros=self.form["zeros"],
            public_totals=self._totals(),
            **cost_of(self.form, cost),
        )

    def _spine(self) -> Spine:
        """The geography, whose path is relative to the file."""
        path = self.folder / self.form["spine"]
        with placed(f"census.{self.name}"):
            return Spine(self.form["levels"], path, column=self.form["column"])

    def _totals(self) -> Any:
        """The public totals, from a TOML table or from a CSV file with level, area and total."""
        stated = self.form["public_totals"]
        if isinstance(stated, str) and stated.endswith(".csv"):
            return read_totals(self.folder / stated)
        return stated


def read_census(path: str | Path, name: str | None) -> CensusConfig:
    """Returns the census declared under a name in a file; without a name, the only one there.

    Raises:
        InvalidConfig: there is no such census, or a key is missing or unknown.
    """
    name, form = choose_section(path, "census", name)
    return CensusConfig(name, read(form, f"census.{name}", CENSUS), Path(path).parent)


def read_totals(path: Path) -> dict[str, dict[str, int]]:
    """Reads public totals from a CSV file with the columns level, area and total.

    Raises:
        InvalidConfig: it cannot be read, or a total is no number.
    """
    totals: dict[str, dict[str, int]] = {}
    try:
        for line in csv.DictReader(StringIO(side_text(path), newline="")):
            totals.setdefault(line["level"], {})[line["area"]] = int(line["total"])
    except (OSError, KeyError, TypeError, ValueError):
        raise InvalidConfig(
            f"The public totals {shown(path)} cannot be read.",
            allowed="a CSV file with the columns level, area and total",
        ) from None
    return totals
