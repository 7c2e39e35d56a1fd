# SPDX-License-Identifier: Apache-2.0
"""Reads the tables of a section by name: ``[census.NAME]``, ``[models.NAME]`` and others.

The modules of these sections use it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sfumato.config.near_names import near
from sfumato.config.toml_file import read_toml
from sfumato.errors import InvalidConfig, shown

NO_FILE = "Write a sfumato.toml, or name another with -c."
EXAMPLES = "docs/query.md has a whole example, docs/cli.md one of each section."


def read_section(path: str | Path, section: str) -> dict[str, Mapping[str, Any]]:
    """Returns all tables of a TOML section by name, for example all ``[census.NAME]``.

    Raises:
        InvalidConfig: there is no such file or section, or it is not TOML.
    """
    form = read_toml(path, NO_FILE)
    if section not in form:
        raise InvalidConfig(f"The file has no [{section}].", remedy=EXAMPLES)
    named = require_table(form[section], section)
    return {name: require_table(form, f"{section}.{name}") for name, form in named.items()}


def choose_section(
    path: str | Path, section: str, name: str | None
) -> tuple[str, Mapping[str, Any]]:
    """Returns a name and its table of a TOML section; without a name, those of the only table.

    Raises:
        InvalidConfig: there is no such table; or there are several and ``name`` is None.
    """
    declared = read_section(path, section)
    if name is None and len(declared) == 1:
        (name,) = declared
    if name is None:
        raise InvalidConfig(
            f"{len(declared)} tables [{section}.NAME] in {shown(path)}, and none is named.",
            allowed=", ".join(declared),
        )
    if name not in declared:
        raise InvalidConfig(
            f"No [{section}.{name}] in {shown(path)}.",
            allowed=", ".join(declared) or f"[{section}.NAME]",
            remedy=near(name, declared),
        )
    return name, declared[name]


def require_table(form: object, place: str) -> Mapping[str, Any]:
    """Returns a TOML value, after checking that it is a table; ``place`` is its position for
    errors.
    """
    if not isinstance(form, Mapping):
        raise InvalidConfig(f"{place} is not a table of TOML.")
    return form
