# SPDX-License-Identifier: Apache-2.0
"""The declaration of one column as keys and values of a TOML file; all codebook formats use it."""

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from sfumato.metadata.date_format import FORMATS

Entry: TypeAlias = dict[str, object]


def entry(
    kind: str = "",
    *,
    bounds: tuple[object, object] = (None, None),
    values: Mapping[str, str] | None = None,
    missing: Iterable[object] = (),
    format: object = None,
) -> Entry:
    """Returns the declaration of a column, without keys that the codebook does not state.

    A column with values is a category, unless it is declared as a Boolean. Values that are labelled
    as missing become markers of missing values.

    >>> entry("integer", bounds=("0", 120), missing=["-9"])
    {'type': 'integer', 'lower': 0, 'upper': 120, 'missing': ['-9']}
    >>> entry("integer", values={"1": "Male", "2": "Female"})
    {'type': 'category', 'values': {'1': 'Male', '2': 'Female'}}
    """
    markers = list(dict.fromkeys(str(marker) for marker in missing if str(marker)))
    labelled_values = {}
    for value, label in (values or {}).items():
        if value not in markers:
            labelled_values[value] = label
    declaration: Entry = {}
    if labelled_values and kind != "boolean":
        declaration = {"type": "category", "values": _listed(labelled_values)}
    elif kind:
        declaration["type"] = kind
    if declaration.get("type") in ("integer", "real", "date", "timestamp"):
        for name, bound in zip(("lower", "upper"), bounds, strict=True):
            if bound is not None and bound != "":
                declaration[name] = number(bound)
    if kind == "date" and format in FORMATS:
        declaration["format"] = format
    if markers:
        declaration["missing"] = markers
    return declaration


def _listed(values: Mapping[str, str]) -> object:
    """Values with labels; only a list if every label equals its value, or two labels are the same."""
    labels = list(values.values())
    if labels == list(values) or len(set(labels)) < len(labels) or "" in labels:
        return list(values)
    return dict(values)


def number(text: object) -> object:
    """Returns the number that a string represents, else the string itself.

    >>> number("17"), number("0.5"), number("2024-01-01"), number(3)
    (17, '0.5', '2024-01-01', 3)
    """
    if isinstance(text, str):
        text = text.strip()
        if text.lstrip("+-").isdecimal():
            return int(text)
    return text
