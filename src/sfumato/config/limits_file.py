# SPDX-License-Identifier: Apache-2.0
"""Reads the limits of many accounts from a CSV or TOML file."""

import csv
import tomllib
from collections.abc import Iterable, Mapping
from typing import Any

from sfumato.errors import WrongUse, shown
from sfumato.ledger.account_path import Scope
from sfumato.metadata.side_file import side_text
from sfumato.privacy.budget import Budget

_FIELDS = {"purpose", "analyst", "epsilon", "delta"}
_ALLOWED = (
    "CSV with a header of purpose, analyst, epsilon, delta, or TOML with [[account]] of these; "
    "without epsilon the account above bounds it"
)


def read_limits(path: str, dataset: str) -> dict[Scope, Budget | None]:
    """Returns the limit of each account in a file; None for an account without its own.

    ``dataset`` is the dataset that the accounts belong to.

    Raises:
        WrongUse: the file cannot be read, has other fields, or names an account twice.
    """
    limits: dict[Scope, Budget | None] = {}
    for number, row in enumerate(_rows(path), start=1):
        where = f"Account {number} of {shown(path)}"
        if not _is_account(row):
            raise WrongUse(f"{where} has other fields, or no purpose.", allowed=_ALLOWED)
        scope = Scope(dataset, row["purpose"], row.get("analyst") or "")
        if scope in limits:
            raise WrongUse(
                f"{where} is {scope.id!r}, which was named before.",
                remedy="Name each account once.",
            )
        epsilon = row.get("epsilon")
        limits[scope] = None
        if epsilon not in (None, ""):
            limits[scope] = Budget(epsilon, row.get("delta") or "0")
    return limits


def _is_account(row: object) -> bool:
    """Whether a row has a purpose and no unknown field."""
    # a CSV row with too many cells has the key None
    if not isinstance(row, Mapping) or None in row:
        return False
    return row.keys() <= _FIELDS and bool(row.get("purpose"))


def _rows(path: str) -> Iterable[Any]:
    """Returns the rows of a file, unchecked."""
    try:
        text = side_text(path)
        if path.endswith(".toml"):
            form = tomllib.loads(text)
            if form.keys() == {"account"} and isinstance(form["account"], list):
                return form["account"]
        elif path.endswith(".csv"):
            return list(csv.DictReader(text.splitlines(), strict=True))
    except OSError as error:
        raise WrongUse(f"{shown(path)} cannot be read ({error.strerror}).") from None
    except (ValueError, csv.Error):
        raise WrongUse(f"{shown(path)} cannot be read.", allowed=_ALLOWED) from None
    raise WrongUse(f"{shown(path)} is no file of limits.", allowed=_ALLOWED)
