# SPDX-License-Identifier: Apache-2.0
"""The labels and missing codes in files of SPSS (.sav) and Stata (.dta); no row is read."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from sfumato.cli.codebook_entry import Entry, entry
from sfumato.errors import WrongUse

_READERS = {".sav": "read_sav", ".dta": "read_dta"}


def described_by_labels(path: Path) -> Iterator[tuple[str, Entry]]:
    """Yields the labels of each variable and its codes of missing values.

    Neither format declares bounds.

    Raises:
        WrongUse: pyreadstat is not installed.
    """
    try:
        pyreadstat = import_module("pyreadstat")
    except ImportError:
        raise WrongUse(
            "pyreadstat is not installed.", remedy="pip install 'sfumato[codebooks]'"
        ) from None
    path.open("rb").close()
    read = getattr(pyreadstat, _READERS[path.suffix.lower()])
    try:
        _, about = read(str(path), metadataonly=True, user_missing=True)
    except pyreadstat.ReadstatError:
        raise WrongUse(f"{path.name!r} is no file of SPSS or Stata.") from None
    labels = about.variable_value_labels
    for name in about.column_names:
        kind = "text" if about.readstat_variable_types.get(name) == "string" else ""
        yield name, _entry(kind, labels.get(name, {}), about, name)


def _entry(kind: str, labels: Mapping[object, str], about: Any, name: str) -> Entry:
    """The declaration of one variable; one with labels is a category unless it is a scale."""
    missing = [_code(value) for value in about.missing_user_values.get(name, ())]
    for span in about.missing_ranges.get(name, ()):
        # a wider range has no codes to list
        if span["lo"] == span["hi"]:
            missing.append(_code(span["lo"]))
    values = {_code(value): label for value, label in labels.items()}
    if about.variable_measure.get(name) == "scale":
        values = {}
    return entry(kind, values=values, missing=missing)


def _code(value: object) -> str:
    """A value as text data has it: whole numbers without a fraction."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
