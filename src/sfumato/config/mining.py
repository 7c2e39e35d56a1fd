# SPDX-License-Identifier: Apache-2.0
"""Reads the section ``[mining.<name>]`` of a ``sfumato.toml``, for ``sfumato mine``."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from sfumato.config.cost import COST, cost_of
from sfumato.config.named_section import choose_section
from sfumato.config.near_names import near
from sfumato.config.section import Key, as_is, placed, read, settings_missing, stated, text
from sfumato.errors import InvalidConfig, shown
from sfumato.mining.mine import RECIPES
from sfumato.mining.recipe import Recipe

MINING = (
    Key("recipe", text, '"Terms"', "Terms, Itemsets, Paths or Means"),
    Key("data", text, '"SELECT note, ward FROM notes"', "the SELECT of its rows"),
    *COST,
)


@dataclass(frozen=True, slots=True)
class MiningConfig:
    """The declaration of a question: its recipe with settings, and the values of its keys."""

    name: str
    recipe: Recipe
    form: Mapping[str, Any]

    @property
    def data(self) -> str:
        """The SELECT statement that reads its rows."""
        return str(self.form["data"])

    def cost(self, given: Mapping[str, str | None]) -> dict[str, Any]:
        """The cost; one in ``given`` replaces that of the file."""
        return cost_of(self.form, given)


def read_mining(path: str | Path, name: str | None) -> MiningConfig:
    """Returns the mining question declared under a name; without a name, the only one in the file.

    Raises:
        InvalidConfig: there is no such question; a key is missing or unknown, or its value has the
            wrong form.
    """
    name, form = choose_section(path, "mining", name)
    where = f"mining.{name}"
    named = form.get("recipe")
    if not isinstance(named, str) or named not in RECIPES:
        raise InvalidConfig(
            f"{where}: recipe = {shown(named)}.",
            allowed=", ".join(RECIPES),
            remedy=near(named, RECIPES) or 'recipe = "Terms"',
        )
    kind = RECIPES[named]
    settings = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    keys = tuple(Key(each, as_is, "...", "a setting of its recipe", None) for each in settings)
    values = stated(read(form, where, (*MINING, *keys)))
    given = {each: values[each] for each in settings if each in values}
    try:
        with placed(where):
            return MiningConfig(name, kind(**given), values)
    except TypeError:
        raise settings_missing(where, kind, given) from None
