# SPDX-License-Identifier: Apache-2.0
"""Reads the limits of many accounts from a CSV or TOML file, for ``sfumato budget --limits``."""

import csv
from collections.abc import Mapping, Sequence
from typing import Any

from sfumato.config.section import Key, number, placed, read, text
from sfumato.config.toml_file import read_toml
from sfumato.errors import InvalidConfig, shown
from sfumato.ledger.account_path import Scope
from sfumato.metadata.side_file import required_text
from sfumato.privacy.budget import Budget

ACCOUNT = (
    Key("purpose", text, '"research"', "the purpose; the limit is its own without an analyst"),
    Key("analyst", text, '"ann"', "the analyst below this purpose", ""),
    Key("epsilon", number, '"0.2"', "its limit; without one the account above bounds it", None),
    Key("delta", number, '"1e-6"', "its limit of delta", "0"),
)
_ALLOWED = (
    f"CSV with a header of {', '.join(key.name for key in ACCOUNT)}, or TOML with [[account]]"
)


def read_limits(path: str, dataset: str) -> dict[Scope, Budget | None]:
    """Returns the budget limit of each account in a file; None for one without a limit of its own.

    ``dataset`` is the dataset that the accounts belong to.

    Raises:
        InvalidConfig: the file cannot be read, a field is unknown, missing or has a wrong value, or
            an account is listed twice.
    """
    limits: dict[Scope, Budget | None] = {}
    for count, form in enumerate(_forms(path), start=1):
        place = f"account {count} of {shown(path)}"
        stated = _without_empty(form)
        account = read(stated, place, ACCOUNT)
        if account["epsilon"] is None and "delta" in stated:
            raise InvalidConfig(
                f"{place} has a delta and no epsilon.",
                remedy="State both; without either it has no limit of its own.",
            )
        scope = Scope(dataset, account["purpose"], account["analyst"])
        if scope in limits:
            raise InvalidConfig(
                f"{place} is {scope.id!r}, which was named before.",
                remedy="Name each account once.",
            )
        limits[scope] = None
        if account["epsilon"] is not None:
            with placed(place):
                limits[scope] = Budget(account["epsilon"], account["delta"])
    return limits


def _forms(path: str) -> Sequence[Any]:
    """Returns the accounts of a file as mappings, unchecked."""
    if path.endswith(".toml"):
        form = read_toml(path)
        if form.keys() == {"account"} and isinstance(form["account"], list):
            return form["account"]
    elif path.endswith(".csv"):
        return _lines(path)
    raise InvalidConfig(f"{shown(path)} is no file of limits.", allowed=_ALLOWED)


def _without_empty(form: Any) -> Any:
    """Returns an account without its empty strings, which are the empty cells of CSV."""
    if not isinstance(form, Mapping):
        return form
    return {name: value for name, value in form.items() if value not in ("", None)}


def _lines(path: str) -> list[dict[str, Any]]:
    """Returns each line of a CSV file as a mapping from the names in its header."""
    lines = required_text(path, _ALLOWED).splitlines()
    try:
        return list(csv.DictReader(lines, restkey="(beyond the header)", strict=True))
    except csv.Error:
        raise InvalidConfig(f"{shown(path)} cannot be read.", allowed=_ALLOWED) from None
