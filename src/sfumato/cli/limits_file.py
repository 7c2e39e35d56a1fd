# SPDX-License-Identifier: Apache-2.0
"""The limits of many accounts in one file: CSV or TOML."""

import csv
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from sfumato.errors import WrongUse, shown
from sfumato.ledger.account_path import Scope
from sfumato.privacy.budget import Budget

_FIELDS = {"purpose", "analyst", "epsilon", "delta"}
_ALLOWED = (
    "CSV with a header of purpose, analyst, epsilon, delta, or TOML with [[account]] of these; without epsilon "
    "the account above bounds it"
)


def read_limits(path: str, dataset: str) -> dict[Scope, Budget | None]:
    """The limit of each account that a file names, below a dataset.

    Raises:
        WrongUse: the file cannot be read, is none of limits, or names an account twice.
    """
    limits: dict[Scope, Budget | None] = {}
    for number, row in enumerate(_rows(path), start=1):
        where = f"Account {number} of {shown(path)}"
        # a row of CSV with too many cells has a field without a name
        if (
            not isinstance(row, Mapping)
            or None in row
            or not row.keys() <= _FIELDS
            or not row.get("purpose")
        ):
            raise WrongUse(f"{where} has other fields, or no purpose.", allowed=_ALLOWED)
        scope = Scope(dataset, row["purpose"], row.get("analyst") or "")
        if scope in limits:
            raise WrongUse(
                f"{where} is {scope.id!r}, which was named before.",
                remedy="Name each account once.",
            )
        epsilon = row.get("epsilon")
        limits[scope] = None if epsilon in (None, "") else Budget(epsilon, row.get("delta") or "0")
    return limits


def _rows(path: str) -> Iterable[Any]:
    try:
        text = Path(path).read_text(encoding="utf-8")
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
