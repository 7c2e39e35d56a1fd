# SPDX-License-Identifier: Apache-2.0
"""Codebooks in CSV with two columns: the name of a column of the data, and its possible values."""

import csv
import re
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

from sfumato.cli.codebook_entry import Entry, entry
from sfumato.metadata.side_file import side_text

_RANGE = re.compile(r"\s*(\S+?)\s*\.\.\s*(\S+?)\s*")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
# The "=" of <=50K is part of a value.
_LABEL = re.compile(r"(?<![<>!])=")


def described_by_csv(path: Path) -> Iterator[tuple[str, Entry]]:
    """Yields the declaration of each column; the first line of the file is a header.

    The second field has ``0..120`` or ``1900-01-01..2026-12-31`` for bounds, ``F=female`` or ``F``
    for a value. Several values are separated by ";", or are in several lines of the same column; in
    ``<=50K`` the "=" is part of the value. The label "missing" marks a code of missing values.
    "text" declares free text.
    """
    _, *rows = csv.reader(StringIO(side_text(path), newline=""))
    pieces: dict[str, list[str]] = {}
    for name, said, *_ in (row for row in rows if row):
        found = [piece.strip() for piece in said.split(";") if piece.strip()]
        pieces.setdefault(name.strip(), []).extend(found)
    for name, found in pieces.items():
        yield name, _entry(found)


def _entry(pieces: list[str]) -> Entry:
    """The declaration that the pieces of one column state together."""
    bounds: tuple[object, object] = (None, None)
    values = {}
    missing = []
    kind = ""
    for piece in pieces:
        ends = _RANGE.fullmatch(piece)
        value, *said = (part.strip() for part in _LABEL.split(piece, maxsplit=1))
        label = said[0] if said else ""
        if ends:
            bounds = (ends[1], ends[2])
            kind = _kind(ends[1] + ends[2])
        elif label.lower() == "missing":
            missing.append(value)
        elif piece == "text":
            kind = "text"
        else:
            values[value] = label or value
    return entry(kind, bounds=bounds, values=values, missing=missing)


def _kind(ends: str) -> str:
    """The type of a column, guessed from how its two bounds are written."""
    if _DAY.match(ends):
        return "date"
    return "real" if "." in ends or "e" in ends.lower() else "integer"
